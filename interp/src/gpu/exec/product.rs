//! `mma`: a warp multiplies two small matrices and adds a third.
//!
//! The elements of each matrix lie in registers of all lanes: "Matrix Fragments for mma" in the PTX
//! ISA has a picture of each shape, and `Product` has the one rule behind them. A lane that does
//! not take part gets no result; the instruction is undefined then, and synccheck reports it.

use super::registers::Registers;
use super::warp::Warp;
use super::{Context, Flow, Issue, NEXT};
use crate::gpu::code::{Element, Product, Sum};
use crate::gpu::semantics::native;
use crate::gpu::semantics::tensor::{self, Part, Small};
use crate::gpu::vocabulary::{LANES, OperandType};

/// Columns of the second matrix and of the sum.
const COLUMNS: usize = 8;

/// Executes the products that the instruction names.
pub(super) fn multiply(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    if let Some(checker) = &mut cx.checker {
        checker.aligned(cx.warp, warp.pc - 1, issue.mask, warp.expected_with(issue.mask));
    }
    let products = &cx.code.products[issue.ins.imm as usize];
    // A register of a result may be one of another product's matrices.
    let sums: Vec<_> = products.iter().map(|product| product.sums(&warp.registers)).collect();
    for (product, sums) in products.iter().zip(&sums) {
        scatter(product, &mut warp.registers, sums, issue.mask);
    }
    NEXT
}

impl Product {
    /// The bits of the sum, by rows.
    fn sums(&self, registers: &Registers) -> Vec<[u64; COLUMNS]> {
        match self.a {
            Element::F64 => doubles(self, registers),
            Element::Bit => bits(self, registers),
            _ if self.sum == Sum::S32 => integers(self, registers),
            _ => floats(self, registers),
        }
    }

    /// The place of an element of the first matrix, by its lane, register and place in that: the
    /// row and the column. A lane's registers alternate between the two halves of 16 rows, and
    /// then go on along the row.
    fn of_first(&self, lane: usize, register: usize, element: usize, each: usize) -> (usize, usize) {
        let tall = usize::from(self.rows == 16);
        (lane / 4 + 8 * (register & tall), self.of_second(lane, register >> tall, element, each))
    }

    /// The place of an element of the second matrix, whose column is the lane's group: the row.
    fn of_second(&self, lane: usize, register: usize, element: usize, each: usize) -> usize {
        (register * 4 + lane % 4) * each + element
    }
}

/// The place of an element of the sum: the row and the column.
fn of_sum(lane: usize, element: usize) -> (usize, usize) {
    (lane / 4 + 8 * (element >> 1), lane % 4 * 2 + (element & 1))
}

/// The elements of a register, from its low bits on.
fn elements(word: u32, width: u32) -> impl Iterator<Item = u32> {
    (0..32 / width).map(move |place| (u64::from(word) >> (place * width)) as u32 & (u32::MAX >> (32 - width)))
}

/// The first matrix by rows and the second by columns, with `make` of each element's bits.
fn matrices<T: Copy>(
    product: &Product,
    registers: &Registers,
    empty: T,
    make: impl Fn(Element, u32) -> T,
) -> [Vec<Vec<T>>; 2] {
    let width = product.a.bits();
    let each = 32 / width as usize;
    let depth = usize::from(product.depth);
    let mut first = vec![vec![empty; depth]; usize::from(product.rows)];
    let mut second = vec![vec![empty; depth]; COLUMNS];
    for (number, &slot) in product.first.iter().enumerate() {
        for (lane, &word) in registers.b32[usize::from(slot)].iter().enumerate() {
            for (place, bits) in elements(word, width).enumerate() {
                let (row, column) = product.of_first(lane, number, place, each);
                first[row][column] = make(product.a, bits);
            }
        }
    }
    for (number, &slot) in product.second.iter().enumerate() {
        for (lane, &word) in registers.b32[usize::from(slot)].iter().enumerate() {
            for (place, bits) in elements(word, width).enumerate() {
                second[lane / 4][product.of_second(lane, number, place, each)] = make(product.b, bits);
            }
        }
    }
    [first, second]
}

/// The bits of the addend at each place of the sum.
fn addend(product: &Product, registers: &Registers) -> Vec<[u64; COLUMNS]> {
    let mut found = vec![[0; COLUMNS]; usize::from(product.rows)];
    for lane in 0..LANES {
        for element in 0..usize::from(product.rows) / 4 {
            let (row, column) = of_sum(lane, element);
            let slot = |number: usize| usize::from(product.addend[number]);
            found[row][column] = match product.sum {
                Sum::F64 => registers.b64[slot(element)][lane],
                Sum::F16 => u64::from(registers.b32[slot(element >> 1)][lane] >> (16 * (element & 1)) & 0xffff),
                Sum::F32 | Sum::S32 => u64::from(registers.b32[slot(element)][lane]),
            };
        }
    }
    found
}

