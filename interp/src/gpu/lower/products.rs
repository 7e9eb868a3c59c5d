//! Lowers `mma`, whose operands are lists of registers.

use super::operands::operand_count;
use super::{Draft, Lowering, Result, Slot, flat};
use crate::gpu::code::{Element, Product, Sum};
use crate::gpu::isa::Op;
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind};

impl<'t> Lowering<'_, 't> {
    /// Lowers a product of matrices: the lists of registers go into a table.
    pub(super) fn product(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [result, first, second, addend] = operands else { return Err(operand_count()) };
        let mut product = shape(opcode).ok_or("its shape does not go with its types")?;
        let (rows, depth) = (usize::from(product.rows), usize::from(product.depth));
        let wide = product.a == Element::F64;
        let (file, kind) = if wide { (File::B64, Kind::F64) } else { (File::B32, Kind::B32) };
        let in_registers = |elements: usize, bits: u32| elements * bits as usize / 32 / if wide { 64 } else { 32 };
        let sums = in_registers(8 * rows, product.sum.bits());
        let mut draft = Draft::new(op);
        let mut sources = |this: &mut Self, list: &Operand<'t>, count: usize| -> Result<Box<[u16]>> {
            let slots = flat(std::slice::from_ref(list)).map(|one| this.source(one, kind));
            let slots = slots.collect::<Result<Vec<Slot>>>()?;
            draft.reads.extend(&slots);
            counted(slots, count)
        };
        product.first = sources(self, first, in_registers(rows * depth, product.a.bits()))?;
        product.second = sources(self, second, in_registers(8 * depth, product.b.bits()))?;
        product.addend = sources(self, addend, sums)?;
        let slots = flat(std::slice::from_ref(result)).map(|one| self.result(one, file));
        let slots = slots.collect::<Result<Vec<Slot>>>()?;
        draft.writes.extend(&slots);
        product.result = counted(slots, sums)?;
        draft.imm = self.code.products.len() as i32;
        self.code.products.push([product].into());
        Ok(draft)
    }
}

fn counted(slots: Vec<Slot>, count: usize) -> Result<Box<[u16]>> {
    if slots.len() == count { Ok(slots.into_iter().map(|slot| slot.1).collect()) } else { Err(operand_count()) }
}

/// Reads the shape and the types of an opcode.
fn shape(opcode: &str) -> Option<Product> {
    let parts: Vec<&str> = opcode.split('.').collect();
    let (rows, depth) = parts[3].strip_prefix('m')?.split_once("n8k")?;
    let types: Vec<&str> = parts[6..].iter().copied().filter(|part| *part != "satfinite" && *part != "rn").collect();
    let [_, a, b, sum, ..] = *types else { return None };
    Some(Product {
        rows: rows.parse().ok()?,
        depth: depth.parse().ok()?,
        a: Element::of(a)?,
        b: Element::of(b)?,
        sum: Sum::of(sum),
        saturates: parts.contains(&"satfinite"),
        differs: parts.contains(&"xor"),
        first: Box::default(),
        second: Box::default(),
        addend: Box::default(),
        result: Box::default(),
    })
}
