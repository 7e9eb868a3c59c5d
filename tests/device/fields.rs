//! Packed structs of few fields to planes and back, against the oracle.

use warpstride::device::Device;
use warpstride::layout::Layout;

use crate::backend::{Setup, cases};
use crate::matrices::{Random, Sample};
use crate::permutes::{self, device};

cases! {
    Any structs_of_any_few_fields_and_back,
    Any batches_of_images_and_planes_apart_or_backwards,
    SoftwareGpu lanes_never_share_a_bank,
}

/// The entry that copied one layout to the other, as it should.
fn check<T: Sample>(device: &Device, from: &Layout, to: &Layout, random: &mut Random) -> &'static str {
    permutes::check::<T>(device, *from, *to, random).expect("there are elements to copy")
}

/// Structs and planes of the same elements; every plane starts at a multiple of 4 bytes.
fn layouts(structs: usize, fields: usize) -> [Layout; 2] {
    let packed = Layout::row_major(&[structs, fields]).unwrap();
    let planes = Layout::row_major(&[fields, structs.next_multiple_of(4)]).unwrap();
    [packed, planes.slice(1, ..structs, 1).unwrap().t()]
}

fn structs_of_any_few_fields_and_back(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for fields in (2..=17).chain([31, 32, 33, 64]) {
            for structs in [1, 31, 1000, 4097] {
                let [packed, planes] = layouts(structs, fields);
                let entries =
                    [check::<T>(device, &packed, &planes, random), check::<T>(device, &planes, &packed, random)];
                let in_squares =
                    (fields * size_of::<T>()).is_multiple_of(16) && (structs * size_of::<T>()).is_multiple_of(16);
                if structs == 4097 && !in_squares {
                    assert!(entries[0].starts_with("deinterleave"), "{}: {fields} fields by {}", T::DTYPE, entries[0]);
                    assert!(entries[1].starts_with("interleave"), "{}: {fields} fields by {}", T::DTYPE, entries[1]);
                }
            }
        }
    }
    let (device, mut random) = (device(setup), Random::new(40));
    run::<u8>(&device, &mut random);
    run::<u16>(&device, &mut random);
    run::<u32>(&device, &mut random);
    run::<u64>(&device, &mut random);
}

fn batches_of_images_and_planes_apart_or_backwards(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for fields in [3, 5, 7] {
            let batch = Layout::row_major(&[3, 4, 1500, fields]).unwrap();
            let packed = batch.slice(0, .., -2).unwrap();
            let planes = Layout::row_major(&[2, fields, 4, 1504]).unwrap().slice(3, 4.., 1).unwrap();
            let planes = planes.reverse(1).unwrap().permuted_axes(&[0, 2, 3, 1]).unwrap();
            assert!(check::<T>(device, &packed, &planes, random).starts_with("deinterleave"), "{}", T::DTYPE);
            assert!(check::<T>(device, &planes, &packed, random).starts_with("interleave"), "{}", T::DTYPE);
        }
    }
    let (device, mut random) = (device(setup), Random::new(41));
    run::<u8>(&device, &mut random);
    run::<u16>(&device, &mut random);
    run::<u32>(&device, &mut random);
    run::<u64>(&device, &mut random);
}

fn lanes_never_share_a_bank(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for fields in 2..=64 {
            let [packed, planes] = layouts(4100, fields);
            for (from, to) in [(&packed, &planes), (&planes, &packed)] {
                let before = device.counters().unwrap().unwrap();
                let entry = check::<T>(device, from, to, random);
                let in_squares =
                    (fields * size_of::<T>()).is_multiple_of(16) && (4100 * size_of::<T>()).is_multiple_of(16);
                assert!(in_squares || entry.contains("interleave"), "{}: {fields} fields by {entry}", T::DTYPE);
                let counters = device.counters().unwrap().unwrap() - before;
                assert_eq!(counters.bank_conflicts(), 0, "{}: {fields} fields by {entry}", T::DTYPE);
            }
        }
    }
    let (device, mut random) = (device(setup), Random::new(42));
    run::<u8>(&device, &mut random);
    run::<u16>(&device, &mut random);
    run::<u32>(&device, &mut random);
    run::<u64>(&device, &mut random);
}
