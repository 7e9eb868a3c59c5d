//! A PNG or JPEG file, from its bytes to red, green and blue.
//!
//! The JPEG decoder is told to be strict, because by default it fills the rest of a cut image with
//! pixels of its own. It still does so where the last scan lacks data before the end marker. So it
//! gets [`NO_CODE`] there, which no whole image comes to.

use std::io::Cursor;

use png::{ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{CHANNELS, MAX_BYTES};

/// Bits in the last scan that belong to no code: a code of ones alone is reserved (ITU T.81, annex
/// C), and three times its most bits leave no way past them. A byte of ones has a zero byte behind
/// it in a scan. A scan of a progressive image has bits without a code, too, so a cut of such an
/// image may be missed.
const NO_CODE: [u8; 16] = [0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0];
const END: [u8; 2] = [0xff, 0xd9];

/// The decoder of a file whose header is read.
pub(super) enum ImageFile {
    Png(Box<png::Reader<Cursor<Vec<u8>>>>),
    Jpeg(Box<JpegDecoder<ZCursor<Vec<u8>>>>),
}

impl ImageFile {
    /// Reads the header of an image. The error is the end of a sentence.
    pub(super) fn open(mut bytes: Vec<u8>) -> Result<Self, String> {
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
        let Some(end) = end_of(&bytes) else { return Err("its end is missing".into()) };
        bytes.truncate(end);
        bytes.extend(NO_CODE);
        bytes.extend(END);
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

/// Returns where the end marker is that the segments and scans of a JPEG file reach (ITU T.81,
/// annex B).
fn end_of(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff);
        at += bytes.get(at..)?.windows(2).position(is_marker)?;
        match bytes[at + 1] {
            0xd9 => return Some(at),
            // Markers without a segment: restarts in a scan, and the start of the image.
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => {
                let length = bytes.get(at + 2..at + 4)?;
                at += 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
            }
        }
    }
}
