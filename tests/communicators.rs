//! The conformance suite of communicators: one rank's share of it, for ranks that are threads or
//! processes.
//!
//! Test binaries share this file.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warpstride::device::Device;
use warpstride::distributed::{
    Combine, Communicator, Deadline, Engine, Message, Redistribution, Reduce, Shard, ShardExchange, Split, Window,
};
use warpstride::element::{Element, Number};
use warpstride::layout::Layout;
use warpstride::stream::Stream;
use warpstride::{Result, ops};

/// Runs every operation and compares the results. Each rank calls it with the same `rounds`.
pub(crate) fn conforms(communicator: &Arc<Communicator>, rounds: u64) -> Result<()> {
    messages_arrive_in_their_order(communicator)?;
    all_ranks_get_all_parts(communicator)?;
    every_root_broadcasts(communicator)?;
    reductions::<i32>(communicator, |number| number as i32 - 40)?;
    reductions::<u64>(communicator, |number| (u64::MAX - 3).wrapping_add(number))?;
    reductions::<f32>(communicator, |number| number as f32 * 0.5)?;
    reductions::<f64>(communicator, |number| -(number as f64))?;
    // Sums of bytes wrap.
    reductions::<u8>(communicator, |number| (number * 37) as u8)?;
    for round in 0..rounds {
        let drawn = Drawn::new(round, communicator.ranks());
        drawn.redistributes::<u8>(communicator)?;
        drawn.redistributes::<f32>(communicator)?;
    }
    communicator.agree("the number of rounds", &rounds)
}

/// An engine without windows, as one between hosts, so that redistributions go by messages; or one
/// that skips a meeting, as a program that forgot it.
#[derive(Debug)]
pub(crate) struct Altered {
    inner: Arc<dyn Engine>,
    /// The number of the meeting that it skips; `None` if it has no windows.
    skips: Option<u64>,
    meetings: AtomicU64,
}

impl Altered {
    fn over(communicator: &Communicator, skips: Option<u64>) -> Communicator {
        let inner = Arc::clone(communicator.engine());
        let altered = Communicator::over(Arc::new(Self { inner, skips, meetings: AtomicU64::new(0) }));
        altered.with_deadline(communicator.deadline())
    }

    /// Hides the windows of a communicator's engine.
    pub(crate) fn by_messages(communicator: &Communicator) -> Communicator {
        Self::over(communicator, None)
    }

    /// Skips the meeting with a number. That is for software GPUs alone, whose memory no wrong
    /// store harms.
    #[allow(dead_code, reason = "the tests on hardware skip none")]
    pub(crate) fn without_meeting(communicator: &Communicator, number: u64) -> Communicator {
        Self::over(communicator, Some(number))
    }
}

// SAFETY: the inner engine keeps the promises, unless a test skips a meeting of software GPUs.
unsafe impl Engine for Altered {
    fn device(&self) -> &Device {
        self.inner.device()
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    unsafe fn exchange(&self, sends: &[Message], receives: &[Message], stream: &Stream, by: Deadline) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.exchange(sends, receives, stream, by) }
    }

    unsafe fn broadcast(&self, address: u64, bytes: u64, root: usize, stream: &Stream, by: Deadline) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.broadcast(address, bytes, root, stream, by) }
    }

    unsafe fn reduce(&self, reduce: Reduce, stream: &Stream, by: Deadline) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.reduce(reduce, stream, by) }
    }

    fn window(&self, bytes: u64, by: Deadline) -> Result<Option<Window>> {
        if self.skips.is_some() { self.inner.window(bytes, by) } else { Ok(None) }
    }

    fn meet(&self, about: u64, stream: &Stream, by: Deadline) -> Result<()> {
        let is_skipped = Some(self.meetings.fetch_add(1, Ordering::Relaxed)) == self.skips;
        if is_skipped { Ok(()) } else { self.inner.meet(about, stream, by) }
    }

    fn agree(&self, about: &str, digest: u64, by: Deadline) -> Result<()> {
        self.inner.agree(about, digest, by)
    }

    fn check(&self) -> Result<()> {
        self.inner.check()
    }

    fn may_still_run(&self) -> bool {
        self.inner.may_still_run()
    }

    fn abort(&self, why: &str) {
        self.inner.abort(why);
    }
}

