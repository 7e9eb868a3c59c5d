//! Arrays over several software GPUs of one host.

mod communicators;
mod engines;
mod cluster;
mod cluster_times;
mod failures;
#[cfg(feature = "pipeline")]
mod files;
mod islands;
#[cfg(all(unix, feature = "cuda"))]
mod nccl;
mod one_launch;
mod panics;
mod planted;
mod random_layouts;
mod refusals;
mod rendezvous;
mod shards;
mod steady;
mod waits;

use std::sync::Arc;

use warpstride::distributed::{Distributed, Exchange, Gpus, Links, PairLinks, Redistribution, Split};
use warpstride::driver::Driver;
use warpstride::driver::soft::{Config, Soft};
use warpstride::interp::{self, Checks};
use warpstride::layout::Layout;
use warpstride::{Device, Result};

/// Device memory of each GPU.
const MEMORY_BYTES: u64 = 16 << 20;

/// Opens software GPUs of one host.
fn host(count: usize, seed: u64, checks: Checks) -> Vec<Arc<Soft>> {
    islands(count, seed, checks, usize::MAX)
}

/// Opens software GPUs of one host, of which those of an `island` use each other's memory.
fn islands(count: usize, seed: u64, checks: Checks, island: usize) -> Vec<Arc<Soft>> {
    let interp = interp::Config { checks, ..interp::Config::default() };
    let config = Config { seed, memory_bytes: count as u64 * MEMORY_BYTES, island, interp, ..Config::default() };
    Soft::host(count, &config).into_iter().map(Arc::new).collect()
}

/// The ways that GPUs of a host have to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Kernels store into the memory of all others.
    All,
    /// They do so within islands of so many GPUs.
    Islands(usize),
    /// The links were measured, and copy engines are faster than kernels.
    Engines,
}

impl Reach {
    fn islands(self, count: usize, seed: u64, checks: Checks) -> Vec<Arc<Soft>> {
        islands(count, seed, checks, if let Self::Islands(island) = self { island } else { usize::MAX })
    }

    /// Takes devices of the host.
    fn gpus(self, devices: Vec<Device>) -> Result<Gpus> {
        let gpus = Gpus::over(devices)?;
        if self == Self::Engines {
            let speed = |gbps| Links { start_ms: 0.0, gbps };
            let all = (0..gpus.len()).flat_map(|from| (0..gpus.len()).map(move |to| (from, to)));
            let link = |(from, to)| PairLinks { from, to, kernels: speed(1.0), engine: speed(10.0) };
            gpus.set_links(all.map(link).collect())?;
        }
        Ok(gpus)
    }
}

/// Opens a device over each driver.
fn devices<D: Driver + 'static>(drivers: &[Arc<D>]) -> Result<Vec<Device>> {
    drivers.iter().map(|driver| Device::with_driver(Arc::clone(driver) as Arc<dyn Driver>)).collect()
}

/// Opens software GPUs of one host. Exchanges run on streams of their own if they are `limited`.
fn gpus(count: usize, seed: u64, limited: bool) -> Arc<Gpus> {
    let gpus = Gpus::over(devices(&host(count, seed, Checks::NONE)).expect("software GPUs")).expect("one host");
    Arc::new(if limited { gpus.limited_to(1).expect("streams") } else { gpus })
}

/// Cuts the axes of a shape.
fn split(shape: &[usize], cuts: &str) -> Split {
    Split::parse(shape, cuts).expect("cuts of the shape")
}

/// Elements in C order with their axes in another order, one by one.
fn permuted<T: Copy>(elements: &[T], shape: &[usize], axes: &[usize]) -> Vec<T> {
    let layout = Layout::row_major(shape).and_then(|layout| layout.permuted_axes(axes)).expect("an order of axes");
    let mut index = vec![0; shape.len()];
    let element = |_| {
        let element = elements[layout.offset_of(&index).expect("within the array")];
        for (at, &extent) in index.iter_mut().zip(layout.shape()).rev() {
            *at += 1;
            if *at < extent {
                break;
            }
            *at = 0;
        }
        element
    };
    (0..layout.len()).map(element).collect()
}

/// Redistributes by copies that are packed, sorted, both and neither, in pieces of an element up to
/// all at once, among three GPUs.
fn redistribute_in_pieces(gpus: &Arc<Gpus>) {
    const SHAPE: [usize; 3] = [6, 5, 4];
    let elements = |from: u16| (from..from + 120).collect::<Vec<u16>>();
    for (axes, from, to) in
        [([2, 0, 1], "0:3", "0:3"), ([0, 1, 2], "0:3", "1:3"), ([0, 1, 2], "0:3", ""), ([1, 0, 2], "", "1:3")]
    {
        let shape = axes.map(|axis| SHAPE[axis]);
        let (from, to) = (split(&SHAPE, from), split(&shape, to));
        let plan = Redistribution::new(&from, axes, &to, 2).expect("a plan");
        for bytes in [0, 2, 14, 60, 1 << 20] {
            let exchange = Exchange::in_pieces(gpus, &plan, bytes).expect("an exchange");
            let mut result = Distributed::alloc(gpus, &to).expect("memory");
            for start in [0, 1000, 2000] {
                let source = Distributed::scatter(gpus, &from, &elements(start)).expect("memory");
                exchange.launch(&source, &mut result).expect("a launch");
            }
            let expected = permuted(&elements(2000), &SHAPE, &axes);
            assert_eq!(result.gather().expect("the elements"), expected, "{exchange} in pieces of {bytes}");
        }
    }
}
