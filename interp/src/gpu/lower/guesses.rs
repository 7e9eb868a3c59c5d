//! Finds the first load of a loop around a compare-and-swap, as CUDA's guide writes `atomicAdd` of
//! doubles.
//!
//! ```text
//!     ld.global.u64 %rd1, [%rd9];                    // the guess: it may be old, or torn
//! $L: add.u64 %rd2, %rd1, 1;
//!     atom.global.cas.b64 %rd3, [%rd9], %rd1, %rd2;  // refuses a wrong guess, and gives the value
//!     setp.ne.u64 %p1, %rd3, %rd1;
//!     mov.u64 %rd1, %rd3;                            // the next guess, if it was refused
//! @%p1 bra $L;
//! ```
//!
//! PTX calls the two accesses a race, because the load is weak. It does no harm where the loop
//! tries again until a guess was right, and the guess has no use but the comparison and the new
//! value. The search looks at all uses of a register, wherever they are. It does not take a
//! register with another use for a guess.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::{Slot, Touched};
use crate::gpu::code::{Code, Ins, NEGATED};
use crate::gpu::isa::{self, Op, Shape};
use crate::gpu::vocabulary::{AccessKind, File};

/// The most uses of registers that a kernel's search looks at: far more than compiled code needs.
const MAX_STEPS: u32 = 1 << 20;
/// Each compare-and-swap, with the move and the comparisons of its width.
const SWAPS: [[Op; 4]; 3] = [
    [Op::AtomCas16, Op::MovB16, Op::EqB16, Op::NeB16],
    [Op::AtomCas32, Op::MovB32, Op::EqB32, Op::NeB32],
    [Op::AtomCas64, Op::MovB64, Op::EqB64, Op::NeB64],
];

/// Returns the pairs of a guess and its compare-and-swap, by their pcs in both orders.
pub(super) fn find(code: &Code, touched: &[Touched]) -> HashSet<[u32; 2]> {
    let forms = |ins: &Ins| SWAPS.into_iter().find(|forms| forms[0] == ins.op);
    let swaps = || code.instructions.iter().enumerate().filter_map(|(pc, ins)| Some((pc, forms(ins)?)));
    if swaps().next().is_none() {
        return HashSet::new();
    }
    let mut search =
        Search { code, touched, reads: HashMap::new(), writes: HashMap::new(), left: Cell::new(MAX_STEPS) };
    for (pc, touched) in touched.iter().enumerate().take(code.instructions.len()) {
        touched.reads.iter().for_each(|slot| search.reads.entry(*slot).or_default().push(pc));
        touched.writes.iter().for_each(|slot| search.writes.entry(*slot).or_default().push(pc));
    }
    let pairs = swaps().filter_map(|(swap, forms)| Some((search.guess(swap, forms)? as u32, swap as u32)));
    pairs.flat_map(|(load, swap)| [[load, swap], [swap, load]]).collect()
}

/// The registers that a move of some width is between.
fn file(moves: Op) -> File {
    if moves == Op::MovB64 { File::B64 } else { File::B32 }
}

struct Search<'a> {
    code: &'a Code,
    touched: &'a [Touched],
    /// The pcs that read each register, and those that write it.
    reads: HashMap<Slot, Vec<usize>>,
    writes: HashMap<Slot, Vec<usize>>,
    left: Cell<u32>,
}

