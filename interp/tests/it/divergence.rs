//! Lanes that diverge and meet again: random structured programs against a model that runs one lane
//! at a time.

use std::ops::ControlFlow;

use proptest::prelude::*;
use warpstride_interp::{Config, Memory};

use super::{PRELUDE, launch, run_on, shape};

/// A statement over one variable `x`, whose initial value is the thread's input.
#[derive(Debug, Clone)]
enum Statement {
    /// `x = 5 * x + k`
    Step(u32),
    /// Branches on a bit of `x`.
    If(u32, Vec<Statement>, Vec<Statement>),
    /// Repeats the body; two bits of `x` give the count beforehand.
    Repeat(u32, Vec<Statement>),
    /// Ends the innermost loop if a bit of `x` is set; has no effect outside a loop.
    Break(u32),
}
use Statement::{Break, If, Repeat, Step};

/// Computes one thread's result; breaks if the thread leaves the innermost loop.
fn interpret(statements: &[Statement], looped: bool, x: &mut u32) -> ControlFlow<()> {
    for statement in statements {
        match statement {
            Step(k) => *x = x.wrapping_mul(5).wrapping_add(*k),
            If(bit, yes, no) => interpret(if *x >> bit & 1 == 1 { yes } else { no }, looped, x)?,
            Repeat(bit, body) => _ = (0..*x >> bit & 3).try_for_each(|_| interpret(body, true, x)),
            Break(bit) if looped && *x >> bit & 1 == 1 => return ControlFlow::Break(()),
            Break(_) => {}
        }
    }
    ControlFlow::Continue(())
}

/// Writes the same program as PTX: `%x` is the variable, and each label or counter has a number.
/// `outer` is the number of the enclosing loop.
fn emit(statements: &[Statement], outer: Option<u32>, next: &mut u32, out: &mut String) {
    for statement in statements {
        *next += 1;
        let n = *next;
        match statement {
            Step(k) => *out += &format!("mad.lo.u32 %x, %x, 5, {k};\n"),
            If(bit, yes, no) => {
                *out += &format!("bfe.u32 %t, %x, {bit}, 1; setp.eq.u32 %p, %t, 0; @%p bra $else{n};\n");
                emit(yes, outer, next, out);
                *out += &format!("bra.uni $end{n};\n$else{n}:\n");
                emit(no, outer, next, out);
                *out += &format!("$end{n}:\n");
            }
            Repeat(bit, body) => {
                *out +=
                    &format!("bfe.u32 %n{n}, %x, {bit}, 2;\n$head{n}: setp.eq.u32 %p, %n{n}, 0; @%p bra $end{n};\n");
                emit(body, Some(n), next, out);
                *out += &format!("sub.u32 %n{n}, %n{n}, 1; bra $head{n};\n$end{n}:\n");
            }
            Break(bit) => {
                if let Some(outer) = outer {
                    *out += &format!("bfe.u32 %t, %x, {bit}, 1; setp.ne.u32 %p, %t, 0; @%p bra $end{outer};\n");
                }
            }
        }
    }
}

fn program(statements: &[Statement]) -> String {
    let (mut body, mut labels) = (String::new(), 0);
    emit(statements, None, &mut labels, &mut body);
    format!(
        "{PRELUDE}.visible .entry k(.param .u64 cells) {{
            .reg .pred %p; .reg .b32 %x, %t, %r1, %n<{}>; .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [cells]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;
            ld.global.u32 %x, [%rd2];
            {body}
            st.global.u32 [%rd2], %x;
        }}",
        labels + 1
    )
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let leaf = prop_oneof![
        6 => any::<u16>().prop_map(|k| Step(k.into())),
        2 => (0..32_u32).prop_map(Break),
    ];
    let one = leaf.prop_recursive(4, 40, 4, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            (0..32_u32, some(), some()).prop_map(|(bit, yes, no)| If(bit, yes, no)),
            (0..30_u32, some()).prop_map(|(bit, body)| Repeat(bit, body)),
        ]
    });
    prop::collection::vec(one, 0..5)
}

proptest! {
    #[test]
    fn threads_end_as_if_each_ran_alone_and_meet_again_at_the_last_store(
        statements in statements(), input in prop::collection::vec(any::<u32>(), 1..100),
    ) {
        let text = program(&statements);
        let ran = run_on(&text, shape(1, input.len() as u32), &input, &Config::default());
        let (report, got) = ran.unwrap_or_else(|stop| panic!("{stop}\n{text}"));
        let alone = |mut x: u32| { _ = interpret(&statements, false, &mut x); x };
        prop_assert_eq!(got, input.iter().map(|x| alone(*x)).collect::<Vec<_>>(), "{}", text);
        prop_assert_eq!(report.global_store.instructions, input.len().div_ceil(32) as u64, "{}", text);
    }
}

