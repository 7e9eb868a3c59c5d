//! Sends frames to the GPU and back in four ways.
//!
//! A batch of frames passes five stages: the host makes it, the link carries it to the device, the
//! device works on it, the link carries the results back, and the host takes them. Each stage uses
//! something else. So five batches can be on their way at once, each in another stage, and the
//! slowest stage alone decides the speed.
//!
//! - `blocking`: the host waits behind every stage, as a program does that calls `download` at
//!   once. One stage runs, and the others wait.
//! - `async`: everything is queued on one stream. The host runs ahead and the device never waits
//!   for it, but a stream runs one thing after the other: copies wait for the work.
//! - `streams`: uploads, work and downloads have a stream each, with events between them. The two
//!   copy engines and the multiprocessors all run at once.
//! - `graph`: as `streams`, with the launches of each slot captured once.
//!
//! The memory is a ring of slots, allocated once: a source that is faster than the rest waits for a
//! free slot. So a run of any length takes the same memory, and no slot is read too early.
//!
//! ```text
//! cargo run --release --example 12_pipeline_modes
//! ```
//!
//! `warpstride pipeline` measures the same beside its bound, and draws the timeline.

use warpstride::error::Result;
use warpstride::pipeline::frames::Synthetic;
use warpstride::pipeline::{Mode, Options, Pipeline, Summary, Track};
use warpstride::roofline::measure;
use warpstride::{Backend, Device, ops};

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    println!("{}", device.choice());
    let is_gpu = measure::has_times(&device);
    // Elements of a batch, and batches.
    let (elements, batches) = if is_gpu { (1 << 22, 200) } else { (1 << 10, 40) };
    println!("{batches} batches of {elements} singles, there and back");
    println!("{:<10}{:>8}{:>14}{:>10}{:>10}{:>10}  right", "", "slots", "waits/batch", "GB/s", "overlap", "idle");
    for mode in Mode::ALL {
        let options = Options { mode, timeline: 16, ..Options::default() };
        let mut pipeline = Pipeline::<f32, f32>::new(&device, elements, elements, options)?;
        let before = device.stats();
        let (summary, is_right) = run(&mut pipeline, elements, batches)?;
        // The first use of each slot prepares it.
        let waits = device.stats().since(&before).can_synchronize / batches;
        let bytes = 2.0 * 4.0 * elements as f64 * batches as f64;
        let timeline = summary.timeline.unwrap_or_default();
        let figures = if is_gpu {
            let gbps = bytes / summary.wall.as_secs_f64() / 1e9;
            let [overlap, idle] = [timeline.overlap(), timeline.idle()].map(|part| format!("{:.0} %", 100.0 * part));
            format!("{gbps:>10.1}{overlap:>10}{idle:>10}")
        } else {
            format!("{:>10}{:>10}{:>10}", "-", "-", "-")
        };
        println!("{mode:<10}{:>8}{waits:>14}{figures}  {is_right}", pipeline.slots());
        if mode == Mode::Streams {
            let works = timeline.spans.iter().filter(|span| span.track == Track::Work);
            println!("{:<10}the timeline has {} spans of work", "", works.count());
        }
    }
    Ok(())
}

/// Runs batches that begin with two random numbers through `x / 2 + 1`, and checks those numbers.
fn run(pipeline: &mut Pipeline<f32, f32>, elements: usize, batches: u64) -> Result<(Summary, bool)> {
    let frames = Synthetic { seed: 12, elements };
    let mut is_right = true;
    let summary = pipeline.run(
        |batch, slot| {
            if batch == batches {
                return Ok(None);
            }
            // The rest stays as it was, so that the host is faster than the link.
            frames.fill(batch, &mut slot[..2]);
            Ok(Some(slot.len()))
        },
        |work| {
            let (input, stream) = (work.input.view(&[elements])?, work.stream().clone());
            ops::iterate_into(0.5, 1.0, 1, input, work.output.view_mut(), &stream)
        },
        |batch, results| {
            let mut two = [0.0_f32; 2];
            Synthetic { seed: 12, elements }.fill(batch, &mut two);
            is_right &= results[..2] == two.map(|x| x.mul_add(0.5, 1.0));
            Ok(())
        },
    )?;
    Ok((summary, is_right))
}
