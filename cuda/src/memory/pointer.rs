//! The attributes of addresses.

use std::ffi::{c_int, c_uint};

use super::table::{Allocation, Kind, not_listed};
use crate::arguments::{In, Opaque};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::process::{Process, process};

const CONTEXT: c_uint = 1;
const MEMORY_TYPE: c_uint = 2;
const DEVICE_POINTER: c_uint = 3;
const HOST_POINTER: c_uint = 4;
const P2P_TOKENS: c_uint = 5;
const SYNC_MEMOPS: c_uint = 6;
const BUFFER_ID: c_uint = 7;
const IS_MANAGED: c_uint = 8;
const DEVICE_ORDINAL: c_uint = 9;
const IS_LEGACY_IPC_CAPABLE: c_uint = 10;
const RANGE_START: c_uint = 11;
const RANGE_SIZE: c_uint = 12;
const MAPPED: c_uint = 13;
const ALLOWED_HANDLE_TYPES: c_uint = 14;
const IS_RDMA_CAPABLE: c_uint = 15;
const ACCESS_FLAGS: c_uint = 16;
const POOL: c_uint = 17;
const MAPPING_SIZE: c_uint = 18;
const MAPPING_BASE: c_uint = 19;
const MEMORY_BLOCK_ID: c_uint = 20;
const IS_DECOMPRESS_CAPABLE: c_uint = 21;

const MEMORY_OF_HOST: u32 = 1;
const MEMORY_OF_DEVICE: u32 = 2;
const READ_AND_WRITE: u32 = 3;
/// The number that stands for the lack of a device.
const NO_DEVICE: u32 = -2_i32 as u32;

/// A value with its width.
enum Value {
    Word(u32),
    Long(u64),
}

/// An address with the allocation around it.
struct Found {
    address: u64,
    base: u64,
    allocation: Allocation,
}

impl Value {
    fn write(self, data: Opaque) -> Outcome {
        match self {
            Self::Word(value) => data.results().set(value),
            Self::Long(value) => data.results().set(value),
        }
    }
}

impl Found {
    /// Returns an attribute; `None` if the memory does not have it.
    fn value(&self, attribute: c_uint) -> Outcome<Option<Value>> {
        let Allocation { kind, bytes, context, device, id, syncs, pool, .. } = self.allocation;
        let is_host = matches!(kind, Kind::PageLocked | Kind::Registered);
        let is_shared = is_host || kind == Kind::Managed;
        Ok(Some(match attribute {
            CONTEXT => Value::Long(context.0),
            MEMORY_TYPE => Value::Word(if is_host { MEMORY_OF_HOST } else { MEMORY_OF_DEVICE }),
            DEVICE_POINTER => Value::Long(self.address),
            HOST_POINTER if is_shared => Value::Long(self.address),
            HOST_POINTER => return Ok(None),
            P2P_TOKENS => return Err(Failure::unsupported("the software GPU gives no tokens to other devices")),
            SYNC_MEMOPS => Value::Word(u32::from(syncs)),
            BUFFER_ID | MEMORY_BLOCK_ID => Value::Long(id),
            IS_MANAGED => Value::Word(u32::from(kind == Kind::Managed)),
            DEVICE_ORDINAL => Value::Word(device as u32),
            IS_LEGACY_IPC_CAPABLE | ALLOWED_HANDLE_TYPES | IS_RDMA_CAPABLE | IS_DECOMPRESS_CAPABLE => Value::Word(0),
            RANGE_START | MAPPING_BASE => Value::Long(self.base),
            RANGE_SIZE | MAPPING_SIZE => Value::Long(bytes),
            MAPPED => Value::Word(1),
            ACCESS_FLAGS => Value::Word(READ_AND_WRITE),
            POOL => Value::Long(pool.0),
            _ => return Err(Failure::value(format!("{attribute} is not an attribute of an address"))),
        }))
    }
}

/// Returns what stands for an attribute of an address that CUDA does not know.
fn unknown(attribute: c_uint) -> Outcome<Value> {
    Ok(match attribute {
        MEMORY_TYPE
        | SYNC_MEMOPS
        | IS_MANAGED
        | IS_LEGACY_IPC_CAPABLE
        | MAPPED
        | ALLOWED_HANDLE_TYPES
        | IS_RDMA_CAPABLE
        | ACCESS_FLAGS
        | IS_DECOMPRESS_CAPABLE => Value::Word(0),
        DEVICE_ORDINAL => Value::Word(NO_DEVICE),
        CONTEXT | DEVICE_POINTER | HOST_POINTER | BUFFER_ID | RANGE_START | RANGE_SIZE | POOL | MAPPING_SIZE
        | MAPPING_BASE | MEMORY_BLOCK_ID => Value::Long(0),
        _ => return Err(Failure::value(format!("{attribute} is not an attribute of an address"))),
    })
}

/// Returns the allocation around an address, also that of a variable of a module.
fn find(process: &Process, address: u64) -> Option<Found> {
    if let Some((base, allocation)) = process.memory.lock().around(address) {
        return Some(Found { address, base, allocation: allocation.clone() });
    }
    let (device, (base, bytes)) = not_listed(process, address, 1)?;
    let context = process.contexts.all().into_iter().map(|(_, context)| context);
    let context = context.into_iter().find(|context| context.device == device as c_int)?;
    // Variables have no entry that could keep a number, and their address is one.
    let allocation = Allocation { id: base, ..Allocation::new(Kind::Device, bytes, &context, 0) };
    Some(Found { address, base, allocation })
}

export! {
    /// Returns an attribute of an address.
    fn cuPointerGetAttribute(data: Opaque, attribute: c_uint, address: u64) {
        let process = process()?;
        if data.is_null() {
            return Err(Failure::value("the place for an attribute is null"));
        }
        if let Some(found) = find(process, address) {
            let value = found.value(attribute)?;
            return value.ok_or_else(|| Failure::value(format!("{address:#x} has no address of the host")))?.write(data);
        }
        if attribute == MAPPED {
            return unknown(attribute)?.write(data);
        }
        Err(Failure::value(format!("{address:#x} is not memory that CUDA has allocated or registered")))
    }

    /// Returns attributes of an address; for an address that CUDA does not know, zeros.
    fn cuPointerGetAttributes(count: c_uint, attributes: In<c_uint>, data: In<Opaque>, address: u64) {
        let process = process()?;
        if count == 0 {
            return Err(Failure::value("the list of attributes is empty"));
        }
        let (attributes, data) = (attributes.list(count as usize)?, data.list(count as usize)?);
        let found = find(process, address);
        for (attribute, data) in attributes.into_iter().zip(data) {
            let known = found.as_ref().map_or(Ok(None), |found| found.value(attribute))?;
            known.map_or_else(|| unknown(attribute), Ok)?.write(data)?;
        }
        Ok(())
    }

    /// Sets whether each synchronous copy or fill of an allocation waits.
    fn cuPointerSetAttribute(value: Opaque, attribute: c_uint, address: u64) {
        let process = process()?;
        if attribute != SYNC_MEMOPS {
            return Err(Failure::value(format!("{attribute} is not an attribute of an address that can be set")));
        }
        let syncs = value.operands::<c_uint>().get()? != 0;
        let mut table = process.memory.lock();
        let found = table.around_mut(address).ok_or_else(|| {
            Failure::new(code::INVALID_VALUE, format!("{address:#x} is not memory that CUDA has allocated"))
        })?;
        found.syncs = syncs;
        Ok(())
    }
}
