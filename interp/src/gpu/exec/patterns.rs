//! Remembers the cost of an access pattern, because a warp repeats its patterns from block to
//! block.
//!
//! Shifting all addresses of a warp by the same number of words rotates the banks and changes
//! nothing else. A pattern therefore consists of the lanes' distances from the first lane, and for
//! elements smaller than a word, of the first lane's offset in its word.

use crate::gpu::model::banks::{Wavefronts, wavefronts};
use crate::gpu::vocabulary::{AccessKind, LANES, each};

/// The number of instructions remembered; instructions with equal pcs modulo this number replace
/// each other.
const REMEMBERED: usize = 32;

/// The latest patterns of one warp.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    last: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    /// Offsets from lane 0's.
    relative: [u32; LANES],
    /// Lane 0's offset in its word.
    byte: u32,
    /// Active lanes; 0 before the first access.
    mask: u32,
    /// The pc of the instruction.
    pc: u32,
    passes: Wavefronts,
}

impl Patterns {
    /// An empty memory of patterns.
    pub(super) fn new() -> Self {
        let passes = Wavefronts::default();
        Self { last: vec![Pattern { relative: [0; LANES], byte: 0, mask: 0, pc: 0, passes }; REMEMBERED] }
    }

    /// The wavefronts of the instruction at `pc`, which always has the same width and direction.
    /// `mask` is not 0.
    #[inline(always)]
    pub(super) fn wavefronts(
        &mut self,
        pc: u32,
        offsets: &[u32; LANES],
        mask: u32,
        bytes: u32,
        access: AccessKind,
    ) -> Wavefronts {
        let last = &mut self.last[pc as usize % REMEMBERED];
        let relative = each(|lane| offsets[lane].wrapping_sub(offsets[0]));
        let byte = offsets[0] % 4;
        let differs = (0..LANES).fold(0, |differs, lane| differs | relative[lane] ^ last.relative[lane]);
        if differs | (byte ^ last.byte) | (mask ^ last.mask) | (pc ^ last.pc) != 0 {
            *last = Pattern { relative, byte, mask, pc, passes: wavefronts(offsets, mask, bytes, access) };
        }
        last.passes
    }
}

#[cfg(test)]
mod tests;
