//! Tensor maps: descriptions of tensors in global memory, of which kernels copy boxes.
//!
//! NVIDIA's layout of the 128 bytes of a map is in no document. This one is our own, and begins
//! with a mark that says so.

use crate::error::counted;
use crate::gpu::reduce::Number;

/// Bytes of a map.
pub const BYTES: usize = 128;
/// The number of which the address of a map is a multiple.
pub const ALIGN: u64 = 64;
/// The first bytes of a map.
const MARK: [u8; 8] = *b"wsTensor";
/// The most dimensions of a tensor.
const MOST_DIMENSIONS: usize = 5;
/// The greatest extents of a tensor and of a box, the greatest step, and the end of strides.
const MOST_EXTENT: u64 = 1 << 32;
const MOST_BOX: u32 = 256;
const MOST_STEP: u32 = 8;
const STRIDES_END: u64 = 1 << 40;
/// Bytes of which the tensor's address, its strides, the rows of a box and the first coordinate are
/// multiples.
pub(crate) const UNIT: u64 = 16;
/// The bytes of elements outside of a tensor where they are NaN, as an H200 has them for all types.
pub(crate) const NAN: [u8; 2] = [0xf7, 0x7f];

/// A type of elements, by its number in CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element(u8);

/// A tensor in global memory, and the boxes that kernels copy from it or to it. Dimension 0 is the
/// one whose elements lie side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of its first element.
    pub address: u64,
    /// The type of its elements.
    pub element: Element,
    /// The elements in each dimension.
    pub extents: Vec<u64>,
    /// Bytes from an element to the next one in each dimension but the first.
    pub strides: Vec<u64>,
    /// The part of the tensor in each dimension that a box covers.
    pub boxes: Vec<u32>,
    /// The steps between the elements of a box in each dimension. That of the first counts as 1.
    pub steps: Vec<u32>,
    /// The bytes of shared memory among which units of 16 bytes are swizzled: 32, 64 or 128, or 0.
    pub swizzle: u32,
    /// True if elements outside of the tensor are NaN, and not zero.
    pub fills_with_nan: bool,
}

impl Element {
    /// The type of this number, if there is one.
    pub fn new(number: u32) -> Option<Self> {
        u8::try_from(number).ok().filter(|&number| number <= 12).map(Self)
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self.0 {
            0 => 1,
            1 | 6 | 9 => 2,
            4 | 5 | 8 => 8,
            _ => 4,
        }
    }

    /// The type for copies that change the elements, if they can.
    pub(crate) fn number(self) -> Option<Number> {
        Some(match self.0 {
            2 => Number::U32,
            3 => Number::S32,
            4 => Number::U64,
            5 => Number::S64,
            6 => Number::F16,
            7 | 10 => Number::F32,
            9 => Number::Bf16,
            _ => return None,
        })
    }

    /// Returns whether it is a type of floating-point numbers.
    pub fn is_float(self) -> bool {
        self.0 >= 6
    }

    /// The elements as a GPU loads them. It rounds those of tf32 to the nearest, ties to even, and
    /// has one NaN. An H200 does so.
    pub(crate) fn loaded(self, mut bytes: Vec<u8>) -> Vec<u8> {
        if let 11 | 12 = self.0 {
            for element in bytes.as_chunks_mut::<4>().0 {
                *element = tf32(u32::from_le_bytes(*element)).to_le_bytes();
            }
        }
        bytes
    }
}

