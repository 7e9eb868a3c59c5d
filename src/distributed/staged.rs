//! Copies that copy engines make: between GPUs that use each other's memory, or through the host.
//!
//! The source's rank packs a piece side by side, where its elements do not lie so already. The
//! other rank fetches it, and sorts it, where its elements do not lie side by side in the result.
//! If the GPUs do not use each other's memory, the source's rank copies the piece to pinned host
//! memory first, and the other rank fetches it from there. The source's buffers have two halves, so
//! that one is filled while the other is emptied. Each rank has one stream for what leaves it and
//! one for what arrives, so both directions are busy at once, and pieces arrive at a GPU one after
//! another: several copies into one GPU at once are no faster. Events order all of it, and the host
//! waits for nothing. Streams can wait for events of devices whose memory they do not reach.

use std::fmt;
use std::sync::Arc;

use super::gpus::Rank;
use super::shards::pieces::{Piece, Sizes, pieces};
use super::ways::Way;
use super::{Gpus, Move};
use crate::context::{Allocation, Shared};
use crate::device::Device;
use crate::driver::{Driver, Multiprocessors};
use crate::error::{Result, counted};
use crate::layout::Layout;
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::ops::{Align, PermutePlan, Target};
use crate::stream::{Event, Stream};

/// The most bytes of a piece. It was chosen and not measured: a copy of so many takes hundreds of
/// microseconds over PCIe, many times what its start takes, and the host keeps two for each rank.
pub(super) const PIECE: u64 = 16 << 20;

/// Halves of a buffer begin at multiples of so many bytes.
const BEGIN: usize = Align::ALLOCATION.bytes() as usize;

/// Copies between pairs of ranks, which run at once.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pairs: Vec<Pair>,
    /// In the order in which they are queued.
    hops: Vec<Hop>,
    /// Rank by rank; `None` where nothing leaves or arrives.
    outs: Vec<Option<Out>>,
    ins: Vec<Option<In>>,
}

/// The copy from a rank to another.
#[derive(Debug)]
struct Pair {
    from: usize,
    to: usize,
    bytes: u64,
    /// By engines, or through the host.
    way: Way,
    /// Recorded on the stream of what arrives, when a half of the source's buffers is free again.
    emptied: [Event; 2],
}

/// A piece of a copy.
#[derive(Debug)]
struct Hop {
    /// The number of its pair.
    pair: usize,
    /// The half of the source's buffers that it uses.
    half: usize,
    /// The pair whose piece used the half before in the same launch.
    after: Option<usize>,
    bytes: usize,
    /// The places of its first byte in both parts, in bytes, which serve where nothing is packed
    /// or sorted.
    at: [u64; 2],
    pack: Option<PermutePlan>,
    sort: Option<PermutePlan>,
}

/// The stream and the buffers of the pieces that leave a rank.
#[derive(Debug)]
struct Out {
    stream: Stream,
    /// Recorded when a half of the host's buffer has a piece.
    filled: [Event; 2],
    /// The pairs and halves of the last pieces that use each half. When these are free, all pieces
    /// have left.
    last: Vec<(usize, usize)>,
    /// Both halves; empty if nothing is packed.
    packed: DeviceBuffer<u8>,
    /// Both halves; empty if nothing goes through the host. The drop of the copies takes it.
    host: Option<PinnedBuffer<u8>>,
    /// The bytes of a half of both.
    half_bytes: [usize; 2],
}

/// The stream and the buffer of the pieces that arrive at a rank, one after another.
#[derive(Debug)]
struct In {
    stream: Stream,
    /// Recorded when all pieces are in their places.
    joined: Event,
    /// A piece that is sorted from here; empty if none is.
    arrived: DeviceBuffer<u8>,
}

