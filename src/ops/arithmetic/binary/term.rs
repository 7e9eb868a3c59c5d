//! The operands of sums, differences, products and quotients.

use crate::array::DeviceArray;
use crate::element::{Element, Float};
use crate::layout::Layout;
use crate::view::View;

/// An operand of [`add`](super::add) and its like: a view, `&array`, or a number that stands for
/// all elements.
///
/// A number is rounded to the type of the arithmetic: `f32` for halves, which is more than NumPy
/// keeps of it.
#[derive(Clone, Copy)]
pub struct Term<'a, T>(pub(super) Kind<'a, T>);

/// The two kinds of operands.
#[expect(clippy::large_enum_variant, reason = "operands are copied, and made without allocating")]
#[derive(Clone, Copy)]
pub(super) enum Kind<'a, T> {
    Elements(View<'a, T>),
    Number(f64),
}

impl<T: Element> Term<'_, T> {
    /// Returns the layout of elements in memory; `None` for a number.
    pub(super) fn layout(&self) -> Option<&Layout> {
        match &self.0 {
            Kind::Elements(view) => Some(view.layout()),
            Kind::Number(_) => None,
        }
    }
}

impl<'a, T: Element> From<View<'a, T>> for Term<'a, T> {
    fn from(view: View<'a, T>) -> Self {
        Self(Kind::Elements(view))
    }
}

impl<'a, T: Element> From<&'a DeviceArray<T>> for Term<'a, T> {
    fn from(array: &'a DeviceArray<T>) -> Self {
        Self(Kind::Elements(array.view()))
    }
}

/// A literal of floating point is a number for elements of every type.
impl<T: Float> From<f64> for Term<'_, T> {
    fn from(number: f64) -> Self {
        Self(Kind::Number(number))
    }
}

impl<T: Float> From<f32> for Term<'_, T> {
    fn from(number: f32) -> Self {
        Self(Kind::Number(number.into()))
    }
}

macro_rules! halves {
    ($($half:ty)*) => {$(
        #[cfg(feature = "half")]
        impl From<$half> for Term<'_, $half> {
            fn from(number: $half) -> Self {
                Self(Kind::Number(number.to_f64()))
            }
        }
    )*};
}

halves! { half::f16 half::bf16 }
