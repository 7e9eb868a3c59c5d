//! Sums, differences, products and quotients of two operands of any layouts.

use crate::abi::{BINARY_ADD, BINARY_AXES, BINARY_MUL, BINARY_SUB, BinaryAxis, BinaryParams, BinarySide};
use crate::block;
use crate::index::{Index, Wide};
use crate::thread::cache::Cache;
use crate::thread::number::{Number, Real};
use crate::thread::quad::Lanes;
use crate::thread::{Global, Quad, Word};

/// Offsets in elements from the starts of all sides.
#[derive(Clone, Copy)]
struct Offsets {
    dst: Wide,
    a: Wide,
    b: Wide,
}

/// An operand's row.
struct Row<V> {
    start: Global,
    /// In elements, as two's complement.
    stride: u64,
    /// The number that stands for all elements of a row without memory.
    number: Option<V>,
}

/// Computes a vector of the destination a thread, or an element. The operation is a parameter: all
/// threads of a launch take the same branch, and an entry for each would make four times the PTX.
///
/// # Safety
///
/// See [`BinaryParams`]: the operands are allocated and aligned to an element, and no other work
/// writes them; no two elements share an address in the destination, and each operand in memory is
/// `dst`, with its strides, or does not overlap it.
#[inline(always)]
pub unsafe fn binary<T: Number<Value: Real>, C: Cache<Quad>>(params: BinaryParams) {
    let lane = Wide::truncate(block::lane());
    if lane.0 >= params.lanes {
        return;
    }
    let cache = C::new();
    let (slot, offsets) = place(&params, lane);
    let dst = Global::new(params.dst).offset(offsets.dst.bytes::<T::Word>());
    let a = Row::new::<T>(&params.a, offsets.a);
    let b = Row::new::<T>(&params.b, offsets.b);
    let (count, len) = (T::Word::COUNT as i64, params.len as i64);
    // The first element of this lane, which lies before the row if the row starts within a vector.
    let (first, most) = if params.vectors == 0 {
        (slot.0 as i64, 1)
    } else {
        (slot.0 as i64 * count - i64::from(dst.misalignment() / T::Word::BYTES), count)
    };
    if params.vectors != 0 && first >= 0 && first + count <= len {
        let at = first as u64;
        // SAFETY: the row has all elements of this vector; so below.
        let (one, other) = unsafe { (a.quad::<T, C>(at, cache), b.quad::<T, C>(at, cache)) };
        let made = computed::<T::Value, 8>(params.operation, a.values::<T>(one), b.values::<T>(other));
        // SAFETY: this lane's vector of the destination, which starts on 16 bytes.
        unsafe { cache.store(dst.offset(at * u64::from(T::Word::BYTES)), T::quad(made)) };
        return;
    }
    let mut element = if first < 0 { 0 } else { first };
    let end = if first + most < len { first + most } else { len };
    while element < end {
        let at = element as u64;
        // SAFETY: an element of the row; so below.
        let (one, other) = unsafe { (a.element::<T>(at), b.element::<T>(at)) };
        let [made] = computed(params.operation, [one], [other]);
        let to = dst.offset(at.wrapping_mul(params.dst_stride as u64).wrapping_mul(u64::from(T::Word::BYTES)));
        // SAFETY: this lane's element of the destination.
        unsafe { T::word(made).store_global(to) };
        element += 1;
    }
}

/// Returns a lane's place in its row, and the offsets of the row.
///
/// Each axis is written out, as in [`axes`](crate::index::axes).
#[inline(always)]
fn place(params: &BinaryParams, lane: Wide) -> (Wide, Offsets) {
    let mut offsets = Offsets { dst: Wide::new(0), a: Wide::new(0), b: Wide::new(0) };
    if params.rank == 0 {
        return (lane, offsets);
    }
    let mut rest = lane.divide(&params.slots);
    let slot = lane - rest * Wide::truncate(params.slots.value);
    macro_rules! walk {
        ($($axis:literal)*) => {
            'walk: {$(
                if BINARY_AXES <= $axis || params.rank <= $axis {
                    break 'walk;
                }
                step(&params.axes[$axis], &mut rest, &mut offsets);
            )*}
        };
    }
    walk!(0 1 2 3);
    (slot, offsets)
}