impl Staged {
    /// Plans copies of elements of `width` bytes, rank by rank, and allocates what they need. The
    /// axes of the source are in this order in the result. Pieces have at most so many bytes, or
    /// one element.
    pub(super) fn new(
        gpus: &Gpus,
        (axes, width): (&[usize], usize),
        moves: &[Vec<(Way, Move)>],
        piece: u64,
    ) -> Result<Self> {
        let mut staged = Self::default();
        let mut leaving: Vec<Vec<Hop>> = Vec::with_capacity(moves.len());
        for of_rank in moves {
            let mut hops = Vec::new();
            for (way, part) in of_rank {
                let event = || Event::untimed(gpus.device(part.to));
                let pair = staged.pairs.len();
                staged.pairs.push(Pair {
                    from: part.from,
                    to: part.to,
                    bytes: part.bytes,
                    way: *way,
                    emptied: [event()?, event()?],
                });
                for cut in cut(part, *way, (axes, width), piece) {
                    hops.push(staged.hop(gpus, pair, &cut, width, &hops)?);
                }
            }
            leaving.push(hops);
        }
        for rank in 0..gpus.len() {
            let none = Vec::new();
            staged.outs.push(staged.out(gpus, rank, leaving.get(rank).unwrap_or(&none))?);
            let arriving = || leaving.iter().flatten().filter(|hop| staged.pairs[hop.pair].to == rank);
            let sorted = arriving().filter(|hop| hop.sort.is_some()).map(|hop| hop.bytes).max();
            let arrives = arriving().next().is_some();
            staged.ins.push(arrives.then(|| In::new(gpus, rank, sorted.unwrap_or(0))).transpose()?);
        }
        staged.hops = by_turns(leaving);
        Ok(staged)
    }

    /// Plans a piece behind others that leave the same rank.
    fn hop(&self, gpus: &Gpus, pair: usize, cut: &Cut, width: usize, before: &[Hop]) -> Result<Hop> {
        let Pair { from, to, .. } = self.pairs[pair];
        let kernel = |[src, dst]: [&Layout; 2], rank| {
            let target = Target::of(gpus.device(rank));
            PermutePlan::new(src, Align::ALLOCATION, dst, Align::ALLOCATION, width, target)
        };
        let Cut { piece, at, bytes } = cut;
        let between = Layout::row_major(piece.src.shape())?;
        let pack = piece.is_packed().then(|| kernel([&piece.src, &between], from)).transpose()?;
        let sort = piece.is_unpacked().then(|| kernel([&between, &piece.dst], to)).transpose()?;
        let after = before.len().checked_sub(2).map(|earlier| before[earlier].pair);
        Ok(Hop { pair, half: before.len() % 2, after, bytes: *bytes as usize, at: *at, pack, sort })
    }

    /// Plans the stream and the buffers of pieces that leave a rank.
    fn out(&self, gpus: &Gpus, rank: usize, hops: &[Hop]) -> Result<Option<Out>> {
        if hops.is_empty() {
            return Ok(None);
        }
        let device = gpus.device(rank);
        let most = |uses: &dyn Fn(&Hop) -> bool| {
            let bytes = hops.iter().filter(|hop| uses(hop)).map(|hop| hop.bytes).max();
            bytes.unwrap_or(0).next_multiple_of(BEGIN)
        };
        let half_bytes = [most(&|hop| hop.pack.is_some()), most(&|hop| self.pairs[hop.pair].way == Way::Host)];
        let mut last: Vec<(usize, usize)> = hops.iter().rev().take(2).map(|hop| (hop.pair, hop.half)).collect();
        // Those of one pair arrive one after another.
        last.dedup_by_key(|(pair, _)| *pair);
        Ok(Some(Out {
            last,
            stream: stream(gpus, rank)?,
            filled: [Event::untimed(device)?, Event::untimed(device)?],
            packed: device.alloc(2 * half_bytes[0])?,
            host: Some(device.pinned(2 * half_bytes[1])?),
            half_bytes,
        }))
    }

    /// Returns the ranks of each copy that takes this way.
    pub(super) fn pairs(&self, way: Way) -> impl Iterator<Item = (usize, usize)> {
        self.pairs.iter().filter(move |pair| pair.way == way).map(|pair| (pair.from, pair.to))
    }

