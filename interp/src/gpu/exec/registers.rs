//! A warp's registers. Each register holds the values of all 32 lanes side by side, so an
//! instruction is a loop over an array.

use crate::gpu::mem::filled;
use crate::gpu::modifiers::Modifiers;
use crate::gpu::vocabulary::{FULL, File, LANES, OperandType, each};

/// A lane's bit in a mask, as data: a comparison with it vectorises on every machine.
const BIT: [u32; LANES] = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// The registers of one warp.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    pub(crate) pred: Vec<u32>,
    pub(crate) b32: Vec<[u32; LANES]>,
    pub(crate) b64: Vec<[u64; LANES]>,
}

impl Registers {
    /// Zeroed registers, with a count for each file; `None` if the host has too little memory.
    pub(crate) fn new([pred, b32, b64]: [usize; 3]) -> Option<Self> {
        let (b32, b64) = (filled(b32, || [0; LANES])?, filled(b64, || [0; LANES])?);
        Some(Self { pred: filled(pred, || 0)?, b32, b64 })
    }

    /// Sets the lanes of `mask` from the low bits of `value(lane)`.
    pub(crate) fn set_lanes(&mut self, file: File, slot: u16, mask: u32, value: impl Fn(usize) -> u64) {
        match file {
            File::Pred => self.write_pred(slot, bool::row(|lane| bool::of_bits(value(lane))), mask),
            File::B32 => self.write32(slot, &each(|lane| value(lane) as u32), mask),
            File::B64 => self.write64(slot, &each(value), mask),
        }
    }

    /// Writes a row of 32-bit values to the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn write32(&mut self, slot: u16, row: &[u32; LANES], mask: u32) {
        write(&mut self.b32[usize::from(slot)], row, mask);
    }

    /// Writes a row of 64-bit values to the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn write64(&mut self, slot: u16, row: &[u64; LANES], mask: u32) {
        write(&mut self.b64[usize::from(slot)], row, mask);
    }

    /// Writes one bit a lane to the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn write_pred(&mut self, slot: u16, row: u32, mask: u32) {
        let register = &mut self.pred[usize::from(slot)];
        *register = *register & !mask | row & mask;
    }
}

#[inline(always)]
fn write<T: Copy>(register: &mut [T; LANES], row: &[T; LANES], mask: u32) {
    if mask == FULL {
        *register = *row;
    } else {
        for lane in 0..LANES {
            register[lane] = if mask & BIT[lane] != 0 { row[lane] } else { register[lane] };
        }
    }
}

/// A type that operands of instructions have.
pub(crate) trait Value: OperandType {
    /// The values of all lanes, in the form of a register.
    type Row: Copy;
    /// A register's values.
    fn read(registers: &Registers, slot: u16) -> Self::Row;
    /// One lane's value.
    fn lane(row: &Self::Row, lane: usize) -> Self;
    /// The row of `value(lane)`.
    fn row(value: impl Fn(usize) -> Self) -> Self::Row;
    /// Writes the lanes of `mask`.
    fn write(registers: &mut Registers, slot: u16, row: &Self::Row, mask: u32);
}

macro_rules! values {
    ($($file:ident, $write:ident, $bits:ty: $($type:ty)*;)*) => {$($(
        impl Value for $type {
            type Row = [$bits; LANES];
            #[inline(always)]
            fn read(registers: &Registers, slot: u16) -> Self::Row {
                registers.$file[usize::from(slot)]
            }
            #[inline(always)]
            fn lane(row: &Self::Row, lane: usize) -> Self {
                Self::of_bits(u64::from(row[lane]))
            }
            #[inline(always)]
            fn row(value: impl Fn(usize) -> Self) -> Self::Row {
                let mut row = [0; LANES];
                for lane in 0..LANES {
                    row[lane] = value(lane).bits() as $bits;
                }
                row
            }
            #[inline(always)]
            fn write(registers: &mut Registers, slot: u16, row: &Self::Row, mask: u32) {
                registers.$write(slot, row, mask);
            }
        }
    )*)*};
}

values! {
    b32, write32, u32: u8 u16 u32 i8 i16 i32 f32 Modifiers;
    b64, write64, u64: u64 i64 f64;
}

impl Value for bool {
    type Row = u32;
    #[inline(always)]
    fn read(registers: &Registers, slot: u16) -> u32 {
        registers.pred[usize::from(slot)]
    }
    #[inline(always)]
    fn lane(row: &u32, lane: usize) -> bool {
        row & BIT[lane] != 0
    }
    #[inline(always)]
    fn row(value: impl Fn(usize) -> bool) -> u32 {
        // Bits first, then their sum: two loops that vectorise.
        let mut bits = [0; LANES];
        for lane in 0..LANES {
            bits[lane] = if value(lane) { BIT[lane] } else { 0 };
        }
        bits.iter().fold(0, |row, bit| row | bit)
    }
    #[inline(always)]
    fn write(registers: &mut Registers, slot: u16, row: &u32, mask: u32) {
        registers.write_pred(slot, *row, mask);
    }
}
