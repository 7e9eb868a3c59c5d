//! The memory counters of a launch, in the terms and under the rules of NVIDIA's Nsight Compute.
//!
//! The rows of `figures!` and `accesses!` are the one list of the counters. The structs, their sums
//! and the table come from them. Reports, expectations and comparisons go by the table.

#[doc(hidden)]
pub mod table;

use std::ops::{Add, AddAssign, Mul, Sub};

use table::{Access, Figure, Least};

/// Bytes of a sector: the least that moves between the L2 cache and memory.
#[doc(hidden)]
pub const SECTOR_BYTES: u64 = 32;

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

/// The figures of one kind of access, a row each: the name, the unit, the least that accesses could
/// take, and the metric in Nsight Compute.
macro_rules! figures {
    ($(#[$attr:meta])* $type:ident {
        $($(#[doc = $doc:literal])+ $name:ident: $unit:literal, $least:expr, $metric:literal;)+
    }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $type {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        fieldwise!($type: $($name)+);

        impl $type {
            const FIGURES: &'static [Figure] = &[$(Figure {
                name: stringify!($name),
                doc: concat!($($doc),+),
                unit: $unit,
                least: $least,
                metric: $metric,
            }),+];

            /// The figure of a row.
            fn figure(&self, row: usize) -> u64 {
                [$(self.$name),+][row]
            }
        }
    };
}

/// Lists the kinds of access, a row each: the name and the figures, the members of
/// [`InstructionCounters`] that they add up, the accesses in words, and the operations that Nsight
/// Compute counts there. Metrics have the first of these. Documents have the kinds in this order.
macro_rules! accesses {
    ($(
        $(#[$attr:meta])*
        $name:ident: $figures:ident = $space:ident + $ideal:ident, $doc:literal, [$($op:literal),+];
    )+) => {
        /// Memory counters of a launch, or the sum of those of several launches.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct Counters {
            $(#[doc = concat!("The counters of ", $doc, ".")] $(#[$attr])* pub $name: $figures,)+
            /// The fewest sectors and wavefronts possible for these accesses; zero in documents of
            /// earlier versions.
            #[cfg_attr(feature = "serde", serde(default))]
            pub ideal: Ideal,
        }

        /// The sectors, or wavefronts, that the active lanes' bytes would fill side by side, and
        /// never more than were taken, summed over the accesses of each kind. [`over_ideal`]
        /// compares the sectors or wavefronts taken with them.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct Ideal {
            $(#[doc = concat!("The ideal of ", $doc, ".")] $(#[$attr])* pub $name: u64,)+
        }

        fieldwise!(Counters: $($name)+ ideal);
        fieldwise!(Ideal: $($name)+);

        impl Counters {
            /// The sums over the accesses to each memory.
            fn by_memory(&self) -> InstructionCounters {
                let mut sums = InstructionCounters::default();
                $(sums.$space += self.$name;
                sums.$ideal += self.ideal.$name;)+
                sums
            }
        }

        static ACCESSES: &[Access] = &[$(Access {
            name: stringify!($name),
            doc: $doc,
            space: stringify!($space),
            operations: &[$($op),+],
            figures: $figures::FIGURES,
            figure: |counters, row| counters.$name.figure(row),
            ideal: |counters| counters.ideal.$name,
            add: |counters, part| {
                counters.$name += part.$space;
                counters.ideal.$name += part.$ideal;
            },
        }),+];
    };
}

figures! {
    /// Accesses to global memory of one kind: loads, stores, atomics or reductions.
    GlobalCounters {
        /// Warp instructions with at least one active lane. `cp.async` is not counted here.
        instructions: "instructions", Least::Unknown, "smsp__sass_inst_executed_op_{space}_{op}.sum";
        /// Requests to the L1 cache: one for each such instruction, and one for each `cp.async`.
        requests: "requests", Least::Unknown, "l1tex__t_requests_pipe_lsu_mem_{space}_op_{op}.sum";
        /// Distinct 32-byte sectors touched, summed over the requests. For atomics and reductions,
        /// a sector counts as often as the largest number of lanes that update one address in it.
        sectors: "sectors of 32 bytes", Least::Ideal("memory_l2_theoretical_sectors_{space}_ideal"),
            "l1tex__t_sectors_pipe_lsu_mem_{space}_op_{op}.sum";
    }
}

figures! {
    /// Accesses to shared memory of one kind: loads, stores or atomics.
    SharedCounters {
        /// Warp instructions with at least one active lane. `ldmatrix` is not counted here.
        instructions: "instructions", Least::Unknown, "smsp__sass_inst_executed_op_{space}_{op}.sum";
        /// Passes through the 32 banks that the instructions took.
        wavefronts: "wavefronts", Least::Ideal("memory_l1_wavefronts_{space}_ideal"),
            "l1tex__data_pipe_lsu_wavefronts_mem_{space}_op_{op}.sum";
        /// Wavefronts beyond those that the access width alone needs.
        bank_conflicts: "wavefronts", Least::Zero, "l1tex__data_bank_conflicts_pipe_lsu_mem_{space}_op_{op}.sum";
    }
}

accesses! {
    global_load: GlobalCounters = global + ideal_sectors, "loads from global memory", ["ld"];
    global_store: GlobalCounters = global + ideal_sectors, "stores to global memory", ["st"];
    shared_load: SharedCounters = shared + ideal_wavefronts, "loads from shared memory", ["ld"];
    shared_store: SharedCounters = shared + ideal_wavefronts, "stores to shared memory", ["st"];
    #[cfg_attr(feature = "serde", serde(default))]
    global_atomic: GlobalCounters = global + ideal_sectors, "atomics in global memory whose result is used", ["atom"];
    #[cfg_attr(feature = "serde", serde(default))]
    global_reduction: GlobalCounters = global + ideal_sectors,
        "atomics in global memory whose result is not used", ["red"];
    // Shared memory has no reductions.
    #[cfg_attr(feature = "serde", serde(default))]
    shared_atomic: SharedCounters = shared + ideal_wavefronts, "atomics in shared memory", ["atom", "red"];
}

/// The counters of one instruction, whatever its kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InstructionCounters {
    /// Its accesses to global memory. An instruction with generic addresses may access several
    /// spaces.
    pub global: GlobalCounters,
    /// The fewest sectors possible for each of these accesses, summed: active lanes x bytes / 32,
    /// rounded up, and never more than the sectors touched.
    pub ideal_sectors: u64,
    /// Its accesses to shared memory.
    pub shared: SharedCounters,
    /// The fewest wavefronts possible for each of these accesses, summed: active lanes x bytes /
    /// 128, rounded up, and never more than the wavefronts taken. Atomics that the hardware does in
    /// two passes need twice that.
    pub ideal_wavefronts: u64,
    /// The loads of the loop that replaces an atomic in shared memory if the hardware has no
    /// instruction for it. The launch's loads include them.
    pub loop_loads: SharedCounters,
}