    /// Returns the buffers of the devices, each with the stream that its uses are joined to.
    pub(super) fn memory<'a>(
        &'a self,
        ranks: &'a [Rank],
    ) -> impl Iterator<Item = (&'a Stream, &'a Shared<Allocation>)> {
        let outs = self.outs.iter().zip(ranks).filter_map(|(out, rank)| Some((rank, &out.as_ref()?.packed)));
        let ins = self.ins.iter().zip(ranks).filter_map(|(arriving, rank)| Some((rank, &arriving.as_ref()?.arrived)));
        outs.chain(ins).map(|(rank, buffer)| (rank.device.default_stream(), buffer.memory()))
    }

    /// Queues all pieces behind the operands, which each rank's `ready` stands for. After an error
    /// nothing that is queued runs any more.
    ///
    /// # Safety
    ///
    /// - The parts that were planned lie at these addresses, and nothing else writes those of the
    ///   sources, or uses the elements of the results, until what is queued here has run.
    /// - The callers are one at a time, and [`Staged::join`] follows.
    pub(super) unsafe fn queue(&self, ranks: &[Rank], from: &[u64], to: &[u64]) -> Result<()> {
        let streams = |rank: usize| {
            let out = self.outs[rank].as_ref().map(|out| &out.stream);
            out.into_iter().chain(self.ins[rank].as_ref().map(|arriving| &arriving.stream))
        };
        let mut ready = (0..self.outs.len()).flat_map(|rank| streams(rank).map(move |stream| (rank, stream)));
        let queued = ready.try_for_each(|(rank, stream)| stream.wait(&ranks[rank].ready)).and_then(|()| {
            self.hops.iter().try_for_each(|hop| {
                let Pair { from: source, to: target, .. } = self.pairs[hop.pair];
                // SAFETY: as the caller promises.
                unsafe { self.queue_hop(hop, [&ranks[source].device, &ranks[target].device], from[source], to[target]) }
            })
        });
        if queued.is_err() {
            // Pieces may be queued that have no event behind them for others to wait for.
            self.wait();
        }
        queued
    }

    /// Queues a piece.
    ///
    /// # Safety
    ///
    /// As [`Staged::queue`], for the parts at these addresses.
    unsafe fn queue_hop(&self, hop: &Hop, [source, target]: [&Device; 2], from: u64, to: u64) -> Result<()> {
        let pair = &self.pairs[hop.pair];
        let (out, arriving) = self.ends(pair);
        let [packed, host] = out.half_bytes.map(|bytes| hop.half * bytes);
        if let Some(before) = hop.after {
            out.stream.wait_across(&self.pairs[before].emptied[hop.half])?;
        }
        let src = match &hop.pack {
            Some(kernel) => {
                let packed = out.packed.address() + packed as u64;
                // SAFETY: as the caller promises. The half has room for the piece.
                unsafe { kernel.launch_raw(source, from, packed, out.stream.handle()) }?;
                packed
            }
            None => from + hop.at[0],
        };
        let memory = out.host.as_ref().expect("it is taken by the drop").as_ptr_in_flight().wrapping_add(host);
        if pair.way == Way::Host {
            // SAFETY: the half has room for the piece. Before the memory is used otherwise, all
            // copies have run: see the drop.
            unsafe { driver(source).copy_d2h(memory, src, hop.bytes, out.stream.handle()) }?;
        }
        out.stream.record(&out.filled[hop.half])?;
        arriving.stream.wait_across(&out.filled[hop.half])?;
        let dst = if hop.sort.is_some() { arriving.arrived.address() } else { to + hop.at[1] };
        let stream = arriving.stream.handle();
        if pair.way == Way::Host {
            // SAFETY: as above. The next copy into the half waits for this one, and the buffer's
            // last piece was sorted by work of this stream.
            unsafe { driver(target).copy_h2d(dst, memory, hop.bytes, stream) }?;
        } else {
            // SAFETY: as above, and the GPUs use each other's memory, as the choice of the way saw.
            unsafe { driver(target).copy_d2d(dst, src, hop.bytes as u64, stream) }?;
        }
        arriving.stream.record(&pair.emptied[hop.half])?;
        match &hop.sort {
            // SAFETY: as the caller promises.
            Some(kernel) => unsafe { kernel.launch_raw(target, dst, to, arriving.stream.handle()) },
            None => Ok(()),
        }
    }

    fn ends(&self, pair: &Pair) -> (&Out, &In) {
        let planned = "each pair has both ends";
        (self.outs[pair.from].as_ref().expect(planned), self.ins[pair.to].as_ref().expect(planned))
    }

    /// Makes the default stream of each rank wait for what reads or writes its operands, and for
    /// all uses of its buffers.
    pub(super) fn join(&self, ranks: &[Rank]) -> Result<()> {
        for (arriving, rank) in self.ins.iter().zip(ranks) {
            if let Some(In { stream, joined, .. }) = arriving {
                stream.record(joined)?;
                rank.device.default_stream().wait(joined)?;
            }
        }
        for (out, rank) in self.outs.iter().zip(ranks) {
            for &(pair, half) in out.iter().flat_map(|out| &out.last) {
                rank.device.default_stream().wait_across(&self.pairs[pair].emptied[half])?;
            }
        }
        Ok(())
    }

    /// Waits for all that is queued. A stream whose wait fails has stopped its work.
    pub(super) fn wait(&self) {
        let outs = self.outs.iter().flatten().map(|out| &out.stream);
        for stream in outs.chain(self.ins.iter().flatten().map(|arriving| &arriving.stream)) {
            let _ = stream.synchronize();
        }
    }
}

