//! Logs from a seed, which are hard on allocators: sizes hardly ever come back.

use super::log::Log;
use warpstride::random::SplitMix64;

/// Bounds of the sizes, in bytes.
const LEAST: f64 = 512.0;
const MOST: f64 = (2_u64 << 30) as f64;
/// Most bytes in use.
const LIVE: u64 = 20 << 30;
const STREAMS: u64 = 4;

impl Log {
    /// Makes a log of `operations` allocations and frees on four streams: sizes log-uniform from
    /// 512 B to 2 GiB, up to 20 GiB in use, and blocks that are freed in random order. One in eight
    /// is freed on another stream than it was allocated on. The same seed gives the same log.
    pub(crate) fn random(seed: u64, operations: usize) -> Self {
        let mut random = Random(SplitMix64(seed));
        let (mut log, mut live, mut active) = (Self::default(), Vec::new(), 0);
        while log.operations().len() < operations {
            let bytes = (LEAST * (MOST / LEAST).powf(random.unit())) as u64;
            // Without the coin the memory would be full all the time.
            if active + bytes > LIVE || (!live.is_empty() && random.below(16) < 7) {
                let (slot, bytes, stream) = live.swap_remove(random.below(live.len() as u64) as usize);
                active -= bytes;
                let elsewhere = random.below(8) == 0;
                log.free(slot, if elsewhere { random.below(STREAMS) as u32 } else { stream });
                continue;
            }
            let stream = random.below(STREAMS) as u32;
            live.push((log.alloc(bytes, stream), bytes, stream));
            active += bytes;
        }
        log
    }
}

/// The records name logs by their seeds, so these numbers must stay as they are.
struct Random(SplitMix64);

impl Random {
    /// A number below `bound`, whose bias is below `bound / 2^64`.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.0.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
