//! Element-wise operations on contiguous arrays, with BabelStream's names.

use crate::abi::{ElementwiseParams, FillParams, IterateParams};
use crate::block;
use crate::index::span;
use crate::thread::cache::Cache;
use crate::thread::number::{Number, Real};
use crate::thread::quad::Lanes;
use crate::thread::{self, B8, B32, Global, Quad, Word};

/// The formula of an element.
pub trait Formula {
    /// True if the formula reads the old element.
    const OLD: bool = false;
    /// True if it reads a second operand.
    const SECOND: bool = false;

    /// Returns the new value.
    fn value<V: Real>(old: V, a: V, b: V, scalar: V) -> V;
}

macro_rules! formulas {
    ($($(#[$doc:meta])* $name:ident $({$($flag:ident)+})?: |$old:ident, $a:ident, $b:ident, $scalar:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl Formula for $name {
            $($(const $flag: bool = true;)+)?

            #[inline(always)]
            fn value<V: Real>($old: V, $a: V, $b: V, $scalar: V) -> V {
                $value
            }
        }
    )*};
}

formulas! {
    /// A scaled array.
    Mul: |_old, a, _b, scalar| scalar * a;
    /// The sum of an array and a scaled one.
    Triad {SECOND}: |_old, a, b, scalar| a + scalar * b;
    /// The sum of the destination, an array and a scaled one.
    NStream {OLD SECOND}: |old, a, b, scalar| old + (a + scalar * b);
    /// The sum of the destination and a scaled array.
    Axpy {OLD}: |old, a, _b, scalar| old + scalar * a;
}

/// Computes a vector a thread, and an element outside of vectors.
///
/// # Safety
///
/// See [`ElementwiseParams`]: the operands of the formula are allocated and aligned to an element,
/// and the vectors of `span` to 16 bytes; no other work writes them, and operands are `dst` or do
/// not overlap it.
#[inline(always)]
pub unsafe fn elementwise<T: Number<Value: Real>, F: Formula, C: Cache<Quad>>(params: ElementwiseParams) {
    let (lane, cache) = (block::lane(), C::new());
    let scalar = T::Value::of(f64::from_bits(params.scalar));
    let width = u64::from(T::Word::BYTES);
    let sides = |element: u64| [params.dst, params.a, params.b].map(|at| Global::new(at).offset(element * width));
    if lane < params.span.quads {
        let [dst, a, b] = sides(params.span.first + lane * T::Word::COUNT as u64);
        // SAFETY: a whole vector of an operand of the formula.
        let first = unsafe { cache.load(a) };
        // SAFETY: as above.
        let second = if F::SECOND { unsafe { cache.load(b) } } else { [0; 4] };
        // SAFETY: as above.
        let old = if F::OLD { unsafe { cache.load(dst) } } else { [0; 4] };
        // SAFETY: this lane's vector of the destination.
        unsafe { cache.store(dst, by_lanes::<T, F>(old, first, second, scalar)) };
    }
    if let Some(element) = span::single(&params.span, T::Word::COUNT as u64, lane) {
        let [dst, a, b] = sides(element);
        // SAFETY: an element of an operand of the formula.
        let first = unsafe { T::Word::load_global(a) };
        // SAFETY: as above.
        let second = if F::SECOND { unsafe { T::Word::load_global(b) } } else { T::Word::ZERO };
        // SAFETY: as above.
        let old = if F::OLD { unsafe { T::Word::load_global(dst) } } else { T::Word::ZERO };
        let value = F::value(T::value(old), T::value(first), T::value(second), scalar);
        // SAFETY: this lane's element of the destination.
        unsafe { T::word(value).store_global(dst) };
    }
}

/// Applies the formula to each element of vectors.
#[inline(always)]
fn by_lanes<T: Number<Value: Real>, F: Formula>(old: Quad, a: Quad, b: Quad, scalar: T::Value) -> Quad {
    let mut result = [0; 4];
    crate::unrolled!(lane < 16 => {
        if lane < T::Word::COUNT {
            let [old, a, b] = [old, a, b].map(|quad| T::value(T::Word::get(quad, lane)));
            result = T::word(F::value(old, a, b, scalar)).put(result, lane);
        }
    });
    result
}

/// Writes a vector of the pattern a thread, and a byte outside of vectors.
///
/// # Safety
///
/// See [`FillParams`]: the bytes are allocated, and no other work accesses them.
#[inline(always)]
pub unsafe fn fill(params: FillParams) {
    let lane = block::lane();
    let dst = Global::new(params.dst);
    let FillParams { low, high, .. } = params;
    if lane < params.span.quads {
        let quad = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32];
        // SAFETY: this lane's vector.
        unsafe { thread::store_quad(dst.offset(params.span.first + 16 * lane), quad) };
    }
    if let Some(byte) = span::single(&params.span, 16, lane) {
        let at = dst.offset(byte);
        let half = if at.misalignment() < 8 { low } else { high };
        let value = B8::new((half >> (8 * (at.misalignment() & 7))) as u32);
        // SAFETY: this lane's byte.
        unsafe { value.store_global(at) };
    }
}

/// Takes a vector a thread, and an element outside of vectors, through the steps.
///
/// # Safety
///
/// See [`IterateParams`]: source and destination are allocated and aligned to an element, and the
/// vectors of `span` to 16 bytes; no other work writes them, and the source is `dst` or does not
/// overlap it.
#[inline(always)]
pub unsafe fn iterate(params: IterateParams) {
    let lane = block::lane();
    let sides = |element: u64| [params.dst, params.src].map(|at| Global::new(at).offset(4 * element));
    if lane < params.span.quads {
        let [dst, src] = sides(params.span.first + 4 * lane);
        // SAFETY: a whole vector of the source.
        let values = unsafe { thread::load_quad(src) }.map(f32::from_bits);
        // SAFETY: this lane's vector of the destination.
        unsafe { thread::store_quad(dst, stepped(values, &params).map(f32::to_bits)) };
    }
    if let Some(element) = span::single(&params.span, 4, lane) {
        let [dst, src] = sides(element);
        // SAFETY: an element of the source.
        let value = f32::from_bits(unsafe { B32::load_global(src) }.low());
        let [value] = stepped([value], &params);
        // SAFETY: this lane's element of the destination.
        unsafe { B32::new(value.to_bits()).store_global(dst) };
    }
}

/// Takes values through the steps, each independent of the others.
///
/// A loop has three instructions beside its steps, so most steps are taken 32 in a turn: with the
/// four values of a vector, 128 of 131 instructions compute.
#[inline(always)]
fn stepped<const N: usize>(mut values: [f32; N], params: &IterateParams) -> [f32; N] {
    let (factor, offset) = (f32::from_bits(params.factor), f32::from_bits(params.offset));
    let step = |values: [f32; N]| values.map(|value| value.fma(factor, offset));
    for _ in 0..params.steps as u32 / 32 {
        crate::unrolled!(_step < 32 => {
            values = step(values);
        });
    }
    for _ in 0..params.steps as u32 % 32 {
        values = step(values);
    }
    values
}