/// The host's memory may be in use, and the drop does not wait: each device keeps what it has until
/// its default stream, to which all uses are joined, has come here.
impl Drop for Staged {
    fn drop(&mut self) {
        for out in self.outs.iter_mut().flatten() {
            let Some(host) = out.host.take().filter(|_| out.half_bytes[1] > 0) else { continue };
            let (context, stream) = (out.stream.context(), out.packed.device().default_stream());
            let event = context.ordering_event().and_then(|event| {
                // SAFETY: the event is live, and of the stream's driver.
                let recorded = unsafe { context.driver().event_record(event, stream.handle()) };
                recorded.inspect_err(|_| context.retire(event)).map(|()| event)
            });
            match event {
                Ok(event) => host.into_lent().into_iter().for_each(|lent| context.park(event, lent)),
                // A device whose wait fails has stopped its work.
                Err(_) => drop(stream.synchronize()),
            }
        }
    }
}

impl In {
    fn new(gpus: &Gpus, rank: usize, bytes: usize) -> Result<Self> {
        let device = gpus.device(rank);
        Ok(Self { stream: stream(gpus, rank)?, joined: Event::untimed(device)?, arrived: device.alloc(bytes)? })
    }
}

/// Makes a stream on the multiprocessors that exchanges may use.
fn stream(gpus: &Gpus, rank: usize) -> Result<Stream> {
    let device = gpus.device(rank);
    match gpus.limit() {
        Some(count) => Stream::on(device, Multiprocessors { first: 0, count }),
        None => device.stream(),
    }
}

fn driver(device: &Device) -> &Arc<dyn Driver> {
    device.context().driver()
}

/// A piece, with the places of its first byte in both parts.
struct Cut {
    piece: Piece,
    at: [u64; 2],
    bytes: u64,
}

/// Cuts a copy into pieces of at most so many bytes, or of one element.
fn cut(part: &Move, way: Way, (axes, width): (&[usize], usize), most: u64) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let most = most.max(width as u64);
    for piece in pieces(part, axes, width, Sizes::Most(most)) {
        let [src, dst] = [&piece.src, &piece.dst].map(|layout| layout.offset() as u64 * width as u64);
        // Bytes that lie side by side in both parts are cut anywhere, and only the way through the
        // host needs that.
        let is_whole = way == Way::Engine || piece.is_packed() || piece.is_unpacked();
        let step = if is_whole { piece.bytes } else { most };
        for start in (0..piece.bytes).step_by(step.max(1) as usize) {
            let bytes = step.min(piece.bytes - start);
            cuts.push(Cut { piece: piece.clone(), at: [src + start, dst + start], bytes });
        }
    }
    cuts
}

/// Takes a piece of each rank in turn, so that a rank that gets from several begins with each of
/// them early.
fn by_turns(leaving: Vec<Vec<Hop>>) -> Vec<Hop> {
    let mut ranks: Vec<_> = leaving.into_iter().map(Vec::into_iter).collect();
    let mut hops = Vec::new();
    loop {
        let before = hops.len();
        hops.extend(ranks.iter_mut().filter_map(Iterator::next));
        if hops.len() == before {
            return hops;
        }
    }
}

/// A line for each pair.
impl fmt::Display for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Pair { from, to, bytes, way, .. }) in self.pairs.iter().enumerate() {
            let hops = || self.hops.iter().filter(|hop| hop.pair == number);
            let (bytes, pieces) = (counted(*bytes, "byte"), counted(hops().count(), "piece"));
            write!(f, "\nrank {from} to {to}: {bytes} in {pieces} {}", way.name())?;
            for (what, kernel) in hops().take(1).flat_map(|hop| [("packed", &hop.pack), ("sorted", &hop.sort)]) {
                if let Some(kernel) = kernel {
                    write!(f, "\n  {what} by {kernel}")?;
                }
            }
        }
        Ok(())
    }
}
