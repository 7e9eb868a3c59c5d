//! `ldmatrix` and `stmatrix`: a warp loads or stores one, two or four matrices of 8 rows of 16
//! bytes in shared memory. `movmatrix` transposes one in registers.
//!
//! Lane 8 * m + r has the address of row r of matrix m. Each lane has 4 bytes of each matrix. The
//! bytes of a matrix are those of an access of 4 bytes by 32 lanes, and cost the same.

use super::memory::{self, Action, Addresses, Load};
use super::warp::Warp;
use super::{Context, Flow, Issue, NEXT, Result, observe};
use crate::gpu::code::{Access, Ins};
use crate::gpu::mem::cells::Cells;
use crate::gpu::vocabulary::{AccessKind, LANES, Space, each, lanes_of, lanes_where};

/// Rows of a matrix, and 16-bit elements of a row.
const ROWS: usize = 8;

/// Lane l receives elements 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4.
pub(super) fn load(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    matrices(cx, warp, issue, false)
}

/// Lane l receives element l / 4 of rows 2 * (l % 4) and 2 * (l % 4) + 1.
pub(super) fn load_transposed(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    matrices(cx, warp, issue, true)
}

/// The 4 bytes of the matrix that each lane touches.
fn words(rows: &[u64; ROWS]) -> Addresses {
    each(|lane| rows[lane / 4] + 4 * (lane % 4) as u64)
}

/// The rows of the matrices that an instruction accesses, and the lanes whose rows are permitted.
fn rows(cx: &mut Context, warp: &mut Warp, issue: Issue, kind: AccessKind) -> Result<(Addresses, u32)> {
    observe::execution(cx, warp, issue);
    let Issue { ins, mask } = issue;
    if let Some(checker) = &mut cx.checker {
        checker.aligned(cx.warp, warp.pc - 1, mask, warp.expected_with(mask));
    }
    let named = mask & (u32::MAX >> (LANES - ROWS * usize::from(ins.access.count)));
    let mut rows = memory::addresses(warp, Issue { ins, mask: named });
    let whole = Ins { s: [ins.s[0]; 4], access: Access { width: 4, count: 4, ..ins.access }, ..*ins };
    let space = (Space::Shared, cx.shared.bytes);
    let all = Issue { ins: &whole, mask: named };
    let permitted = match named {
        0 => 0,
        _ => memory::within(cx, warp, all, &mut rows, kind, space)?.map_or(0, |issue| issue.mask),
    };
    Ok((rows, permitted))
}

/// The instruction for one of its matrices alone.
fn single(ins: &Ins, matrix: usize) -> Ins {
    Ins { s: [ins.s[matrix]; 4], access: Access { width: 4, count: 1, ..ins.access }, ..*ins }
}

/// Loads each matrix. A lane gets 0 where one of the rows that it receives has no address: its lane
/// does not take part, or memcheck forbids the access.
fn matrices(cx: &mut Context, warp: &mut Warp, issue: Issue, transposed: bool) -> Flow {
    let Issue { ins, mask } = issue;
    let count = usize::from(ins.access.count);
    let (rows, permitted) = rows(cx, warp, issue, AccessKind::Load)?;
    for matrix in 0..count {
        let single = single(ins, matrix);
        let single = Issue { ins: &single, mask };
        let rows = &std::array::from_fn(|row| rows[ROWS * matrix + row]);
        match (permitted, transposed) {
            (0, _) => NEXT,
            (_, false) => memory::shared(cx, warp, single, words(rows), Load),
            (_, true) => memory::shared(cx, warp, single, words(rows), Columns { rows }),
        }?;
        let of = |lane: usize| if transposed { [2 * (lane % 4), 2 * (lane % 4) + 1] } else { [lane / 4; 2] };
        let lacks = |lane: usize| of(lane).into_iter().any(|row| permitted >> (ROWS * matrix + row) & 1 == 0);
        warp.registers.write32(ins.s[matrix], &[0; LANES], lanes_where(mask, lacks));
    }
    // Nsight Compute has an instruction of another name for it.
    cx.tallies[ins.site as usize].counted.shared.instructions -= if permitted == 0 { 0 } else { count as u64 };
    NEXT
}

/// Lane l has elements 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4.
pub(super) fn store(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    stored(cx, warp, issue, false)
}

/// Lane l has element l / 4 of rows 2 * (l % 4) and 2 * (l % 4) + 1.
pub(super) fn store_transposed(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    stored(cx, warp, issue, true)
}

/// Stores each matrix, but for rows without an address.
fn stored(cx: &mut Context, warp: &mut Warp, issue: Issue, transposed: bool) -> Flow {
    let Issue { ins, mask } = issue;
    let count = usize::from(ins.access.count);
    let (rows, permitted) = rows(cx, warp, issue, AccessKind::Store)?;
    for matrix in 0..count {
        let rows: &[u64; ROWS] = &std::array::from_fn(|row| rows[ROWS * matrix + row]);
        let row = warp.registers.b32[usize::from(ins.s[matrix])];
        let row = if transposed { transposed_halves(&row) } else { row };
        let has_row = |lane: usize| permitted >> (ROWS * matrix + lane / 4) & 1 == 1;
        let mask = lanes_where(mask, has_row);
        if mask != 0 {
            let single = single(ins, matrix);
            let issue = Issue { ins: &single, mask };
            memory::shared(cx, warp, issue, words(rows), Words { words: &row })?;
        }
    }
    cx.tallies[ins.site as usize].counted.shared.instructions -= if permitted == 0 { 0 } else { count as u64 };
    NEXT
}

/// `movmatrix`: transposes a matrix that lies in a register.
pub(super) fn transpose(cx: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    if let Some(checker) = &mut cx.checker {
        checker.aligned(cx.warp, warp.pc - 1, mask, warp.expected_with(mask));
    }
    let row = transposed_halves(&warp.registers.b32[usize::from(ins.s[0])]);
    warp.registers.write32(ins.d, &row, mask);
    NEXT
}

/// The words of a transposed matrix, of which each lane has two elements of a row.
pub(super) fn transposed_halves(words: &[u32; LANES]) -> [u32; LANES] {
    let element = |row: usize, column: usize| words[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
    each(|lane| {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        element(column, row) | element(column + 1, row) << 16
    })
}

/// Stores a word of each lane.
#[derive(Clone, Copy)]
struct Words<'a> {
    words: &'a [u32; LANES],
}

impl Action for Words<'_> {
    fn act<C: Cells>(self, cells: &C, _: &mut Warp, Issue { mask, .. }: Issue, offsets: &Addresses) {
        for lane in lanes_of(mask) {
            cells.store32(offsets[lane], self.words[lane]);
        }
    }
}

/// Loads columns of a matrix instead of rows.
#[derive(Clone, Copy)]
struct Columns<'a> {
    rows: &'a [u64; ROWS],
}

impl Action for Columns<'_> {
    fn act<C: Cells>(self, cells: &C, warp: &mut Warp, Issue { ins, mask }: Issue, _: &Addresses) {
        let element = |row: usize, column: usize| u32::from(cells.load16(self.rows[row] + 2 * column as u64));
        let pair = |lane: usize| {
            let (row, column) = (2 * (lane % 4), lane / 4);
            element(row, column) | element(row + 1, column) << 16
        };
        warp.registers.write32(ins.s[0], &each(pair), mask);
    }
}
