//! Sums, differences, products and quotients, element by element, as NumPy computes them: of views
//! of any layouts, with broadcasting, and with a number on either side.
//!
//! Halves are computed in single precision and rounded once; other types in their own. Quotients
//! are rounded to the nearest, as IEEE 754 has it, so a CPU that does the same gets the same bits.

mod plan;
mod term;
mod walk;

pub use plan::BinaryPlan;
pub use term::Term;

use term::Kind;

use crate::abi::{BINARY_ADD, BINARY_DIV, BINARY_MUL, BINARY_SUB};
use crate::array::DeviceArray;
use crate::element::Float;
use crate::error::{Error, Result};
use crate::names::written_by_name;
use crate::ops::operand::in_new_array;
use crate::ops::{Align, Target};
use crate::stream::Stream;
use crate::view::ViewMut;

/// An operation on two operands, element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
}

impl Binary {
    /// Every operation.
    #[doc(hidden)]
    pub const ALL: [Self; 4] = [Self::Add, Self::Sub, Self::Mul, Self::Div];

    /// Returns the name on the command line and in reports. `mul` is BabelStream's name of
    /// [`scale`](crate::ops::scale()), so the product of two arrays has another.
    #[doc(hidden)]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the operation's number for the kernel.
    fn code(self) -> u64 {
        self.row().1
    }

    const fn row(self) -> (&'static str, u64) {
        match self {
            Self::Add => ("add", BINARY_ADD),
            Self::Sub => ("sub", BINARY_SUB),
            Self::Mul => ("multiply", BINARY_MUL),
            Self::Div => ("div", BINARY_DIV),
        }
    }
}

written_by_name!(Binary);

