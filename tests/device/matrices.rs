//! Matrices for tests: elements of every width, and layouts drawn from a seed.

use warpstride::element::Element;
use warpstride::layout::Layout;

/// An element type that tests can make values of.
pub(crate) trait Sample: Element {
    /// A value of these bits, or of as many of them as it has.
    fn sample(bits: u64) -> Self;
}

impl Sample for u8 {
    fn sample(bits: u64) -> Self {
        (bits >> 56) as u8
    }
}

impl Sample for u16 {
    fn sample(bits: u64) -> Self {
        (bits >> 48) as u16
    }
}

impl Sample for u32 {
    fn sample(bits: u64) -> Self {
        (bits >> 32) as u32
    }
}

impl Sample for u64 {
    fn sample(bits: u64) -> Self {
        bits
    }
}

impl Sample for [f64; 2] {
    fn sample(bits: u64) -> Self {
        // Numbers, so that equal means equal.
        [(bits >> 32) as f64, -((bits & 0xffff_ffff) as f64)]
    }
}

/// Calls a generic function with an element type of each width.
macro_rules! at_every_width {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $function::<u8>($($argument),*);
        $function::<u16>($($argument),*);
        $function::<u32>($($argument),*);
        $function::<u64>($($argument),*);
        $function::<[f64; 2]>($($argument),*);
    };
}
pub(crate) use at_every_width;

/// Numbers from a seed: xorshift64* (Vigna 2016).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.bits() >> 33) % end as u64) as usize
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(crate) fn elements<T: Sample>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::sample(self.bits())).collect()
    }

    /// Extents around those of a tile and of small matrices; one in sixteen is 0.
    pub(crate) fn extent(&mut self) -> usize {
        match self.below(16) {
            0 => 0,
            1 => 1,
            2..=4 => 31 + self.below(3),
            5 => 63 + self.below(3),
            _ => 1 + self.below(80),
        }
    }

    /// A layout of this shape that does not overlap itself: a part of a larger matrix in either order, stepped and reversed.
    pub(crate) fn layout(&mut self, shape: [usize; 2]) -> Layout {
        let steps = [1 + self.below(3), 1 + self.below(3)];
        let before = [self.below(4), self.below(4)];
        let whole = [0, 1].map(|axis| before[axis] + shape[axis] * steps[axis] + self.below(4));
        let make = if self.coin() { Layout::row_major } else { Layout::column_major };
        let mut layout = make(&whole).unwrap();
        for axis in 0..2 {
            let range = before[axis]..before[axis] + shape[axis] * steps[axis];
            let step = if self.coin() { steps[axis] as isize } else { -(steps[axis] as isize) };
            layout = layout.slice(axis, range, step).unwrap();
        }
        layout
    }

    /// A layout of this shape that may be read: one in four is broadcast along an axis.
    pub(crate) fn readable_layout(&mut self, shape: [usize; 2]) -> Layout {
        let repeated = self.below(8);
        if repeated > 1 || shape[repeated] == 0 {
            return self.layout(shape);
        }
        let mut narrow = shape;
        narrow[repeated] = 1;
        self.layout(narrow).broadcast(&shape).unwrap()
    }
}