/// Writes the sum to the registers of the lanes of `mask`.
fn scatter(product: &Product, registers: &mut Registers, sums: &[[u64; COLUMNS]], mask: u32) {
    let at = |lane: usize, element: usize| {
        let (row, column) = of_sum(lane, element);
        sums[row][column]
    };
    for (number, &slot) in product.result.iter().enumerate() {
        let file = if product.sum == Sum::F64 { f64::KIND } else { u32::KIND }.file();
        registers.set_lanes(file, slot, mask, |lane| match product.sum {
            Sum::F16 => at(lane, 2 * number) | at(lane, 2 * number + 1) << 16,
            Sum::F64 | Sum::F32 | Sum::S32 => at(lane, number),
        });
    }
}

fn integers(product: &Product, registers: &Registers) -> Vec<[u64; COLUMNS]> {
    let [first, second] = matrices(product, registers, 0, |element, bits| element.integer(bits));
    let mut sums = addend(product, registers);
    for (row, sums) in first.iter().zip(&mut sums) {
        for (column, sum) in second.iter().zip(sums) {
            let products: i64 = row.iter().zip(column).map(|(a, b)| a * b).sum();
            let exact = i64::from(*sum as i32) + products;
            let kept = if product.saturates { exact.clamp(i32::MIN.into(), i32::MAX.into()) } else { exact };
            *sum = u64::from(kept as u32);
        }
    }
    sums
}

/// Counts the bits that two rows of single bits have in common, or that differ.
fn bits(product: &Product, registers: &Registers) -> Vec<[u64; COLUMNS]> {
    // Words of 32 bits stand for elements.
    let words = Product { a: Element::Word, b: Element::Word, depth: product.depth / 32, ..product.clone() };
    let [first, second] = matrices(&words, registers, 0, |_, bits| bits);
    let mut sums = addend(product, registers);
    for (row, sums) in first.iter().zip(&mut sums) {
        for (column, sum) in second.iter().zip(sums) {
            let both = |(a, b): (&u32, &u32)| if product.differs { a ^ b } else { a & b }.count_ones();
            *sum = u64::from((*sum as u32).wrapping_add(row.iter().zip(column).map(both).sum()));
        }
    }
    sums
}

fn doubles(product: &Product, registers: &Registers) -> Vec<[u64; COLUMNS]> {
    let mut first = vec![vec![0.0; usize::from(product.depth)]; usize::from(product.rows)];
    let mut second = vec![vec![0.0; usize::from(product.depth)]; COLUMNS];
    let row_of = |slot: u16| registers.b64[usize::from(slot)].map(f64::from_bits);
    for lane in 0..LANES {
        for (number, &slot) in product.first.iter().enumerate() {
            let (row, column) = product.of_first(lane, number, 0, 1);
            first[row][column] = row_of(slot)[lane];
        }
        for (number, &slot) in product.second.iter().enumerate() {
            second[lane / 4][product.of_second(lane, number, 0, 1)] = row_of(slot)[lane];
        }
    }
    let mut sums = addend(product, registers);
    for (row, sums) in first.iter().zip(&mut sums) {
        for (column, sum) in second.iter().zip(sums) {
            let add = |sum: f64, (&a, &b): (&f64, &f64)| native::first_nan(a.mul_add(b, sum), [b, sum, a]);
            *sum = row.iter().zip(column).fold(f64::from_bits(*sum), add).to_bits();
        }
    }
    sums
}

fn floats(product: &Product, registers: &Registers) -> Vec<[u64; COLUMNS]> {
    let [first, second] = matrices(product, registers, Part::ZERO, |element, bits| element.float().part(bits));
    let mut sums = addend(product, registers);
    for (row, sums) in first.iter().zip(&mut sums) {
        for (column, sum) in second.iter().zip(sums) {
            let pairs = row.iter().copied().zip(column.iter().copied());
            *sum = u64::from(match (product.a.bits(), product.sum) {
                (8, _) => bytes(*sum as u32, pairs),
                (_, Sum::F16) => tensor::sum(Small::F16.part(*sum as u32), pairs).half(),
                _ => tensor::sum(Small::F32.part(*sum as u32), pairs).single(),
            });
        }
    }
    sums
}

/// Adds products of bytes as `sm_90` does, whose assembler makes of them two products of halves,
/// first of the even pairs of columns, and an addition.
fn bytes(sum: u32, pairs: impl Iterator<Item = (Part, Part)> + Clone) -> u32 {
    let part = |odd: bool| {
        let of_pair = move |(column, _): &(usize, _)| (column / 2 % 2 == 1) == odd;
        pairs.clone().enumerate().filter(of_pair).map(|(_, pair)| pair)
    };
    let even = tensor::sum(Part::ZERO, part(false)).single();
    let both = tensor::sum(Small::F32.part(even), part(true)).single();
    native::canonical32(f32::from_bits(sum) + f32::from_bits(both)).to_bits()
}

impl Element {
    /// An integer's value.
    fn integer(self, bits: u32) -> i64 {
        match self {
            Self::S8 => i64::from(bits as i8),
            Self::S4 => i64::from((bits << 28) as i32 >> 28),
            _ => i64::from(bits),
        }
    }

    fn float(self) -> Small {
        match self {
            Self::Bf16 => Small::BF16,
            Self::Tf32 => Small::TF32,
            Self::E4M3 => Small::E4M3,
            Self::E5M2 => Small::E5M2,
            _ => Small::F16,
        }
    }
}
