//! Matrices for tests: elements of every width, and layouts drawn from a seed.

use warpstride::element::Element;
use warpstride::layout::Layout;

/// An element type whose values tests can make.
pub(crate) trait Sample: Element {
    /// Returns a value with these bits, or with the low ones of them.
    fn sample(bits: u64) -> Self;
}

macro_rules! samples {
    ($($type:ty: |$bits:ident| $value:expr;)*) => {$(
        impl Sample for $type {
            fn sample($bits: u64) -> Self {
                $value
            }
        }
    )*};
}

// Every float is a number, and not a NaN, so that equal values are equal bits.
samples! {
    u8: |bits| (bits >> 56) as u8;
    u16: |bits| (bits >> 48) as u16;
    u32: |bits| (bits >> 32) as u32;
    f32: |bits| (bits >> 40) as f32;
    u64: |bits| bits;
    [f64; 2]: |bits| [(bits >> 32) as f64, -((bits & 0xffff_ffff) as f64)];
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

/// Returns a layout of this shape without gaps, whose last axis is contiguous.
pub(crate) fn c_order(shape: &[usize]) -> Layout {
    Layout::row_major(shape).unwrap()
}

/// Random numbers from a seed: xorshift64* (Vigna 2016).
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

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.bits() >> 33) % end as u64) as usize
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(crate) fn elements<T: Sample>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::sample(self.bits())).collect()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = self.elements::<u64>(len.div_ceil(8));
        words.into_iter().flat_map(u64::to_le_bytes).take(len).collect()
    }

    /// Returns an extent near those of a tile and of small matrices; one in sixteen is 0.
    pub(crate) fn extent(&mut self) -> usize {
        match self.below(16) {
            0 => 0,
            1 => 1,
            2..=4 => 31 + self.below(3),
            5 => 63 + self.below(3),
            _ => 1 + self.below(80),
        }
    }

    /// Returns a layout of this shape that does not overlap itself: a part of a larger matrix in
    /// either order, stepped and reversed.
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

    /// Returns a readable layout of this shape: one in four is broadcast along an axis.
    pub(crate) fn readable_layout(&mut self, shape: [usize; 2]) -> Layout {
        let repeated = self.below(8);
        if repeated > 1 || shape[repeated] == 0 {
            return self.layout(shape);
        }
        let mut narrow = shape;
        narrow[repeated] = 1;
        self.layout(narrow).broadcast(&shape).unwrap()
    }

    /// Returns the numbers below `len` in any order: Fisher and Yates's shuffle.
    pub(crate) fn order(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        for end in (1..len).rev() {
            order.swap(end, self.below(end + 1));
        }
        order
    }

    /// Returns a shape of at most `most` elements: mostly of rank 0 to 6, sometimes of up to 16;
    /// one axis in sixteen has one index, and one array in 64 no element.
    pub(crate) fn shape(&mut self, most: usize) -> Vec<usize> {
        let rank = if self.below(8) == 0 { self.below(17) } else { self.below(7) };
        let mut room = most;
        let mut shape: Vec<usize> = (0..rank)
            .map(|_| {
                let extent = match self.below(16) {
                    0 => 1,
                    1..=4 => 2 + self.below(3),
                    5..=7 => 1 << self.below(8),
                    _ => 1 + self.below(70),
                };
                let extent = if extent <= room { extent } else { 1 + self.below(room) };
                room /= extent;
                extent
            })
            .collect();
        // Otherwise the last axes would always be the shortest.
        let order = self.order(rank);
        shape = order.into_iter().map(|axis| shape[axis]).collect();
        if rank > 0 && self.below(64) == 0 {
            let axis = self.below(rank);
            shape[axis] = 0;
        }
        shape
    }

    /// Returns the shape of a matrix, or of a few, of at most `most` elements in all; the rows of
    /// every third are multiples of 16 bytes.
    pub(crate) fn matrices(&mut self, most: usize) -> Vec<usize> {
        let (multiple, rank) = (if self.below(3) == 0 { 16 } else { 1 }, 2 + self.below(2));
        let mut extent = |end: usize| (1 + self.below(end)).next_multiple_of(multiple);
        let mut shape = vec![extent(150), extent(150)];
        let room = most / (shape[0] * shape[1]);
        if rank == 3 && room > 0 {
            shape.insert(self.below(3), 1 + self.below(room.min(150)));
        }
        shape
    }

    /// Returns a layout of this shape that does not overlap itself: a part of a larger array with
    /// its axes in any order, some stepped and some reversed. Half of the arrays have no gaps, so
    /// that some axes can be fused.
    pub(crate) fn array(&mut self, shape: &[usize]) -> Layout {
        let (order, gaps) = (self.order(shape.len()), self.coin());
        let order = if self.below(4) == 0 { (0..shape.len()).collect() } else { order };
        let mut place = vec![0; shape.len()];
        order.iter().enumerate().for_each(|(at, &axis)| place[axis] = at);
        let mut whole = vec![0; shape.len()];
        let (mut steps, mut before) = (vec![1; shape.len()], vec![0; shape.len()]);
        // Every gap multiplies the storage, so there are at most two.
        for _ in 0..if gaps { self.below(3) } else { 0 } {
            if let Some(axis) = shape.len().checked_sub(1).map(|last| self.below(last + 1)) {
                steps[axis] = 1 + self.below(3);
                before[axis] = self.below(4);
            }
        }
        for axis in 0..shape.len() {
            let after = if before[axis] > 0 { self.below(4) } else { 0 };
            whole[place[axis]] = before[axis] + shape[axis] * steps[axis] + after;
        }
        let reach: usize = whole.iter().product();
        let mut strides = vec![0isize; shape.len()];
        let mut step = 1;
        for at in (0..shape.len()).rev() {
            strides[at] = step;
            step *= whole[at].max(1) as isize;
        }
        let start = if gaps { self.below(20) } else { 16 * self.below(2) };
        let layout = Layout::new(&whole, &strides, start, start + reach + self.below(3)).unwrap();
        let mut layout = layout.permuted_axes(&place).unwrap();
        let reversed = self.coin();
        for axis in 0..shape.len() {
            let range = before[axis]..before[axis] + shape[axis] * steps[axis];
            let step = steps[axis] as isize;
            let step = if reversed && self.below(3) == 0 { -step } else { step };
            layout = layout.slice(axis, range, step).unwrap();
        }
        layout
    }

    /// Returns a readable layout of this shape: one in four is broadcast along an axis or two.
    pub(crate) fn readable_array(&mut self, shape: &[usize]) -> Layout {
        if shape.is_empty() || shape.contains(&0) || self.below(4) > 0 {
            return self.array(shape);
        }
        let mut narrow = shape.to_vec();
        for _ in 0..1 + self.below(2) {
            let axis = self.below(shape.len());
            narrow[axis] = 1;
        }
        self.array(&narrow).broadcast(shape).unwrap()
    }
}
