//! Normalisation of images, by raw addresses and by views, against the host's arithmetic bit by
//! bit.

use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::error::ErrorKind;
use warpstride::layout::Layout;
use warpstride::ops::{self, Affine, Normalization};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::long::{is_long, short_or_long};
use crate::matrices::Random;
use crate::permutes::device;

cases! {
    Any images_are_the_hosts_bit_by_bit,
    Any images_without_pixels_are_nothing_to_do,
    Any planes_are_written_once_in_whole_sectors,
    Any what_is_no_image_is_refused,
    LargeGpu images_of_more_than_2_to_the_32_elements,
}

const MEAN: [f64; 4] = [0.485, 0.456, 0.406, -0.25];
const DEVIATION: [f64; 4] = [0.229, 0.224, 0.225, -2.0];

fn normalization(channels: usize) -> Normalization {
    Normalization::new(1.0 / 255.0, &MEAN[..channels], &DEVIATION[..channels]).unwrap()
}

/// Normalises `count` images of `pixels` each at one address to planes at another.
///
/// # Safety
///
/// The images and the planes are allocated, and no other work uses them meanwhile.
unsafe fn normalize_raw(
    device: &Device,
    by: &Normalization,
    to: DType,
    [src, dst]: [u64; 2],
    [count, pixels]: [usize; 2],
) -> warpstride::Result<()> {
    let channels = by.channels();
    let images = Layout::row_major(&[count, pixels, channels])?.permuted_axes(&[0, 2, 1])?;
    let planes = Layout::row_major(&[count, channels, pixels])?;
    let (affine, stream) = (Affine::Normalized { axis: 1, by: *by }, device.default_stream().handle());
    // SAFETY: as the caller promises.
    unsafe { ops::affine_into_raw(device, (src, &images, DType::U8), (dst, &planes, to), affine, stream) }
}

/// Launches every kernel of this file on small images, with and without vectors.
pub(crate) fn launch_all(device: &Device, random: &mut Random) {
    for channels in 1..=4 {
        for (pixels, start) in [(40, 0), (33, 0), (40, 1)] {
            of_every_type(device, random, 2, pixels, channels, start);
        }
    }
}

/// Maps images that start `start` bytes and elements after an alignment to planes of every type.
fn of_every_type(device: &Device, random: &mut Random, count: usize, pixels: usize, channels: usize, start: usize) {
    let images = [count, pixels, channels, start];
    check(device, random, images, DType::F32, |value| value);
    check(device, random, images, DType::F16, |value| f16::from_f32(value).to_bits());
    check(device, random, images, DType::Bf16, |value| bf16::from_f32(value).to_bits());
}

fn check<T: Element + Default>(
    device: &Device,
    random: &mut Random,
    [count, pixels, channels, start]: [usize; 4],
    number: DType,
    nearest: impl Fn(f32) -> T,
) {
    let len = count * pixels * channels;
    let bytes: Vec<u8> = random.elements(start + len);
    let normalization = normalization(channels);
    let source = device.upload(&bytes).unwrap();
    // The bytes before and after the planes must stay.
    let result = device.zeros::<T>(start + len + 3).unwrap();
    let addresses = [source.address() + start as u64, result.address() + (start * number.width()) as u64];
    // SAFETY: both buffers have the images from there on, and live until the download.
    unsafe { normalize_raw(device, &normalization, number, addresses, [count, pixels]) }.unwrap();
    let mut expected = vec![T::default(); start + len + 3];
    for (at, &byte) in bytes[start..].iter().enumerate() {
        let (image, pixel, channel) = (at / channels / pixels, at / channels % pixels, at % channels);
        let value = normalization.apply(channel, byte).unwrap();
        expected[start + (image * channels + channel) * pixels + pixel] = nearest(value);
    }
    let got = result.download().unwrap();
    let wrong = (0..got.len()).find(|&at| got[at] != expected[at]);
    assert_eq!(wrong, None, "{count} images of {pixels} pixels and {channels} channels as {number:?} from {start}");
}

fn images_are_the_hosts_bit_by_bit(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(80));
    for channels in 1..=4 {
        // One pixel, less than a vector, vectors and a remainder, whole vectors of one and of
        // several blocks.
        for pixels in [1, 3, 31, 64, 5000, 5003] {
            // The short form has three of five.
            for &start in short_or_long(&[0, 1, 8][..], &[0, 1, 2, 4, 8]) {
                of_every_type(&device, &mut random, 3, pixels, channels, start);
            }
        }
    }
    // More images than a grid has blocks in y; the short form has them for one type of three.
    if is_long() {
        of_every_type(&device, &mut random, 65_540, 1, 3, 0);
    } else {
        check(&device, &mut random, [65_540, 1, 3, 0], DType::F16, |value| f16::from_f32(value).to_bits());
    }
}

fn images_without_pixels_are_nothing_to_do(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(81));
    for (count, pixels) in [(0, 5), (5, 0), (0, 0)] {
        of_every_type(&device, &mut random, count, pixels, 3, 0);
    }
}

