//! Chooses the way of a copy between two ranks.

use super::{Gpus, Move};

/// The way of a copy between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A kernel of the source's rank stores into the memory of the other one.
    Kernel,
    /// A copy engine of the other rank's GPU fetches the elements.
    Engine,
    /// Through pinned memory of the host.
    Host,
}

/// The bytes of a run, which lies side by side in both parts, from which on a copy engine takes it
/// where no figures of the links are known. Engines move long runs over NVLink faster than kernels
/// do (`benches/record/2026-11-28-h200/redistribute4.md`). The limit was chosen and not measured.
const RUN: u64 = 4 << 20;

/// The factor by which an engine has to be faster than kernels for elements that are packed before
/// it takes them, or sorted behind it. Each of both passes through memory once more. It was chosen
/// and not measured. Over PCIe, stores of kernels are many times slower than an engine.
const PACKED: f64 = 2.0;

impl Way {
    /// Returns the way of a copy: the one rule that all exchanges go by. If the links of the pair
    /// were measured ([`Gpus::set_links`]), the times that they predict decide between kernels and
    /// copy engines.
    pub(super) fn of(gpus: &Gpus, part: &Move) -> Self {
        let &Move { from, to, bytes, ref src, ref dst } = part;
        if !gpus.reaches(from, to) {
            return Self::Host;
        }
        if from == to || !gpus.reaches(to, from) {
            return Self::Kernel;
        }
        let is_run = src.is_standard_layout() && dst.is_standard_layout();
        let by_engine = match gpus.links(from, to) {
            Some(links) => {
                let factor = if is_run { 1.0 } else { PACKED };
                factor * links.engine.push_ms(bytes) < links.kernels.push_ms(bytes)
            }
            None => is_run && bytes >= RUN,
        };
        if by_engine { Self::Engine } else { Self::Kernel }
    }

    /// Returns how the copies of this way are called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "by kernels",
            Self::Engine => "by copy engines",
            Self::Host => "through pinned host memory, because these GPUs do not use each other's memory",
        }
    }
}
