//! Several pairs of a source and a destination, which one launch moves alike.

use crate::abi::{Axis, CopyParams, Divisor, PatchParams, TransposeParams, params};

/// Most pairs of a launch: the GPUs of a host, most often.
pub const PAIRS: usize = 8;
/// Most axes that `elements_pairs` walks along; each costs instructions in all of its entries.
pub const PAIRS_AXES: usize = 4;

params! {
    /// A source and a destination.
    pub struct Pair {
        /// Device address of what the parameters of the first pair have as `src`.
        pub src: u64,
        /// Device address of what they have as `dst`.
        pub dst: u64,
    }

    /// Parameters of `copy_pairs`. The blocks at `z` move pair `z` as those of `copy` move the
    /// first one.
    pub struct CopyPairsParams {
        /// The first pair.
        pub first: CopyParams,
        /// The others.
        pub others: [Pair; PAIRS - 1],
    }

    /// Parameters of `elements_pairs`. The blocks at `z` move pair `z` as those of `elements` move
    /// one.
    pub struct ElementsPairsParams {
        /// The first pair.
        pub first: Pair,
        /// Elements of a pair: the product of the extents.
        pub len: u64,
        /// Axes in use, from the first.
        pub rank: u64,
        /// The axes, innermost first.
        pub axes: [Axis; PAIRS_AXES],
        /// The other pairs.
        pub others: [Pair; PAIRS - 1],
    }

    /// Parameters of `patch_pairs`. The blocks from `z = n * images` on move pair `n` as those of
    /// `patch` move the first one.
    pub struct PatchPairsParams {
        /// The first pair.
        pub first: PatchParams,
        /// Images of a pair. Narrow.
        pub images: Divisor,
        /// The others.
        pub others: [Pair; PAIRS - 1],
    }

    /// Parameters of `staggered_pairs` and `small_tile_pairs`. The blocks at `z` move pair `z` as
    /// those of `staggered` and `small_tile` move the first one, whose grid is one block deep.
    pub struct TransposePairsParams {
        /// The first pair.
        pub first: TransposeParams,
        /// The others.
        pub others: [Pair; PAIRS - 1],
    }
}
