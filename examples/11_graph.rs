//! Launches a hundred small kernels with one call.
//!
//! A launch costs the host about two microseconds, whatever the kernel does. A kernel that moves a
//! few thousand bytes takes less than that, so a loop of such launches leaves the GPU waiting for
//! the host. A *graph* is a list of launches that the driver has prepared: you *capture* it once,
//! and then launch all of it with one call.
//!
//! - `Stream::capture` records what a function queues on the stream that it gets. Nothing runs.
//! - The graph keeps the memory that it uses. You may drop the buffers.
//! - A launch waits for former uses of that memory and is waited for by later ones, like every
//!   operation here. You need no events.
//! - `Graph::update` captures again. If only operands changed, the driver replaces them in place,
//!   which is cheaper than a new graph.
//!
//! This program turns 100 small images from one pixel after the other into one plane after the
//! other. The software GPU has no times, so there it counts calls to the driver.
//!
//! ```text
//! cargo run --release --example 11_graph
//! ```

use warpstride::error::Result;
use warpstride::roofline::measure;
use warpstride::{Backend, Device, DeviceArray, Stream, ops};

const IMAGES: usize = 100;
/// Height, width and channels.
const PIXELS: [usize; 3] = [24, 32, 3];
const PLANES: [usize; 3] = [3, 24, 32];
const ROUNDS: u64 = 10;

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    println!("{}", device.choice());
    let stream = device.stream()?;
    let images = images(&device, 0)?;
    let mut planes = (0..IMAGES).map(|_| device.alloc_array(&PLANES)).collect::<Result<Vec<_>>>()?;

    // The first launch of a kernel loads it. A capture may do that too.
    let mut graph = stream.capture(|s| permute_all(&images, &mut planes, s))?;
    println!("captured: {} nodes", graph.nodes());

    let before = device.stats();
    for _ in 0..ROUNDS {
        permute_all(&images, &mut planes, &stream)?;
    }
    let looped = device.stats().since(&before);
    let before = device.stats();
    for _ in 0..ROUNDS {
        graph.launch(&stream)?;
    }
    let launched = device.stats().since(&before);
    println!("{:<10}{:>12}{:>16}{:>18}", "", "launches", "graph launches", "synchronisations");
    for (how, stats) in [("loop", &looped), ("graph", &launched)] {
        let [launches, graphs] = ["launch", "graph_launch"].map(|call| stats.calls_of(call));
        println!("{how:<10}{launches:>12}{graphs:>16}{:>18}", stats.can_synchronize);
    }
    println!("planes are right: {}", are_right(&planes, 0)?);

    let others = self::images(&device, 50)?;
    let in_place = graph.update(|s| permute_all(&others, &mut planes, s))?;
    drop((images, others)); // the graph keeps what it uses
    graph.launch(&stream)?;
    println!("updated in place: {in_place}, and planes are right: {}", are_right(&planes, 50)?);

    if measure::has_times(&device) {
        let images = self::images(&device, 0)?;
        let looped = measure::launch_us(&stream, || permute_all(&images, &mut planes, &stream))?;
        let launched = measure::launch_us(&stream, || graph.launch(&stream))?;
        let each = |us: f64| us / IMAGES as f64;
        println!("microseconds for each image: loop {:.2}, graph {:.2}", each(looped), each(launched));
    } else {
        println!("no times without a GPU");
    }
    Ok(())
}

/// Queues one permute an image.
fn permute_all(images: &[DeviceArray<u8>], planes: &mut [DeviceArray<u8>], stream: &Stream) -> Result<()> {
    for (image, planes) in images.iter().zip(planes) {
        ops::copy_into(image.view().permuted_axes(&[2, 0, 1])?, planes, stream)?;
    }
    Ok(())
}

/// The images, where image `i` has the bytes `i + first`, `i + first + 1`, and so on.
fn images(device: &Device, first: usize) -> Result<Vec<DeviceArray<u8>>> {
    (0..IMAGES).map(|image| device.array(&PIXELS, &pixels(image + first))).collect()
}

fn pixels(first: usize) -> Vec<u8> {
    (0..PIXELS.iter().product()).map(|at: usize| (first + at) as u8).collect()
}

/// Returns whether every image has its planes.
fn are_right(planes: &[DeviceArray<u8>], first: usize) -> Result<bool> {
    let [_, _, channels] = PIXELS;
    for (image, planes) in planes.iter().enumerate() {
        let pixels = pixels(image + first);
        let expected = (0..channels).flat_map(|channel| pixels.iter().skip(channel).step_by(channels).copied());
        if planes.to_vec()? != expected.collect::<Vec<_>>() {
            return Ok(false);
        }
    }
    Ok(true)
}