/// The number of tf32 that is nearest to an f32.
fn tf32(bits: u32) -> u32 {
    match bits & 0x7fff_ffff > 0x7f80_0000 {
        true => 0x7fff_e000,
        false => (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff,
    }
}

impl TensorMap {
    /// Returns why a GPU would refuse the map, if it would.
    pub fn wrong(&self) -> Option<String> {
        let rank = self.extents.len();
        if !(1..=MOST_DIMENSIONS).contains(&rank) {
            return Some(format!("the tensor has {}; there may be 1 to {MOST_DIMENSIONS}", counted(rank, "dimension")));
        }
        if self.strides.len() != rank - 1 || self.boxes.len() != rank || self.steps.len() != rank {
            return Some("its strides, its box or its steps have another number of dimensions".to_owned());
        }
        if !self.address.is_multiple_of(UNIT) {
            return Some(format!("the tensor's address, {:#x}, is not a multiple of {UNIT}", self.address));
        }
        let extent = self.extents.iter().find(|extent| !(1..=MOST_EXTENT).contains(*extent));
        let stride = self.strides.iter().find(|stride| !stride.is_multiple_of(UNIT) || **stride >= STRIDES_END);
        let side = self.boxes.iter().find(|side| !(1..=MOST_BOX).contains(*side));
        let step = self.steps.iter().find(|step| !(1..=MOST_STEP).contains(*step));
        let row = self.row_bytes();
        Some(match (extent, stride, side, step) {
            (Some(extent), ..) => format!("an extent is {extent}; it may be 1 to {MOST_EXTENT}"),
            (_, Some(stride), ..) => {
                format!("a stride is {stride}; it must be a multiple of {UNIT} below {STRIDES_END}")
            }
            (_, _, Some(side), _) => format!("a side of the box is {side}; it may be 1 to {MOST_BOX}"),
            (.., Some(step)) => format!("a step is {step}; it may be 1 to {MOST_STEP}"),
            _ if !u64::from(row).is_multiple_of(UNIT) => {
                format!("a row of the box has {}, not a multiple of {UNIT}", counted(row, "byte"))
            }
            _ if ![0, 32, 64, 128].contains(&self.swizzle) => {
                "the swizzle is not one of 32, 64 or 128 bytes".to_owned()
            }
            _ if self.swizzle != 0 && row > self.swizzle => {
                format!("a row of the box has {}, more than the {} of its swizzle", counted(row, "byte"), self.swizzle)
            }
            _ if self.fills_with_nan && !self.element.is_float() => "integers cannot be filled with NaN".to_owned(),
            _ => return None,
        })
    }

    /// Bytes of a row of a box.
    pub(crate) fn row_bytes(&self) -> u32 {
        self.boxes[0] * self.element.bytes()
    }

    /// Bytes from a row of a box to the next one in shared memory. A swizzle takes whole lines.
    pub(crate) fn pitch(&self) -> u32 {
        if self.swizzle == 0 { self.row_bytes() } else { self.swizzle }
    }

    /// The rows of a box in each dimension but the first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        self.boxes.iter().zip(&self.steps).skip(1).map(|(side, step)| side.div_ceil(*step))
    }

    /// The place of a unit of 16 bytes, by the one that it would have without the swizzle.
    pub(crate) fn swizzled(&self, offset: u64) -> u64 {
        offset ^ (offset >> 7 & u64::from(self.swizzle / 32 * 2).saturating_sub(1).min(7)) << 4
    }

    /// The bytes of the map.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = MARK.to_vec();
        bytes.extend(self.address.to_le_bytes());
        let flags = [self.extents.len() as u8, self.element.0, self.swizzle as u8, u8::from(self.fills_with_nan)];
        bytes.extend(flags);
        for dimension in 0..MOST_DIMENSIONS {
            let extent = self.extents.get(dimension).map_or(0, |extent| (extent - 1) as u32);
            bytes.extend(extent.to_le_bytes());
            bytes.extend(self.strides.get(dimension).copied().unwrap_or(0).to_le_bytes());
            bytes.extend((self.boxes.get(dimension).copied().unwrap_or(0) as u16).to_le_bytes());
            bytes.push(self.steps.get(dimension).copied().unwrap_or(0) as u8);
        }
        bytes.resize(BYTES, 0);
        std::array::from_fn(|index| bytes[index])
    }

    /// The map of these bytes, if they are one.
    pub fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&MARK)?;
        let mut take = |count: usize| {
            let (taken, left) = rest.split_at_checked(count)?;
            rest = left;
            Some(taken.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte)))
        };
        let (address, rank) = (take(8)?, take(1)? as usize);
        let (element, swizzle, nan) = (Element::new(take(1)? as u32)?, take(1)? as u32, take(1)?);
        let mut map = Self {
            address,
            element,
            extents: Vec::new(),
            strides: Vec::new(),
            boxes: Vec::new(),
            steps: Vec::new(),
            swizzle,
            fills_with_nan: nan != 0,
        };
        for dimension in 0..rank.min(MOST_DIMENSIONS) {
            map.extents.push(take(4)? + 1);
            let stride = take(8)?;
            map.strides.extend((dimension + 1 < rank).then_some(stride));
            map.boxes.push(take(2)? as u32);
            map.steps.push(take(1)? as u32);
        }
        (rank <= MOST_DIMENSIONS && map.wrong().is_none()).then_some(map)
    }
}

#[cfg(test)]
mod tests;
