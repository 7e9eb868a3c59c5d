//! A parsed module and its kernels; each kernel is lowered on its first use, from the tree that the
//! module keeps.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self_cell::self_cell;

use super::code::{Code, Listing, Param};
use super::lower::{Lowered, Symbols, check_cluster, lower};
use super::mem::Memory;
use super::parse::ast::{self, Bounds};
use super::parse::parse;
use super::variables::Variables;
use crate::error::{Error, ErrorKind, Result, counted, printable_line};
use crate::launch_shape::{LaunchShape, MAX_SHARED_BYTES, shared_limit};

/// Parsed PTX.
#[derive(Debug, Clone)]
pub struct Module {
    kernels: Vec<Kernel>,
    pub(super) source: Arc<Source>,
}

impl Module {
    /// Parses a module. Each kernel is prepared on its first launch or query.
    ///
    /// # Errors
    ///
    /// `UnsupportedPtx` with the line if the text is not PTX. An unsupported instruction is not an
    /// error here: [`Kernel::supported`] reports it, and a launch of its kernel fails before
    /// anything runs.
    pub fn parse(text: &str) -> Result<Self> {
        let source = Arc::new(Source::parse(text)?);
        let entries = source.tree().entries.iter().enumerate();
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

    /// Puts the module's variables into `memory`, unless they are already there.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if there is no room for them.
    pub fn load(&self, memory: &Memory) -> Result<()> {
        self.source.variables.addresses(memory).map(|_| ())
    }

    /// Returns the address and size in `memory` of a `.global` or `.const` variable of the module;
    /// `None` if it has no such variable.
    ///
    /// A module's variables exist in each memory that its kernels run in. [`Module::load`], the
    /// first launch, or the first call of this function puts them there. They keep their values
    /// until [`Module::unload`], or until the memory is dropped.
    ///
    /// # Errors
    ///
    /// Those of [`Module::load`].
    pub fn variable(&self, memory: &Memory, name: &str) -> Result<Option<(u64, u64)>> {
        let Some(index) = self.source.variables.list.iter().position(|variable| variable.name == name) else {
            return Ok(None);
        };
        Ok(Some((self.source.variables.addresses(memory)?[index], self.source.variables.list[index].bytes)))
    }

    /// Returns the bytes of a `.global` or `.const` variable; `None` if it has no such variable.
    #[doc(hidden)]
    pub fn variable_bytes(&self, name: &str) -> Option<u64> {
        self.source.variables.list.iter().find(|variable| variable.name == name).map(|variable| variable.bytes)
    }

    /// Returns whether the host uses a variable, too, where memory has addresses of the host.
    #[doc(hidden)]
    pub fn is_managed(&self, name: &str) -> bool {
        self.source.variables.list.iter().any(|variable| variable.name == name && variable.managed)
    }

    /// Frees the module's variables in `memory`; a later launch there begins with fresh ones.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one of them has been freed by its address.
    pub fn unload(&self, memory: &Memory) -> Result<()> {
        self.source.variables.remove(memory)
    }
}

/// A module's tree, with the meaning of its names.
struct Tree<'t> {
    module: ast::Module<'t>,
    symbols: Symbols<'t>,
}

self_cell! {
    struct Parsed {
        owner: Arc<str>,
        #[covariant]
        dependent: Tree,
    }
}

/// A parsed module, from which kernels are lowered.
pub(crate) struct Source {
    parsed: Parsed,
    pub(crate) listing: Listing,
    pub(crate) variables: Variables,
}

impl Source {
    fn parse(text: &str) -> Result<Self> {
        let text: Arc<str> = text.into();
        let mut variables = Variables::default();
        let parsed = Parsed::try_new(Arc::clone(&text), |text| {
            let module = parse(text)?;
            let symbols;
            (symbols, variables) = Symbols::of(&module);
            Ok::<_, Error>(Tree { module, symbols })
        })?;
        let mut files = BTreeMap::new();
        for (number, name) in &parsed.borrow_dependent().module.files {
            // A name may be printed to a terminal, on a line.
            files.entry(*number).or_insert_with(|| printable_line(name));
        }
        Ok(Self { parsed, listing: Listing { text, files }, variables })
    }

    pub(super) fn tree(&self) -> &ast::Module<'_> {
        &self.parsed.borrow_dependent().module
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("variables", &self.variables).finish_non_exhaustive()
    }
}