/// Writes the two functions of each operation.
macro_rules! operations {
    ($($(#[$about:meta])* $name:ident $(#[$queued:meta])* $into:ident $operation:ident;)*) => {$(
        $(#[$about])*
        #[track_caller]
        pub fn $name<'a, T: Float>(a: impl Into<Term<'a, T>>, b: impl Into<Term<'a, T>>) -> Result<DeviceArray<T>> {
            result(Binary::$operation, a.into(), b.into())
        }

        $(#[$queued])*
        pub fn $into<'a, T: Float>(
            a: impl Into<Term<'a, T>>,
            b: impl Into<Term<'a, T>>,
            dst: impl Into<ViewMut<'a, T>>,
            stream: &Stream,
        ) -> Result<()> {
            queue(Binary::$operation, a.into(), b.into(), dst.into(), stream)
        }
    )*};
}

operations! {
    /// Computes `a + b` into a new array in C order, on the default stream.
    ///
    /// Operands are `&array`, a view of any layout, or a number. Their shapes are broadcast as
    /// NumPy's are: axes are matched from the last, an axis of one index repeats, and missing axes
    /// repeat too. A row of a matrix is added to each of its rows, and a column, a view of shape
    /// `[rows, 1]`, to each of its columns.
    ///
    /// Whole arrays take the time of a copy of the same bytes. On an H100 rows and columns of `f32`
    /// do so too, and those of `f64` and halves take up to 8 % longer
    /// (`benches/record/2026-11-28-h100/arithmetic.md`). A thread computes 16 bytes of the result,
    /// from which each operand takes one load where its elements lie side by side from a multiple
    /// of 16 bytes on, or are one element that repeats. A row is the axis along which the result's
    /// elements lie side by side, joined with the axes in which all sides go on without a gap.
    /// These forms are slower:
    ///
    /// - an operand whose elements along a row lie apart or run backwards, such as `view.t()` or a
    ///   view with steps: a thread loads each of its elements alone.
    ///   [`contiguous`](crate::ops::contiguous) first puts it in order, which pays off where it is
    ///   used again;
    /// - an operand whose row starts at another offset from a multiple of 16 bytes than the
    ///   result's, such as `view.slice(1, 1.., 1)`: its elements lie side by side, but those of one
    ///   thread cross a multiple of 16, so each is loaded alone too;
    /// - rows of less than 16 bytes, or of less than 64 where the result's rows start at different
    ///   offsets from a multiple of 16: a thread computes one element, because few threads would
    ///   have 16 bytes. A matrix of three columns of `f32` and a row that is added to it are such a
    ///   form, and two such matrices are not: they are one row each;
    /// - in [`add_into`], a destination whose elements lie apart along every axis, such as a view
    ///   with steps: a thread computes one element there, too.
    ///
    /// # Errors
    ///
    /// `Layout` if the shapes cannot be broadcast to one; `InvalidArgument` if both operands are
    /// numbers, or are not on one device; `OutOfMemory` if the result does not fit; else the
    /// driver's error.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::device::{Backend, Device};
    /// use warpstride::ops;
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let matrix = device.array(&[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let row = device.array(&[3], &[10.0_f32, 20.0, 30.0])?;
    /// assert_eq!(ops::add(&matrix, &row)?.to_vec()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    /// assert_eq!(ops::mul(&matrix, 2.0)?.to_vec()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    /// let column = matrix.view().slice(1, ..1, 1)?;
    /// assert_eq!(ops::sub(&matrix, column)?.to_vec()?, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    /// assert_eq!(ops::div(1.0, matrix.view().t())?.shape(), [3, 2]);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    add
    /// Queues `dst = a + b` on `stream`: see [`add`] for operands and speed. Allocates nothing and
    /// waits for nothing.
    ///
    /// The destination may have any strides. Operands are broadcast to its shape.
    ///
    /// # Errors
    ///
    /// `Layout` if an operand cannot be broadcast to the destination's shape; `InvalidArgument` if
    /// both operands are numbers, or the operands and the stream are not on one device; else the
    /// driver's error.
    add_into Add;
    /// Computes `a - b` into a new array, on the default stream. As [`add`].
    ///
    /// # Errors
    ///
    /// As [`add`].
    sub
    /// Queues `dst = a - b` on `stream`. As [`add_into`].
    ///
    /// # Errors
    ///
    /// As [`add_into`].
    sub_into Sub;
    /// Computes `a * b`, element by element, into a new array, on the default stream. As [`add`].
    /// [`scale`](crate::ops::scale()) is BabelStream's product of a scalar and an array.
    ///
    /// # Errors
    ///
    /// As [`add`].
    mul
    /// Queues `dst = a * b`, element by element, on `stream`. As [`add_into`].
    ///
    /// # Errors
    ///
    /// As [`add_into`].
    mul_into Mul;
    /// Computes `a / b` into a new array, on the default stream. As [`add`]. A division by zero
    /// gives an infinity, or NaN for `0 / 0`, as IEEE 754 has it.
    ///
    /// # Errors
    ///
    /// As [`add`].
    div
    /// Queues `dst = a / b` on `stream`. As [`add_into`] and [`div`].
    ///
    /// # Errors
    ///
    /// As [`add_into`].
    div_into Div;
}

/// Computes into a new array.
#[track_caller]
fn result<T: Float>(operation: Binary, a: Term<'_, T>, b: Term<'_, T>) -> Result<DeviceArray<T>> {
    let (device, shape) = match (&a.0, &b.0) {
        (Kind::Elements(a), Kind::Elements(b)) => (a.device(), broadcast(operation, a.shape(), b.shape())?),
        (Kind::Elements(view), Kind::Number(_)) | (Kind::Number(_), Kind::Elements(view)) => {
            (view.device(), view.shape().to_vec())
        }
        (Kind::Number(_), Kind::Number(_)) => return Err(numbers(operation)),
    };
    in_new_array(device, &shape, |dst, stream| queue(operation, a, b, dst.view_mut(), stream))
}

/// Plans and launches.
fn queue<T: Float>(
    operation: Binary,
    a: Term<'_, T>,
    b: Term<'_, T>,
    dst: ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    let sources = [a.layout(), b.layout()];
    let plan =
        BinaryPlan::new(operation, T::DTYPE, sources, (dst.layout(), Align::ALLOCATION), Target::of(dst.device()))?;
    plan.run(a, b, dst, stream)
}

/// Returns the shape to which both are broadcast.
fn broadcast(operation: Binary, a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let from_end = |shape: &[usize], at: usize| shape.len().checked_sub(at).map_or(1, |axis| shape[axis]);
    (1..=rank)
        .rev()
        .map(|at| match [from_end(a, at), from_end(b, at)] {
            [a, b] if a == b => Ok(a),
            [1, extent] | [extent, 1] => Ok(extent),
            [one, other] => Err(Error::layout(format!(
                "shapes {a:?} and {b:?} cannot be broadcast to one for {operation}: matched from the last axis, {one} \
                 and {other} differ and neither is 1; insert an axis (insert_axis), or take parts of one shape (slice)"
            ))),
        })
        .collect()
}

fn numbers(operation: Binary) -> Error {
    Error::argument(format!("both operands of {operation} are numbers; give an array or a view for one of them"))
}
