//! Arrays through less device memory than they have, on the software GPU.

mod failures;
mod files;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use warpstride::driver::soft::Soft;
use warpstride::driver::trace::Trace;
use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::out_of_core::{self, Options, Summary};
use warpstride::random::SplitMix64;
use warpstride::{Backend, Device, Layout, Result};

fn device() -> Device {
    Device::open(Backend::Soft).expect("the software GPU")
}

/// A device whose driver's calls can be made to fail.
fn traced() -> (Arc<Trace>, Device) {
    let trace = Arc::new(Trace::new(Arc::new(Soft::new())));
    let device = Device::with_driver(Arc::clone(&trace) as Arc<_>).expect("the software GPU");
    (trace, device)
}

/// The elements of an array of `shape` whose axes are in the order `axes`, in C order.
fn expected<T: Copy>(source: &[T], shape: &[usize], axes: &[usize], is_fortran: bool) -> Vec<T> {
    let layout = if is_fortran { Layout::column_major(shape) } else { Layout::row_major(shape) };
    let layout = layout.and_then(|layout| layout.permuted_axes(axes)).expect("an order of axes");
    let mut index = vec![0; shape.len()];
    let element = |_| {
        let element = source[layout.offset_of(&index).expect("within the array")];
        for (at, &extent) in index.iter_mut().zip(layout.shape()).rev() {
            *at += 1;
            if *at < extent {
                break;
            }
            *at = 0;
        }
        element
    };
    (0..layout.len()).map(element).collect()
}

/// A shape of at most some thousand elements, and an order of its axes.
fn drawn(random: &mut SplitMix64) -> (Vec<usize>, Vec<usize>) {
    let rank = random.below(7) as usize;
    let most = [1, 3000, 60, 15, 8, 5, 4][rank];
    let mut shape: Vec<usize> = (0..rank).map(|_| 1 + random.below(most) as usize).collect();
    if rank > 0 && random.below(20) == 0 {
        shape[random.below(rank as u64) as usize] = 0;
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    for at in (1..rank).rev() {
        axes.swap(at, random.below(at as u64 + 1) as usize);
    }
    (shape, axes)
}

/// A folder with an input.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new(descr: &str, shape: &[usize], bytes: &[u8]) -> Self {
        let files = Self { folder: tempfile::tempdir().expect("a folder") };
        let mut file = std::fs::File::create(files.path("in.npy")).expect("a file");
        npy::write(&mut file, descr, shape, bytes).expect("room");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn permute(&self, device: &Device, axes: &[usize], options: Options<'_>) -> Result<Summary> {
        let input = npy::Reader::open(self.path("in.npy"))?;
        let destination = Destination::new(self.path("out.npy"))?;
        out_of_core::permute_file(device, &input, axes, &destination, options)
    }

    /// The names in the folder besides the input's.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        let mut names: Vec<String> = names.filter(|name| name != "in.npy").collect();
        names.sort();
        names
    }
}

/// The elements of a file as bytes, and its shape.
fn read(path: &Path) -> (Vec<usize>, Vec<u8>) {
    let mut reader = npy::Reader::open(path).expect("an array");
    let mut bytes = vec![0; reader.bytes()];
    reader.read_into(&mut bytes).expect("its elements");
    (reader.shape().to_vec(), bytes)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0]).collect()
}

fn budget(bytes: usize) -> Options<'static> {
    Options { device_memory: Some(bytes), ..Options::default() }
}
