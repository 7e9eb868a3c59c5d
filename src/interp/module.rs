//! A parsed module and its kernels, each lowered when it is first asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::code::{Code, Param};
use super::lower::{Lowered, Source};
use super::mem::Memory;
use super::parse::ast::{self, Bounds};
use crate::error::Result;

/// Parsed PTX.
#[derive(Debug, Clone)]
pub struct Module {
    kernels: Vec<Kernel>,
    pub(super) source: Arc<Source>,
}

impl Module {
    /// Parses a module. Each kernel is made ready to run when it is first launched, or asked about.
    ///
    /// # Errors
    ///
    /// `UnsupportedPtx` with the line where the text is not PTX. An instruction that the software GPU does not have is no
    /// error here: [`Kernel::supported`] tells of it, and a launch stops at it before anything runs.
    pub fn parse(text: &str) -> Result<Self> {
        let source = Arc::new(Source::parse(text)?);
        let entries = source.tree().module.entries.iter().enumerate();
        let kernels = entries.map(|(number, entry)| kernel(number, entry, &source)).collect();
        Ok(Self { kernels, source })
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name() == name)
    }

    /// All kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter()
    }

    /// The names of its `.global` and `.const` variables, in the order of the text.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.source.variables.list.iter().map(|variable| variable.name.as_str())
    }

    /// Puts the module's variables into `memory`, unless they are there.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` where there is no room for them.
    pub fn load(&self, memory: &Memory) -> Result<()> {
        self.source.variables.addresses(memory).map(|_| ())
    }

    /// Address and bytes in `memory` of a `.global` or `.const` variable of the module; `None` where it has none of that
    /// name.
    ///
    /// A module's variables are in each memory that its kernels run in: they are put there by [`Module::load`], the first
    /// launch or the first call of this, and keep their values until [`Module::unload`], or until the memory is gone.
    ///
    /// # Errors
    ///
    /// As [`Module::load`].
    pub fn variable(&self, memory: &Memory, name: &str) -> Result<Option<(u64, u64)>> {
        let Some(index) = self.source.variables.list.iter().position(|variable| variable.name == name) else {
            return Ok(None);
        };
        Ok(Some((self.source.variables.addresses(memory)?[index], self.source.variables.list[index].bytes)))
    }

    /// Frees the module's variables in `memory`; a later launch there begins with fresh ones.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where one has been freed by its address.
    pub fn unload(&self, memory: &Memory) -> Result<()> {
        self.source.variables.remove(memory)
    }
}

/// A kernel of a parsed module. Cloning is cheap.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: usize,
    /// Which blocks it may be launched in.
    pub(crate) bounds: Bounds,
    /// Which of the module's entries it is.
    pub(crate) entry: usize,
    /// The module.
    pub(crate) source: Arc<Source>,
    /// What it is lowered to, once it has been asked for: a module may have many kernels of which few run.
    pub(crate) lowered: OnceLock<Lowered>,
}

impl Inner {
    /// What it is lowered to.
    pub(crate) fn lowered(&self) -> &Lowered {
        self.lowered.get_or_init(|| self.source.lower(self.entry, &self.params))
    }

    /// Its code, or why it cannot run.
    pub(crate) fn code(&self) -> &Result<Code> {
        &self.lowered().code
    }
}

impl Kernel {
    /// Its name in the PTX.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its parameters in order.
    pub fn params(&self) -> &[Param] {
        &self.inner.params
    }

    /// Bytes that a launch passes: up to the end of the last parameter.
    pub fn param_bytes(&self) -> usize {
        self.inner.param_bytes
    }

    /// Bytes of static shared memory; 0 where the kernel cannot run.
    pub fn shared_bytes(&self) -> u32 {
        self.inner.code().as_ref().map_or(0, |code| code.shared_bytes)
    }

    /// Whether it can run.
    ///
    /// # Errors
    ///
    /// `UnsupportedPtx`, naming the first instruction that the software GPU does not have, and its line.
    pub fn supported(&self) -> Result<()> {
        self.inner.code().as_ref().map(|_| ()).map_err(Clone::clone)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).field("params", &self.params()).finish_non_exhaustive()
    }
}

/// The kernel of entry `number`.
fn kernel(number: usize, entry: &ast::Entry, source: &Arc<Source>) -> Kernel {
    let mut params = Vec::new();
    let mut end = 0_u64;
    // More than the host can address is refused as too many bytes of parameters.
    let addressable = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    for param in &entry.params {
        let offset = end.checked_next_multiple_of(param.align).unwrap_or(u64::MAX);
        let size = param.bytes.unwrap_or(0);
        end = offset.saturating_add(size);
        let [offset, size, align] = [offset, size, param.align].map(addressable);
        params.push(Param { name: param.name.to_owned(), offset, size, align, ty: param.ty.to_owned() });
    }
    let (name, source) = (entry.name.to_owned(), Arc::clone(source));
    let (param_bytes, bounds, lowered) = (addressable(end), entry.bounds, OnceLock::new());
    Kernel { inner: Arc::new(Inner { name, params, param_bytes, bounds, entry: number, source, lowered }) }
}
