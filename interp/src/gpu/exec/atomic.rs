//! Atomics: replaces each lane's value in memory by a function of the old value and the lane's
//! operands, one lane after the other in order, as an H100 does in global and shared memory.
//!
//! Between blocks, every atomic acquires and releases, whatever the PTX asks for: on the host that
//! costs nothing.

use super::memory::{Action, Addresses, active, after_poll, update};
use super::registers::Value;
use super::tally::Seen;
use super::warp::Warp;
use super::{Context, Flow, Issue};
use crate::gpu::mem::cells::Cells;
use crate::gpu::vocabulary::LANES;

/// A type of values that atomics act on.
pub(super) trait Operand: Value {
    /// Applies the function as the atomic units of global memory do.
    fn in_global(function: Function<Self>, old: Self, b: Self, c: Self) -> Self {
        function(old, b, c)
    }
    /// Applies the function as shared memory does.
    fn in_shared(function: Function<Self>, old: Self, b: Self, c: Self) -> Self {
        function(old, b, c)
    }
}

/// Computes the new value from the old one and the lane's operands.
type Function<T> = fn(T, T, T) -> T;

impl Operand for u16 {}
impl Operand for u32 {}
impl Operand for i32 {}
impl Operand for u64 {}
impl Operand for i64 {}

impl Operand for f32 {
    /// Global memory, unlike shared memory, flushes denormals to zeros of the same sign.
    fn in_global(function: Function<Self>, old: Self, b: Self, c: Self) -> Self {
        let flushed = |value: f32| if value.is_subnormal() { 0.0_f32.copysign(value) } else { value };
        flushed(function(flushed(old), flushed(b), c))
    }
}

impl Operand for f64 {
    /// If an operand is a NaN, it is the result, unchanged; the lane's operand takes precedence
    /// over the old value.
    fn in_global(function: Function<Self>, old: Self, b: Self, c: Self) -> Self {
        let nan = [b, old].into_iter().find(|value| value.is_nan());
        nan.unwrap_or_else(|| made(function(old, b, c)))
    }
    /// If an operand is a NaN, it is the result, made quiet; the old value takes precedence over
    /// the lane's operand.
    fn in_shared(function: Function<Self>, old: Self, b: Self, c: Self) -> Self {
        let nan = [old, b].into_iter().find(|value| value.is_nan());
        nan.map_or_else(|| made(function(old, b, c)), |nan| f64::from_bits(nan.to_bits() | 1 << 51))
    }
}

/// Returns the NaN that the hardware makes for a sum that is not a number, such as that of opposite
/// infinities.
fn made(sum: f64) -> f64 {
    if sum.is_nan() { f64::from_bits(0xfff8 << 48) } else { sum }
}

struct Atomic<T>(Function<T>);

impl<T> Clone for Atomic<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Atomic<T> {}

impl<T: Operand> Action for Atomic<T> {
    fn act<C: Cells>(self, cells: &C, warp: &mut Warp, Issue { ins, mask }: Issue, offsets: &Addresses) {
        let (mut changed, mut seen) = (false, Seen::NOTHING);
        for element in 0..u16::from(ins.access.count) {
            let [b, c] = [ins.s[1], ins.s[2]].map(|first| T::read(&warp.registers, first + element));
            let mut before = [0; LANES];
            active(mask, |lane| {
                let (b, c) = (T::lane(&b, lane), T::lane(&c, lane));
                let apply = if C::GLOBAL { T::in_global } else { T::in_shared };
                let new = |old: u64| apply(self.0, T::of_bits(old), b, c).bits();
                let offset = offsets[lane] + u64::from(element) * u64::from(ins.access.width);
                before[lane] = cells.update(offset, ins.access.width, new);
                changed |= new(before[lane]) != before[lane];
                seen.add(before[lane]);
            });
            T::write(&mut warp.registers, ins.s[0] + element, &T::row(|lane| T::of_bits(before[lane])), mask);
        }
        // A reduction returns nothing, so no thread waits with it.
        if !ins.access.sync.is_reduction() && (warp.has_news(ins, seen) || changed) {
            warp.go_on();
        }
    }
}

/// Executes `atom` and `red` with this function.
pub(super) fn apply<T: Operand>(cx: &mut Context, warp: &mut Warp, issue: Issue, function: Function<T>) -> Flow {
    let flow = update(cx, warp, issue, Atomic(function));
    if issue.ins.access.sync.is_reduction() { flow } else { after_poll(flow, warp) }
}