/// Elements that no other rank and place has.
fn elements(rank: usize, len: usize) -> Vec<u32> {
    (0..len).map(|at| (rank << 20 | at) as u32).collect()
}

fn messages_arrive_in_their_order(communicator: &Communicator) -> Result<()> {
    let (device, rank, ranks) = (communicator.device(), communicator.rank(), communicator.ranks());
    let (stream, next, before) = (device.stream()?, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
    for len in [1, 3, 1000, 70_001] {
        let (first, second) =
            (device.array(&[len], &elements(rank, len))?, device.array(&[2], &elements(rank + 64, 2))?);
        let (mut got, mut more) = (device.alloc_array::<u32>(&[len])?, device.alloc_array::<u32>(&[2])?);
        communicator.exchange(
            &[(first.view(), next), (second.view(), next)],
            &mut [(got.view_mut(), before), (more.view_mut(), before)],
            &stream,
        )?;
        // A message at a time: even ranks send first, odd ones receive first.
        let mut again = device.alloc_array::<u32>(&[len])?;
        for sends in [rank % 2 == 0, rank % 2 == 1] {
            match sends {
                _ if ranks == 1 => {}
                true => communicator.send(&first, next, &stream)?,
                false => communicator.receive(&mut again, before, &stream)?,
            }
        }
        communicator.wait(&stream)?;
        assert_eq!(got.to_vec()?, elements(before, len));
        assert_eq!(more.to_vec()?, elements(before + 64, 2));
        assert!(ranks == 1 || again.to_vec()? == elements(before, len));
    }
    Ok(())
}

fn all_ranks_get_all_parts(communicator: &Communicator) -> Result<()> {
    let (device, rank, ranks) = (communicator.device(), communicator.rank(), communicator.ranks());
    let shape = [2 * ranks, 5];
    let source = device.array(&shape, &elements(rank, 10 * ranks))?;
    let mut result = device.alloc_array(&shape)?;
    communicator.all_to_all(&source, &mut result, device.default_stream())?;
    communicator.wait(device.default_stream())?;
    let expected: Vec<u32> =
        (0..ranks).flat_map(|peer| elements(peer, 10 * ranks)[10 * rank..][..10].to_vec()).collect();
    assert_eq!(result.to_vec()?, expected);
    Ok(())
}

fn every_root_broadcasts(communicator: &Communicator) -> Result<()> {
    let (device, rank, ranks) = (communicator.device(), communicator.rank(), communicator.ranks());
    for root in 0..ranks {
        let mut array = device.array(&[301], &elements(rank, 301))?;
        communicator.broadcast(&mut array, root, device.default_stream())?;
        communicator.wait(device.default_stream())?;
        assert_eq!(array.to_vec()?, elements(root, 301));
    }
    Ok(())
}

fn reductions<T: Number + PartialOrd + Sums>(communicator: &Communicator, of: impl Fn(u64) -> T) -> Result<()> {
    let (device, rank, ranks) = (communicator.device(), communicator.rank(), communicator.ranks());
    let len = 2 * ranks + 1;
    let mine = |rank: usize| (0..len).map(|at| of((rank * 3 + at) as u64)).collect::<Vec<T>>();
    let source = device.array(&[len], &mine(rank))?;
    for combine in [Combine::Sum, Combine::Min, Combine::Max] {
        let both = |a: T, b: T| match combine {
            Combine::Min if b < a => b,
            Combine::Max if b > a => b,
            Combine::Sum => a.plus(b),
            _ => a,
        };
        let column = |at: usize| (0..ranks).map(|rank| mine(rank)[at]).reduce(both).expect("a rank");
        let expected: Vec<T> = (0..len).map(column).collect();
        let mut result = device.array(&[len], &mine(rank))?;
        communicator.all_reduce(&source, &mut result, combine, device.default_stream())?;
        communicator.wait(device.default_stream())?;
        assert_eq!(result.to_vec()?, expected, "{combine:?} of {}", T::DTYPE);
        for root in 0..ranks {
            let mut result = device.array(&[len], &mine(rank))?;
            communicator.reduce(&source, &mut result, combine, root, device.default_stream())?;
            communicator.wait(device.default_stream())?;
            assert_eq!(result.to_vec()?, if rank == root { expected.clone() } else { mine(rank) });
        }
    }
    Ok(())
}

/// Numbers whose sums wrap as kernels' do.
pub(crate) trait Sums: Copy {
    fn plus(self, other: Self) -> Self;
}

macro_rules! sums {
    ($($type:ty: $plus:expr;)*) => {$(
        impl Sums for $type {
            fn plus(self, other: Self) -> Self {
                let plus: fn(Self, Self) -> Self = $plus;
                plus(self, other)
            }
        }
    )*};
}

sums! {
    u8: u8::wrapping_add;
    i32: i32::wrapping_add;
    u64: u64::wrapping_add;
    f32: |a, b| a + b;
    f64: |a, b| a + b;
}

/// A redistribution that a number decides.
struct Drawn {
    shape: Vec<usize>,
    order: Vec<usize>,
    from: Split,
    to: Split,
    piece: u64,
}

/// A generator of numbers, the same for all ranks.
struct Draw(u64);

impl Draw {
    /// Returns a number below `bound`, by splitmix64.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn split(&mut self, shape: &[usize], ranks: usize) -> Split {
        let mut split = Split::whole(shape).expect("a shape");
        let axis = self.below(shape.len());
        let parts = 1 + self.below(ranks);
        split = split.cut(axis, parts).expect("an axis");
        if shape.len() > 1 && ranks / parts > 1 {
            let other = (axis + 1) % shape.len();
            let first = self.below(shape[other] + 1);
            split = split.cut_at(other, &[first, shape[other] - first]).expect("the other axis");
        }
        match self.below(3) {
            0 => split.padded(&shape.iter().map(|extent| extent + 1).collect::<Vec<_>>()).expect("room"),
            _ => split,
        }
    }
}

