//! The variables of a module: their initial values, and their addresses in each memory that its
//! kernels run in.
//!
//! As in CUDA, they live as long as the module is loaded and keep their values from launch to
//! launch. A module is loaded in a memory once one of its kernels has run there, or
//! [`Module::variable`](super::Module::variable) has been called. Each variable is an allocation of
//! its own, so that an access beyond its end is detected.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mem::{Memory, space};
use crate::error::{Error, ErrorKind, Result, counted};

/// The variables of one parsed module.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// A number that identifies the module.
    id: u64,
    pub(crate) list: Vec<Variable>,
}

/// A variable of module scope, in global or constant memory.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// True if kernels may only read it: `.const`.
    pub(crate) constant: bool,
    /// True if the host uses it, too, in memory that has addresses of the host.
    pub(crate) managed: bool,
    /// Its size in bytes; bytes beyond `image` are 0.
    pub(crate) bytes: u64,
    /// Its first bytes.
    pub(crate) image: Vec<u8>,
    /// The addresses that it contains.
    pub(crate) pointers: Vec<Pointer>,
}

/// An address in a variable's initial value.
#[derive(Debug)]
pub(crate) struct Pointer {
    /// Its offset in the variable, and its size in bytes.
    pub(crate) at: (u64, u8),
    pub(crate) to: Symbol,
    /// Bytes to add.
    pub(crate) offset: i64,
    /// The bits of the address that are stored, shifted down.
    pub(crate) mask: u64,
}

/// An item that has an address.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Symbol {
    /// A variable of the list.
    Variable(usize),
    /// A function of the module.
    Function(u32),
}

impl Variables {
    pub(crate) fn new(list: Vec<Variable>) -> Self {
        static MODULES: AtomicU64 = AtomicU64::new(0);
        Self { id: MODULES.fetch_add(1, Ordering::Relaxed), list }
    }

    /// Returns their addresses in `memory`; places them there on the first call.
    pub(crate) fn addresses(&self, memory: &Memory) -> Result<Arc<[u64]>> {
        if self.list.is_empty() {
            return Ok(Arc::new([]));
        }
        memory.module(self.id, || self.place(memory))
    }

    /// Removes them from `memory`.
    pub(crate) fn remove(&self, memory: &Memory) -> Result<()> {
        // Frees every variable, even if an earlier one failed.
        let placed = memory.forget_module(self.id);
        let each = self.list.iter().zip(placed.iter());
        each.map(|(variable, &address)| variable.free(memory, address)).fold(Ok(()), Result::and)
    }

    fn place(&self, memory: &Memory) -> Result<Vec<u64>> {
        // Checks that all variables have room, before any takes the host's memory.
        let all = self.list.iter().fold(0_u64, |all, variable| all.saturating_add(variable.bytes));
        let free = memory.limit() - memory.used();
        if all > free {
            let context = format!(
                "the module has {} of {} and {free} are free; give the software GPU more memory, or declare less",
                counted(self.list.len(), "variable"),
                counted(all, "byte")
            );
            return Err(Error::new(ErrorKind::OutOfMemory, context));
        }
        let mut addresses = Vec::with_capacity(self.list.len());
        for variable in &self.list {
            match variable.alloc(memory) {
                Ok(address) => addresses.push(address),
                Err(error) => {
                    self.list.iter().zip(&addresses).try_for_each(|(placed, &address)| placed.free(memory, address))?;
                    return Err(error.while_doing(format!("placing variable {:?} of the module", variable.name)));
                }
            }
        }
        for (variable, &address) in self.list.iter().zip(&addresses) {
            memory.write(address, &variable.image)?;
            for pointer in &variable.pointers {
                let (at, width) = pointer.at;
                memory.write(address + at, &pointer.value(&addresses).to_le_bytes()[..usize::from(width)])?;
            }
        }
        Ok(addresses)
    }
}

impl Variable {
    /// Returns whether it lies in memory of the host.
    fn is_of_host(&self, memory: &Memory) -> bool {
        self.managed && memory.has_addresses_of_host()
    }

    fn alloc(&self, memory: &Memory) -> Result<u64> {
        if self.is_of_host(memory) {
            return Ok(memory.alloc_host(self.bytes)?.as_ptr().expose_provenance() as u64);
        }
        memory.alloc_variable(self.bytes, self.constant)
    }

    fn free(&self, memory: &Memory, address: u64) -> Result<()> {
        let of_host = self.is_of_host(memory).then(|| std::ptr::with_exposed_provenance_mut(address as usize));
        match of_host.and_then(NonNull::new) {
            Some(first) => memory.free_host(first),
            None => memory.free(address),
        }
    }
}

impl Pointer {
    fn value(&self, addresses: &[u64]) -> u64 {
        let base = match self.to {
            Symbol::Variable(index) => addresses[index],
            Symbol::Function(number) => space::function_address(number),
        };
        (base.wrapping_add_signed(self.offset) & self.mask) >> self.mask.trailing_zeros().min(63)
    }
}
