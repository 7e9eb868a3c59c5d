//! The properties of a device: a structure of its attributes, which differs between CUDA 12 and 13.

use std::ffi::{c_int, c_uint};

use crate::code::Outcome;
use crate::driver::driver;

driver! {
    fn cuDeviceGetAttribute(value: &mut c_int, attribute: c_uint, device: c_int);
    fn cuDeviceGetName(name: &mut [u8; 256], room: c_int, device: c_int);
    fn cuDeviceGetUuid_v2(uuid: &mut [u8; 16], device: c_int);
    fn cuDeviceTotalMem_v2(bytes: &mut usize, device: c_int);
}

/// Reads the value of a field of some type from the attributes of a device.
trait Field: Sized {
    fn read(numbers: &[c_uint], device: c_int) -> Outcome<Self>;
}

impl Field for c_int {
    fn read(numbers: &[c_uint], device: c_int) -> Outcome<Self> {
        let mut value = 0;
        if let [number] = *numbers {
            // A driver that is older than an attribute does not know it.
            let _ = cuDeviceGetAttribute(&mut value, number, device);
        }
        Ok(value)
    }
}

impl Field for usize {
    fn read(numbers: &[c_uint], device: c_int) -> Outcome<Self> {
        c_int::read(numbers, device).map(|value| Self::try_from(value).unwrap_or(0))
    }
}

impl<T: Field + Copy + Default, const N: usize> Field for [T; N] {
    fn read(numbers: &[c_uint], device: c_int) -> Outcome<Self> {
        let mut values = [T::default(); N];
        for (value, number) in values.iter_mut().zip(numbers) {
            *value = T::read(&[*number], device)?;
        }
        Ok(values)
    }
}

impl Field for u8 {
    fn read(_numbers: &[c_uint], _device: c_int) -> Outcome<Self> {
        Ok(0)
    }
}

