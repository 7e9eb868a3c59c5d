//! Device memory that processes of one host share, and numbers in it by which their streams wait
//! for each other: CUDA's interprocess handles, and its stream memory operations, from drivers for
//! CUDA 11.7 on.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulonglong};
use std::ptr;

use super::api::{Api, CUdevice, CUdeviceptr, CUstream, STREAM_NON_BLOCKING, later_table};
use super::context::{Context, Entered};
use super::error::{self, code};
use super::facts::{check, device, initialized, text};
use crate::driver::StreamHandle;
use crate::error::{Error, ErrorKind, Result, counted};

/// The name of an allocation in other processes.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MemoryHandle(pub(crate) [u8; 64]);

/// An operation of a stream on a number of 32 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Flag {
    /// Writes it, after all former work of the stream.
    Write {
        /// The address, which may be in the memory of a peer.
        address: u64,
        /// The number.
        value: u32,
    },
    /// Waits until it is this number, or one that was counted up from it.
    Await {
        /// The address, in the device's own memory.
        address: u64,
        /// The number.
        value: u32,
    },
}

/// CUDA's `CUstreamBatchMemOpParams`, whose members for waits and writes have one layout.
#[derive(Clone, Copy)]
#[repr(C)]
struct Operation {
    kind: c_uint,
    address: CUdeviceptr,
    value: c_ulonglong,
    flags: c_uint,
    alias: CUdeviceptr,
    rest: u64,
}

const _: () = assert!(size_of::<Operation>() == 48);
#[cfg(feature = "cudarc")]
const _: () = {
    use cudarc::driver::sys;
    assert!(size_of::<Operation>() == size_of::<sys::CUstreamBatchMemOpParams>());
    assert!(size_of::<MemoryHandle>() == size_of::<sys::CUipcMemHandle>());
    assert!(WAIT == sys::CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32 as u32);
    assert!(WRITE == sys::CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32 as u32);
    assert!(NATIVE_ATOMICS == sys::CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED as u32);
    assert!(PEER_ACCESS == sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32);
};

/// `CU_STREAM_MEM_OP_WAIT_VALUE_32`, whose flag 0 is `CU_STREAM_WAIT_VALUE_GEQ`.
const WAIT: c_uint = 1;
/// `CU_STREAM_MEM_OP_WRITE_VALUE_32`, whose flag 0 makes former writes visible first.
const WRITE: c_uint = 2;
/// `CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED`.
const NATIVE_ATOMICS: c_uint = 3;
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const PEER_ACCESS: c_uint = 1;
/// `CU_STREAM_WAIT_VALUE_FLUSH`: what peers wrote before the number is seen behind the wait. A
/// device may reorder remote writes, and devices that need the flag have it.
const FLUSH: c_uint = 1 << 30;
/// `CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES`.
const CAN_FLUSH: c_int = 98;
/// The driver shares whole blocks of so many bytes, so an allocation has none with others.
const BLOCK: u64 = 2 << 20;
/// The bytes of a GPU's number on the bus, with the zero at its end: `00000000:1B:00.0`.
pub(crate) const BUS: usize = 32;

later_table! {
    /// The functions of memory that processes share.
    Functions;

    cuIpcGetMemHandle(*mut MemoryHandle, CUdeviceptr);
    cuIpcOpenMemHandle_v2(*mut CUdeviceptr, MemoryHandle, c_uint);
    cuIpcCloseMemHandle(CUdeviceptr);
    cuStreamBatchMemOp_v2(CUstream, c_uint, *mut Operation, c_uint);
    cuMemsetD32Async(CUdeviceptr, c_uint, usize, CUstream);
    cuDeviceGetAttribute(*mut c_int, c_int, CUdevice);
    cuDeviceGetPCIBusId(*mut c_char, c_int, CUdevice);
    cuDeviceGetByPCIBusId(*mut CUdevice, *const c_char);
    cuDeviceGetP2PAttribute(*mut c_int, c_uint, CUdevice, CUdevice);
}

/// A GPU whose memory other processes use, and that uses theirs.
pub(crate) struct Processes {
    api: &'static Api,
    functions: &'static Functions,
    device: CUdevice,
    context: Context,
    /// The flag of a wait.
    wait: c_uint,
}

// SAFETY: contexts and streams belong to the process, and any number of threads may use them.
unsafe impl Send for Processes {}
// SAFETY: as above.
unsafe impl Sync for Processes {}

impl Processes {
    /// Opens a GPU. `Unavailable` if the driver is too old.
    pub(crate) fn of(ordinal: u32) -> Result<Self> {
        let api = initialized()?;
        let functions = Functions::get().ok_or_else(|| {
            Error::new(
                ErrorKind::Unavailable,
                "the NVIDIA driver cannot share memory of a GPU among processes; install one for CUDA 11.7 or newer",
            )
        })?;
        let device = device(api, ordinal)?;
        let mut can_flush = 0;
        // SAFETY: `can_flush` takes the result. A driver without the attribute refuses it.
        let _ = unsafe { (functions.cuDeviceGetAttribute)(&mut can_flush, CAN_FLUSH, device) };
        let wait = if can_flush == 0 { 0 } else { FLUSH };
        Ok(Self { api, functions, device, context: Context::retain(api, device)?, wait })
    }

