//! A PNG or JPEG file, from its bytes to red, green and blue.
//!
//! The JPEG decoder is told to be strict, because by default it fills the rest of a cut image with
//! pixels of its own.

use std::io::Cursor;

use png::{ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{CHANNELS, MAX_BYTES};

/// The decoder of a file whose header is read.
pub(super) enum ImageFile {
    Png(Box<png::Reader<Cursor<Vec<u8>>>>),
    Jpeg(Box<JpegDecoder<ZCursor<Vec<u8>>>>),
}

impl ImageFile {
    /// Reads the header of an image. The error is the end of a sentence.
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            let mut decoder =
                png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MAX_BYTES as usize });
            decoder.set_transformations(Transformations::EXPAND);
            // These would be inflated, and nothing reads them.
            decoder.set_ignore_iccp_chunk(true);
            decoder.set_ignore_text_chunk(true);
            return Ok(Self::Png(Box::new(decoder.read_info().map_err(|error| error.to_string())?)));
        }
        if !bytes.starts_with(&[0xff, 0xd8]) {
            return Err("its first bytes are not those of one".into());
        }
        // Even the strict decoder accepts a file that ends within the last rows.
        if !reaches_the_end(&bytes) {
            return Err("its end is missing".into());
        }
        let options = DecoderOptions::default().set_strict_mode(true).jpeg_set_out_colorspace(ColorSpace::RGB);
        let options = options.set_max_width(usize::MAX).set_max_height(usize::MAX);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().map_err(|error| error.to_string())?;
        Ok(Self::Jpeg(Box::new(decoder)))
    }

    /// Returns the height and the width.
    pub(super) fn size(&self) -> [usize; 2] {
        match self {
            Self::Png(reader) => [reader.info().height as usize, reader.info().width as usize],
            Self::Jpeg(decoder) => decoder.dimensions().map_or([0, 0], |(width, height)| [height, width]),
        }
    }

    /// Decodes the image into red, green and blue bytes, height x width x 3.
    pub(super) fn read_into(self, pixels: &mut [u8]) -> Result<(), String> {
        let mut reader = match self {
            Self::Png(reader) => reader,
            Self::Jpeg(mut decoder) => {
                // The decoder leaves pixels as they are where a scan ends early.
                pixels.fill(0);
                return decoder.decode_into(pixels).map_err(|error| error.to_string());
            }
        };
        let (colours, depth) = reader.output_color_type();
        let is_wide = depth == png::BitDepth::Sixteen;
        if (colours, is_wide) == (ColorType::Rgb, false) {
            reader.next_frame(pixels).map_err(|error| error.to_string())?;
        } else {
            let bytes =
                reader.output_buffer_size().filter(|&bytes| bytes as u64 <= MAX_BYTES).ok_or("it is too large")?;
            let mut samples = vec![0; bytes];
            reader.next_frame(&mut samples).map_err(|error| error.to_string())?;
            if is_wide {
                let rounded = |&sample| ((u32::from(u16::from_be_bytes(sample)) + 128) / 257) as u8;
                samples = samples.as_chunks().0.iter().map(rounded).collect();
            }
            // Grey is all three colours, and transparency is dropped.
            let (channels, pixels) = (colours.samples(), pixels.as_chunks_mut::<CHANNELS>().0.iter_mut());
            for (pixel, samples) in pixels.zip(samples.chunks_exact(channels)) {
                *pixel = [0, 1, 2].map(|channel| samples[if channels < CHANNELS { 0 } else { channel }]);
            }
        }
        reader.finish().map_err(|error| error.to_string())
    }
}

/// Returns whether the segments and scans of a JPEG file reach its end marker (ITU T.81, annex B).
fn reaches_the_end(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff)) {
        let marker = rest[at + 1];
        rest = &rest[at + 2..];
        match marker {
            0xd9 => return true,
            // Markers without a segment: restarts in a scan, and the start of the image.
            0x01 | 0xd0..=0xd8 => {}
            _ => match rest {
                [high, low, ..] => {
                    rest = rest.get(usize::from(u16::from_be_bytes([*high, *low]))..).unwrap_or_default()
                }
                _ => return false,
            },
        }
    }
    false
}