/// A kernel of a parsed module. Cloning is cheap.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) inner: Arc<Inner>,
    /// The architecture that it runs on: `80` is `sm_80`.
    pub(crate) architecture: u32,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: usize,
    /// The block shapes that it may be launched with.
    pub(crate) bounds: Bounds,
    /// Its index among the module's entries.
    pub(crate) entry: usize,
    /// The module.
    pub(crate) source: Arc<Source>,
    /// The lowered code, once it is needed: a module may have many kernels and run few of them.
    pub(crate) lowered: OnceLock<Lowered>,
    /// The code with fused products and sums, once it is needed.
    contracted: OnceLock<Lowered>,
    /// The same kernel for the shapes of clusters that launches have given.
    clustered: Mutex<BTreeMap<[u64; 3], Arc<Inner>>>,
}

impl Inner {
    /// The lowered code; lowers it on the first call.
    pub(crate) fn lowered(&self) -> &Lowered {
        self.lowered.get_or_init(|| self.lower(false))
    }

    fn lower(&self, contracts: bool) -> Lowered {
        let Tree { module, symbols } = self.source.parsed.borrow_dependent();
        lower(module, symbols, &self.source.listing, (self.entry, &self.bounds), &self.params, contracts)
    }

    /// The code with fused products and sums, or the reason why it cannot run.
    pub(crate) fn contracted(&self) -> &Result<Code> {
        &self.contracted.get_or_init(|| self.lower(true)).code
    }

    /// The same kernel, not yet lowered, for launches in clusters of this shape.
    fn in_clusters(&self, shape: [u64; 3]) -> Self {
        Self {
            name: self.name.clone(),
            params: self.params.clone(),
            param_bytes: self.param_bytes,
            bounds: Bounds { cluster: Some(shape), ..self.bounds },
            entry: self.entry,
            source: Arc::clone(&self.source),
            lowered: OnceLock::new(),
            contracted: OnceLock::new(),
            clustered: Mutex::default(),
        }
    }

    /// Its code, or the reason why it cannot run.
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

    /// Bytes of parameters that a launch passes: up to the end of the last parameter.
    pub fn param_bytes(&self) -> usize {
        self.inner.param_bytes
    }

    /// Describes a parameter: `argument 0 of 4, counted from 0 (8 bytes) of kernel "k"`. The names
    /// that compilers make up say no more.
    #[doc(hidden)]
    pub fn argument(&self, number: usize) -> String {
        let (name, count) = (self.name(), self.params().len());
        let Some(param) = self.params().get(number) else {
            return format!("argument {number} of {count}, counted from 0");
        };
        let is_made_up = param.name.strip_prefix(name).is_some_and(|rest| rest.starts_with("_param_"));
        let own = if is_made_up { String::new() } else { format!(", {:?}", param.name) };
        format!(
            "argument {number} of {count}, counted from 0 ({}){own} of kernel {name:?}",
            counted(param.size, "byte")
        )
    }

    /// Returns whether it may read bytes of a parameter from byte `begin` on.
    pub(crate) fn may_read(&self, param: &Param, begin: usize) -> bool {
        let entry = &self.inner.source.tree().entries[self.inner.entry];
        ast::may_read(&entry.body, &param.name, begin)
    }

    /// Bytes of static shared memory; 0 if the kernel cannot run.
    pub fn shared_bytes(&self) -> u32 {
        self.inner.code().as_ref().map_or(0, |code| code.shared_bytes)
    }

    /// Bytes of local memory that it declares for a thread; 0 if the kernel cannot run.
    #[doc(hidden)]
    pub fn local_bytes(&self) -> u32 {
        self.inner.code().as_ref().map_or(0, |code| code.local_bytes)
    }

    /// Bytes of all constant variables of its module.
    #[doc(hidden)]
    pub fn constant_bytes(&self) -> u64 {
        let variables = self.inner.source.variables.list.iter();
        variables.filter(|variable| variable.constant).fold(0, |bytes, variable| bytes.saturating_add(variable.bytes))
    }

    /// Returns the most threads of a block that its PTX allows, if the PTX limits them.
    #[doc(hidden)]
    pub fn max_threads(&self) -> Option<u64> {
        let Bounds { max_threads, required, .. } = self.inner.bounds;
        let required = required.map(|extents| extents.iter().fold(1_u64, |a, b| a.saturating_mul(*b)));
        max_threads.into_iter().chain(required).min()
    }

