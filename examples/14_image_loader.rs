//! Loads a folder of images and normalises them on the GPU.
//!
//! Training reads images from files, decodes them, and subtracts a mean and divides by a deviation
//! for each colour. Decoding is work for the cores of the host. Normalising moves four times the
//! bytes of the image, because bytes become singles, so it is work for the GPU: bytes go over the
//! link, and planes of singles are made on the device.
//!
//! - Several threads decode, each into the page-locked memory of a slot. There is no other copy.
//! - The device makes planes (N, C, H, W) of the decoder's rows of pixels (N, H, W, C) in the pass
//!   that normalises them.
//! - The sink gets the batches in their order, whichever thread decoded them first.
//!
//! A file that is not an image, or that claims more pixels than memory has, is an error that names
//! it,
//! and stops all stages.
//!
//! ```text
//! cargo run --release --example 14_image_loader [FOLDER]
//! ```
//!
//! `warpstride pipeline --input FOLDER --output OUT.npy` does this too, and measures it.

use std::path::{Path, PathBuf};
use std::thread;

use image::{Rgb, RgbImage};
use warpstride::error::{Error, ErrorKind, Result};
use warpstride::ops::{self, Normalization};
use warpstride::pipeline::frames::Images;
use warpstride::pipeline::{Options, Pipeline, Run};
use warpstride::{Backend, Device};

/// Frames of a batch.
const BATCH: usize = 4;
const DECODERS: usize = 3;

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    println!("{}", device.choice());
    let own = tempfile::tempdir().map_err(|error| failed(&error))?;
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => {
            make_images(own.path()).map_err(|error| failed(&error))?;
            own.path().into()
        }
    };
    let images = Images::open(&folder, None)?;
    let [height, width, channels] = images.shape();
    println!("{} images of {height} x {width} pixels, {} other files", images.frames(), images.skipped().len());

    let mean = [0.485, 0.456, 0.406];
    let normalization = Normalization::new(1.0 / 255.0, &mean, &[0.229, 0.224, 0.225])?;
    let elements = images.elements();
    let mut pipeline = Pipeline::<u8, f32>::new(&device, BATCH * elements, BATCH * elements, Options::default())?;
    let mut means = Vec::new();

    let Run { feed, engine, drain } = pipeline.start()?;
    let summary = thread::scope(|scope| {
        for _ in 0..DECODERS {
            // The run's first error is the engine's to return.
            scope.spawn(|| while feed.fill(|batch, slot| decode(&images, batch, slot)).unwrap_or(false) {});
        }
        let results = &mut means;
        scope.spawn(move || {
            let mut take = |_, planes: &mut [f32]| {
                results.extend(planes.chunks(elements).map(|frame| frame.iter().sum::<f32>() / elements as f32));
                Ok(())
            };
            while drain.take(&mut take).unwrap_or(false) {}
        });
        engine.drive(|work| {
            let (frames, stream) = (work.filled / elements, work.stream().clone());
            let pixels = work.input.view(&[BATCH, height, width, channels])?.slice(0, 0..frames, 1)?;
            let planes =
                work.output.view_mut().split_axis(0, &[BATCH, channels, height, width])?.slice(0, 0..frames, 1)?;
            ops::normalize_into(pixels, &normalization, planes, &stream)?;
            work.keep(frames * elements);
            Ok(())
        })
    })?;

    println!("{} batches, {} images normalised", summary.batches, means.len());
    let mut is_right = means.len() as u64 == images.frames();
    let mut frame = vec![0; elements];
    for (number, &found) in (0..).zip(&means) {
        images.fill(number, &mut frame)?;
        let value = |(at, &byte): (usize, &u8)| normalization.apply(at % channels, byte).unwrap_or(f32::NAN);
        let expected = frame.iter().enumerate().map(value).sum::<f32>() / elements as f32;
        is_right &= (found - expected).abs() < 1e-3;
    }
    println!("their means are those of a CPU: {is_right}");
    Ok(())
}

/// Decodes the images of a batch into a slot.
fn decode(images: &Images, batch: u64, slot: &mut [u8]) -> Result<Option<usize>> {
    let first = batch * BATCH as u64;
    let frames = images.frames().saturating_sub(first).min(BATCH as u64) as usize;
    if frames == 0 {
        return Ok(None);
    }
    let elements = images.elements();
    let batch = &mut slot[..frames * elements];
    (first..).zip(batch.chunks_mut(elements)).try_for_each(|(number, frame)| images.fill(number, frame))?;
    Ok(Some(frames * elements))
}

/// Makes ten small images.
fn make_images(folder: &Path) -> image::ImageResult<()> {
    for number in 0..10_u32 {
        let pixel = |x: u32, y: u32| Rgb([25 * number + x, 255 - 8 * y, x * y].map(|value| value as u8));
        let name = if number % 2 == 0 { format!("{number}.png") } else { format!("{number}.jpg") };
        RgbImage::from_fn(32, 24, pixel).save(folder.join(name))?;
    }
    Ok(())
}

fn failed(error: &dyn std::error::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot make images in the folder of temporary files: {error}"))
}
