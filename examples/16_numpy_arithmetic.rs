//! Loads a matrix from NumPy's file, adds a row to each of its rows, takes the means of its
//! columns, and saves the matrix with these subtracted.
//!
//! It reads as the same lines in NumPy do:
//!
//! ```text
//! biased = numpy.load("in.npy") + bias
//! numpy.save("out.npy", biased - biased.mean(axis=0))
//! ```
//!
//! A row repeats for each row of a matrix, so nothing has to be copied to the matrix's shape first.
//!
//! ```text
//! cargo run --release --features pipeline --example 16_numpy_arithmetic [IN.npy OUT.npy]
//! ```

use std::path::{Path, PathBuf};

use warpstride::error::{Error, ErrorKind};
use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::{Backend, DType, Device, DeviceArray, ops};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::open(Backend::Auto)?;
    println!("{}", device.choice());
    let own = tempfile::tempdir()?;
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (from, to) = match <[PathBuf; 2]>::try_from(named) {
        Ok([from, to]) => (from, to),
        Err(_) => (own.path().join("in.npy"), own.path().join("out.npy")),
    };
    if from.starts_with(own.path()) {
        save(&from, &[2, 3], &[1.0, 2.0, 3.0, 5.0, 6.0, 7.0])?;
    }

    let matrix = load(&device, &from)?;
    let columns = matrix.shape()[1];
    let bias: Vec<f32> = (1..=columns).map(|column| 10.0 * column as f32).collect();
    let bias = device.array(&[columns], &bias)?;

    let biased = ops::add(&matrix, &bias)?;
    let means = ops::mean(&biased, 0)?;
    let centred = ops::sub(&biased, &means)?;

    let result = centred.to_vec()?;
    save(&to, centred.shape(), &result)?;
    let first = |values: &[f32]| values[..values.len().min(6)].to_vec();
    println!("the means of {:?}: {:?}", biased.shape(), first(&means.to_vec()?));
    println!("without them: {:?}", first(&result));
    Ok(())
}

/// Loads a matrix of singles in C order.
fn load(device: &Device, from: &Path) -> Result<DeviceArray<f32>, Error> {
    let mut reader = npy::Reader::open(from)?;
    let shape = reader.shape().to_vec();
    if reader.dtype() != DType::F32 || reader.is_fortran() || shape.len() != 2 {
        let (path, descr) = (from.display(), reader.descr());
        let why = format!("{path} holds {descr} of shape {shape:?}; this example takes a matrix of f32 in C order");
        return Err(Error::new(ErrorKind::InvalidArgument, why));
    }
    let mut elements = device.pinned_zeros::<f32>(shape.iter().product())?;
    reader.read_into(bytemuck::cast_slice_mut(&mut elements))?;
    device.array(&shape, &elements)
}

/// Saves singles. The file gets its name when all of it is on the disk.
fn save(to: &Path, shape: &[usize], elements: &[f32]) -> Result<(), Error> {
    let bytes = bytemuck::cast_slice(elements);
    Destination::new(to)?.replace(|file| npy::write(file, "<f4", shape, bytes))
}
