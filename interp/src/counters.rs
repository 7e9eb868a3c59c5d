//! The memory counters of a launch, in the terms and under the rules of NVIDIA's Nsight Compute.

use std::ops::{Add, AddAssign, Mul, Sub};

/// Accesses to global memory of one kind: loads, stores, atomics or reductions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GlobalCounters {
    /// Warp instructions executed with at least one active lane. `cp.async` is none of them.
    pub instructions: u64,
    /// Requests to the L1 cache: one for each such instruction, and one for each `cp.async`.
    pub requests: u64,
    /// Distinct 32-byte sectors touched, summed over the requests. For atomics and reductions, a
    /// sector counts as often as the largest number of lanes that update one address in it.
    pub sectors: u64,
}

/// Accesses to shared memory of one kind: loads, stores or atomics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SharedCounters {
    /// Warp instructions executed with at least one active lane. `ldmatrix` is none of them.
    pub instructions: u64,
    /// Passes through the 32 banks that the instructions took.
    pub wavefronts: u64,
    /// Wavefronts beyond those that the access width alone needs.
    pub bank_conflicts: u64,
}

/// Memory counters of a launch, or the sum of those of several launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counters {
    /// Loads from global memory.
    pub global_load: GlobalCounters,
    /// Stores to global memory.
    pub global_store: GlobalCounters,
    /// Loads from shared memory.
    pub shared_load: SharedCounters,
    /// Stores to shared memory.
    pub shared_store: SharedCounters,
    /// Atomics in global memory whose result is used.
    #[cfg_attr(feature = "serde", serde(default))]
    pub global_atomic: GlobalCounters,
    /// Atomics in global memory whose result is not used.
    #[cfg_attr(feature = "serde", serde(default))]
    pub global_reduction: GlobalCounters,
    /// Atomics in shared memory.
    #[cfg_attr(feature = "serde", serde(default))]
    pub shared_atomic: SharedCounters,
    /// The fewest sectors and wavefronts possible for these accesses; zero in documents of earlier
    /// versions.
    #[cfg_attr(feature = "serde", serde(default))]
    pub ideal: Ideal,
}

/// The sectors, or wavefronts, that the active lanes' bytes would fill side by side, and never more
/// than were taken, summed over the accesses of each kind. [`over_ideal`] compares the sectors or
/// wavefronts taken with them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ideal {
    /// Sectors of loads from global memory.
    pub global_load: u64,
    /// Sectors of stores to global memory.
    pub global_store: u64,
    /// Wavefronts of loads from shared memory.
    pub shared_load: u64,
    /// Wavefronts of stores to shared memory.
    pub shared_store: u64,
    /// Sectors of atomics in global memory whose result is used.
    pub global_atomic: u64,
    /// Sectors of atomics in global memory whose result is not used.
    pub global_reduction: u64,
    /// Wavefronts of atomics in shared memory.
    pub shared_atomic: u64,
}

/// Returns the sectors or wavefronts taken for each one that an ideal access takes: 1 where nothing
/// is wasted, 8 where each 32-byte sector serves 4 bytes. `None` if no ideal was counted.
pub fn over_ideal(taken: u64, ideal: u64) -> Option<f64> {
    (ideal > 0).then(|| taken as f64 / ideal as f64)
}

impl GlobalCounters {
    /// Sectors per request: 4 if the lanes read 4-byte elements side by side, 32 if every lane
    /// reads a sector of its own. `None` without a request.
    pub fn sectors_per_request(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.sectors as f64 / self.requests as f64)
    }
}

impl Counters {
    /// All accesses to global memory together.
    pub fn global(&self) -> GlobalCounters {
        self.global_load + self.global_store + self.global_atomic + self.global_reduction
    }

    /// All accesses to shared memory together.
    pub fn shared(&self) -> SharedCounters {
        self.shared_load + self.shared_store + self.shared_atomic
    }

    /// Bank conflicts of loads, stores and atomics together.
    pub fn bank_conflicts(&self) -> u64 {
        self.shared().bank_conflicts
    }
}

impl Ideal {
    /// The sectors of all accesses to global memory together.
    pub fn sectors(&self) -> u64 {
        self.global_load + self.global_store + self.global_atomic + self.global_reduction
    }

    /// The wavefronts of all accesses to shared memory together.
    pub fn wavefronts(&self) -> u64 {
        self.shared_load + self.shared_store + self.shared_atomic
    }
}

macro_rules! fieldwise {
    ($type:ty: $($field:ident)*) => {
        impl Add for $type {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field),* }
            }
        }
        impl AddAssign for $type {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        /// Multiplies the counts, as for `times` equal launches.
        impl Mul<u64> for $type {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self { $($field: self.$field * times),* }
            }
        }
        /// The counts since `other`, an earlier reading of the same counters.
        impl Sub for $type {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self { $($field: self.$field - other.$field),* }
            }
        }
    };
}

fieldwise!(GlobalCounters: instructions requests sectors);
fieldwise!(SharedCounters: instructions wavefronts bank_conflicts);
fieldwise!(Ideal: global_load global_store shared_load shared_store global_atomic global_reduction shared_atomic);
fieldwise!(Counters: global_load global_store shared_load shared_store global_atomic global_reduction shared_atomic ideal);
