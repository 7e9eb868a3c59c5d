//! The CUDA runtime functions that compilers call: `vprintf`, `__assertfail`, `malloc` and `free`.

use super::call::{give, passed};
use super::printf::{Values, format};
use super::tally::MAX_PRINTED;
use super::warp::Warp;
use super::{Context, Fault, Result};
use crate::gpu::check::Check;
use crate::gpu::code::Layout;
use crate::gpu::mem::BadFree;
use crate::gpu::mem::cells::Cells;
use crate::gpu::mem::space;
use crate::gpu::reason::{BadAccess, Reason};
use crate::gpu::vocabulary::{AccessKind, LANES, Space, lanes_of};

/// The number of bytes of a string that are read at most.
const MAX_TEXT: u64 = 4096;
/// The work of a lane's `printf`, besides one unit for each byte read or printed.
const PRINT_WORK: u64 = 16;
/// The work of taking or freeing a chunk of the heap, and the bytes that one unit of work fills.
const HEAP_WORK: u64 = 32;
const FILLED_BYTES: u64 = 64;
/// The return value of `vprintf` without a format.
const NO_FORMAT: u32 = u32::MAX;

/// Executes `vprintf(format, values)`, lane after lane.
pub(super) fn print(cx: &mut Context, warp: &mut Warp, mask: u32, layout: &Layout) -> Result<()> {
    let [formats, values] = [0, 1].map(|index| passed(warp, layout, index));
    let mut counts = [NO_FORMAT; LANES];
    for lane in lanes_of(mask).filter(|&lane| formats[lane] != 0) {
        let text = text(cx, warp, lane, formats[lane])?;
        let mut out = std::mem::take(cx.printed);
        let before = out.len();
        let mut given = Given { cx, warp, lane, at: values[lane], read: text.len() };
        let printed = format(&text, &mut given, &mut out);
        warp.work += PRINT_WORK + (given.read + out.len() - before) as u64;
        // One byte more than the limit is enough to report the rest as lost; a loop that prints
        // must not fill the host's memory.
        out.truncate(MAX_PRINTED + 1);
        *cx.printed = out;
        counts[lane] = printed?;
    }
    give(warp, layout, mask, |lane| u64::from(counts[lane]));
    Ok(())
}

/// Executes `malloc(bytes)`, lane after lane. It returns null where the heap has no room.
pub(super) fn allocate(cx: &mut Context, warp: &mut Warp, mask: u32, layout: &Layout) {
    let (sizes, mut chunks) = (passed(warp, layout, 0), [0; LANES]);
    for lane in lanes_of(mask) {
        warp.work += HEAP_WORK;
        let Some((heap, chunk)) = cx.heap.and_then(|heap| Some((heap, heap.take_chunk(sizes[lane])?))) else {
            continue;
        };
        warp.work += sizes[lane] / FILLED_BYTES;
        if let Some(checker) = &mut cx.checker {
            checker.renewed(heap, chunk, sizes[lane]);
        }
        chunks[lane] = chunk;
    }
    give(warp, layout, mask, |lane| chunks[lane]);
}

/// Executes `free(address)`, lane after lane. Null needs no work. An address that `malloc` did not
/// return, or that was freed, stops the launch; with memcheck it is a finding.
pub(super) fn free(cx: &mut Context, warp: &mut Warp, mask: u32, layout: &Layout) -> Result<()> {
    let addresses = passed(warp, layout, 0);
    for lane in lanes_of(mask).filter(|&lane| addresses[lane] != 0) {
        warp.work += HEAP_WORK;
        let address = addresses[lane];
        let freed = cx.heap.map_or(Err(BadFree::Foreign), |heap| heap.free_chunk(address));
        let Err(why) = freed else { continue };
        let reason = Reason::BadFree { address, again: why == BadFree::Again };
        let (index, pc) = (cx.warp, warp.pc - 1);
        if !cx.checker.as_mut().is_some_and(|checker| checker.fault(Check::Memcheck, index, lane as u32, pc, &reason)) {
            return Err(Fault::new(lane as u32, reason));
        }
    }
    Ok(())
}

/// `__assertfail(message, file, line, function, size of a character)`
pub(super) fn assertion(cx: &Context, warp: &Warp, mask: u32, layout: &Layout) -> Box<Fault> {
    let lane = mask.trailing_zeros();
    let read = |index: usize| {
        let text = text(cx, warp, lane as usize, passed(warp, layout, index)[lane as usize])?;
        Ok::<_, Box<Fault>>(String::from_utf8_lossy(&text).into_owned())
    };
    let line = passed(warp, layout, 2)[lane as usize] as u32;
    match (read(0), read(1), read(3)) {
        (Ok(message), Ok(file), Ok(function)) => Fault::new(lane, Reason::Assertion { message, file, line, function }),
        (Err(fault), ..) | (_, Err(fault), _) | (.., Err(fault)) => fault,
    }
}

/// The arguments of a format: values side by side in the thread's memory, each aligned to its size.
struct Given<'c, 'a> {
    cx: &'c Context<'a>,
    warp: &'c Warp,
    lane: usize,
    at: u64,
    /// Bytes read so far.
    read: usize,
}

impl Values for Given<'_, '_> {
    type Error = Box<Fault>;

    fn value(&mut self, bytes: u64) -> Result<u64> {
        let at = self.at.checked_next_multiple_of(bytes).unwrap_or(u64::MAX);
        self.at = at.saturating_add(bytes);
        self.read += bytes as usize;
        (0..bytes).try_fold(0, |value, index| {
            let byte = byte(self.cx, self.warp, self.lane, at.saturating_add(index))?;
            Ok(value | u64::from(byte) << (8 * index))
        })
    }

    fn text(&mut self, address: u64) -> Result<Vec<u8>> {
        let text = text(self.cx, self.warp, self.lane, address)?;
        self.read += text.len();
        Ok(text)
    }
}

/// Reads a string up to its terminating zero.
fn text(cx: &Context, warp: &Warp, lane: usize, address: u64) -> Result<Vec<u8>> {
    let bytes = (0..MAX_TEXT).map(|index| byte(cx, warp, lane, address.saturating_add(index)));
    bytes.take_while(|byte| !matches!(byte, Ok(0))).collect()
}

/// Reads the byte at a generic address.
fn byte(cx: &Context, warp: &Warp, lane: usize, address: u64) -> Result<u8> {
    let base = space::window(address);
    let offset = address - base;
    let (space, size) = match base {
        space::SHARED => (Space::Shared, cx.shared.bytes),
        space::LOCAL => (Space::Local, u64::from(warp.frame.end)),
        space::PARAM => (Space::Param, cx.params.bytes),
        _ => (Space::Global, 0),
    };
    let found = match space {
        Space::Global => cx.global.find(address).and_then(|live| Some(live.load8(live.offset(address, 1)?))),
        _ if offset >= size => None,
        Space::Shared => Some(cx.shared.load8(offset)),
        Space::Local => Some(warp.local.load8(lane as u64 * warp.stride + offset)),
        Space::Param => Some(cx.params.load8(offset)),
    };
    found.ok_or_else(|| {
        let nearest = (space == Space::Global).then(|| cx.global.nearest(address)).flatten();
        let (access, address) = (AccessKind::Load, offset);
        let bad = BadAccess { access, space, bytes: 1, address, nearest, space_bytes: size };
        Fault::new(lane as u32, Reason::OutOfBounds(bad))
    })
}
