//! Maps images of interleaved bytes to normalised planes, in one pass.

use crate::abi::{NORMALIZE_BLOCK, NORMALIZE_STEPS, NormalizeParams};
use crate::block;
use crate::index::Wide;
use crate::thread::number::{Number, Real};
use crate::thread::quad::Lanes;
use crate::thread::{self, B8, B32, B32x2, Global, Quad, Word};

/// Maps a byte of a channel.
#[inline(always)]
fn word<T: Number<Value = f32>>(params: &NormalizeParams, channel: usize, byte: u32) -> T::Word {
    let (factor, offset) = (f32::from_bits(params.factors[channel]), f32::from_bits(params.offsets[channel]));
    T::word((byte as f32).fma(factor, offset))
}

/// Loads `BYTES` bytes, by the widest accesses that divide them.
///
/// # Safety
///
/// They are allocated, no work writes them, and they are aligned to the access.
#[inline(always)]
unsafe fn load<const BYTES: usize>(from: Global) -> [Quad; 2] {
    let mut bytes = [[0; 4]; 2];
    crate::unrolled!(word < 8 => {
        let at = from.offset(4 * word as u64);
        let (quad, place) = (word / 4, word % 4);
        if 4 * word < BYTES {
            if BYTES.is_multiple_of(16) {
                if place == 0 {
                    // SAFETY: 16 of the bytes, as the caller promises.
                    bytes[quad] = unsafe { thread::load_quad(at) };
                }
            } else if BYTES.is_multiple_of(8) {
                if place % 2 == 0 {
                    // SAFETY: 8 of the bytes, as the caller promises.
                    let pair = unsafe { B32x2::load_global(at) };
                    bytes[quad][place] = pair.low();
                    bytes[quad][place + 1] = pair.high();
                }
            } else {
                // SAFETY: 4 of the bytes, as the caller promises.
                bytes[quad][place] = unsafe { B32::load_global(at) }.low();
            }
        }
    });
    bytes
}

/// Writes vectors of one plane, or of each, per thread. Neighbouring lanes write neighbouring
/// vectors, and the bytes that they read together are contiguous too. Planes that start anywhere
/// are written element by element.
///
/// `BYTES` are the bytes of a vector's pixels: `CHANNELS` times its elements.
///
/// # Safety
///
/// See [`NormalizeParams`]: all images and planes are allocated, planes are aligned to an element,
/// and no other work accesses them.
#[inline(always)]
pub unsafe fn normalize<T: Number<Value = f32>, const CHANNELS: usize, const BYTES: usize>(params: NormalizeParams) {
    let (row, chunk) = block::tile_position::<Wide>();
    let (row, chunk, pixels) = (row.0, chunk.0, params.pixels);
    // If blocks have a plane each, those of an image's first plane run first, and the later ones
    // read from the L2 cache.
    let (image, plane) = if params.split != 0 { (row / CHANNELS as u64, row % CHANNELS as u64) } else { (row, 0) };
    if image >= params.images {
        return;
    }
    let lanes = T::Word::COUNT;
    let (lane, threads) = (u64::from(thread::thread_x()), u64::from(NORMALIZE_BLOCK));
    let first = chunk * (threads * u64::from(NORMALIZE_STEPS) * lanes as u64);
    let src = Global::new(params.src).offset(image * pixels * CHANNELS as u64);
    let planes = Global::new(params.dst).offset(image * CHANNELS as u64 * pixels * u64::from(T::Word::BYTES));
    let place =
        |pixel: u64, channel: usize| planes.offset((channel as u64 * pixels + pixel) * u64::from(T::Word::BYTES));
    if params.aligned != 0 {
        for step in 0..u64::from(NORMALIZE_STEPS) {
            let pixel = first + (step * threads + lane) * lanes as u64;
            if pixel < pixels {
                // SAFETY: whole pixels of the image, one for each element of a vector: it has a
                // multiple of that.
                let bytes = unsafe { load::<BYTES>(src.offset(pixel * CHANNELS as u64)) };
                crate::unrolled!(channel < 4 => {
                    if channel < CHANNELS && (params.split == 0 || channel as u64 == plane) {
                        let mut quad = [0; 4];
                        crate::unrolled!(lane < 16 => {
                            if lane < lanes {
                                let number = lane * CHANNELS + channel;
                                let byte = B8::get(bytes[number / 16], number % 16).low() & 0xff;
                                quad = word::<T>(&params, channel, byte).put(quad, lane);
                            }
                        });
                        // SAFETY: this thread's vector of a plane.
                        unsafe { thread::store_quad_once(place(pixel, channel), quad) };
                    }
                });
            }
        }
        return;
    }
    for step in 0..u64::from(NORMALIZE_STEPS) * lanes as u64 {
        let pixel = first + step * threads + lane;
        if pixel < pixels {
            crate::unrolled!(channel < 4 => {
                if channel < CHANNELS {
                    // SAFETY: a byte of the image.
                    let byte = unsafe { B8::load_global(src.offset(pixel * CHANNELS as u64 + channel as u64)) }.low();
                    // SAFETY: this thread's element of a plane.
                    unsafe { word::<T>(&params, channel, byte).store_global(place(pixel, channel)) };
                }
            });
        }
    }
}