    /// Returns the GPU's number on the bus, which all processes of the host know it by.
    pub(crate) fn bus(&self) -> Result<[u8; BUS]> {
        let mut bus = [0_u8; BUS];
        let text = bus.as_mut_ptr().cast();
        // SAFETY: it writes a text that ends with a zero, of that length at most.
        let code = unsafe { (self.functions.cuDeviceGetPCIBusId)(text, BUS as c_int, self.device) };
        check(self.api, code, format_args!("cuDeviceGetPCIBusId"))?;
        Ok(bus)
    }

    /// Returns whether kernels store fast into the memory of the GPU with this number on the bus:
    /// over NVLink they do, and it is what lets GPUs reach each other's atomics. It is also true
    /// for a GPU that this process does not see.
    pub(crate) fn stores_fast_to(&self, bus: &[u8; BUS]) -> bool {
        let Some(name) = CStr::from_bytes_until_nul(bus).ok().map(CString::from) else { return false };
        let (mut peer, mut fast) = (0, 0);
        // SAFETY: `peer` takes the result, and the name ends with a zero.
        let code = unsafe { (self.functions.cuDeviceGetByPCIBusId)(&mut peer, name.as_ptr()) };
        if code != code::SUCCESS || peer == self.device {
            return true;
        }
        // SAFETY: both are devices of the driver, and `fast` takes the result.
        let code = unsafe { (self.functions.cuDeviceGetP2PAttribute)(&mut fast, NATIVE_ATOMICS, self.device, peer) };
        code == code::SUCCESS && fast != 0
    }

    /// Allocates memory that other processes can open, and fills it with zeros. It waits until that
    /// is done.
    pub(crate) fn alloc(&self, bytes: u64) -> Result<u64> {
        let bytes = bytes.next_multiple_of(BLOCK);
        let entered = self.enter()?;
        let mut address = 0;
        // SAFETY: `address` takes the result.
        let code = unsafe { (entered.cuMemAlloc_v2)(&mut address, bytes as usize) };
        check(self.api, code, format_args!("cuMemAlloc({})", counted(bytes, "byte")))?;
        let filled = self.beside(|stream| {
            // SAFETY: the bytes were just allocated.
            let code = unsafe { (entered.cuMemsetD8Async)(address, 0, bytes as usize, stream) };
            check(self.api, code, format_args!("cuMemsetD8Async({})", counted(bytes, "byte")))?;
            // SAFETY: the stream is live.
            check(self.api, unsafe { (entered.cuStreamSynchronize)(stream) }, format_args!("cuStreamSynchronize"))
        });
        filled.map(|()| address).inspect_err(|_| {
            // SAFETY: it was just allocated, and no other process knows it.
            unsafe { self.free(address) };
        })
    }

    /// Tries the operations of streams on a number, which not all devices have.
    ///
    /// # Safety
    ///
    /// - The address is that of 4 bytes of [`Processes::alloc`], which nothing else uses.
    pub(crate) unsafe fn try_flags(&self, address: u64) -> Result<()> {
        self.beside(|stream| {
            let flags = [Flag::Write { address, value: 1 }, Flag::Await { address, value: 1 }];
            // SAFETY: as the caller promises; the stream is live until the wait below.
            unsafe { self.queue(StreamHandle(stream as usize as u64), &flags) }?;
            let entered = self.enter()?;
            // SAFETY: the stream is live.
            check(self.api, unsafe { (entered.cuStreamSynchronize)(stream) }, format_args!("cuStreamSynchronize"))
        })
    }