impl Search<'_> {
    /// Takes a step for each use; `None` if there are too many.
    fn uses<'s>(&self, uses: &'s HashMap<Slot, Vec<usize>>, slot: Slot) -> Option<&'s [usize]> {
        let uses = uses.get(&slot).map_or(&[][..], Vec::as_slice);
        self.left.set(self.left.get().checked_sub(uses.len() as u32 + 1)?);
        Some(uses)
    }

    /// Returns the load of the guess of a compare-and-swap, if it does no harm.
    fn guess(&self, swap: usize, forms: [Op; 4]) -> Option<usize> {
        let (load, mut tainted) = self.origin(swap, forms[1])?;
        let guesses = tainted.clone();
        let ins = &self.code.instructions[swap];
        let address = (if ins.access.wide_address { File::B64 } else { File::B32 }, ins.d);
        let (mut next, mut is_loop) = (0, false);
        while let Some(&slot) = tainted.get(next) {
            next += 1;
            for &pc in self.uses(&self.reads, slot)? {
                let op = self.code.instructions[pc].op;
                if pc == swap && slot != address {
                    continue;
                }
                if forms[2..].contains(&op) && self.decides(pc, swap, op == forms[2], &guesses)? {
                    is_loop = true;
                    continue;
                }
                let Touched { writes, .. } = &self.touched[pc];
                let is_pure = matches!(isa::FORMS[op as usize].shape, Shape::Pure { .. });
                if !is_pure || writes.iter().any(|(file, _)| *file == File::Pred) {
                    return None;
                }
                let new: Vec<Slot> = writes.iter().filter(|slot| !tainted.contains(slot)).copied().collect();
                tainted.extend(new);
            }
        }
        is_loop.then_some(load)
    }

    /// Returns the one load whose value comes to the comparison of a compare-and-swap, and the
    /// registers on the way there. They have nothing else, but for what the swap itself returns.
    fn origin(&self, swap: usize, moves: Op) -> Option<(usize, Vec<Slot>)> {
        let Ins { s, .. } = self.code.instructions[swap];
        let file = file(moves);
        let (result, mut guesses) = ((file, s[0]), vec![(file, s[1])]);
        let (mut next, mut load) = (0, None);
        while let Some(&slot) = guesses.get(next) {
            next += 1;
            let writes = self.uses(&self.writes, slot)?;
            if writes.is_empty() {
                return None;
            }
            for &pc in writes {
                let ins = &self.code.instructions[pc];
                let source = (file, ins.s[0]);
                if ins.op != moves {
                    if !self.is_weak_load(pc, swap, file) || load.replace(pc).is_some() {
                        return None;
                    }
                } else if source != result && !guesses.contains(&source) {
                    guesses.push(source);
                }
            }
        }
        Some((load?, guesses))
    }

    fn is_weak_load(&self, pc: usize, swap: usize, file: File) -> bool {
        let [load, swapped] = [pc, swap].map(|pc| &self.code.instructions[pc]);
        let site = self.code.sites.get(load.site as usize).filter(|site| site.pc as usize == pc);
        let (read, swapped) = (load.access, swapped.access);
        site.is_some_and(|site| site.kind == AccessKind::Load)
            && pc < swap
            && (read.count, read.width, read.wide) == (1, swapped.width, file == File::B64)
            && !read.sync.is_strong()
    }

    /// Returns whether a comparison holds a guess to the value that the swap returns, and decides
    /// nothing but whether a loop around the swap tries again.
    fn decides(&self, compare: usize, swap: usize, is_equal: bool, guesses: &[Slot]) -> Option<bool> {
        let [compared, swapped] = [compare, swap].map(|pc| &self.code.instructions[pc]);
        let (file, _) = guesses[0];
        let result = (file, swapped.s[0]);
        let sides = [compared.s[0], compared.s[1]].map(|register| (file, register));
        let is_between = sides.contains(&result) && sides.iter().any(|side| guesses.contains(side));
        let decision = (File::Pred, compared.d);
        let negated = if is_equal { NEGATED } else { 0 };
        let tries_again = |&pc: &usize| {
            let ins = &self.code.instructions[pc];
            ins.op == Op::Bra && ins.guard == compared.d | negated && ins.imm as usize <= swap && pc > swap
        };
        let is_own = self.uses(&self.writes, result)? == [swap] && self.uses(&self.writes, decision)? == [compare];
        let read = self.uses(&self.reads, decision)?;
        Some(is_between && is_own && !read.is_empty() && read.iter().all(tries_again))
    }
}
