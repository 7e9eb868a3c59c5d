//! Waits for a throttled device, with pauses that double, and remembers from measurement to
//! measurement where waiting is in vain.
//!
//! A device that nothing cools, or whose clock is set low, would delay each of a hundred
//! measurements until its deadline. So after one wait in vain there are no more, until the device
//! is found at its clocks again. Clocks that stayed low all the while, though the driver named
//! neither heat nor power, count as set: NVML has a reason for application clocks, but none for
//! locked ones (`nvidia-smi --lock-gpu-clocks`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::clocks::Clocks;
use crate::sync::lock;

/// The first pause; each is twice the one before.
const PAUSE: Duration = Duration::from_millis(50);

/// GPUs that were waited for in vain, by their PCI bus id, and whether their clocks count as set.
static IN_VAIN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());

fn in_vain() -> MutexGuard<'static, BTreeMap<String, bool>> {
    lock(&IN_VAIN)
}

/// Returns whether the clocks of a GPU were found to be set low.
pub(super) fn are_held(gpu: &str) -> bool {
    in_vain().get(gpu).is_some_and(|&held| held)
}

/// The pauses of one measurement.
pub(super) struct BackOff<'a> {
    gpu: &'a str,
    all: Duration,
    deadline: Instant,
    pause: Duration,
    waited: Duration,
    /// True if heat or power was ever the reason.
    slowed: bool,
}

impl<'a> BackOff<'a> {
    /// Waits for at most `all` from now on.
    pub(super) fn new(gpu: &'a str, all: Duration) -> Self {
        Self { gpu, all, deadline: Instant::now() + all, pause: PAUSE, waited: Duration::ZERO, slowed: false }
    }

    /// Returns whether the deadline has passed.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// How long to wait before samples that were taken at these clocks are retaken; `None` where
    /// they count. Sets `held` of clocks that turn out to be set low.
    pub(super) fn pause(&mut self, clocks: &mut Clocks) -> Option<Duration> {
        if !clocks.are_low() {
            in_vain().remove(self.gpu);
            return None;
        }
        self.slowed |= clocks.slowed;
        if in_vain().contains_key(self.gpu) {
            return None;
        }
        let pause = self.pause;
        if Instant::now() + pause < self.deadline {
            (self.pause, self.waited) = (2 * pause, self.waited + pause);
            return Some(pause);
        }
        // If the operation itself took the time, nothing is known about waiting.
        if 2 * self.waited >= self.all {
            clocks.held = !self.slowed;
            in_vain().insert(self.gpu.into(), clocks.held);
        }
        None
    }
}

#[cfg(test)]
mod tests;