    /// Queues work on a new stream. The device has few queues for its streams, and one that holds a
    /// stream which waits holds what comes behind it: so work that ends waits is tried on several.
    fn beside(&self, work: impl FnOnce(CUstream) -> Result<()>) -> Result<()> {
        let entered = self.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` takes the result.
        let code = unsafe { (entered.cuStreamCreate)(&mut stream, STREAM_NON_BLOCKING) };
        check(self.api, code, format_args!("cuStreamCreate"))?;
        let done = work(stream);
        // A failure allows no reaction. Queued work still runs.
        // SAFETY: it is live until now.
        let _ = unsafe { (entered.cuStreamDestroy_v2)(stream) };
        done
    }

    /// Frees memory. A failure allows no reaction.
    ///
    /// # Safety
    ///
    /// - [`Processes::alloc`] returned the address, which has not been freed since.
    /// - No other process has it open, and no work uses it from now on.
    pub(crate) unsafe fn free(&self, address: u64) {
        if let Ok(entered) = self.enter() {
            // SAFETY: as the caller promises.
            let _ = unsafe { (entered.cuMemFree_v2)(address) };
        }
    }

    /// Returns the name of an allocation for other processes.
    pub(crate) fn export(&self, address: u64) -> Result<MemoryHandle> {
        let _entered = self.enter()?;
        let mut handle = MemoryHandle([0; 64]);
        // SAFETY: `handle` takes the result; a wrong address is an error.
        let code = unsafe { (self.functions.cuIpcGetMemHandle)(&mut handle, address) };
        check(self.api, code, format_args!("cuIpcGetMemHandle"))?;
        Ok(handle)
    }

    /// Maps an allocation of another process. Returns its address here.
    pub(crate) fn open(&self, handle: MemoryHandle) -> Result<u64> {
        let _entered = self.enter()?;
        let mut address = 0;
        // SAFETY: `address` takes the result; a wrong handle is an error.
        let code = unsafe { (self.functions.cuIpcOpenMemHandle_v2)(&mut address, handle, PEER_ACCESS) };
        check(self.api, code, format_args!("cuIpcOpenMemHandle"))?;
        Ok(address)
    }

    /// Unmaps an allocation of another process. A failure allows no reaction.
    ///
    /// # Safety
    ///
    /// - [`Processes::open`] returned the address, which has not been closed since.
    /// - No work uses it from now on, and none that was queued still runs.
    pub(crate) unsafe fn close(&self, address: u64) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: as the caller promises.
            let _ = unsafe { (self.functions.cuIpcCloseMemHandle)(address) };
        }
    }

    /// Queues operations on numbers, in their order.
    ///
    /// # Safety
    ///
    /// - The stream is one of the device's primary context, and live.
    /// - Each number is memory that [`Processes::alloc`] or [`Processes::open`] returned, aligned
    ///   to
    ///   4 bytes, and lives until the operation has run. Nothing else but these operations uses it.
    pub(crate) unsafe fn queue(&self, stream: StreamHandle, flags: &[Flag]) -> Result<()> {
        let of = |kind, flags, address, value: u32| Operation {
            kind,
            address,
            value: value.into(),
            flags,
            alias: 0,
            rest: 0,
        };
        let operation = |flag: &Flag| match *flag {
            Flag::Write { address, value } => of(WRITE, 0, address, value),
            Flag::Await { address, value } => of(WAIT, self.wait, address, value),
        };
        let mut operations: Vec<Operation> = flags.iter().map(operation).collect();
        let _entered = self.enter()?;
        let (stream, count) = (stream.0 as usize as CUstream, operations.len() as c_uint);
        // SAFETY: as the caller promises; the driver copies the operations.
        let code = unsafe { (self.functions.cuStreamBatchMemOp_v2)(stream, count, operations.as_mut_ptr(), 0) };
        check(self.api, code, format_args!("cuStreamBatchMemOp({})", counted(count, "operation")))
    }

    /// Writes numbers beside all other work: each of these addresses has as many side by side. The
    /// writes have their order, and may come late.
    ///
    /// # Safety
    ///
    /// - As [`Processes::queue`], for these places.
    pub(crate) unsafe fn write_beside(&self, writes: &[(u64, u32, usize)]) -> Result<()> {
        self.beside(|stream| {
            writes.iter().try_for_each(|&(address, value, count)| {
                // SAFETY: as the caller promises; the stream is live.
                let code = unsafe { (self.functions.cuMemsetD32Async)(address, value, count, stream) };
                check(self.api, code, format_args!("cuMemsetD32Async({})", counted(count, "number")))
            })
        })
    }

    /// Returns `count` numbers side by side, beside all other work.
    ///
    /// # Safety
    ///
    /// - As [`Processes::queue`], for these places.
    pub(crate) unsafe fn read_beside(&self, address: u64, count: usize) -> Result<Vec<u32>> {
        let mut numbers = vec![0_u32; count];
        self.beside(|stream| {
            let entered = self.enter()?;
            let to = numbers.as_mut_ptr().cast();
            // SAFETY: as the caller promises; the numbers live beyond the wait below.
            let code = unsafe { (entered.cuMemcpyDtoHAsync_v2)(to, address, 4 * count, stream) };
            // SAFETY: the stream is live.
            let waited = unsafe { (entered.cuStreamSynchronize)(stream) };
            check(self.api, code, format_args!("cuMemcpyDtoHAsync({})", counted(4 * count, "byte")))?;
            check(self.api, waited, format_args!("cuStreamSynchronize"))
        })?;
        Ok(numbers)
    }

    fn enter(&self) -> Result<Entered> {
        self.context.enter(self.api).map_err(|failure| failed(self.api, failure))
    }
}

fn failed(api: &Api, (code, call): (u32, &'static str)) -> Error {
    error::error(code, call, text(api, code))
}

impl Drop for Processes {
    fn drop(&mut self) {
        // SAFETY: it was retained by `of`, and is not used again.
        unsafe { Context::release(self.api, self.device) };
    }
}
