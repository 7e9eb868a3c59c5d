//! The images of a folder: PNG, JPEG, and arrays of NumPy.

mod file;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use resize::px::RGB;

use self::file::ImageFile;
use crate::element::DType;
use crate::error::{Error, ErrorKind, Result, counted, refuse, require};
use crate::io::{ArrayFile, npy};

/// The channels of a frame: red, green and blue.
const CHANNELS: usize = 3;
/// Most pixels of a side, and most bytes of an image and of a file. A hostile file may claim more
/// than any memory has.
const MAX_SIDE: usize = 1 << 15;
const MAX_BYTES: u64 = 1 << 30;
const MAX_FILE: u64 = 1 << 28;

/// The images of a folder as frames of one size, in the order of the files' names: `.png`, `.jpg`,
/// `.jpeg`, and `.npy` with `u8` elements of shape H, W, 3 or N, H, W, 3. Other files are skipped,
/// and so are folders.
///
/// Frames are red, green and blue bytes, H x W x 3. Transparency is dropped, 16-bit images are
/// rounded to bytes, and the orientation that a camera notes is ignored. A file without its end is
/// an error. JPEG has no checksum, so damage that the decoder does not notice becomes pixels.
#[derive(Debug)]
pub struct Images {
    files: Vec<Source>,
    frames: u64,
    height: usize,
    width: usize,
    /// True if images of other sizes are resized.
    resizes: bool,
    skipped: Vec<PathBuf>,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    /// The number of its first frame.
    first: u64,
    /// The extents of an array's frames; `None` for an image file.
    array: Option<[usize; 2]>,
}

impl Images {
    /// Looks through a folder. It reads the headers of arrays, and the first image. Frames
    /// have the given height and width, or those of the first image.
    ///
    /// # Errors
    ///
    /// `Io` if the folder cannot be read or has no images, or a header is broken;
    /// `InvalidArgument` if the height or the width is 0 or more than 32768, or an array is not one
    /// of images.
    ///
    /// ```
    /// use warpstride::pipeline::frames::Images;
    ///
    /// let folder = tempfile::tempdir()?;
    /// image::RgbImage::from_pixel(4, 2, image::Rgb([9, 8, 7])).save(folder.path().join("a.png"))?;
    /// let images = Images::open(folder.path(), None)?;
    /// assert_eq!((images.frames(), images.shape()), (1, [2, 4, 3]));
    /// let mut frame = [0; 2 * 4 * 3];
    /// images.fill(0, &mut frame)?;
    /// assert_eq!(frame[..6], [9, 8, 7, 9, 8, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(folder: impl AsRef<Path>, size: Option<[usize; 2]>) -> Result<Self> {
        let folder = folder.as_ref();
        if let Some([height, width]) = size {
            check_size(height, width).map_err(Error::argument)?;
        }
        let (mut files, mut frames, mut skipped) = (Vec::new(), 0, Vec::new());
        for path in listed(folder)? {
            let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
            let is_file = path.is_file();
            match extension.as_deref() {
                Some("png" | "jpg" | "jpeg") if is_file => {
                    files.push(Source { path, first: frames, array: None });
                    frames += 1;
                }
                Some("npy") if is_file => {
                    let (count, extents) = stack(&npy::Reader::open(&path)?)?;
                    if count > 0 {
                        files.push(Source { path, first: frames, array: Some(extents) });
                        frames += count;
                    }
                }
                _ => skipped.push(path),
            }
        }
        let Some(first) = files.first() else {
            refuse!(Io, "{} has no images; name a folder with .png, .jpg, .jpeg or .npy files", folder.display());
        };
        let [height, width] = match size.or(first.array) {
            Some(size) => size,
            None => first.image()?.size(),
        };
        Ok(Self { files, frames, height, width, resizes: size.is_some(), skipped })
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the extents of a frame: height, width, and 3 channels.
    pub fn shape(&self) -> [usize; 3] {
        [self.height, self.width, CHANNELS]
    }

    /// Returns the number of elements of a frame.
    pub fn elements(&self) -> usize {
        self.height * self.width * CHANNELS
    }

    /// Returns what the folder has beside images, sorted by name.
    pub fn skipped(&self) -> &[PathBuf] {
        &self.skipped
    }

    /// Reads a frame. Any number of threads may read frames at once.
    ///
    /// # Errors
    ///
    /// `Io` if its file cannot be read or is broken or too large; `OutOfMemory` if the host has no
    /// room for it; `InvalidArgument` if it has another size than the first image, there is no such
    /// frame, or `frame` does not have the elements of one.
    pub fn fill(&self, number: u64, frame: &mut [u8]) -> Result<()> {
        if number >= self.frames || frame.len() != self.elements() {
            let (frames, elements) = (counted(self.frames, "frame"), counted(self.elements(), "element"));
            return Err(Error::argument(format!(
                "there are {frames} of {elements}, and frame {number} of {} was asked for; ask for another",
                frame.len()
            )));
        }
        let file = &self.files[self.files.partition_point(|file| file.first <= number) - 1];
        match file.array {
            Some(extents) => self.fill_from_array(file, extents, number - file.first, frame),
            None => self.fill_from_image(file, frame),
        }
    }

