//! Passes typed values in and out: parameters at the offsets that the PTX declares, and buffers of
//! numbers.

use super::code::Param;
use super::invalid;
use super::mem::Memory;
use super::module::Kernel;
use crate::error::{Result, counted};

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
/// multiple of its own size. Padding at the struct's end must be passed too, as numbers of any
/// kind.
///
/// A buffer is passed by its address, a `u64`. See [`crate`] for an example.
#[derive(Debug)]
pub struct Args<'k> {
    kernel: &'k Kernel,
    /// All parameter bytes; those without a value yet are 0.
    bytes: Vec<u8>,
    /// The parameter that the next value goes to.
    param: usize,
    /// The number of its bytes that already have a value.
    filled: usize,
}

impl<'k> Args<'k> {
    /// Starts without values.
    pub fn new(kernel: &'k Kernel) -> Self {
        Self { kernel, bytes: Vec::new(), param: 0, filled: 0 }
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
    pub fn bytes(mut self, value: &[u8]) -> Result<Self> {
        let name = self.kernel.name();
        let Some(param) = self.kernel.params().get(self.param) else {
            let count = self.kernel.params().len();
            return Err(invalid(format!(
                "kernel {name:?} takes {} and each has its value; pass no more",
                counted(count, "parameter")
            )));
        };
        let begin = self.filled.next_multiple_of(value.len().max(1));
        let fits =
            if is_struct(param) { value.len() <= param.size.saturating_sub(begin) } else { value.len() == param.size };
        if !fits {
            let left = param.size.saturating_sub(begin);
            let room = if begin == 0 {
                counted(left, "byte").to_string()
            } else {
                format!("{left} left of {}", param.size, left = counted(left, "byte"))
            };
            return Err(invalid(format!(
                "parameter {:?} of kernel {name:?} has {room} and the value {}; pass a value of its size",
                param.name,
                value.len()
            )));
        }
        let place = param.offset.saturating_add(begin);
        if place.saturating_add(value.len()) > MAX_PARAM_BYTES {
            return Err(invalid(format!(
                "parameter {:?} of kernel {name:?} ends behind the {MAX_PARAM_BYTES} bytes of parameters that CUDA passes; \
                 pass large values in a buffer",
                param.name
            )));
        }
        self.bytes.resize(place, 0);
        self.bytes.extend_from_slice(value);
        self.filled = begin + value.len();
        if self.filled == param.size {
            (self.param, self.filled) = (self.param + 1, 0);
        }
        Ok(self)
    }

    /// Returns the parameter bytes for [`crate::gpu::run`].
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the name of the first parameter that has no value, or only a part of
    /// it.
    pub fn finish(self) -> Result<Vec<u8>> {
        let Some(param) = self.kernel.params().get(self.param) else { return Ok(self.bytes) };
        let (name, kernel) = (&param.name, self.kernel.name());
        let got = if self.filled == 0 { "no value".into() } else { format!("only {} of them", self.filled) };
        Err(invalid(format!(
            "parameter {name:?} of kernel {kernel:?} has {} and got {got}; pass values for all {}",
            counted(param.size, "byte"),
            counted(self.kernel.params().len(), "parameter")
        )))
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
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::gpu::Module;

    fn kernel(params: &str) -> Kernel {
        let text = format!(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k({params}) {{ ret; }}");
        Module::parse(&text).unwrap().kernel("k").unwrap().clone()
    }

    #[test]
    fn a_struct_takes_its_members_and_its_padding() {
        let kernel = kernel(".param .align 8 .b8 s[24], .param .align 4 .b8 pair[8], .param .u32 n");
        let args = Args::new(&kernel).value(1_u16).unwrap().value(2_u64).unwrap().value(3_u32).unwrap();
        let error = args.value(4_u64).unwrap_err().to_string();
        assert!(error.contains("\"s\"") && error.contains("0 bytes left of 24"), "{error}");
        let args = Args::new(&kernel).value(1_u16).unwrap().value(2_u64).unwrap().value(3_u32).unwrap();
        let args = args.value(0_u32).unwrap().value(4_u32).unwrap().value(5_u32).unwrap().value(6_u32).unwrap();
        let words: Vec<u32> = args.finish().unwrap().chunks(4).map(|word| u32::from_bytes(word).unwrap()).collect();
        assert_eq!(words, [1, 0, 2, 0, 3, 0, 4, 5, 6]);
    }

    #[test]
    fn what_does_not_go_together_names_the_parameter() {
        let kernel = kernel(".param .u64 buffer, .param .u32 len");
        let one = || Args::new(&kernel).value(0_u64).unwrap();
        for (args, said) in [
            (one().value(1_u64), "\"len\" of kernel \"k\" has 4 bytes and the value 8"),
            (Args::new(&kernel).value(0_u32), "\"buffer\" of kernel \"k\" has 8 bytes and the value 4"),
            (Ok(one()), "\"len\" of kernel \"k\" has 4 bytes and got no value"),
            (one().value(1_u32).unwrap().value(2_u32), "takes 2 parameters"),
        ] {
            let error = args.and_then(Args::finish).unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn buffers_come_back_as_they_went() {
        let memory = Memory::new(1 << 10);
        let values = [0.5_f64, -1.0, f64::INFINITY];
        let address = memory.upload(&values).unwrap();
        assert_eq!(memory.download::<f64>(address, 3).unwrap(), values);
        assert_eq!(memory.download::<f64>(address, 4).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(memory.download::<f64>(address, usize::MAX).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(memory.upload::<u8>(&[]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
