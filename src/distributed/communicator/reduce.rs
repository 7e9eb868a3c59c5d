//! Reductions by messages and this crate's kernels, for engines that have none of their own.

use super::engine::{Combine, Deadline, Engine, Message, Reduce};
use crate::device::Device;
use crate::element::{DType, Number};
use crate::error::{Result, refuse};
use crate::memory::DeviceBuffer;
use crate::ops::{self, Scratch};
use crate::stream::Stream;

/// Reduces by two exchanges: each rank gets a piece of the elements of all ranks and combines it,
/// then the pieces of the result go to the ranks that want it. So each link carries the elements
/// twice, whatever the number of ranks.
///
/// # Safety
///
/// As [`Engine::reduce`].
pub(super) unsafe fn by_exchange(
    engine: &dyn Engine,
    device: &Device,
    reduce: Reduce,
    stream: &Stream,
    by: Deadline,
) -> Result<()> {
    macro_rules! by_type {
        ($($dtype:ident => $type:ty),* $(,)?) => {
            match reduce.dtype {
                // SAFETY: as the caller promises.
                $(DType::$dtype => unsafe { typed::<$type>(engine, device, reduce, stream, by) },)*
                other => refuse!(InvalidArgument, "elements of {other} cannot be reduced; give integers or floats"),
            }
        };
    }
    #[cfg(feature = "half")]
    match reduce.dtype {
        // SAFETY: as the caller promises.
        DType::F16 => return unsafe { typed::<half::f16>(engine, device, reduce, stream, by) },
        // SAFETY: as the caller promises.
        DType::Bf16 => return unsafe { typed::<half::bf16>(engine, device, reduce, stream, by) },
        _ => {}
    }
    by_type!(
        U8 => u8, U16 => u16, U32 => u32, U64 => u64, I8 => i8, I16 => i16, I32 => i32, I64 => i64, F32 => f32, F64 => f64
    )
}

/// # Safety
///
/// As [`Engine::reduce`], for elements of this type.
unsafe fn typed<T: Number>(
    engine: &dyn Engine,
    device: &Device,
    reduce: Reduce,
    stream: &Stream,
    by: Deadline,
) -> Result<()> {
    let (rank, ranks, width) = (engine.rank(), engine.ranks(), size_of::<T>() as u64);
    // The elements of a rank's piece: the first pieces are the longer ones.
    let piece = |of: usize| {
        let (share, more) = (reduce.len / ranks as u64, reduce.len % ranks as u64);
        let (start, len) = (of as u64 * share + (of as u64).min(more), share + u64::from((of as u64) < more));
        (start * width, len * width)
    };
    let message = |base: u64, of: usize, peer: usize| {
        let (start, bytes) = piece(of);
        Message { peer, address: base + start, bytes }
    };
    let mine = piece(rank).1 / width;
    let gathered: DeviceBuffer<T> = device.alloc_on(ranks * mine as usize, stream)?;
    let sends: Vec<_> = (0..ranks).map(|peer| message(reduce.from, peer, peer)).collect();
    let receives: Vec<_> = (0..ranks)
        .map(|peer| Message { peer, address: gathered.address() + peer as u64 * mine * width, bytes: mine * width })
        .collect();
    // SAFETY: the caller promises it for the source; the buffer has the pieces of all ranks, and
    // its later uses are work of the same stream.
    unsafe { engine.exchange(&sends, &receives, stream, by) }?;
    let combined = combine(&gathered, ranks, mine as usize, reduce.combine, device, stream)?;
    let wants = |peer: usize| reduce.root.is_none_or(|root| root == peer);
    let sends: Vec<_> = (0..ranks)
        .filter(|&peer| wants(peer))
        .map(|peer| Message { peer, address: combined.address(), bytes: mine * width })
        .collect();
    let receives: Vec<_> = (0..ranks).filter(|_| wants(rank)).map(|peer| message(reduce.to, peer, peer)).collect();
    // SAFETY: the caller promises it for the result, and the buffer has this rank's piece.
    unsafe { engine.exchange(&sends, &receives, stream, by) }
}

/// Combines the rows of a matrix, one from each rank.
fn combine<T: Number>(
    gathered: &DeviceBuffer<T>,
    ranks: usize,
    len: usize,
    combine: Combine,
    device: &Device,
    stream: &Stream,
) -> Result<DeviceBuffer<T>> {
    let mut result: DeviceBuffer<T> = device.alloc_on(len, stream)?;
    if len == 0 {
        return Ok(result);
    }
    let (rows, mut scratch) = (gathered.view(&[ranks, len])?, Scratch::new(device)?);
    match combine {
        Combine::Sum => {
            // Sums are wider than the elements, and become narrower once.
            let mut sum: DeviceBuffer<T::Sum> = device.alloc_on(len, stream)?;
            ops::sum_into(rows, 0, &mut scratch, sum.view_mut(&[len])?, stream)?;
            ops::cast_into(sum.view(&[len])?, result.view_mut(&[len])?, stream)?;
        }
        Combine::Min => ops::min_into(rows, 0, &mut scratch, result.view_mut(&[len])?, stream)?,
        Combine::Max => ops::max_into(rows, 0, &mut scratch, result.view_mut(&[len])?, stream)?,
    }
    Ok(result)
}
