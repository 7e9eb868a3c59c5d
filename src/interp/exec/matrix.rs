//! `ldmatrix`: a warp loads one, two or four matrices of 8 rows of 16 bytes from shared memory.
//!
//! Lane 8 * m + r has the address of row r of matrix m. Each lane receives 4 bytes of each matrix.
//! The bytes of a matrix are those of a load of 4 bytes by 32 lanes, and cost the same.

use super::lanes::each;
use super::memory::{self, Action, Addresses, Load};
use super::warp::Warp;
use super::{Context, Flow, observe};
use crate::interp::code::{Access, Ins};
use crate::interp::mem::cells::Cells;
use crate::interp::vocabulary::{AccessKind, LANES};

/// Rows of a matrix, and 16-bit elements of a row.
const ROWS: usize = 8;

/// Lane l receives elements 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4.
pub(super) fn load(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    each_matrix(cx, warp, ins, mask, |cx, warp, ins, rows| memory::shared(cx, warp, ins, mask, words(rows), Load))
}

/// Lane l receives element l / 4 of rows 2 * (l % 4) and 2 * (l % 4) + 1.
pub(super) fn load_transposed(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    each_matrix(cx, warp, ins, mask, |cx, warp, ins, rows| {
        memory::shared(cx, warp, ins, mask, words(rows), Columns { rows })
    })
}

/// The 4 bytes of the matrix that each lane touches.
fn words(rows: &[u64; ROWS]) -> Addresses {
    each(|lane| rows[lane / 4] + 4 * (lane % 4) as u64)
}

/// Calls `load` with each matrix's instruction and rows.
fn each_matrix(
    cx: &mut Context,
    warp: &mut Warp,
    ins: &Ins,
    mask: u32,
    load: impl Fn(&mut Context, &mut Warp, &Ins, &[u64; ROWS]) -> Flow,
) -> Flow {
    observe::execution(cx, warp, ins, mask);
    let count = usize::from(ins.access.count);
    let named = mask & (u32::MAX >> (LANES - ROWS * count));
    let mut rows = memory::addresses(warp, ins, named);
    let whole = Ins { s: [ins.s[0]; 4], access: Access { width: 4, count: 4, ..ins.access }, ..*ins };
    match memory::within_shared(cx, warp, &whole, named, &mut rows, AccessKind::Load) {
        Ok(0) => return Flow::Next,
        Ok(_) => {}
        Err(fault) => return Flow::Stop(fault),
    }
    for matrix in 0..count {
        let single = Ins { s: [ins.s[matrix]; 4], access: Access { width: 4, count: 1, ..ins.access }, ..*ins };
        let rows = std::array::from_fn(|row| rows[ROWS * matrix + row]);
        if let Flow::Stop(fault) = load(cx, warp, &single, &rows) {
            return Flow::Stop(fault);
        }
    }
    // It is one instruction for all its matrices.
    cx.tallies[ins.site as usize].shared.instructions -= count as u64 - 1;
    Flow::Next
}

/// Loads columns of a matrix instead of rows.
#[derive(Clone, Copy)]
struct Columns<'a> {
    rows: &'a [u64; ROWS],
}

impl Action for Columns<'_> {
    fn kind(self, _: &Context, _: &Ins) -> AccessKind {
        AccessKind::Load
    }
    fn act<C: Cells>(self, cells: &C, warp: &mut Warp, ins: &Ins, mask: u32, _: &Addresses) {
        let element = |row: usize, column: usize| u32::from(cells.load16(self.rows[row] + 2 * column as u64));
        let pair = |lane: usize| {
            let (row, column) = (2 * (lane % 4), lane / 4);
            element(row, column) | element(row + 1, column) << 16
        };
        warp.registers.write32(ins.s[0], &each(pair), mask);
    }
}
