//! Arrays in `.npy` files: each rank reads its part, and a result is written whole or not at all.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use warpstride::distributed::{Distributed, Gpus, Split};
use warpstride::driver::Driver;
use warpstride::driver::trace::{Method, Trace};
use warpstride::interp::Checks;
use warpstride::io::{Destination, npy, open_array};
use warpstride::{Device, ErrorKind};

use super::{devices, host, permuted, split};

const SHAPE: [usize; 3] = [7, 5, 6];

/// A folder with `in.npy`, an array of `u16` in C order.
struct Files(tempfile::TempDir);

impl Files {
    fn new(shape: &[usize], elements: &[u16]) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        let mut file = File::create(files.input()).unwrap();
        npy::write(&mut file, "<u2", shape, bytemuck::cast_slice(elements)).unwrap();
        files
    }

    fn input(&self) -> PathBuf {
        self.0.path().join("in.npy")
    }

    fn output(&self) -> Destination {
        Destination::new(self.0.path().join("out.npy")).unwrap()
    }

    fn written(&self) -> (Vec<usize>, Vec<u16>) {
        let mut file = open_array(self.output().path()).unwrap();
        let mut elements = vec![0; file.bytes() / 2];
        file.read_into(bytemuck::cast_slice_mut(&mut elements)).unwrap();
        (file.shape().to_vec(), elements)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn elements() -> Vec<u16> {
    (0..210).collect()
}

fn gpus(count: usize, seed: u64) -> Arc<Gpus> {
    Arc::new(Gpus::over(devices(&host(count, seed, Checks::NONE)).unwrap()).unwrap())
}

#[test]
fn each_rank_has_its_part_of_a_file() {
    let files = Files::new(&SHAPE, &elements());
    for (cuts, padding) in [
        ("", None),
        ("0:3", None),
        ("1:2,2:2", None),
        ("2:1+0+3+2", None),
        ("0:2,1:2", Some([5, 4, 6])),
        ("0:4", Some([2, 7, 9])),
    ] {
        for seed in 0..2 {
            let whole = split(&SHAPE, cuts);
            let split = padding.map_or(whole.clone(), |padding| whole.padded(&padding).unwrap());
            let file = open_array(files.input()).unwrap();
            let array = Distributed::<u16>::scatter_file(&gpus(4, seed), &split, &*file).unwrap();
            assert_eq!(array.gather().unwrap(), elements(), "{split}");
            // Any type as wide keeps the bits.
            let halves = Distributed::<i16>::scatter_file(&gpus(4, seed), &split, &*file).unwrap();
            halves.gather_npy("<i2", &files.output()).unwrap();
            assert_eq!(files.written(), (SHAPE.to_vec(), elements()), "{split}");
            let turned = array.permute([2, 0, 1], &Split::whole(&[6, 7, 5]).unwrap().cut(1, 3).unwrap()).unwrap();
            turned.gather_npy("<u2", &files.output()).unwrap();
            assert_eq!(files.written(), (vec![6, 7, 5], permuted(&elements(), &SHAPE, &[2, 0, 1])), "{split}");
        }
    }
    assert_eq!(files.names(), ["in.npy", "out.npy"]);
}

/// A part has two pieces, and the result three.
#[test]
fn large_arrays_go_in_pieces() {
    let files = Files::new(&[0], &[]);
    let bytes: Vec<u8> = (0..40_u32 << 20).map(|place| (place ^ place >> 11) as u8).collect();
    npy::write(&mut File::create(files.input()).unwrap(), "|u1", &[40, 1 << 20], &bytes).unwrap();
    let file = open_array(files.input()).unwrap();
    let rows = split(&[40, 1 << 20], "0:2");
    let array = Distributed::<u8>::scatter_file(&Arc::new(Gpus::soft(2).unwrap()), &rows, &*file).unwrap();
    array.gather_npy("|u1", &files.output()).unwrap();
    assert!(fs::read(files.output().path()).unwrap() == fs::read(files.input()).unwrap());
}

#[test]
fn fortran_order_is_put_into_c_order() {
    let files = Files::new(&SHAPE, &elements());
    let header = npy::header_bytes("<u2", &[6, 5, 7]);
    let fortran = String::from_utf8_lossy(&header[10..]).replace("False", "True").trim_end().to_owned();
    let mut bytes = header[..10].to_vec();
    bytes.extend(format!("{fortran:<width$}\n", width = header.len() - 11).into_bytes());
    bytes.extend::<&[u8]>(bytemuck::cast_slice(&elements()));
    fs::write(files.input(), bytes).unwrap();
    let file = open_array(files.input()).unwrap();
    assert!(file.is_fortran() && file.shape() == [6, 5, 7]);
    let array = Distributed::<u16>::scatter_file(&gpus(3, 0), &split(&[6, 5, 7], "1:3"), &*file).unwrap();
    assert_eq!(array.gather().unwrap(), permuted(&elements(), &SHAPE, &[2, 1, 0]));
}

#[test]
fn an_array_without_elements_is_a_file_with_a_header() {
    let files = Files::new(&[0, 4], &[]);
    let file = open_array(files.input()).unwrap();
    let array = Distributed::<u16>::scatter_file(&gpus(2, 0), &split(&[0, 4], "1:2"), &*file).unwrap();
    array.gather_npy("<u2", &files.output()).unwrap();
    assert_eq!(files.written(), (vec![0, 4], vec![]));
}

#[test]
fn errors_name_the_file_the_shape_and_the_split() {
    let files = Files::new(&SHAPE, &elements());
    let (gpus, rows) = (gpus(2, 0), split(&SHAPE, "0:2"));
    let file = open_array(files.input()).unwrap();
    let refused = |outcome: warpstride::Result<()>, kind, says: &[&str]| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        says.iter().for_each(|says| assert!(error.to_string().contains(says), "{says:?} is not in {error}"));
    };
    let other = split(&[7, 6, 5], "0:2");
    let says = ["in.npy has an array of shape [7, 5, 6], and the split is [7, 6, 5] by 0:2; split shape [7, 5, 6]"];
    refused(Distributed::<u16>::scatter_file(&gpus, &other, &*file).map(drop), ErrorKind::Layout, &says);
    let says = ["in.npy has 210 elements of 2 bytes", "[7, 5, 6] by 0:2 has 210 elements of 4 bytes"];
    refused(Distributed::<u32>::scatter_file(&gpus, &rows, &*file).map(drop), ErrorKind::Layout, &says);
    let array = Distributed::<u16>::scatter_file(&gpus, &rows, &*file).unwrap();
    for descr in ["<f4", "u", ""] {
        let says = [&*format!("'{descr}' does not name a type of 2 bytes")];
        refused(array.gather_npy(descr, &files.output()), ErrorKind::InvalidArgument, &says);
    }
    // The file becomes shorter behind the checks of its header.
    File::options().write(true).open(files.input()).unwrap().set_len(200).unwrap();
    let says = ["reading ", "in.npy of shape [7, 5, 6] to [7, 5, 6] by 0:2", "was changed while it was read"];
    refused(Distributed::<u16>::scatter_file(&gpus, &rows, &*file).map(drop), ErrorKind::Io, &says);
    assert_eq!(files.names(), ["in.npy"]);
}

