//! Vectors: sixteen bytes in four registers, and the transposes of small matrices of elements in
//! several of them.

use core::arch::asm;

use crate::thread::{self, B8, B16, B32, Global, Quad, Word};

/// Unrolls a loop over a constant by hand: if the compiler leaves an index of an array to run time,
/// the array goes to local memory, and the compiler gives up unrolling early.
#[cfg(not(debug_assertions))]
#[macro_export]
macro_rules! unrolled {
    // The compiler checks each written copy of a nested loop, so short loops are written short: a
    // literal, or a constant with the number of copies behind it.
    ($step:ident < 4 => $body:block) => { $crate::unrolled!($step < 4 <= 4 => $body) };
    ($step:ident < 32 => $body:block) => { $crate::unrolled!($step < 32 <= 32 => $body) };
    ($step:ident < $count:tt <= 4 => $body:block) => { $crate::unrolled!(@ $step $count $body 0 1 2 3) };
    ($step:ident < $count:tt <= 32 => $body:block) => {
        $crate::unrolled!(@ $step $count $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    ($step:ident < $count:tt => $body:block) => { $crate::unrolled!(@ $step $count $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $step:ident $count:tt $body:block $($number:literal)*) => {
        const { assert!($count as usize <= [$($number),*].len(), "a loop has more steps than copies") };
        $( if $number < $count { let $step = $number; $body } )*
    };
}

/// Runs a loop over a constant. A debug build would keep every copy of an unrolled loop, and it is
/// for checks, not for speed.
#[cfg(debug_assertions)]
#[macro_export]
macro_rules! unrolled {
    ($step:ident < $count:tt $(<= $copies:literal)? => $body:block) => { for $step in 0..$count $body };
}

/// Elements of one width in a [`Quad`].
pub trait Lanes: Sized {
    /// Elements of a vector: 16 over the width in bytes.
    const COUNT: usize;

    /// Returns the element in a lane.
    fn get(quad: Quad, lane: usize) -> Self;

    /// Sets this element in a lane of a vector, which was zero.
    fn put(self, quad: Quad, lane: usize) -> Quad;

    /// Transposes rows of `COUNT` elements, one vector each.
    fn turn<const N: usize>(rows: [Quad; N]) -> [Quad; N];
}

/// Returns the bytes of `low` (0 to 3) and `high` (4 to 7) that the four hexadecimal digits of
/// `order` name, from the last.
#[inline(always)]
pub fn permute_bytes<const ORDER: u32>(low: u32, high: u32) -> u32 {
    let picked: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("prmt.b32 {picked}, {low}, {high}, {order};", picked = out(reg32) picked, low = in(reg32) low,
            high = in(reg32) high, order = const ORDER, options(pure, nomem, nostack))
    };
    picked
}

/// Returns the 16 bytes from byte `off` of 32, which are `low` and then `high`; `off` is below 16
/// and a multiple of the element's width.
#[inline(always)]
pub fn shift<W: Word>(low: Quad, high: Quad, off: u32) -> Quad {
    let [a, b, c, d] = low;
    let [e, f, g, h] = high;
    let pick = |two: bool, near: u32, far: u32| if two { far } else { near };
    let two = off & 8 != 0;
    let halves = [pick(two, a, c), pick(two, b, d), pick(two, c, e), pick(two, d, f), pick(two, e, g), pick(two, f, h)];
    if W::BYTES == 8 {
        return [halves[0], halves[1], halves[2], halves[3]];
    }
    let one = off & 4 != 0;
    let words = [
        pick(one, halves[0], halves[1]),
        pick(one, halves[1], halves[2]),
        pick(one, halves[2], halves[3]),
        pick(one, halves[3], halves[4]),
        pick(one, halves[4], halves[5]),
    ];
    if W::BYTES == 4 {
        return [words[0], words[1], words[2], words[3]];
    }
    let bits = 8 * (off & 3);
    [
        funnel(words[0], words[1], bits),
        funnel(words[1], words[2], bits),
        funnel(words[2], words[3], bits),
        funnel(words[3], words[4], bits),
    ]
}

/// Moves word `(place + by) % 4` of a vector to `place`; `by` is at most 4.
///
/// It uses selects, because registers have no index at run time.
#[inline(always)]
pub fn rotated(quad: Quad, by: u32) -> Quad {
    let [a, b, c, d] = quad;
    let [a, b, c, d] = if by & 1 != 0 { [d, a, b, c] } else { [a, b, c, d] };
    if by & 2 != 0 { [c, d, a, b] } else { [a, b, c, d] }
}

/// Moves word `place ^ by` of a vector to `place`; `by` is below 4.
#[inline(always)]
pub fn exchanged(quad: Quad, by: u32) -> Quad {
    let [a, b, c, d] = quad;
    let [a, b, c, d] = if by & 1 != 0 { [b, a, d, c] } else { [a, b, c, d] };
    if by & 2 != 0 { [c, d, a, b] } else { [a, b, c, d] }
}

/// Returns 32 bits from bit `bits` of 64, below 32.
#[inline(always)]
fn funnel(low: u32, high: u32, bits: u32) -> u32 {
    let shifted: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("shf.r.wrap.b32 {shifted}, {low}, {high}, {bits};", shifted = out(reg32) shifted, low = in(reg32) low,
            high = in(reg32) high, bits = in(reg32) bits, options(pure, nomem, nostack))
    };
    shifted
}

/// Loads only the bytes of an aligned vector from `from` up to `to`; one of the two is outside the
/// vector. Other bytes are zero.
///
/// # Safety
///
/// These bytes are allocated and no work writes them.
#[inline(always)]
pub unsafe fn load_part(at: Global, from: i32, to: i32) -> Quad {
    let mut quad = [0; 4];
    let Ragged { word: ragged, pair, single } = Ragged::of(from, to);
    let mut bits = 0;
    if let Some(place) = pair {
        // SAFETY: bytes of the part, aligned to two.
        bits = unsafe { B16::load_global(at.offset(u64::from(4 * ragged + place))) }.low() << (8 * place);
    }
    if let Some(place) = single {
        // SAFETY: a byte of the part.
        bits |= unsafe { B8::load_global(at.offset(u64::from(4 * ragged + place))) }.low() << (8 * place);
    }
    unrolled!(word < 4 => {
        let start = 4 * word as i32;
        if from <= start && start + 4 <= to {
            // SAFETY: a word of the part.
            quad[word] = unsafe { B32::load_global(at.offset(4 * word as u64)) }.low();
        } else if ragged == word as u32 {
            quad[word] = bits;
        }
    });
    quad
}

/// Stores only the bytes of an aligned vector from `from` up to `to`; one of the two is outside the
/// vector.
///
/// # Safety
///
/// These bytes are allocated, and no other thread accesses them.
#[inline(always)]
pub unsafe fn store_part(at: Global, from: i32, to: i32, quad: Quad) {
    let Ragged { word: ragged, pair, single } = Ragged::of(from, to);
    let mut bits = 0;
    unrolled!(word < 4 => {
        let start = 4 * word as i32;
        if from <= start && start + 4 <= to {
            // SAFETY: a word of the part.
            unsafe { B32::new(quad[word]).store_global(at.offset(4 * word as u64)) };
        }
        bits = if ragged == word as u32 { quad[word] } else { bits };
    });
    if let Some(place) = pair {
        // SAFETY: bytes of the part, aligned to two.
        unsafe { B16::new(bits >> (8 * place)).store_global(at.offset(u64::from(4 * ragged + place))) };
    }
    if let Some(place) = single {
        // SAFETY: a byte of the part.
        unsafe { B8::new(bits >> (8 * place)).store_global(at.offset(u64::from(4 * ragged + place))) };
    }
}

/// The word of a vector in which a run starts or ends, with one to three of its bytes.
struct Ragged {
    /// Its index in the vector.
    word: u32,
    /// The offset in the word of two bytes that one access moves.
    pair: Option<u32>,
    /// The offset of a single byte.
    single: Option<u32>,
}

impl Ragged {
    /// Describes the part of a vector from `from` up to `to`, one of which is outside the vector.
    #[inline(always)]
    fn of(from: i32, to: i32) -> Self {
        let (begins, ends) = (0 < from && from < 16, 0 < to && to < 16);
        let count = if begins {
            from.wrapping_neg() as u32 & 3
        } else if ends {
            to as u32 & 3
        } else {
            0
        };
        // Three bytes are a pair and a single one. The single byte comes first at the word's end,
        // and last at its start.
        let (pair, single) = if begins { (2, 4 - count) } else { (0, count & 2) };
        Ragged {
            word: (if begins { from } else { to }) as u32 >> 2,
            pair: (count & 2 != 0).then_some(pair),
            single: (count & 1 != 0).then_some(single),
        }
    }
}

impl Lanes for thread::B8 {
    const COUNT: usize = 16;

    #[inline(always)]
    fn get(quad: Quad, lane: usize) -> Self {
        // The store drops the bits above.
        Self::new(quad[lane / 4] >> (8 * (lane % 4)))
    }

    #[inline(always)]
    fn put(self, mut quad: Quad, lane: usize) -> Quad {
        quad[lane / 4] |= self.low() << (8 * (lane % 4));
        quad
    }

    #[inline(always)]
    fn turn<const N: usize>(rows: [Quad; N]) -> [Quad; N] {
        let mut turned = [[0; 4]; N];
        unrolled!(block < 16 => {
            let (group, word) = (block / 4, block % 4);
            let at = |row: usize| rows[4 * group + row][word];
            // Two rounds: pairs of rows byte by byte, then pairs of pairs.
            let (even, odd) = (permute_bytes::<0x5140>(at(0), at(1)), permute_bytes::<0x5140>(at(2), at(3)));
            let (even_high, odd_high) = (permute_bytes::<0x7362>(at(0), at(1)), permute_bytes::<0x7362>(at(2), at(3)));
            turned[4 * word][group] = permute_bytes::<0x5410>(even, odd);
            turned[4 * word + 1][group] = permute_bytes::<0x7632>(even, odd);
            turned[4 * word + 2][group] = permute_bytes::<0x5410>(even_high, odd_high);
            turned[4 * word + 3][group] = permute_bytes::<0x7632>(even_high, odd_high);
        });
        turned
    }
}

impl Lanes for thread::B16 {
    const COUNT: usize = 8;

    #[inline(always)]
    fn get(quad: Quad, lane: usize) -> Self {
        // The store drops the bits above.
        Self::new(quad[lane / 2] >> (16 * (lane % 2)))
    }

    #[inline(always)]
    fn put(self, mut quad: Quad, lane: usize) -> Quad {
        quad[lane / 2] |= self.low() << (16 * (lane % 2));
        quad
    }

    #[inline(always)]
    fn turn<const N: usize>(rows: [Quad; N]) -> [Quad; N] {
        let mut turned = [[0; 4]; N];
        for pair in 0..4 {
            for word in 0..4 {
                let (upper, lower) = (rows[2 * pair][word], rows[2 * pair + 1][word]);
                turned[2 * word][pair] = permute_bytes::<0x5410>(upper, lower);
                turned[2 * word + 1][pair] = permute_bytes::<0x7632>(upper, lower);
            }
        }
        turned
    }
}

impl Lanes for thread::B32 {
    const COUNT: usize = 4;

    #[inline(always)]
    fn get(quad: Quad, lane: usize) -> Self {
        Self::new(quad[lane])
    }

    #[inline(always)]
    fn put(self, mut quad: Quad, lane: usize) -> Quad {
        quad[lane] = self.low();
        quad
    }

    #[inline(always)]
    fn turn<const N: usize>(rows: [Quad; N]) -> [Quad; N] {
        let mut turned = [[0; 4]; N];
        for row in 0..4 {
            for column in 0..4 {
                turned[column][row] = rows[row][column];
            }
        }
        turned
    }
}

impl Lanes for thread::B64 {
    const COUNT: usize = 2;

    #[inline(always)]
    fn get(quad: Quad, lane: usize) -> Self {
        Self::new(u64::from(quad[2 * lane]) | u64::from(quad[2 * lane + 1]) << 32)
    }

    #[inline(always)]
    fn put(self, mut quad: Quad, lane: usize) -> Quad {
        quad[2 * lane] = self.low() as u32;
        quad[2 * lane + 1] = (self.low() >> 32) as u32;
        quad
    }

    #[inline(always)]
    fn turn<const N: usize>(rows: [Quad; N]) -> [Quad; N] {
        let mut turned = [[0; 4]; N];
        for row in 0..2 {
            for column in 0..2 {
                turned[column][2 * row] = rows[row][2 * column];
                turned[column][2 * row + 1] = rows[row][2 * column + 1];
            }
        }
        turned
    }
}

impl Lanes for thread::B128 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn get([a, b, c, d]: Quad, _: usize) -> Self {
        Self::new(u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32)
    }

    #[inline(always)]
    fn put(self, _: Quad, _: usize) -> Quad {
        [self.low() as u32, (self.low() >> 32) as u32, self.high() as u32, (self.high() >> 32) as u32]
    }

    #[inline(always)]
    fn turn<const N: usize>(rows: [Quad; N]) -> [Quad; N] {
        rows
    }
}