    /// Returns the shape of its clusters in blocks, if its PTX gives one.
    #[doc(hidden)]
    pub fn cluster(&self) -> Option<[u64; 3]> {
        self.inner.bounds.cluster
    }

    /// The architecture on which it runs: `80` is `sm_80`.
    #[doc(hidden)]
    pub fn architecture(&self) -> u32 {
        self.architecture
    }

    /// Returns the same kernel on a GPU of another architecture than that of its `.target`; `80` is
    /// `sm_80`. The architecture determines how much shared memory a block may have.
    #[must_use]
    pub fn on_architecture(&self, architecture: u32) -> Self {
        Self { architecture, ..self.clone() }
    }

    /// Returns whether the PTX asks for launches in clusters, by `.explicitcluster`. A launch gives
    /// their shape, unless the PTX does.
    #[doc(hidden)]
    pub fn asks_for_clusters(&self) -> bool {
        self.inner.bounds.has_clusters
    }

    /// The most blocks of a cluster, if the PTX limits them.
    #[doc(hidden)]
    pub fn max_cluster(&self) -> Option<u64> {
        self.inner.bounds.max_cluster
    }

    /// Returns the same kernel for launches in clusters of this shape in blocks.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the PTX gives another shape, or if a GPU has no such clusters.
    pub fn in_clusters(&self, shape: [u32; 3]) -> Result<Self> {
        let refused = |why: String| {
            let context = format!("kernel {:?} cannot run in clusters of {shape:?} blocks: {why}", self.name());
            Error::new(ErrorKind::InvalidArgument, context)
        };
        let wanted = shape.map(u64::from);
        match self.inner.bounds.cluster {
            Some(own) if own == wanted => return Ok(self.clone()),
            Some(own) => return Err(refused(format!("it was compiled for those of {own:?}; use that shape"))),
            None => check_cluster(wanted).map_err(refused)?,
        }
        if let Some(most) = self.inner.bounds.max_cluster
            && wanted.iter().product::<u64>() > most
        {
            return Err(refused(format!("its `.maxclusterrank` is {most}; use smaller clusters")));
        }
        let mut known = self.inner.clustered.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = known.entry(wanted).or_insert_with(|| Arc::new(self.inner.in_clusters(wanted)));
        Ok(Self { inner: Arc::clone(inner), ..*self })
    }

    /// Returns the most bytes of shared memory that a block of it may have, static and dynamic
    /// together, on its architecture.
    pub fn shared_limit(&self) -> u32 {
        shared_limit(self.architecture)
    }

    /// Returns the bytes of dynamic shared memory that a program must allow for this kernel with
    /// `cuFuncSetAttribute` before a launch of this shape on a GPU; `None` if the launch needs no
    /// permission.
    pub fn shared_to_allow(&self, shape: &LaunchShape) -> Option<u32> {
        let code = self.inner.code().as_ref().ok()?;
        let bytes = u64::from(code.dynamic_base()) + u64::from(shape.dynamic_shared);
        (bytes > u64::from(MAX_SHARED_BYTES)).then_some(shape.dynamic_shared)
    }

    /// The file that it was compiled from, as the PTX names it: that of its first line. `None` if
    /// the PTX has no lines for it.
    pub fn source_file(&self) -> Option<&str> {
        let source = &self.inner.source;
        let (file, _) = ast::first_location(&source.tree().entries[self.inner.entry].body)?;
        source.listing.files.get(&file).map(String::as_str)
    }

    /// Checks whether it can run.
    ///
    /// # Errors
    ///
    /// `UnsupportedPtx` with the first unsupported instruction and its line.
    pub fn supported(&self) -> Result<()> {
        self.inner.code().as_ref().map(|_| ()).map_err(Clone::clone)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).field("params", &self.params()).finish_non_exhaustive()
    }
}

/// Makes the kernel of entry `number`.
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
    let (param_bytes, bounds) = (addressable(end), entry.bounds);
    let (lowered, contracted) = (OnceLock::new(), OnceLock::new());
    let architecture = source.tree().architecture;
    let clustered = Mutex::default();
    let inner = Inner { name, params, param_bytes, bounds, entry: number, source, lowered, contracted, clustered };
    Kernel { inner: Arc::new(inner), architecture }
}
