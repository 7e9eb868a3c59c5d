//! Proves that parameters have no padding, and defines the parts that several families share.

use super::Divisor;

/// A parameter of a kernel, or a part of one.
///
/// # Safety
///
/// No byte of a value is padding, so all bytes may be read.
pub unsafe trait Params: Copy + 'static {}

// SAFETY: integers have no padding.
unsafe impl Params for u32 {}
// SAFETY: as above.
unsafe impl Params for u64 {}
// SAFETY: as above.
unsafe impl Params for i64 {}
// SAFETY: elements of an array follow each other without padding.
unsafe impl<T: Params, const N: usize> Params for [T; N] {}

/// Defines parameters, or parts of them, as structs in C's layout, and proves that they are
/// [`Params`].
macro_rules! params {
    ($($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* pub $field:ident: $type:ty,)+
    })+) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)+
        }

        // SAFETY: the fields' types have no padding, and the assertion shows that there is none
        // between or after them.
        unsafe impl $crate::abi::Params for $name {}
        const _: () = {
            const fn has_no_padding<T: $crate::abi::Params>() {}
            $(has_no_padding::<$type>();)+
            assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())+);
        };
    )+};
}

pub(crate) use params;

/// Most axes that number a launch: the largest rank of a layout.
pub const MAX_AXES: usize = 16;

params! {
    /// One axis that numbers blocks or threads; strides in elements, signed.
    #[derive(Hash)]
    pub struct Axis {
        /// Positions along the axis.
        pub extent: Divisor,
        /// From one position to the next in the source.
        pub src_stride: i64,
        /// From one position to the next in the destination.
        pub dst_stride: i64,
    }

    /// A run that may be two axes in one: row `r` starts `(r % inner) * inner_stride + (r / inner)
    /// * outer_stride` elements from row 0.
    #[derive(Hash)]
    pub struct Fold {
        /// Rows of the inner axis.
        pub inner: Divisor,
        /// Elements from one index of the inner axis to the next.
        pub inner_stride: i64,
        /// Elements from one index of the outer axis to the next.
        pub outer_stride: i64,
    }

    /// The vectors of a range of `len` elements: `first` elements before the first whole vector of
    /// the destination, `quads` whole vectors, and the remaining elements after them.
    ///
    /// Lane `i` of the grid moves vector `i`, and each lane below `len - quads * lanes of a vector`
    /// moves one of the other elements. If the sides do not start equally far from a vector, there
    /// are no vectors.
    pub struct Span {
        /// Elements.
        pub len: u64,
        /// Elements before the first vector.
        pub first: u64,
        /// Whole vectors.
        pub quads: u64,
    }
}
