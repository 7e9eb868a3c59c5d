//! Loads an array from NumPy's file, transposes it on the device, and writes the result to another.
//!
//! A file says what its elements are, and the program says what it takes: here singles in C order.
//! The bytes go straight into page-locked memory, from which the copy to the device is fastest. The
//! new file gets its name when all of it is on the disk.
//!
//! ```text
//! cargo run --release --features pipeline --example 15_numpy_file [IN.npy OUT.npy]
//! ```
//!
//! `warpstride transpose IN.npy OUT.npy` does this for every element type and size of a file.

use std::fs::File;
use std::path::PathBuf;

use warpstride::error::{Error, ErrorKind};
use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::{Backend, DType, Device, ops};

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
        let elements: Vec<u8> = (0..6_u8).flat_map(|element| f32::from(element).to_le_bytes()).collect();
        npy::write(&mut File::create(&from)?, "<f4", &[2, 3], &elements)?;
    }

    let mut reader = npy::Reader::open(&from)?;
    let shape = reader.shape().to_vec();
    if reader.dtype() != DType::F32 || reader.is_fortran() {
        let why = format!("{} holds {}; this example takes f32 in C order", from.display(), reader.descr());
        return Err(Error::new(ErrorKind::InvalidArgument, why).into());
    }
    let mut elements = device.pinned_zeros::<f32>(shape.iter().product())?;
    reader.read_into(bytemuck::cast_slice_mut(&mut elements))?;

    let moved = ops::transpose(&device.array(&shape, &elements)?)?;
    let result = moved.to_vec()?;
    let bytes = bytemuck::cast_slice(&result);
    Destination::new(&to)?.replace(|file| npy::write(file, "<f4", moved.shape(), bytes))?;
    println!("{shape:?} f32 became {:?}: {:?}", moved.shape(), &result[..result.len().min(6)]);
    Ok(())
}
