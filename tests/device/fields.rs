//! Packed structs of few fields to planes and back, compared with the oracle.

use warpstride::device::Device;
use warpstride::layout::Layout;

use crate::backend::{Setup, cases};
use crate::long::is_long;
use crate::matrices::{Random, Sample};
use crate::permutes::{self, device};

cases! {
    Any structs_of_any_few_fields_and_back,
    Any batches_of_images_and_planes_apart_or_backwards,
    SoftwareGpu("it counts bank conflicts") lanes_never_share_a_bank,
}

/// The numbers of fields in the short form, 9 of up to 63: primes, powers of two, and others.
const FEW: [usize; 9] = [2, 3, 4, 7, 12, 16, 17, 33, 64];

/// Copies one layout to the other, checks it, and returns the entry.
fn check<T: Sample>(device: &Device, from: &Layout, to: &Layout, random: &mut Random) -> &'static str {
    permutes::check::<T>(device, *from, *to, random).expect("there are elements to copy")
}

/// Returns structs and planes of the same elements; every plane starts at a multiple of `multiple`
/// elements.
fn layouts(structs: usize, fields: usize, multiple: usize) -> [Layout; 2] {
    let packed = Layout::row_major(&[structs, fields]).unwrap();
    let planes = Layout::row_major(&[fields, structs.next_multiple_of(multiple)]).unwrap();
    [packed, planes.slice(1, ..structs, 1).unwrap().t()]
}

/// Asserts that the entries, one in each direction, move 16 bytes a lane or less.
fn assert_kernel(entries: [&str; 2], in_quads: bool, case: &str) {
    for (entry, direction) in entries.into_iter().zip(["deinterleave", "interleave"]) {
        assert!(entry.starts_with(direction) && entry.contains("quads") == in_quads, "{case} by {entry}");
    }
}

fn structs_of_any_few_fields_and_back(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let lanes = 16 / size_of::<T>();
        for fields in (2..=17).chain([31, 32, 33, 64]).filter(|fields| is_long() || FEW.contains(fields)) {
            for (structs, multiple) in [(1, 4), (31, 16), (1000, 4), (1000, 16), (4097, 4), (4097, 16)] {
                let [packed, planes] = layouts(structs, fields, multiple);
                let entries =
                    [check::<T>(device, &packed, &planes, random), check::<T>(device, &planes, &packed, random)];
                if structs == 4097 {
                    // With 16 fields and the like, lanes would share banks.
                    let in_quads = multiple.is_multiple_of(lanes) && !fields.is_multiple_of(16);
                    assert_kernel(entries, in_quads, &format!("{}: {fields} fields", T::DTYPE));
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
        let lanes = 16 / size_of::<T>();
        for (fields, structs, lead) in [3_usize, 5, 7, 9]
            .into_iter()
            .flat_map(|fields| [(fields, 1500, 4), (fields, 1520, 16), (2 * fields, 1520, 16)])
        {
            if fields.is_multiple_of(lanes) {
                // Tiles move them.
                continue;
            }
            let batch = Layout::row_major(&[3, 4, structs, fields]).unwrap();
            let packed = batch.slice(0, .., -2).unwrap();
            let planes = Layout::row_major(&[2, fields, 4, structs + lead]).unwrap().slice(3, lead.., 1).unwrap();
            let planes = planes.reverse(1).unwrap().permuted_axes(&[0, 2, 3, 1]).unwrap();
            let entries = [check::<T>(device, &packed, &planes, random), check::<T>(device, &planes, &packed, random)];
            let in_quads = (lead | (structs * fields)).is_multiple_of(lanes);
            assert_kernel(entries, in_quads, &format!("{}: {structs} structs of {fields} fields", T::DTYPE));
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
        let lanes = 16 / size_of::<T>();
        let every = (2..=64).filter(|fields| is_long() || FEW.contains(fields));
        for (fields, multiple) in every.flat_map(|fields| [(fields, 4), (fields, 16)]) {
            let structs = 4100;
            let [packed, planes] = layouts(structs, fields, multiple);
            for (from, to) in [(&packed, &planes), (&planes, &packed)] {
                let before = device.counters().unwrap().unwrap();
                let entry = check::<T>(device, from, to, random);
                let in_squares = (fields | structs).is_multiple_of(lanes);
                assert!(in_squares || entry.contains("interleave"), "{}: {fields} fields by {entry}", T::DTYPE);
                let counters = device.counters().unwrap().unwrap() - before;
                assert!(counters.shared_load.wavefronts > 0 && counters.shared_store.wavefronts > 0, "{entry}");
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