    fn fill_from_array(&self, file: &Source, size: [usize; 2], index: u64, frame: &mut [u8]) -> Result<()> {
        self.fill_by(file, size, frame, |pixels| {
            let mut reader = npy::Reader::open(&file.path)?;
            if stack(&reader)?.1 != size {
                refuse!(Io, "{} changed while it was read; try again", file.path.display());
            }
            reader.skip(index * pixels.len() as u64)?;
            reader.read_into(pixels)
        })
    }

    fn fill_from_image(&self, file: &Source, frame: &mut [u8]) -> Result<()> {
        let image = file.image()?;
        self.fill_by(file, image.size(), frame, |pixels| image.read_into(pixels).map_err(|error| file.broken(error)))
    }

    /// Reads an image of a height and a width straight into the frame, or resizes it if it may.
    fn fill_by(
        &self,
        file: &Source,
        [height, width]: [usize; 2],
        frame: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        if [height, width] == [self.height, self.width] {
            return read(frame);
        }
        if !self.resizes {
            return Err(Error::argument(format!(
                "{} has {height} x {width} pixels and the first image has {} x {}; give all one size, or name a size to resize \
                 them to (--size H,W)",
                file.path.display(),
                self.height,
                self.width
            )));
        }
        let (bytes, mut pixels) = (height * width * CHANNELS, Vec::new());
        require!(
            pixels.try_reserve_exact(bytes).is_ok(),
            OutOfMemory,
            "the host has no room for {}, {}; save smaller images",
            file.path.display(),
            counted(bytes, "byte")
        );
        pixels.resize(bytes, 0);
        read(&mut pixels)?;
        let pixels: Vec<_> = pixels.as_chunks().0.iter().map(|&[r, g, b]| RGB { r, g, b }).collect();
        let mut resized = vec![RGB::default(); self.height * self.width];
        // Bilinear, with all pixels that a new one covers.
        resize::new(width, height, self.width, self.height, resize::Pixel::RGB8, resize::Type::Triangle)
            .and_then(|mut resizer| resizer.resize(&pixels, &mut resized))
            .map_err(|error| failed(format!("cannot resize {}: {error}; resize it first", file.path.display())))?;
        for (to, RGB { r, g, b }) in frame.as_chunks_mut().0.iter_mut().zip(resized) {
            *to = [r, g, b];
        }
        Ok(())
    }
}

impl Source {
    /// Reads the file, as far as any image file goes, and checks its header before anything is
    /// allocated for the pixels.
    fn image(&self) -> Result<ImageFile> {
        let path = self.path.display();
        let unreadable = |error| failed(format!("cannot read {path}: check the path and its permissions: {error}"));
        let mut bytes = Vec::new();
        File::open(&self.path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE {
            refuse!(Io, "{path} has more than {} MiB; save a smaller image", MAX_FILE >> 20);
        }
        let image = ImageFile::open(bytes).map_err(|error| self.broken(error))?;
        let [height, width] = image.size();
        check_size(height, width).map_err(|why| failed(format!("cannot take {path}: {why}; save a smaller image")))?;
        Ok(image)
    }

    fn broken(&self, error: impl Display) -> Error {
        let path = self.path.display();
        failed(format!("cannot take {path} as a PNG or JPEG image: {error}; save it again, or remove it"))
    }
}

/// Returns the paths in a folder, sorted.
fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>());
    let mut paths = entries.map_err(|error| {
        let folder = folder.display();
        failed(format!("cannot list {folder}: check that it is a folder that may be read: {error}"))
    })?;
    paths.sort();
    Ok(paths)
}

/// Returns the number of frames of an array, and their height and width.
fn stack(array: &dyn ArrayFile) -> Result<(u64, [usize; 2])> {
    let (count, height, width) = match *array.shape() {
        [height, width, CHANNELS] => (1, height, width),
        [count, height, width, CHANNELS] => (count, height, width),
        _ => (0, 0, 0),
    };
    let path = array.path().display();
    if height == 0 || width == 0 || array.dtype() != DType::U8 || array.is_fortran() {
        return Err(Error::argument(format!(
            "{path} has {:?} elements of {} in {} order, and images are u8 elements of H, W, 3 or N, H, W, 3 in C order; save \
             it so, or remove it",
            array.shape(),
            array.type_name(),
            if array.is_fortran() { "Fortran" } else { "C" }
        )));
    }
    check_size(height, width).map_err(|why| failed(format!("cannot take {path}: {why}; save smaller images")))?;
    Ok((count as u64, [height, width]))
}

fn check_size(height: usize, width: usize) -> std::result::Result<(), String> {
    let fits = |side| (1..=MAX_SIDE).contains(&side);
    let bytes = (height as u64).saturating_mul(width as u64).saturating_mul(CHANNELS as u64);
    if fits(height) && fits(width) && bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(format!(
        "an image of {height} x {width} pixels is not one of 1 to {MAX_SIDE} a side and {} MiB at most",
        MAX_BYTES >> 20
    ))
}

fn failed(sentence: String) -> Error {
    Error::new(ErrorKind::Io, sentence)
}

#[cfg(test)]
mod tests;