/// A copy from the second GPU fails when a part of the result is written, and the old file stays.
#[test]
fn a_failed_copy_leaves_the_old_file() {
    let files = Files::new(&SHAPE, &elements());
    fs::write(files.output().path(), "old").unwrap();
    let traces: Vec<Arc<Trace>> =
        host(2, 0, Checks::NONE).into_iter().map(|soft| Arc::new(Trace::new(soft as Arc<dyn Driver>))).collect();
    let open = |trace: &Arc<Trace>| Device::with_driver(Arc::clone(trace) as Arc<dyn Driver>).unwrap();
    let gpus = Arc::new(Gpus::over(traces.iter().map(open).collect()).unwrap());
    let file = open_array(files.input()).unwrap();
    let array = Distributed::<u16>::scatter_file(&gpus, &split(&SHAPE, "1:2"), &*file).unwrap();
    [Method::CopyD2h, Method::Copy3d].into_iter().for_each(|method| traces[1].fail_method(method));
    let error = array.gather_npy("<u2", &files.output()).unwrap_err();
    assert!(error.to_string().contains("injected failure"), "{error}");
    assert!(error.to_string().contains("out.npy of [7, 5, 6] by 1:2"), "{error}");
    assert_eq!(fs::read_to_string(files.output().path()).unwrap(), "old");
    assert_eq!(files.names(), ["in.npy", "out.npy"]);
    traces[1].fail_nothing();
    array.gather_npy("<u2", &files.output()).unwrap();
    assert_eq!(files.written(), (SHAPE.to_vec(), elements()));
}
