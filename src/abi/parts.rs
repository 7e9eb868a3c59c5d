//! The proof that parameters have no padding, and parts of them that several families have.

use super::Divisor;

/// What a parameter of a kernel is made of, and a parameter itself.
///
/// # Safety
///
/// No byte of a value is padding, so that all of them may be read.
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
        // between them or behind.
        unsafe impl $crate::abi::Params for $name {}
        const _: () = {
            const fn has_no_padding<T: $crate::abi::Params>() {}
            $(has_no_padding::<$type>();)+
            assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())+);
        };
    )+};
}

pub(crate) use params;

/// Most axes of a launch that is numbered along axes: as many as a layout has.
pub const MAX_AXES: usize = 16;

params! {
    /// One axis that blocks or threads are numbered along; strides in elements, signed.
    #[derive(Hash)]
    pub struct Axis {
        /// Positions along the axis.
        pub extent: Divisor,
        /// From one position to the next in the source.
        pub src_stride: i64,
        /// From one position to the next in the destination.
        pub dst_stride: i64,
    }

    /// Where rows, or images, lie that may be two axes in one: row `r` lies
    /// `(r % inner) * inner_stride + (r / inner) * outer_stride` elements from row 0.
    #[derive(Hash)]
    pub struct Fold {
        /// Rows of the inner axis.
        pub inner: Divisor,
        /// Elements from one index of the inner axis to the next.
        pub inner_stride: i64,
        /// Elements from one index of the outer axis to the next.
        pub outer_stride: i64,
    }

    /// Where the quads of a range of elements lie: `first` elements before the first whole quad of
    /// the destination, `quads` whole ones, and the rest of `len` elements behind them.
    ///
    /// Lane `i` of the grid moves quad `i`, and the lanes below `len - quads * lanes of a quad` one
    /// of the other elements each. Where the sides do not start equally far from a quad, there are
    /// no quads.
    pub struct Span {
        /// Elements.
        pub len: u64,
        /// Elements before the first quad.
        pub first: u64,
        /// Whole quads.
        pub quads: u64,
    }
}
