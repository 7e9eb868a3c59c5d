//! The functions by which copies change the elements that are there: `cp.reduce.async.bulk`.

use crate::gpu::exec::atomic::Operand as _;
use crate::gpu::modifiers::Modifiers;
use crate::gpu::reduce::{Change, Number, Reduce};
use crate::gpu::semantics::{float, native};

impl Reduce {
    /// Returns the function for elements of this type, if PTX has it.
    pub(super) fn new(change: Change, number: Number) -> Option<Self> {
        let is_float = matches!(number, Number::F16 | Number::Bf16 | Number::F32 | Number::F64);
        let is_possible = match change {
            Change::Add => true,
            Change::Min | Change::Max => !matches!(number, Number::F32 | Number::F64),
            Change::Inc | Change::Dec => number == Number::U32,
            Change::And | Change::Or | Change::Xor => !is_float,
        };
        is_possible.then_some(Self { change, number })
    }

    /// Bytes of an element.
    pub(super) fn width(self) -> u8 {
        match self.number {
            Number::F16 | Number::Bf16 => 2,
            Number::U32 | Number::S32 | Number::F32 => 4,
            Number::U64 | Number::S64 | Number::F64 => 8,
        }
    }

    /// The element that takes the place of an old one.
    pub(super) fn apply(self, old: u64, new: u64) -> u64 {
        match self.number {
            Number::U32 => u64::from(self.whole(old as u32, new as u32, |bits| bits)),
            Number::S32 => u64::from(self.whole(old as u32, new as u32, |bits| bits as i32)),
            Number::U64 => self.whole(old, new, |bits| bits),
            Number::S64 => self.whole(old, new, |bits| bits as i64),
            Number::F16 => self.half(Modifiers::F16, old as u16, new as u16).into(),
            Number::Bf16 => self.half(Modifiers::BF16, old as u16, new as u16).into(),
            // Those of f32 keep denormals, unlike atomics, as an H200 showed.
            Number::F32 => {
                let [old, new] = [old, new].map(|bits| f32::from_bits(bits as u32));
                native::canonical32(old + new).to_bits().into()
            }
            Number::F64 => {
                f64::in_global(|old, new, _| old + new, f64::from_bits(old), f64::from_bits(new), 0.0).to_bits()
            }
        }
    }

    /// The result for whole numbers, of which `key` says the order.
    fn whole<T: Whole, K: Ord>(self, old: T, new: T, key: impl Fn(T) -> K) -> T {
        match self.change {
            Change::Add => old.plus(new),
            Change::Min if key(new) < key(old) => new,
            Change::Max if key(new) > key(old) => new,
            Change::Min | Change::Max => old,
            Change::Inc if key(old) >= key(new) => T::default(),
            Change::Inc => old.plus(T::from(true)),
            Change::Dec if old == T::default() || key(old) > key(new) => new,
            Change::Dec => old.minus(T::from(true)),
            Change::And => old & new,
            Change::Or => old | new,
            Change::Xor => old ^ new,
        }
    }

    fn half(self, modifiers: Modifiers, old: u16, new: u16) -> u16 {
        match self.change {
            Change::Min => float::min(modifiers, old, new),
            Change::Max => float::max(modifiers, old, new),
            _ => float::add(modifiers, old, new),
        }
    }
}

/// A type of whole numbers.
trait Whole:
    Copy
    + Default
    + PartialEq
    + From<bool>
    + std::ops::BitAnd<Output = Self>
    + std::ops::BitOr<Output = Self>
    + std::ops::BitXor<Output = Self>
{
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! whole {
    ($($type:ty)*) => {$(
        impl Whole for $type {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}

whole! { u32 u64 }
