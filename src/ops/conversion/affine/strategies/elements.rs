//! Maps any layouts, element by element.

use super::{Considered, Launch, Step, Task, channels, offer};
use crate::abi::{
    AFFINE_ELEMENTS, AFFINE_ELEMENTS_F64, AffineElementsParams, ELEMENTS_BLOCK, ElementsParams, Key,
    elements_per_thread,
};
use crate::element::DType;
use crate::launch_shape::LaunchShape;
use crate::ops::movement::permute::Class;
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::tuning::Maps;

/// A thread moves the number of elements that it moves of this width.
const LIKE: u32 = 4;

/// Takes all work whose values are in memory.
pub(in crate::ops::conversion::affine) fn consider(task: &Task, launch: &mut Option<Launch>) -> Considered {
    task.check_in_memory()?;
    let (walk, [src_width, dst_width], [src_type, dst_type]) = (&task.axes.walk, task.widths(), task.codes());
    let index = index(walk);
    let elements = ElementsParams {
        src: (walk.src_start * src_width) as u64,
        dst: (walk.dst_start * dst_width) as u64,
        len: walk.len() as u64,
        rank: walk.axes().len() as u64,
        axes: axes(walk.axes(), divisor(index)),
    };
    let blocks = elements.len.div_ceil(u64::from(ELEMENTS_BLOCK * elements_per_thread(LIKE)));
    let values = channels(walk.axes(), task.axes.channel, task.axes.reversed, divisor(index));
    let family = if task.types[1] == DType::F64 { AFFINE_ELEMENTS_F64 } else { AFFINE_ELEMENTS };
    *launch = Some(Launch::Elements(Step {
        entry: family.get(Key::index(index)),
        shape: LaunchShape { grid: grid(blocks), block: [ELEMENTS_BLOCK, 1, 1], dynamic_shared: 0 },
        params: AffineElementsParams { elements, src_type, dst_type, values },
    }));
    let alone = |maps: &Maps| {
        let least = match task.class() {
            Class::Crossed => maps.crossed,
            _ if task.keeps_places() => maps.kept,
            _ => maps.elements,
        };
        least.max(maps.per_element / (src_width + dst_width) as f64)
    };
    let reason = if task.is_small() {
        "a launch takes most of the time: element by element, in the destination's order"
    } else {
        "element by element, in the destination's order"
    };
    Ok(offer(task, reason, alone))
}
