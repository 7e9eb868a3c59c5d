//! Lowers `wmma`: loads and stores of fragments, and their products.
//!
//! PTX leaves open which elements of a matrix each register has. Here, as on a GPU, they are those
//! of `mma`: a product of fragments becomes one or two products of `mma`, each of 16 rows and 8
//! columns. For 8 rows and 32 columns, the transposed matrices are multiplied in the other order.

use super::operands::{operand_count, space};
use super::{Draft, Lowering, Result, Slot, flat};
use crate::gpu::code::{Access, Element, Fragment, Product, Sum, registers_of_tile};
use crate::gpu::isa::Op;
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind};

/// The registers of a fragment of halves. It has more of them than elements need, which then have
/// copies.
const REGISTERS_OF_HALVES: usize = 8;

/// The matrices of a product by their part in `mma`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    First,
    Second,
    Sum,
}

/// The products of `mma` that make up one of `wmma`.
struct Split {
    /// Columns of the first matrix.
    depth: u16,
    /// Rows of a product: 8 or 16.
    rows: u8,
    /// The products.
    parts: usize,
    /// True if each product has other rows, and not other columns.
    by_rows: bool,
    /// True if the matrices are transposed.
    flipped: bool,
}

impl Split {
    /// Reads the shape of an opcode.
    fn of(opcode: &str) -> Option<Self> {
        let (depth, rows, parts, by_rows, flipped) = opcode.split('.').find_map(|part| match part {
            "m16n16k16" => Some((16, 16, 2, false, false)),
            "m16n16k8" => Some((8, 16, 2, false, false)),
            "m32n8k16" => Some((16, 16, 2, true, false)),
            "m8n32k16" => Some((16, 16, 2, true, true)),
            "m8n8k4" => Some((4, 8, 1, true, false)),
            _ => None,
        })?;
        Some(Self { depth, rows, parts, by_rows, flipped })
    }

    fn role(&self, matrix: &str) -> Role {
        match (matrix, self.flipped) {
            ("a", false) | ("b", true) => Role::First,
            ("a", true) | ("b", false) => Role::Second,
            _ => Role::Sum,
        }
    }

    /// The tiles of a matrix in the order of its registers: their place down in numbers of 8 rows,
    /// for the second matrix columns, and their place along those.
    fn tiles(&self, role: Role, side_by_side: u8) -> Vec<(u8, u8)> {
        let (halves, parts) = (self.rows / 8, self.parts as u8);
        let deep = (self.depth / (4 * u16::from(side_by_side))) as u8;
        let [down, right] = if self.by_rows { [parts, 1] } else { [1, parts] };
        let mut tiles = Vec::new();
        match role {
            Role::First => {
                for part in 0..down {
                    tiles.extend((0..deep).flat_map(|at| (0..halves).map(move |half| (half + halves * part, at))));
                }
            }
            Role::Second => tiles.extend((0..right).flat_map(|part| (0..deep).map(move |at| (part, at)))),
            Role::Sum => {
                for part in 0..parts {
                    let (below, beside) = if self.by_rows { (part, 0) } else { (0, part) };
                    tiles.extend((0..halves).map(|half| (half + halves * below, beside)));
                }
            }
        }
        tiles
    }
}

/// The bytes of an element, and the elements of a tile that a lane has side by side.
fn elements(role: Role, kind: &str) -> Option<(u8, u8)> {
    let bytes = match kind {
        "u8" | "s8" => 1,
        "f16" | "bf16" => 2,
        "tf32" | "f32" | "s32" => 4,
        "f64" => 8,
        _ => return None,
    };
    Some((bytes, if role == Role::Sum { 2 } else { 4_u8.div_ceil(bytes) }))
}

