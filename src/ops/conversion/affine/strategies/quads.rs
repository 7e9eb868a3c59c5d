//! Maps tiles of several axes by vectors, for sides whose runs start anywhere.

use super::{Considered, Launch, Step, Task, offer};
use crate::abi::{AFFINE_QUADS, AFFINE_QUADS_F64, AffineQuadsParams, AffineValues, CHANNEL_SHIFT, Divisor, Index, Key};
use crate::device::Estimated;
use crate::element::DType;
use crate::launch_shape::{LaunchShape, MAX_SHARED_BYTES};
use crate::ops::choose::Costs;
use crate::ops::movement::packing::{Cut, Marked, Packing};
use crate::ops::numbering::{grid, index};
use crate::ops::plan::{at_most, found};
use crate::ops::tuning::Tuning;

/// Takes arrays with a run on either side.
pub(in crate::ops::conversion::affine) fn consider(task: &Task, launch: &mut Option<Launch>) -> Considered {
    task.check_in_memory()?;
    let permutes = Tuning::of(task.target).permutes;
    let [from, to] = task.widths();
    let walk = task.axes.walk;
    let narrow = Some(()).filter(|()| index(&walk) == Index::Narrow);
    found(narrow, "kernels for indices of 64 bits", "the elements are more than narrow indices count")?;
    let mut packing = Packing::new(&walk, [from, to])?;
    packing.grow_quads(&permutes.quads, task.aligns);
    let channel = task.axes.channel;
    let (numbered, chunk) = channel.map_or(([1, 1], 1), |axis| packing.numbered(axis));
    let marked = Marked { axis: channel.filter(|_| chunk > 1) };
    let Cut { params: quads, blocks, threads, shared, costs, .. } =
        packing.cut(&walk, Index::Narrow, task.aligns, &permutes.quads, Some(marked))?;
    at_most(
        chunk,
        1 << (u32::BITS - CHANNEL_SHIFT),
        "channels of a tile",
        "an offset in shared memory has bits for no more",
    )?;
    let pair = 2 * if task.types[1] == DType::F64 { size_of::<f64>() } else { size_of::<f32>() };
    let pairs = (shared as usize).next_multiple_of(pair);
    let shared = pairs + chunk * pair;
    let least = "a block has less than the tile and its channels need";
    at_most(shared, MAX_SHARED_BYTES as usize, "bytes of shared memory", least)?;
    // The tile may run along the axis of channels in the other direction than the walk.
    let is_turned = channel.is_some_and(|axis| packing.axes[axis].src != walk.axes()[axis].src);
    let step = if task.axes.reversed != is_turned { -1 } else { 1 };
    let [channels, inner] = numbered.map(|number| Divisor::narrow(number as u64));
    let params = AffineQuadsParams {
        quads,
        src_type: task.codes()[0],
        pairs: pairs as u64,
        chunk: chunk as u64,
        channels: channel.map_or(1, |axis| packing.axes[axis].extent as u64),
        values: AffineValues { factor: 0, offset: 0, factors: 0, offsets: 0, step, inner, channels },
    };
    let entry = match task.types[1] {
        DType::F64 => AFFINE_QUADS_F64.get(Key::ONLY),
        to => AFFINE_QUADS.get(Key::dtype(to)),
    };
    let shape = LaunchShape { grid: grid(blocks), block: [threads, 1, 1], dynamic_shared: shared as u32 };
    *launch = Some(Launch::Quads(Step { entry, shape, params }));
    let costs = Costs::new((Estimated::Quads, from.max(to)), 1.0, costs);
    let reason = "each side has runs, which may start or end between 16-byte vectors: tiles of several axes, \
                  gathered and mapped by vectors";
    Ok(offer(task, reason, |maps| maps.quads * costs.time(maps.weights)))
}

// Addresses in shared memory lie below the marks.
const _: () = assert!(MAX_SHARED_BYTES < 1 << CHANNEL_SHIFT);
