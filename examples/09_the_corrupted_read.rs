//! Reads the result of an asynchronous copy too early, and the compiler refuses.
//!
//! A report from another library: the program queued a copy from the GPU into pinned memory, and
//! compared the values at once. They were wrong, by up to 7.4, and no call failed. The copy had not
//! run yet. One `synchronize` before the comparison repairs it, and nothing reminds the author.
//!
//! Here that program does not compile, because the copy borrows the memory until its scope ends:
//!
//! ```compile_fail,E0502
//! # use warpstride::{Backend, Device, ops};
//! # let device = Device::open(Backend::Soft)?;
//! # let source = device.array(&[3], &[1.0_f32, 2.0, 3.0])?;
//! let mut result = device.pinned_zeros::<f32>(3)?;
//! device.default_stream().scope(|s| {
//!     s.download(&source, &mut result)?;
//!     assert_eq!(result[0], 1.0); // error: `result` is also borrowed as mutable
//!     Ok(())
//! })?;
//! # Ok::<(), warpstride::Error>(())
//! ```
//!
//! Or the copy owns the memory until the program has waited. There is no name by which to read it:
//!
//! ```compile_fail,E0382
//! # use warpstride::{Backend, Device, ops};
//! # let device = Device::open(Backend::Soft)?;
//! # let source = device.array(&[3], &[1.0_f32, 2.0, 3.0])?;
//! let result = device.pinned_zeros::<f32>(3)?;
//! let copy = device.default_stream().download(&source, result)?;
//! assert_eq!(result[0], 1.0); // error: borrow of moved value
//! # Ok::<(), warpstride::Error>(())
//! ```
//!
//! The software GPU runs queued work late on purpose, so this program can show by the raw driver,
//! which is `unsafe`, what the early read would have seen.
//!
//! ```text
//! cargo run --example 09_the_corrupted_read
//! ```

use warpstride::device::{Backend, Device};
use warpstride::error::Result;
use warpstride::ops;

const LEN: usize = 1 << 12;

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let stream = device.stream()?;
    let numbers: Vec<f32> = (0..LEN).map(|i| i as f32 / 512.0).collect();
    let source = device.array(&[LEN], &numbers)?;
    let mut copied = device.alloc_array(&[LEN])?;
    let error = |result: &[f32]| result.iter().zip(&numbers).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);

    // The scope borrows `result`, and has waited when it returns.
    let mut result = device.pinned_zeros::<f32>(LEN)?;
    stream.scope(|s| {
        ops::copy_into(&source, &mut copied, s.stream())?;
        s.download(&copied, &mut result)
    })?;
    println!("in a scope: maximum error {:.1}", error(&result));

    // The copy owns `result`, and the program does other work meanwhile.
    let copy = stream.download(&source, result)?;
    let checksum: f32 = numbers.iter().sum();
    let mut result = copy.wait()?;
    println!("in flight: maximum error {:.1}, and the sum {checksum:.1} meanwhile", error(&result));

    if device.counters()?.is_some() {
        result.fill(0.0);
        let (bytes, from) = (size_of_val(&result[..]), source.buffer().address());
        // SAFETY: both sides have these bytes, and the stream is synchronised before the last use
        // of `result` as memory. This is the mistake itself: on a GPU the copy may run while
        // `early` is computed, which would be a race.
        unsafe { device.driver().copy_d2h(result.as_mut_ptr().cast(), from, bytes, stream.handle()) }?;
        let early = error(&result);
        stream.synchronize()?;
        println!("by the raw driver, read too early: maximum error {early:.1}; after the wait {:.1}", error(&result));
    } else {
        println!("the early read is a race on a GPU; the software GPU shows it");
    }
    Ok(())
}