/// Each thread sums the values that the other threads of the block stored before a barrier, after
/// some threads have exited.
#[test]
fn a_thread_that_leaves_early_does_not_hold_up_a_barrier() {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 out, .param .u32 n) {{
            .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>; .shared .align 4 .b8 tile[512];
            ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; setp.ge.u32 %p, %r2, %r1; @%p bra $exit;
            mov.u32 %r3, tile; shl.b32 %r4, %r2, 2; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], %r2;
            bar.sync 0;
            sub.u32 %r4, %r1, %r2; shl.b32 %r4, %r4, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r4;
            ld.shared.u32 %r5, [%r3-4];
            ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r5;
        $exit: ret; }}"
    );
    let memory = Memory::new(1 << 20);
    let address = memory.alloc(512).expect("it fits");
    for n in [1_u32, 31, 32, 45, 127, 128] {
        let mut params = address.to_le_bytes().to_vec();
        params.extend(n.to_le_bytes());
        launch(&text, shape(1, 128), &params, &memory).unwrap_or_else(|stop| panic!("{n}: {stop}"));
        let got: Vec<u32> = memory.download(address, n as usize).expect("it is there");
        assert_eq!(got, (0..n).rev().collect::<Vec<_>>());
    }
}

/// Warps 0 and 1 hand over at one barrier, warps 2 and 3 at another, and all meet at a third.
#[test]
fn barriers_of_some_threads_let_those_go_on() {
    let text = format!(
        "{PRELUDE}.visible .entry k() {{
            .reg .pred %p; .reg .b32 %r<4>;
            mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 6; add.u32 %r2, %r2, 1;
            barrier.sync %r2, 64;
            setp.lt.u32 %p, %r1, 64; @%p bra $low;
            bar.sync 2, 64;
        $low: bar.sync 0;
        }}"
    );
    let report = launch(&text, shape(3, 128), &[], &Memory::new(1)).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(report.warp_instructions, 3 * (2 * 8 + 2 * 9));
}

/// Two blocks lead to each other, and both can be entered from outside: the loop has no head.
#[test]
fn lanes_in_an_irreducible_graph_end_as_if_each_ran_alone() {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 out) {{
            .reg .pred %p; .reg .b32 %x, %t, %n; .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [out]; mov.u32 %x, %tid.x; mad.wide.u32 %rd2, %x, 4, %rd1;
            and.b32 %n, %x, 7; and.b32 %t, %x, 8; setp.eq.u32 %p, %t, 0; @%p bra $b;
        $a: mul.lo.u32 %x, %x, 3; setp.eq.u32 %p, %n, 0; @%p bra $end; sub.u32 %n, %n, 1;
        $b: add.u32 %x, %x, 5; setp.eq.u32 %p, %n, 0; @%p bra $end; sub.u32 %n, %n, 1; bra $a;
        $end: st.global.u32 [%rd2], %x;
        }}"
    );
    let ran = run_on(&text, shape(1, 32), &[0; 32], &Config::default());
    for (lane, got) in (0..32_u32).zip(ran.unwrap_or_else(|stop| panic!("{stop}")).1) {
        let steps = (0..=lane & 7).map(|step| (step % 2 == 0) == (lane & 8 != 0));
        let wanted = steps.fold(lane, |x, at_a| if at_a { x * 3 } else { x + 5 });
        assert_eq!(got, wanted, "lane {lane}");
    }
}

/// Counts active lanes in a loop that half of a warp leaves at once.
#[test]
fn instructions_are_counted_by_active_lanes() {
    let text = format!(
        "{PRELUDE}.visible .entry k() {{
            .reg .pred %p, %q; .reg .b32 %r1;
            mov.u32 %r1, %laneid; setp.lt.u32 %p, %r1, 16;
            @%p bra $end;
            setp.lt.u32 %q, %r1, 0;
            @%q add.u32 %r1, %r1, 1;
        $end: mov.u32 %r1, 0;
            ret;
        }}"
    );
    let report = launch(&text, shape(1, 32), &[], &Memory::new(1)).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!((report.warp_instructions, report.thread_instructions), (7, 5 * 32 + 2 * 16));
}

#[test]
fn registers_that_were_never_written_read_as_zero_in_every_block() {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 out) {{
            .reg .b32 %r<4>; .reg .b64 %rd<4>;
            mov.u32 %r3, %ctaid.x; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r1; add.u32 %r1, %r3, 7;
        }}"
    );
    let ran = run_on(&text, shape(10, 32), &[1; 10], &Config { threads: 1, ..Config::default() });
    assert_eq!(ran.unwrap_or_else(|stop| panic!("{stop}")).1, [0; 10]);
}
