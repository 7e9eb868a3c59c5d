//! Lowers what concerns clusters of blocks: their shape, addresses of their shared memory, and
//! their scope.

use super::{Draft, Lowering, Result};
use crate::error::counted;
use crate::gpu::code::{Access, PresetValue};
use crate::gpu::isa::Op;
use crate::gpu::mem::space;
use crate::gpu::modifiers::Sync;
use crate::gpu::parse::ast;
use crate::gpu::vocabulary::File;

/// The most blocks of a cluster on any GPU.
const MAX_CLUSTER: u64 = 16;

impl Lowering<'_, '_> {
    /// Takes the shape of the kernel's clusters from its directives.
    pub(super) fn cluster(&mut self, bounds: &ast::Bounds) -> Result<()> {
        if let Some(directive) = bounds.foreign {
            return Err(format!(
                "it uses clusters of blocks (`{directive}`) in a way that the software GPU does not have"
            ));
        }
        let Some(shape) = bounds.cluster else { return Ok(()) };
        check_cluster(shape)?;
        self.names.cluster = Some(shape.map(|extent| extent as u8));
        Ok(())
    }

    /// Makes the address generic if the opcode says that it is one of the shared memory of the
    /// cluster.
    pub(super) fn in_cluster(&mut self, draft: Draft, opcode: &str) -> Result<Draft> {
        if !opcode.contains(".shared::cluster") {
            return Ok(draft);
        }
        let slot = match draft.access.wide_address {
            true => (File::B64, draft.d),
            false => self.before(Op::Cvt64FromU32, File::B64, &[(File::B32, draft.d)])?,
        };
        let window = self.names.constant(File::B64, PresetValue::Bits(space::SHARED))?;
        let generic = self.before(Op::AddB64, File::B64, &[slot, window])?;
        let access = Access { wide_address: true, space: None, ..draft.access };
        Ok(Draft { access, d: generic.1, reads: vec![generic], ..draft })
    }

    /// An instruction that orders memory as this opcode does.
    pub(super) fn ordering(&self, op: Op, opcode: &str) -> Draft {
        Draft { access: Access { sync: self.sync(opcode), ..Access::default() }, ..Draft::new(op) }
    }

    /// The order that an opcode makes. Where clusters have several blocks, the scope of a cluster
    /// is that of the device for racecheck, which knows no scope between them.
    pub(super) fn sync(&self, opcode: &str) -> Sync {
        match self.is_clustered() && opcode.contains(".cluster") {
            true => Sync::of(&opcode.replace(".cluster", ".gpu")),
            false => Sync::of(opcode),
        }
    }

    /// Returns whether clusters have several blocks.
    pub(super) fn is_clustered(&self) -> bool {
        self.names.cluster.is_some_and(|shape| shape != [1; 3])
    }
}

/// Refuses clusters that are larger than those of any GPU.
pub(crate) fn check_cluster(shape: [u64; 3]) -> Result<()> {
    let blocks = shape.iter().fold(1_u64, |a, b| a.saturating_mul(*b));
    if (1..=MAX_CLUSTER).contains(&blocks) {
        return Ok(());
    }
    Err(format!("clusters of {}; a GPU has clusters of 1 to {MAX_CLUSTER}", counted(blocks, "block")))
}

/// An atomic on the shared memory of a cluster, as one on generic addresses.
pub(super) fn generic_atomic(opcode: &str) -> Option<String> {
    let is_atomic = ["atom.", "red."].iter().any(|name| opcode.starts_with(name)) && !opcode.starts_with("red.async.");
    (is_atomic && opcode.contains(".shared::cluster")).then(|| opcode.replacen(".shared::cluster", "", 1))
}