impl Drawn {
    fn new(round: u64, ranks: usize) -> Self {
        let mut draw = Draw(round);
        let shape: Vec<usize> = (0..1 + draw.below(4)).map(|_| 1 + draw.below(9)).collect();
        let mut order: Vec<usize> = (0..shape.len()).collect();
        (1..shape.len()).for_each(|at| order.swap(at, draw.below(at + 1)));
        let result: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let (from, to) = (draw.split(&shape, ranks), draw.split(&result, ranks));
        let piece = [1, 16, 100, 1 << 20][draw.below(4)];
        Self { shape, order, from, to, piece }
    }

    /// Redistributes twice, and compares this rank's part.
    fn redistributes<T: Element + TryFrom<u8>>(&self, communicator: &Arc<Communicator>) -> Result<()> {
        let Self { shape, order, from, to, piece } = self;
        let (device, rank) = (communicator.device(), communicator.rank());
        let all: Vec<T> =
            (0..shape.iter().product()).map(|at: usize| T::try_from(at as u8).ok().expect("a byte")).collect();
        let source = Shard::of_whole(communicator, from, &all)?;
        let mut result = Shard::alloc(device, to, rank)?;
        let plan = Redistribution::new(from, order.clone(), to, size_of::<T>())?;
        let exchange = ShardExchange::in_pieces(communicator, &plan, *piece)?;
        exchange.launch(&source, &mut result)?;
        exchange.launch(&source, &mut result)?;
        communicator.wait(device.default_stream())?;
        let part = to.part(rank);
        let region = part.start().iter().zip(part.shape()).map(|(&start, &extent)| start..start + extent).collect();
        assert_eq!(ops::contiguous(result.view())?.to_vec()?, self.expected(&all, region), "{plan}, rank {rank}");
        Ok(())
    }

    /// The elements of the result in a box.
    fn expected<T: Copy>(&self, all: &[T], region: Vec<Range<usize>>) -> Vec<T> {
        let permuted =
            Layout::row_major(&self.shape).and_then(|layout| layout.permuted_axes(&self.order)).expect("an order");
        let slice = |layout: Layout, (axis, range): (usize, Range<usize>)| layout.slice(axis, range, 1).expect("a box");
        let part = region.into_iter().enumerate().fold(permuted, slice);
        let element = |number: usize| {
            let (mut rest, mut index) = (number, vec![0; part.shape().len()]);
            for (at, &extent) in index.iter_mut().zip(part.shape()).rev() {
                *at = rest % extent;
                rest /= extent;
            }
            all[part.offset_of(&index).expect("within the array")]
        };
        (0..part.len()).map(element).collect()
    }
}