fieldwise!(InstructionCounters: global ideal_sectors shared ideal_wavefronts loop_loads);

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
        self.by_memory().global
    }

    /// All accesses to shared memory together.
    pub fn shared(&self) -> SharedCounters {
        self.by_memory().shared
    }

    /// Bank conflicts of loads, stores and atomics together.
    pub fn bank_conflicts(&self) -> u64 {
        self.shared().bank_conflicts
    }
}

impl Ideal {
    /// The sectors of all accesses to global memory together.
    pub fn sectors(&self) -> u64 {
        Counters { ideal: *self, ..Counters::default() }.by_memory().ideal_sectors
    }

    /// The wavefronts of all accesses to shared memory together.
    pub fn wavefronts(&self) -> u64 {
        Counters { ideal: *self, ..Counters::default() }.by_memory().ideal_wavefronts
    }
}

impl InstructionCounters {
    /// Its part of the launch's counters, where Nsight Compute calls it `operation`.
    ///
    /// An ideal loop of loads, as replaces some atomics in shared memory, has no bank conflicts.
    #[doc(hidden)]
    pub fn of_launch(&self, operation: &str) -> Counters {
        let mut counters = Counters::default();
        let accesses = ACCESSES.iter().filter(|access| access.operations.contains(&operation));
        accesses.for_each(|access| (access.add)(&mut counters, self));
        counters.shared_load += self.loop_loads;
        counters.ideal.shared_load += self.loop_loads.wavefronts - self.loop_loads.bank_conflicts;
        counters
    }
}
