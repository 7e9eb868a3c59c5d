//! What a buffer holds before the launch.

use anyhow::{Result, ensure};
use warpstride::element::DType;

use super::super::npy::Source;
use super::super::{by_width, zeroed};
use super::argument::{Argument, Fill, Value};

/// The buffer that an argument asks for.
pub(super) struct Buffer {
    /// Its size.
    pub(super) bytes: usize,
    /// The element type as NumPy spells it.
    pub(super) descr: String,
    /// Extents in elements.
    pub(super) shape: Vec<usize>,
    contents: Contents,
}

enum Contents {
    Made(DType, Fill),
    Read(Box<Source>),
}

impl Buffer {
    /// None for a number. A file is opened and its header checked; its elements are read later.
    pub(super) fn of(argument: &Argument) -> Result<Option<Self>> {
        match &argument.value {
            Value::Scalar(_) => Ok(None),
            &Value::Buffer { dtype, len, fill } => Ok(Some(Self {
                bytes: len * dtype.width(),
                descr: numpy_name(dtype),
                shape: vec![len],
                contents: Contents::Made(dtype, fill),
            })),
            Value::File(path) => {
                let (source, path) = (Source::open(path)?, path.display());
                ensure!(
                    !source.fortran,
                    "{path} is in Fortran order; save it in C order, with numpy.ascontiguousarray"
                );
                let descr = source.descr.clone();
                ensure!(
                    !descr.starts_with('>'),
                    "{path} has big-endian elements; save them as a GPU reads them, with astype"
                );
                let (bytes, shape) = (source.bytes, source.shape().to_vec());
                Ok(Some(Self { bytes, descr, shape, contents: Contents::Read(Box::new(source)) }))
            }
        }
    }

    /// Makes or reads the elements; `None` where the buffer is to stay as the device gives it.
    pub(super) fn into_contents(self) -> Result<Option<Vec<u8>>> {
        match self.contents {
            Contents::Made(_, Fill::Uninit) => Ok(None),
            Contents::Made(dtype, fill) => {
                let mut bytes = zeroed(self.bytes)?;
                fill.write(dtype, &mut bytes);
                Ok(Some(bytes))
            }
            Contents::Read(source) => {
                by_width!(source.dtype, T => Ok(Some(bytemuck::cast_slice(&source.read::<T>()?).to_vec())))
            }
        }
    }
}

/// NumPy has no `bf16`: a file holds its bits.
fn numpy_name(dtype: DType) -> String {
    let letter = match dtype {
        DType::U8 | DType::U16 | DType::Bf16 | DType::U32 | DType::U64 => 'u',
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 'i',
        DType::F16 | DType::F32 | DType::F64 => 'f',
        DType::C64 | DType::C128 => 'c',
    };
    let order = if dtype.width() == 1 { '|' } else { '<' };
    format!("{order}{letter}{}", dtype.width())
}
