//! Passes typed values in and out: parameters at the offsets that the PTX declares, and buffers of
//! numbers.

use super::code::Param;
use super::invalid;
use super::mem::Memory;
use super::module::Kernel;
use crate::error::{Error, Result, counted};

/// The most bytes of parameters that CUDA passes.
const MAX_PARAM_BYTES: usize = 32_764;

mod sealed {
    /// Restricts [`super::Value`] to the types of this file.
    pub trait Sealed {}
}

/// A number that kernels take as a parameter and that buffers hold.
pub trait Value: sealed::Sealed + Copy {
    /// Its bytes, in the GPU's order.
    fn to_bytes(self) -> impl AsRef<[u8]>;
    /// The value with these bytes; `None` if their number is not the type's size.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

macro_rules! values {
    ($($type:ty)*) => {$(
        impl sealed::Sealed for $type {}
        impl Value for $type {
            fn to_bytes(self) -> impl AsRef<[u8]> {
                self.to_le_bytes()
            }
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}

values! { u8 i8 u16 i16 u32 i32 f32 u64 i64 f64 }

/// Builds the parameter bytes of a launch from values in the order of the kernel's declaration.
/// Each value must have the size of its parameter.
///
/// A struct passed by value (`.param .b8 name[24]`) takes several values. Each goes to the next
/// multiple of its own size. PTX does not say if a struct ends with padding: bytes at its end that
/// the kernel never reads may have values, as numbers of any kind, or may be left out, as far as
/// all values then fit in one way only.
///
/// A buffer is passed by its address, a `u64`. See [`crate`] for an example.
#[derive(Debug)]
pub struct Args<'k> {
    kernel: &'k Kernel,
    /// The ways in which the values so far fit. The first one leaves no padding out.
    ways: Vec<Placed>,
}

/// One way to place values.
#[derive(Debug, Clone, Default)]
struct Placed {
    /// All parameter bytes; those without a value yet are 0.
    bytes: Vec<u8>,
    /// The offset of each value.
    places: Vec<usize>,
    /// The parameter that the next value goes to.
    param: usize,
    /// The number of its bytes that already have a value.
    filled: usize,
    /// True if there is another way to the same parameter and byte.
    ambiguous: bool,
}

impl<'k> Args<'k> {
    /// Starts without values.
    pub fn new(kernel: &'k Kernel) -> Self {
        Self { kernel, ways: vec![Placed::default()] }
    }

    /// Adds the next value.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if its size is not the parameter's, if every parameter already has its
    /// value, or if the kernel declares more bytes of parameters than CUDA passes.
    pub fn value(self, value: impl Value) -> Result<Self> {
        self.bytes(value.to_bytes().as_ref())
    }

    /// Adds the next value as its bytes in memory.
    ///
    /// # Errors
    ///
    /// Those of [`Args::value`].
    pub fn bytes(self, value: &[u8]) -> Result<Self> {
        let kernel = self.kernel;
        let (mut ways, mut refused): (Vec<Placed>, _) = (Vec::new(), None);
        for way in self.ways {
            let closed = way.closed(kernel);
            for way in [Some(way), closed].into_iter().flatten() {
                match way.with(kernel, value) {
                    Ok(way) => match ways.iter_mut().find(|other| other.at() == way.at()) {
                        Some(other) => other.ambiguous = true,
                        None => ways.push(way),
                    },
                    Err(error) => _ = refused.get_or_insert(error),
                }
            }
        }
        match refused {
            Some(error) if ways.is_empty() => Err(error),
            _ => Ok(Self { kernel, ways }),
        }
    }

    /// Returns the parameter bytes for [`crate::gpu::run`].
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the first parameter that has no value, or only a part of it, and if
    /// the values fit in several ways because structs may end with padding.
    pub fn finish(self) -> Result<Vec<u8>> {
        Ok(self.finish_placed()?.0)
    }

    /// Returns the same with the offset of each value.
    #[doc(hidden)]
    pub fn finish_placed(self) -> Result<(Vec<u8>, Vec<usize>)> {
        let kernel = self.kernel;
        // Bytes that may be padding are not what a value is missing for.
        let first = &self.ways[0];
        let missing = first.closed(kernel).as_ref().unwrap_or(first).missing(kernel);
        let ways = self.ways.into_iter().map(|way| way.closed(kernel).unwrap_or(way));
        let mut complete = ways.filter(|way| way.param == kernel.params().len());
        match (complete.next(), complete.next()) {
            (Some(only), None) if !only.ambiguous => Ok((only.bytes, only.places)),
            (Some(_), _) => Err(invalid(format!(
                "the values fit the parameters of kernel {:?} in several ways, because its structs may end with \
                 padding; pass numbers for the padding too",
                kernel.name()
            ))),
            (None, _) => Err(missing),
        }
    }
}

impl Placed {
    fn at(&self) -> (usize, usize) {
        (self.param, self.filled)
    }

    /// Places a value.
    fn with(mut self, kernel: &Kernel, value: &[u8]) -> Result<Self> {
        let name = kernel.name();
        let Some(param) = kernel.params().get(self.param) else {
            let count = kernel.params().len();
            return Err(invalid(format!(
                "kernel {name:?} takes {} and each has its value; pass no more",
                counted(count, "parameter")
            )));
        };
        let begin = self.filled.next_multiple_of(value.len().max(1));
        let left = param.size.saturating_sub(begin);
        let fits = if is_struct(param) { value.len() <= left } else { value.len() == param.size };
        if !fits {
            let room = match begin {
                0 => counted(param.size, "byte").to_string(),
                _ => format!("{left} left of {}", param.size, left = counted(left, "byte")),
            };
            return Err(invalid(format!(
                "{} has {room} and the value {}; pass a value of its size",
                kernel.argument(self.param),
                value.len()
            )));
        }
        let place = param.offset.saturating_add(begin);
        if place.saturating_add(value.len()) > MAX_PARAM_BYTES {
            return Err(invalid(format!(
                "{} ends behind the {MAX_PARAM_BYTES} bytes of parameters that CUDA passes; pass large values in a \
                 buffer",
                kernel.argument(self.param)
            )));
        }
        self.bytes.resize(place, 0);
        self.bytes.extend_from_slice(value);
        self.places.push(place);
        self.filled = begin + value.len();
        if self.filled == param.size {
            (self.param, self.filled) = (self.param + 1, 0);
        }
        Ok(self)
    }

    /// Returns the same without values for the rest of the current struct, if that may be padding:
    /// less than the struct's alignment, and never read.
    fn closed(&self, kernel: &Kernel) -> Option<Self> {
        let param = kernel.params().get(self.param).filter(|param| is_struct(param) && self.filled > 0)?;
        let may_be_padding = param.size - self.filled < param.align && !kernel.may_read(param, self.filled);
        may_be_padding.then(|| {
            let mut closed = Self { param: self.param + 1, filled: 0, ..self.clone() };
            closed.bytes.resize(param.offset + param.size, 0);
            closed
        })
    }

    /// Describes the first parameter that lacks bytes.
    fn missing(&self, kernel: &Kernel) -> Error {
        let left = kernel.params().get(self.param).map_or(0, |param| param.size - self.filled);
        let argument = kernel.argument(self.param);
        let count = counted(kernel.params().len(), "parameter");
        invalid(if self.filled == 0 {
            format!("{argument} has no value; pass values for all {count}")
        } else {
            let left = counted(left, "byte");
            format!("{argument} still misses {left}; pass a value for each member of the struct")
        })
    }
}

/// Returns whether it is declared as an array of bytes: a PTX number is never wider than 8 bytes,
/// or aligned to less than its size.
fn is_struct(param: &Param) -> bool {
    param.size > 8 || param.align < param.size
}

impl Memory {
    /// Allocates a buffer, fills it with these values and returns its address.
    ///
    /// # Errors
    ///
    /// Those of [`Memory::alloc`]; a buffer has at least one value.
    pub fn upload<T: Value>(&self, values: &[T]) -> Result<u64> {
        let address = self.alloc(size_of_val(values) as u64)?;
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| bytes.extend_from_slice(value.to_bytes().as_ref()));
        self.write(address, &bytes)?;
        Ok(address)
    }

    /// Copies the `len` values that begin at `address` to the host.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no single live allocation contains them.
    pub fn download<T: Value>(&self, address: u64, len: usize) -> Result<Vec<T>> {
        let beyond =
            || invalid(format!("no allocation holds {len} at {address:#x}; read fewer", len = counted(len, "value")));
        let size = len.checked_mul(size_of::<T>()).ok_or_else(beyond)?;
        if size as u64 > self.used() {
            return Err(beyond());
        }
        let mut bytes = vec![0; size];
        self.read(address, &mut bytes)?;
        Ok(bytes.chunks_exact(size_of::<T>()).filter_map(T::from_bytes).collect())
    }
}

#[cfg(test)]
mod tests;
