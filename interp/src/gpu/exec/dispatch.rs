//! Maps an instruction's number to its function: the table of `isa`, compiled twice.
//!
//! The crate is built for any x86-64 processor, on which an operation on 32 lanes takes 8 vector
//! instructions; with AVX2 it takes 4, and more such instructions exist. All code that touches
//! lanes is therefore compiled for both, and a launch chooses once, when it begins. The call into
//! the AVX2 copy is unsafe code, as is `mem/host.rs` and no other file of the software GPU.

use super::warp::Warp;
use super::{Context, Result};

/// The work after which another warp of the block has its turn, because this warp may wait for that
/// warp's stores.
const TURN: u64 = 1 << 16;

/// The copy that runs. A value of this type proves that the processor has the features which that
/// copy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Engine(Copy);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copy {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Engine {
    /// The copy that every processor can run.
    #[cfg(test)]
    pub(super) const BASELINE: Engine = Engine(Copy::Baseline);

    /// The best copy that this processor can run.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            return Self(Copy::Avx2);
        }
        Self(Copy::Baseline)
    }

    /// Runs a warp until it waits, ends, or has used up its turn.
    #[allow(unsafe_code)]
    pub(super) fn run(self, cx: &mut Context, warp: &mut Warp) -> Result<()> {
        match self.0 {
            Copy::Baseline => baseline::run(cx, warp),
            // SAFETY: Only `detect` makes this value, and only if the processor has the features
            // named here.
            #[cfg(target_arch = "x86_64")]
            Copy::Avx2 => unsafe { avx2::run(cx, warp) },
        }
    }
}

/// Applies the function of a table line, according to the kind of its operands.
macro_rules! execute {
    ($cx:ident $warp:ident $issue:ident [Atomic $a:ty] = $run:expr) => {
        atomic::apply::<$a>($cx, $warp, $issue, |old, b, _| $run(old, b))
    };
    ($cx:ident $warp:ident $issue:ident [Atomic $a:ty, $b:ty] = $run:expr) => {
        atomic::apply::<$a>($cx, $warp, $issue, $run)
    };
    ($cx:ident $warp:ident $issue:ident [$shape:ident $type:ty] = $run:expr) => {
        exchange::run::<$type>($cx, $warp, $issue, $run)
    };
    ($cx:ident $warp:ident $issue:ident [ReadB32] = $run:expr) => { control::read::<u32>($warp, $issue, $run) };
    ($cx:ident $warp:ident $issue:ident [ReadB64] = $run:expr) => { control::read::<u64>($warp, $issue, $run) };
    ($cx:ident $warp:ident $issue:ident [$shape:ident] = $run:expr) => { $run($cx, $warp, $issue) };
    ($cx:ident $warp:ident $issue:ident {$($pred:ident),*} = $run:expr) => {{
        predicates(&mut $warp.registers, $issue, $run);
        NEXT
    }};
    ($cx:ident $warp:ident $issue:ident ($($source:ty),*) -> $result:ty = $run:expr) => {{
        execute!(@map $($source),*; $result)(&mut $warp.registers, $issue, $run);
        NEXT
    }};
    (@map $a:ty; $r:ty) => { map1::<$a, $r, _> };
    (@map $a:ty, $b:ty; $r:ty) => { map2::<$a, $b, $r, _> };
    (@map $a:ty, $b:ty, $c:ty; $r:ty) => { map3::<$a, $b, $c, $r, _> };
    (@map $a:ty, $b:ty, $c:ty, $d:ty; $r:ty) => { map4::<$a, $b, $c, $d, $r, _> };
}

/// One copy: a function for each line of the table, and the loop that calls them. `$attribute`
/// names the processor features.
macro_rules! engine {
    ($attribute:tt $($(#[doc = $section:literal])? $op:ident $spelling:literal $operands:tt $(-> $result:ty)? = $run:expr;)*) => {
        use super::TURN;
        use crate::gpu::code::NEGATED;
        use crate::gpu::exec::lanes::{map1, map2, map3, map4, predicates};
        use crate::gpu::exec::warp::Warp;
        use crate::gpu::exec::{Break, Context, Fault, Flow, Issue, NEXT, Result};
        use crate::gpu::exec::{arrivals, atomic, barrier, bulk, call, control, copies, exchange, fragment, matrix, memory, peers, product};
        use crate::gpu::isa::Op;
        use crate::gpu::mem::space;
        use crate::gpu::modifiers::Modifiers;
        use crate::gpu::reason::Reason;
        use crate::gpu::semantics::arrivals::{has_left, initial, pending};
        use crate::gpu::semantics::bytes::Byte;
        use crate::gpu::semantics::{approx, compare, convert, float, integer, native, packed};

        $(
            // A call costs nothing measurable, while one function with hundreds of others inlined
            // would take most of the build time.
            #[inline(never)]
            #$attribute
            #[allow(non_snake_case, unused_variables)]
            fn $op(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
                execute!(cx warp issue $operands $(-> $result)? = $run)
            }
        )*

        #$attribute
        pub(super) fn run(cx: &mut Context, warp: &mut Warp) -> Result<()> {
            let code = cx.code;
            let end = warp.work.saturating_add(cx.left);
            let pause = end.min(warp.work.saturating_add(TURN));
            loop {
                // A path may continue at the point where the enclosing paths also meet.
                while warp.pc == warp.stop && warp.arrive() {}
                let ins = &code.instructions[warp.pc as usize];
                warp.pc += 1;
                if warp.work >= pause {
                    if warp.work >= end {
                        return Err(Fault::new(warp.mask.trailing_zeros(), Reason::WorkLimit(cx.limit)));
                    }
                    warp.pc -= 1;
                    return Ok(());
                }
                warp.work += u64::from(ins.work);
                warp.issued += u64::from(ins.first);
                warp.lanes_issued += u64::from(ins.first) * u64::from(warp.mask.count_ones());
                let guard = warp.registers.pred[usize::from(ins.guard & !NEGATED)];
                let mask = warp.mask & if ins.guard & NEGATED == 0 { guard } else { !guard };
                if mask == 0 {
                    continue;
                }
                let flow = match ins.op {
                    $(Op::$op => $op(cx, warp, Issue { ins, mask }),)*
                };
                match flow {
                    Ok(()) => {}
                    Err(Break::Yield) => return Ok(()),
                    Err(Break::Fault(fault)) => return Err(fault),
                }
            }
        }
    };
}

mod baseline {
    crate::gpu::isa::instruction_table!(engine[allow(unused_variables)]);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    crate::gpu::isa::instruction_table!(engine[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]);
}