fn planes_are_written_once_in_whole_sectors(setup: &Setup) {
    let device = device(setup);
    let source = device.upload(&vec![7_u8; 2 * 64 * 64 * 3]).unwrap();
    let mut result = device.alloc::<f32>(2 * 64 * 64 * 3).unwrap();
    let before = device.counters().unwrap();
    let (images, planes) = (source.view(&[2, 64, 64, 3]).unwrap(), result.view_mut(&[2, 3, 64, 64]).unwrap());
    ops::normalize_into(images, &normalization(3), planes, device.default_stream()).unwrap();
    let got = result.download().unwrap();
    assert!(got.iter().enumerate().all(|(at, &value)| Some(value) == normalization(3).apply(at / 4096 % 3, 7)));
    let Some((after, before)) = device.counters().unwrap().zip(before) else { return };
    let counters = after - before;
    // For each plane a warp reads 3 x 4 bytes a lane in three loads, each of which touches all
    // twelve sectors; it writes whole ones.
    let warps = 3 * 2 * 64 * 64 / 4 / 32;
    assert_eq!(counters.global_load.sectors, 36 * warps);
    assert_eq!(counters.global_store.sectors, 16 * warps);
    assert_eq!(counters.bank_conflicts(), 0);
}

fn what_is_no_image_is_refused(setup: &Setup) {
    let device = device(setup);
    let stream = device.default_stream();
    for (scale, mean, deviation, wrong) in [
        (1.0, &[0.0; 3][..], &[1.0; 2][..], "3 means and 2 deviations"),
        (1.0, &[], &[], "0 means"),
        (1.0, &[0.0; 5], &[1.0; 5], "1 to 4 channels"),
        (1.0, &[0.0; 2], &[1.0, 0.0], "channel 1"),
        (f64::NAN, &[0.0], &[1.0], "no finite numbers"),
    ] {
        refusal(Normalization::new(scale, mean, deviation)).of(ErrorKind::InvalidArgument).says(wrong);
    }
    let (source, mut result) = (device.zeros::<u8>(24).unwrap(), device.zeros::<f32>(24).unwrap());
    for (from, to, channels, wrong) in [
        (&[1, 4, 2, 3][..], &[1, 4, 2, 3][..], 3, "give planes of shape [1, 3, 4, 2]"),
        (&[4, 2, 3], &[1, 3, 4, 2], 3, "insert an axis for n"),
        (&[8, 3], &[3, 8], 3, "[n, h, w, c]"),
        (&[1, 4, 2, 3], &[1, 3, 4, 2], 4, "3 channels"),
    ] {
        let (from, to) = (source.view(from).unwrap(), result.view_mut(to).unwrap());
        refusal(ops::normalize_into(from, &normalization(channels), to, stream)).says(wrong);
    }
    let turned = source.view(&[1, 3, 2, 4]).unwrap().permuted_axes(&[0, 2, 3, 1]).unwrap();
    refusal(ops::normalize_into(turned, &normalization(3), result.view_mut(&[1, 3, 2, 4]).unwrap(), stream))
        .of(ErrorKind::Layout)
        .says("contiguous");
    let mut doubles = device.zeros::<f64>(24).unwrap();
    let (from, to) = (source.view(&[1, 4, 2, 3]).unwrap(), doubles.view_mut(&[1, 3, 4, 2]).unwrap());
    refusal(ops::normalize_into(from, &normalization(3), to, stream)).says("f16, bf16 or f32");

    let (src, dst) = (source.address(), result.address());
    for (addresses, wrong) in [([src, dst + 2], "aligned to 2 bytes"), ([dst + 20, dst], "overlap")] {
        // SAFETY: refused before any work is queued.
        refusal(unsafe { normalize_raw(&device, &normalization(3), DType::F32, addresses, [1, 2]) }).says(wrong);
    }
}

fn images_of_more_than_2_to_the_32_elements(setup: &Setup) {
    let device = device(setup);
    let (count, pixels) = (700, 2048 * 1000);
    let mut source = device.zeros::<u8>(count * pixels * 3).unwrap();
    let last = (count * pixels * 3 - 6)..(count * pixels * 3);
    let view = source.view_mut(&[count * pixels * 3]).unwrap().slice(0, last, 1).unwrap();
    ops::fill_into(255, view, device.default_stream()).unwrap();
    let mut result = device.alloc::<u16>(count * pixels * 3).unwrap();
    let (stream, addresses) = (device.default_stream(), [source.address(), result.address()]);
    // SAFETY: both buffers have the images, and live until the download.
    unsafe { normalize_raw(&device, &normalization(3), DType::F16, addresses, [count, pixels]) }.unwrap();
    let last = (count * pixels * 3 - pixels)..(count * pixels * 3);
    let plane = result.view_mut(&[count * pixels * 3]).unwrap().slice(0, last, 1).unwrap();
    let mut copy = device.alloc::<u16>(pixels).unwrap();
    ops::copy_into(plane.view(), copy.view_mut(&[pixels]).unwrap(), stream).unwrap();
    let got = copy.download().unwrap();
    let [dark, light] = [0, 255].map(|byte| f16::from_f32(normalization(3).apply(2, byte).unwrap()).to_bits());
    assert!(got[..pixels - 2].iter().all(|&bits| bits == dark) && got[pixels - 2..] == [light; 2]);
}
