//! The blocks that a multiprocessor holds.

use std::ffi::{c_int, c_uint};

use crate::arguments::{In, Opaque, Out};
use crate::driver::driver;
use crate::export::export;
use crate::launch::{Config, DriverConfig};
use crate::registry::function;
use crate::types::Function;

driver! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, function: Function, threads: c_int, shared: usize, flags: c_uint,
    );
    fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, function: Function, blocks: c_int, threads: c_int);
    fn cuOccupancyMaxActiveClusters(clusters: Out<c_int>, function: Function, config: &DriverConfig);
    fn cuOccupancyMaxPotentialClusterSize(size: Out<c_int>, function: Function, config: &DriverConfig);
}

export! {
    /// Returns how many blocks a multiprocessor holds.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Out<c_int>, host: Opaque, threads: c_int, shared: usize) {
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function(host)?, threads, shared, 0)
    }

    /// Returns the same, with flags.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, host: Opaque, threads: c_int, shared: usize, flags: c_uint,
    ) {
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function(host)?, threads, shared, flags)
    }

    /// Returns the shared memory that so many blocks of a multiprocessor may each have.
    fn cudaOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, host: Opaque, blocks: c_int, threads: c_int) {
        cuOccupancyAvailableDynamicSMemPerBlock(bytes, function(host)?, blocks, threads)
    }

    /// Returns how many clusters the device holds.
    fn cudaOccupancyMaxActiveClusters(clusters: Out<c_int>, host: Opaque, config: In<Config>) {
        cuOccupancyMaxActiveClusters(clusters, function(host)?, &config.get()?.for_driver()?)
    }

    /// Returns how many blocks a cluster may have.
    fn cudaOccupancyMaxPotentialClusterSize(size: Out<c_int>, host: Opaque, config: In<Config>) {
        cuOccupancyMaxPotentialClusterSize(size, function(host)?, &config.get()?.for_driver()?)
    }
}