macro_rules! properties {
    ($($(#[$meta:meta])* $field:ident: $type:ty = [$($number:literal),*];)*) => {
        /// The properties, in the order of `driver_types.h`.
        #[repr(C)]
        pub(crate) struct Properties {
            $($(#[$meta])* $field: $type,)*
        }

        impl Properties {
            /// Reads those that are attributes; the others are zero.
            #[allow(clippy::too_many_lines, reason = "the table is whole")]
            fn attributes(device: c_int) -> Outcome<Self> {
                Ok(Self { $($(#[$meta])* $field: <$type>::read(&[$($number),*], device)?,)* })
            }
        }
    };
}

// The numbers are those of `cudaDeviceAttr`, which are the driver's.
properties! {
    name: [u8; 256] = [];
    uuid: [u8; 16] = [];
    luid: [u8; 8] = [];
    luid_mask: c_int = [];
    global_memory: usize = [];
    shared_per_block: usize = [8];
    registers_per_block: c_int = [12];
    warp: c_int = [10];
    pitch: usize = [11];
    threads_per_block: c_int = [1];
    block_dim: [c_int; 3] = [2, 3, 4];
    grid_dim: [c_int; 3] = [5, 6, 7];
    #[cfg(cuda_12)]
    clock_rate: c_int = [13];
    constant_memory: usize = [9];
    major: c_int = [75];
    minor: c_int = [76];
    texture_alignment: usize = [14];
    texture_pitch_alignment: usize = [51];
    #[cfg(cuda_12)]
    overlap: c_int = [15];
    multiprocessors: c_int = [16];
    #[cfg(cuda_12)]
    timeout: c_int = [17];
    integrated: c_int = [18];
    maps_host: c_int = [19];
    #[cfg(cuda_12)]
    compute_mode: c_int = [20];
    texture_1d: c_int = [21];
    texture_1d_mipmap: c_int = [77];
    #[cfg(cuda_12)]
    texture_1d_linear: c_int = [69];
    texture_2d: [c_int; 2] = [22, 23];
    texture_2d_mipmap: [c_int; 2] = [73, 74];
    texture_2d_linear: [c_int; 3] = [70, 71, 72];
    texture_2d_gather: [c_int; 2] = [45, 46];
    texture_3d: [c_int; 3] = [24, 25, 26];
    texture_3d_alternate: [c_int; 3] = [47, 48, 49];
    cubemap: c_int = [52];
    texture_1d_layered: [c_int; 2] = [42, 43];
    texture_2d_layered: [c_int; 3] = [27, 28, 29];
    cubemap_layered: [c_int; 2] = [53, 54];
    surface_1d: c_int = [55];
    surface_2d: [c_int; 2] = [56, 57];
    surface_3d: [c_int; 3] = [58, 59, 60];
    surface_1d_layered: [c_int; 2] = [61, 62];
    surface_2d_layered: [c_int; 3] = [63, 64, 65];
    surface_cubemap: c_int = [66];
    surface_cubemap_layered: [c_int; 2] = [67, 68];
    surface_alignment: usize = [30];
    concurrent_kernels: c_int = [31];
    ecc: c_int = [32];
    pci_bus: c_int = [33];
    pci_device: c_int = [34];
    pci_domain: c_int = [50];
    tcc: c_int = [35];
    engines: c_int = [40];
    unified_addressing: c_int = [41];
    #[cfg(cuda_12)]
    memory_clock_rate: c_int = [36];
    bus_width: c_int = [37];
    l2_bytes: c_int = [38];
    persisting_l2_bytes: c_int = [108];
    threads_per_multiprocessor: c_int = [39];
    priorities: c_int = [78];
    global_l1: c_int = [79];
    local_l1: c_int = [80];
    shared_per_multiprocessor: usize = [81];
    registers_per_multiprocessor: c_int = [82];
    managed: c_int = [83];
    multi_gpu_board: c_int = [84];
    board_group: c_int = [85];
    host_atomics: c_int = [86];
    #[cfg(cuda_12)]
    double_ratio: c_int = [87];
    pageable: c_int = [88];
    concurrent_managed: c_int = [89];
    preemption: c_int = [90];
    registered_pointers: c_int = [91];
    cooperative: c_int = [95];
    #[cfg(cuda_12)]
    cooperative_multi_device: c_int = [96];
    shared_per_block_optin: usize = [97];
    host_page_tables: c_int = [100];
    direct_managed: c_int = [101];
    blocks_per_multiprocessor: c_int = [106];
    access_window: c_int = [109];
    reserved_shared: usize = [111];
    host_register: c_int = [99];
    sparse_arrays: c_int = [112];
    read_only_register: c_int = [113];
    timeline_semaphores: c_int = [114];
    pools: c_int = [115];
    rdma: c_int = [116];
    rdma_flush: c_int = [117];
    rdma_order: c_int = [118];
    pool_handles: c_int = [119];
    deferred_arrays: c_int = [121];
    ipc_events: c_int = [125];
    clusters: c_int = [120];
    unified_functions: c_int = [129];
    #[cfg(not(cuda_12))]
    numa_config: c_int = [130];
    #[cfg(not(cuda_12))]
    numa_id: c_int = [131];
    #[cfg(not(cuda_12))]
    mps: c_int = [133];
    #[cfg(not(cuda_12))]
    host_numa: c_int = [134];
    #[cfg(not(cuda_12))]
    pci_device_id: c_int = [139];
    #[cfg(not(cuda_12))]
    pci_subsystem: c_int = [140];
    #[cfg(not(cuda_12))]
    numa_ipc: c_int = [143];
    #[cfg(cuda_12)]
    reserved: [c_int; 63] = [];
    #[cfg(not(cuda_12))]
    reserved: [c_int; 56] = [];
}

impl Properties {
    /// Reads the properties of a device.
    pub(crate) fn of(device: c_int) -> Outcome<Self> {
        let mut properties = Self::attributes(device)?;
        let mut name = [0; 256];
        cuDeviceGetName(&mut name, 256, device)?;
        properties.name = name;
        cuDeviceGetUuid_v2(&mut properties.uuid, device)?;
        cuDeviceTotalMem_v2(&mut properties.global_memory, device)?;
        Ok(properties)
    }
}