impl<'t> Lowering<'_, 't> {
    /// Lowers `wmma.load` and `wmma.store`.
    pub(super) fn fragment(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let parts: Vec<&str> = opcode.split('.').collect();
        let (load, matrix, kind) = (parts[1] == "load", parts[2], parts[parts.len() - 1]);
        let (registers, address, stride) = match operands {
            [registers, address, stride @ ..] if load => (registers, address, stride),
            [address, registers, stride @ ..] => (registers, address, stride),
            _ => return Err(operand_count()),
        };
        let unknown = || "its shape does not go with its types".to_owned();
        let split = Split::of(opcode).ok_or_else(unknown)?;
        let role = split.role(matrix);
        let (bytes, side_by_side) = elements(role, kind).ok_or_else(unknown)?;
        let tiles = split.tiles(role, side_by_side);
        let by_rows = parts.contains(&"row");
        let along = match role {
            Role::Sum => by_rows != split.flipped,
            Role::First | Role::Second => by_rows == (matrix == "a"),
        };
        let width = if along || bytes == 2 { bytes.max(4) } else { bytes };
        let access = Access { width, count: 1, space: space(opcode), ..Access::default() };
        let mut draft = self.addressed_as(op, address, access)?;
        let stride = match stride {
            [] => {
                let elements = default_stride(opcode, matrix, by_rows).ok_or_else(unknown)?;
                self.source(&Operand::Integer(elements), Kind::B32)?
            }
            [stride] => self.source(stride, Kind::B32)?,
            _ => return Err(operand_count()),
        };
        draft.read(0, stride);
        let needed = tiles.len() * registers_of_tile(bytes, side_by_side);
        let halves = kind == "f16" && role != Role::Sum;
        let slots = self.registers_of_fragment(registers, bytes == 8, load)?;
        if slots.len() != if halves { REGISTERS_OF_HALVES } else { needed } {
            return Err(operand_count());
        }
        if load {
            draft.writes.extend(&slots);
        } else {
            draft.reads.extend(&slots);
        }
        let slots = slots.into_iter().map(|slot| slot.1).collect();
        let (offset, tiles) = (std::mem::take(&mut draft.imm), tiles.into());
        draft.imm = self.code.fragments.len() as i32;
        self.code.fragments.push(Fragment { slots, tiles, offset, bytes, side_by_side, along });
        Ok(draft)
    }

    /// Lowers `wmma.mma`.
    pub(super) fn product_of_fragments(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [result, a, b, addend] = operands else { return Err(operand_count()) };
        let unknown = || "its shape does not go with its types".to_owned();
        let split = Split::of(opcode).ok_or_else(unknown)?;
        let types: Vec<&str> = opcode.split('.').skip(7).filter(|part| *part != "satfinite" && *part != "rn").collect();
        let (sum, [of_a, of_b]) = match *types {
            [sum, of_a, of_b, _] => (sum, [of_a, of_b]),
            [sum, _] => (sum, ["f16"; 2]),
            _ => return Err(unknown()),
        };
        let ([first, second], [of_first, of_second]) =
            if split.flipped { ([b, a], [of_b, of_a]) } else { ([a, b], [of_a, of_b]) };
        let wide = sum == "f64";
        let mut draft = Draft::new(op);
        let mut lists = Vec::new();
        for (list, role, kind, writes) in [
            (first, Role::First, of_first, false),
            (second, Role::Second, of_second, false),
            (addend, Role::Sum, sum, false),
            (result, Role::Sum, sum, true),
        ] {
            let (bytes, side_by_side) = elements(role, kind).ok_or_else(unknown)?;
            let needed = split.tiles(role, side_by_side).len() * registers_of_tile(bytes, side_by_side);
            let mut slots = self.registers_of_fragment(list, wide, writes)?;
            if writes { &mut draft.writes } else { &mut draft.reads }.extend(&slots);
            if slots.len() != if kind == "f16" && role != Role::Sum { REGISTERS_OF_HALVES } else { needed } {
                return Err(operand_count());
            }
            slots.truncate(needed);
            lists.push(slots.into_iter().map(|slot| slot.1).collect::<Vec<u16>>());
        }
        let part = |list: &[u16], is_split: bool, part: usize| -> Box<[u16]> {
            let each = if is_split { list.len() / split.parts } else { list.len() };
            list[if is_split { part * each } else { 0 }..][..each].into()
        };
        let product = |number: usize| {
            Some(Product {
                rows: split.rows,
                depth: split.depth,
                a: Element::of(of_first)?,
                b: Element::of(of_second)?,
                sum: Sum::of(sum),
                saturates: opcode.contains(".satfinite"),
                differs: false,
                first: part(&lists[0], split.by_rows, number),
                second: part(&lists[1], !split.by_rows, number),
                addend: part(&lists[2], true, number),
                result: part(&lists[3], true, number),
            })
        };
        let products = (0..split.parts).map(product).collect::<Option<Box<[Product]>>>().ok_or_else(unknown)?;
        draft.imm = self.code.products.len() as i32;
        self.code.products.push(products);
        Ok(draft)
    }

    fn registers_of_fragment(&mut self, list: &Operand<'t>, wide: bool, writes: bool) -> Result<Vec<Slot>> {
        let (file, kind) = if wide { (File::B64, Kind::F64) } else { (File::B32, Kind::B32) };
        let one = |one| if writes { self.result(one, file) } else { self.source(one, kind) };
        flat(std::slice::from_ref(list)).map(one).collect()
    }
}

/// The elements from one row or column of a matrix to the next, where the matrix has no others.
fn default_stride(opcode: &str, matrix: &str, by_rows: bool) -> Option<u64> {
    let shape = opcode.split('.').find(|part| part.starts_with('m') && part.contains('n') && part.contains('k'))?;
    let (m, rest) = shape.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let (rows, columns) = match matrix {
        "a" => (m, k),
        "b" => (k, n),
        _ => (m, n),
    };
    if by_rows { columns } else { rows }.parse().ok()
}
