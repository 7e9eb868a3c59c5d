//! The greatest bytes of the lanes of vectors, four in a register.
//!
//! A byte with its index in registers of its own takes a handful of integer instructions, of which
//! a multiprocessor issues half as many as others: that bounded the search, not the memory.

use crate::thread::Quad;
use crate::thread::number::{Number, Value};
use crate::thread::quad::{Lanes, permute_bytes};

const LOW: u32 = 0x7f7f_7f7f;
const HIGH: u32 = 0x8080_8080;

/// The greatest byte of each lane, and the number of the load that it came with.
pub struct GreatestBytes {
    /// The bytes, as unsigned numbers.
    most: Quad,
    /// The numbers of the loads.
    loads: Quad,
}

impl GreatestBytes {
    /// Loads that have numbers.
    pub const LOADS: u32 = 1 << 8;
    /// No byte: the least ones of load 0.
    pub const NONE: Self = GreatestBytes { most: [0; 4], loads: [0; 4] };

    /// Takes a vector of numbers of a byte. The first of equal numbers stays.
    #[inline(always)]
    pub fn take<T: Number>(&mut self, quad: Quad, load: u32) {
        let load = load * 0x0101_0101;
        crate::unrolled!(word < 4 => {
            let (new, most) = (quad[word] ^ sign::<T>(), self.most[word]);
            // A difference of the low bits with the high bit before them: that stays where the new
            // byte's low bits are not greater.
            let rest = ((most & LOW) | HIGH) - (new & LOW);
            let greater = (new & !most) | (!(new ^ most) & !rest);
            // A digit from 8 on repeats the high bit of a byte.
            let bytes = permute_bytes::<0xba98>(greater, 0);
            self.most[word] = (new & bytes) | (most & !bytes);
            self.loads[word] = (load & bytes) | (self.loads[word] & !bytes);
        });
    }

    /// Returns the greatest number of all lanes, its load and its lane: the first of equal ones.
    #[inline(always)]
    pub fn first<T: Number>(&self) -> (T::Value, u32, u32) {
        // Bits below each byte are greater for an earlier load, and then for a lower lane.
        let mut greatest = 0;
        crate::unrolled!(lane < 16 => {
            let byte = |quad: Quad| quad[lane / 4] >> (lane % 4 * 8) & 0xff;
            let both = byte(self.most) << 12 | (0xfff - (byte(self.loads) << 4 | lane as u32));
            greatest = if both > greatest { both } else { greatest };
        });
        let (bits, place) = ((greatest >> 12) ^ (sign::<T>() & 0xff), 0xfff - (greatest & 0xfff));
        (T::value(T::Word::get([bits, 0, 0, 0], 0)), place >> 4, place & 15)
    }

    /// Returns a lane's greatest number and its load.
    #[inline(always)]
    pub fn get<T: Number>(&self, lane: usize) -> (T::Value, u32) {
        let bits = self.most.map(|word| word ^ sign::<T>());
        (T::value(T::Word::get(bits, lane)), self.loads[lane / 4] >> (lane % 4 * 8) & 0xff)
    }
}

/// Returns the bits whose change puts four signed bytes in the order of unsigned ones.
#[inline(always)]
fn sign<T: Number>() -> u32 {
    if T::value(T::Word::get([HIGH; 4], 0)) < T::Value::ZERO { HIGH } else { 0 }
}
