//! Fills a buffer before the launch.

use std::path::PathBuf;

use anyhow::Result;
use warpstride::element::DType;
use warpstride::io::ArrayFile;
use warpstride::random::SplitMix64;

use super::super::args::{Argument, Fill, Value};
use super::super::output::Output;
use super::super::{input, number, require, zeroed};

/// The buffer that an argument asks for.
pub(crate) struct Buffer {
    /// Its size.
    pub(crate) bytes: usize,
    pub(crate) dtype: DType,
    /// The element type as NumPy spells it.
    pub(crate) descr: String,
    /// Extents in elements.
    pub(crate) shape: Vec<usize>,
    contents: Contents,
}

enum Contents {
    Made(Fill),
    Read(PathBuf, Box<dyn ArrayFile>),
}

impl Buffer {
    /// None for a number. A file is opened and its header checked; its elements are read later.
    pub(crate) fn of(argument: &Argument) -> Result<Option<Self>> {
        match &argument.value {
            Value::Scalar { .. } => Ok(None),
            &Value::Buffer { dtype, len, fill } => Ok(Some(Self {
                bytes: len * dtype.width(),
                dtype,
                descr: numpy_name(dtype),
                shape: vec![len],
                contents: Contents::Made(fill),
            })),
            Value::File(path) => {
                let (source, file) = (input::array(path)?, path);
                let path = file.display();
                require!(
                    !source.is_fortran(),
                    InvalidArgument,
                    "{path} is in Fortran order; save it in C order, with numpy.ascontiguousarray"
                );
                let descr = source.descr().to_owned();
                require!(
                    !descr.starts_with('>'),
                    InvalidArgument,
                    "{path} has big-endian elements; save them as a GPU reads them, with astype"
                );
                let (bytes, dtype, shape) = (source.bytes(), source.dtype(), source.shape().to_vec());
                Ok(Some(Self { bytes, dtype, descr, shape, contents: Contents::Read(file.clone(), source) }))
            }
        }
    }

    /// Notes how many bytes of its file are left out.
    pub(crate) fn note(&self, output: &Output) {
        if let Contents::Read(path, source) = &self.contents {
            input::note_left_out(&**source, path, output);
        }
    }

    /// Makes or reads the elements; `None` for a buffer that is to stay as the device gives it.
    pub(crate) fn contents(self) -> Result<Option<Vec<u8>>> {
        Ok(match self.contents {
            Contents::Made(Fill::Uninit) => None,
            Contents::Made(fill) => {
                let mut bytes = zeroed(self.bytes)?;
                write(fill, self.dtype, &mut bytes);
                Some(bytes)
            }
            Contents::Read(_, source) => Some(input::elements::<u8>(source)?),
        })
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

/// Writes the elements into `bytes`, which are zero.
fn write(fill: Fill, dtype: DType, bytes: &mut [u8]) {
    let part = number::part(dtype);
    let width = part.width();
    let put = |bytes: &mut [u8], bits: u64, value: f64| match number::is_float(part) {
        true => number::write_float(part, value, bytes),
        false => bytes.copy_from_slice(&bits.to_le_bytes()[..width]),
    };
    match fill {
        Fill::Zeros | Fill::Uninit => {}
        Fill::Iota => {
            let elements = bytes.chunks_exact_mut(dtype.width()).zip(0..);
            elements.for_each(|(element, i)| put(&mut element[..width], i, i as f64));
        }
        Fill::Number(number) => {
            bytes
                .chunks_exact_mut(dtype.width())
                .for_each(|element| element[..width].copy_from_slice(&number[..width]));
        }
        Fill::Random(seed) => {
            // The digits of a float.
            let digits = match part {
                DType::F16 => 11,
                DType::Bf16 => 8,
                DType::F32 => 24,
                _ => 53,
            };
            for (number, i) in bytes.chunks_exact_mut(width).zip(0..) {
                let random = SplitMix64::at(seed, i);
                put(number, random, (random >> (64 - digits)) as f64 / (1_u64 << digits) as f64);
            }
        }
    }
}