/// Steps along one axis by the least digit of a number, and leaves the other digits.
#[inline(always)]
fn step(axis: &BinaryAxis, rest: &mut Wide, offsets: &mut Offsets) {
    let quotient = rest.divide(&axis.extent);
    let position = *rest - quotient * Wide::truncate(axis.extent.value);
    for (offset, stride) in [(&mut offsets.dst, axis.dst), (&mut offsets.a, axis.a), (&mut offsets.b, axis.b)] {
        *offset = *offset + position * Wide::truncate(stride as u64);
    }
    *rest = quotient;
}

impl<V: Real> Row<V> {
    #[inline(always)]
    fn new<T: Number<Value = V>>(side: &BinarySide, offset: Wide) -> Self {
        let number = (side.start == 0).then(|| V::of(f64::from_bits(side.number)));
        Row { start: Global::new(side.start).offset(offset.bytes::<T::Word>()), stride: side.stride as u64, number }
    }

    #[inline(always)]
    fn at<T: Number>(&self, element: u64) -> Global {
        self.start.offset(element.wrapping_mul(self.stride).wrapping_mul(u64::from(T::Word::BYTES)))
    }

    /// Loads the elements of a vector from one on: at once if they lie side by side from 16 bytes
    /// on, or if they are one element, and else each by itself.
    ///
    /// # Safety
    ///
    /// If the row has memory, it has these elements.
    #[inline(always)]
    unsafe fn quad<T: Number<Value = V>, C: Cache<Quad>>(&self, first: u64, cache: C) -> Quad {
        let at = self.at::<T>(first);
        let mut quad = [0; 4];
        if self.number.is_some() {
            return quad;
        }
        if self.stride == 1 && at.misalignment() == 0 {
            // SAFETY: as the caller promises, and aligned.
            return unsafe { cache.load(at) };
        }
        if self.stride == 0 {
            // SAFETY: as the caller promises.
            let word = unsafe { T::Word::load_global(at) };
            crate::unrolled!(lane < 16 => {
                if lane < T::Word::COUNT {
                    quad = word.put(quad, lane);
                }
            });
            return quad;
        }
        crate::unrolled!(lane < 16 => {
            if lane < T::Word::COUNT {
                // SAFETY: as the caller promises.
                quad = unsafe { T::Word::load_global(self.at::<T>(first + lane as u64)) }.put(quad, lane);
            }
        });
        quad
    }

    /// Returns the values of a vector that this row loaded.
    #[inline(always)]
    fn values<T: Number<Value = V>>(&self, quad: Quad) -> [V; 8] {
        let mut values = [V::ZERO; 8];
        crate::unrolled!(lane < 8 => {
            if lane < T::Word::COUNT {
                let loaded = T::value(T::Word::get(quad, lane));
                values[lane] = if let Some(number) = self.number { number } else { loaded };
            }
        });
        values
    }

    /// Loads an element.
    ///
    /// # Safety
    ///
    /// If the row has memory, it has this element.
    #[inline(always)]
    unsafe fn element<T: Number<Value = V>>(&self, element: u64) -> V {
        match self.number {
            Some(number) => number,
            // SAFETY: as the caller promises.
            None => T::value(unsafe { T::Word::load_global(self.at::<T>(element)) }),
        }
    }
}

/// Returns the results of an operation on values.
#[inline(always)]
fn computed<V: Real, const N: usize>(operation: u64, a: [V; N], b: [V; N]) -> [V; N] {
    match operation {
        BINARY_ADD => each(a, b, |a, b| a + b),
        BINARY_SUB => each(a, b, |a, b| a - b),
        BINARY_MUL => each(a, b, |a, b| a * b),
        _ => each(a, b, |a, b| a / b),
    }
}

#[inline(always)]
fn each<V: Real, const N: usize>(a: [V; N], b: [V; N], compute: impl Fn(V, V) -> V) -> [V; N] {
    let mut made = [V::ZERO; N];
    crate::unrolled!(lane < 8 => {
        if lane < N {
            made[lane] = compute(a[lane], b[lane]);
        }
    });
    made
}
