//! Functions, indexed branches and variables in hand-written PTX: forms that compilers rarely emit,
//! and errors.

use warpstride_interp::Config;
use warpstride_interp::stop::Reason;

use super::{PRELUDE, run_on, shape};

/// The values that 32 threads store through `%out`, 4 bytes each. `module` stands before the
/// kernel.
fn run(module: &str, body: &str) -> Result<Vec<u32>, Reason> {
    let text = format!(
        "{PRELUDE}{module}\n.visible .entry k(.param .u64 p) {{
            .reg .b32 %r<10>; .reg .b64 %rd<10>, %out; .reg .pred %p<3>;
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %out, %r1, 4, %rd1;
            {body}
        }}"
    );
    let ran = run_on(&text, shape(1, 32), &[7; 32], &Config::default());
    ran.map(|(_, out)| out).map_err(|stop| stop.reason)
}

pub(super) fn results(module: &str, body: &str) -> Vec<u32> {
    run(module, body).unwrap_or_else(|reason| panic!("{reason}"))
}

fn lanes(value: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(value).collect()
}

/// Takes and returns registers, as PTX did before it had a calling convention.
const TRIPLE: &str = ".func (.reg .u32 %result) triple(.reg .u32 %x) { mul.lo.u32 %result, %x, 3; ret; }";

#[test]
fn values_are_passed_in_registers_and_variables_alike() {
    let by_variable =
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), triple, (a); ld.param.b32 %r2, [r]; }";
    for call in ["call.uni (%r2), triple, (%r1);", by_variable] {
        let body = format!("{call} call (%r3), triple, (5); add.u32 %r2, %r2, %r3; st.u32 [%out], %r2;");
        assert_eq!(results(TRIPLE, &body), lanes(|lane| 3 * lane + 15), "{call}");
    }
}

#[test]
fn a_functions_variables_are_aligned_wherever_those_of_its_caller_end() {
    let module = ".func (.reg .b32 %result) f(.reg .b32 %x) {
        .local .align 16 .b8 wide[16]; st.local.v4.b32 [wide], {%x, %x, %x, %x}; ld.local.b32 %result, [wide+12]; ret; }";
    let body = ".local .align 4 .b8 own[4]; st.local.b32 [own], %r1; call (%r2), f, (5); ld.local.b32 %r3, [own];
        add.u32 %r2, %r2, %r3; st.u32 [%out], %r2;";
    assert_eq!(results(module, body), lanes(|lane| lane + 5));
}

#[test]
fn a_guarded_call_leaves_the_other_lanes_alone() {
    let body = "mov.u32 %r2, 1000; setp.lt.u32 %p1, %r1, 9; @%p1 call (%r2), triple, (%r1); st.u32 [%out], %r2;";
    assert_eq!(results(TRIPLE, body), lanes(|lane| if lane < 9 { 3 * lane } else { 1000 }));
}

#[test]
fn lanes_return_from_anywhere_and_end_inside_a_function() {
    let module = ".func (.param .b32 r) f(.param .b32 x) {
        .reg .b32 %r<4>; .reg .pred %p<4>;
        ld.param.u32 %r1, [x]; mov.u32 %r2, 0;
        setp.lt.u32 %p1, %r1, 5; st.param.b32 [r], 1; @%p1 ret;
        setp.gt.u32 %p2, %r1, 27; @%p2 exit;
        $loop: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %r1; st.param.b32 [r], %r2; @!%p3 ret.uni; bra $loop; }";
    let body = "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), f, (a); ld.param.b32 %r2, [r]; }
        bar.warp.sync 0xfffffff; st.u32 [%out], %r2;";
    let expected = lanes(|lane| match lane {
        0..5 => 1,
        28.. => 7,
        _ => lane,
    });
    assert_eq!(results(module, body), expected);
}

#[test]
fn lanes_that_called_where_they_meet_others_meet_them() {
    let module = ".func (.param .b32 r) leaf(.param .b32 x) {
            .reg .b32 %r<2>; ld.param.u32 %r1, [x]; st.param.b32 [r], %r1; ret; }
        .func (.param .b32 r) f(.param .b32 x, .param .b64 count) {
            .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p;
            ld.param.u32 %r1, [x]; ld.param.u64 %rd1, [count]; mov.u64 %rd2, leaf;
            setp.ge.u32 %p, %r1, 16; @%p bra $meet;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
              $proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %rd2, (a), $proto; }
            $meet: atom.add.u32 %r2, [%rd1], 1; activemask.b32 %r3; st.param.b32 [r], %r3; ret; }";
    let body = "{ .param .b32 a; .param .b64 c; .param .b32 b; st.param.b32 [a], %r1; st.param.b64 [c], %out;
            call (b), f, (a, c); ld.param.b32 %r2, [b]; }
        ld.u32 %r3, [%out]; setp.ne.u32 %p1, %r3, 8; @%p1 trap; st.u32 [%out], %r2;";
    assert_eq!(results(module, body), [u32::MAX; 32]);
}

/// Each lane returns from its own depth, and waits there for a lock that the other lanes also want.
#[test]
fn lanes_that_wait_for_each_other_inside_functions_return_to_their_callers() {
    let module = ".func (.param .b32 r) f(.param .b32 depth, .param .b64 lock) {
            .reg .b32 %r<6>; .reg .b64 %rd<2>; .reg .pred %p<3>;
            ld.param.b32 %r1, [depth]; ld.param.b64 %rd1, [lock];
            setp.eq.u32 %p1, %r1, 0; @%p1 bra $last;
            sub.u32 %r2, %r1, 1;
            { .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %r2; st.param.b64 [b], %rd1;
              call (c), f, (a, b); ld.param.b32 %r3, [c]; }
            add.u32 %r3, %r3, %r1; st.param.b32 [r], %r3; ret;
            $last: atom.cas.b32 %r4, [%rd1], 7, 1; setp.ne.u32 %p2, %r4, 7; @%p2 bra $last;
            atom.exch.b32 %r4, [%rd1], 7; st.param.b32 [r], 0; ret; }";
    let body = "and.b32 %r4, %r1, 7; mov.u32 %r5, 0; mov.u32 %r6, 0;
        $again: { .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %r4; st.param.b64 [b], %rd1;
          call (c), f, (a, b); ld.param.b32 %r2, [c]; }
        add.u32 %r5, %r5, %r2; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r4; @%p1 bra $again;
        bar.sync 0; st.u32 [%out], %r5;";
    assert_eq!(results(module, body), lanes(|lane| (lane & 7).pow(2) * ((lane & 7) + 1) / 2));
}

#[test]
fn an_alias_is_another_name() {
    let module = format!("{TRIPLE}\n.alias other, triple;");
    assert_eq!(results(&module, "call (%r2), other, (%r1); st.u32 [%out], %r2;"), lanes(|lane| 3 * lane));
}

const TWO: &str = ".func (.param .b32 r) half(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; shr.u32 %r, %r, 1; st.param.b32 [r], %r; }
    .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; shl.b32 %r, %r, 1; st.param.b32 [r], %r; }
    .func narrow(.param .b8 x) { ret; }
    .global .u64 both[2] = {half, twice};";
const CALL: &str =
    "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; TABLE call (r), %rd3, (a), t; ld.param.b32 %r2, [r]; }
    st.u32 [%out], %r2;";

#[test]
fn pointers_call_what_a_prototype_or_a_list_allows() {
    let choose = "and.b32 %r3, %r1, 1; mul.wide.u32 %rd2, %r3, 8; mov.u64 %rd3, both; add.s64 %rd2, %rd2, %rd3; ld.global.u64 %rd3, [%rd2];";
    let expected = lanes(|lane| if lane % 2 == 0 { lane / 2 } else { lane * 2 });
    for table in ["t: .callprototype (.param .b32 _) _ (.param .b32 _);", "t: .calltargets half, twice;"] {
        assert_eq!(results(TWO, &format!("{choose} {}", CALL.replace("TABLE", table))), expected, "{table}");
    }
}

#[test]
fn a_wrong_pointer_stops_the_launch() {
    let prototype = CALL.replace("TABLE", "t: .callprototype (.param .b32 _) _ (.param .b32 _);");
    let reason = run(TWO, &format!("mov.u64 %rd3, 12; {prototype}")).expect_err("no function");
    assert_eq!(reason, Reason::BadCall { address: 12, other: false });
    let reason = run(TWO, &format!("mov.u64 %rd3, narrow; {prototype}")).expect_err("another kind");
    assert!(matches!(reason, Reason::BadCall { other: true, .. }), "{reason}");
    let list = CALL.replace("TABLE", "t: .calltargets half;");
    let reason = run(TWO, &format!("mov.u64 %rd3, twice; {list}")).expect_err("not in the list");
    assert!(matches!(reason, Reason::BadCall { other: false, .. }), "{reason}");
}

#[test]
fn a_recursion_without_end_stops_at_the_memory_a_thread_can_have() {
    let module = ".func f(.reg .u32 %x) { .local .align 8 .b8 depot[100]; call f, (%x); ret; }";
    let reason = run(module, "call f, (%r1);").expect_err("no end");
    // Each call has 100 bytes and one saved register.
    let Reason::StackOverflow { ref function, depth, limit: 524_288, .. } = reason else { panic!("{reason}") };
    assert!(function == "f" && (3000..5000).contains(&depth), "{reason}");
    assert!(reason.to_string().contains("look for a recursion that never ends"), "{reason}");
}

#[test]
fn a_barrier_in_a_function_holds_lanes_of_different_calls() {
    // Half of the warp calls from one place, half from another, and both wait for each other inside
    // the function.
    let module = ".func (.reg .u32 %y) f(.reg .u32 %x) { .reg .u32 %k; mov.u32 %k, %x; barrier.sync 0; add.u32 %y, %k, 1; ret; }";
    let body = "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra $even;
        call (%r2), f, (100); add.u32 %r2, %r2, %r1; bra $on;
        $even: call (%r2), f, (200); sub.u32 %r2, %r2, %r1;
        $on: st.u32 [%out], %r2;";
    assert_eq!(results(module, body), lanes(|lane| if lane % 2 == 0 { 201 - lane } else { 101 + lane }));
}

#[test]
fn an_indexed_branch_picks_its_target_lane_by_lane() {
    let body = "and.b32 %r3, %r1, 3; mov.u32 %r2, 0;
        { $table: .branchtargets $a, $b, $c, $b; setp.lt.u32 %p1, %r1, 30; @%p1 brx.idx %r3, $table; }
        add.u32 %r2, %r2, 1000;
        $c: add.u32 %r2, %r2, 100;
        $b: add.u32 %r2, %r2, 10;
        $a: add.u32 %r2, %r2, 1;
        st.u32 [%out], %r2;";
    let expected = lanes(|lane| match (lane, lane % 4) {
        (30.., _) => 1111,
        (_, 0) => 1,
        (_, 2) => 111,
        _ => 11,
    });
    assert_eq!(results("", body), expected);
    let reason = run("", "$t: .branchtargets $a, $a; brx.idx %r1, $t; $a: ret;").expect_err("32 of 2");
    assert_eq!(reason, Reason::BranchIndex { index: 2, targets: 2 });
}

#[test]
fn variables_hold_what_their_initialisers_say() {
    let module = ".func f() { ret; }
        .global .align 4 .b8 bytes[8] = {1, 0xFF, 255, -2};
        .global .u16 rows[2][3] = {{1, 2}, {3}};
        .global .f32 reals[] = {0f40000000, 1.5};
        .visible .global .align 8 .u64 pointers[3] = {bytes+4, generic(rows)+2, f};
        .global .align 8 .b8 packed[8] = {0xFF(bytes), 0xFF00(bytes), 0xFF0000(bytes), 0xFF000000(bytes), 0xFF00000000(bytes), 0xFF0000000000(bytes)};
        .const .u32 constant = 77; .weak .global .u32 zero;";
    let body = "ld.global.u32 %r2, [bytes]; ld.global.u32 %r3, [rows+4]; add.u32 %r2, %r2, %r3;
        ld.global.f32 %r3, [reals+4]; add.u32 %r2, %r2, %r3; ld.const.u32 %r3, [constant]; add.u32 %r2, %r2, %r3;
        ld.global.u32 %r3, [zero]; add.u32 %r2, %r2, %r3;
        ld.global.u64 %rd2, [pointers+8]; ld.u16 %r3, [%rd2]; add.u32 %r2, %r2, %r3;
        ld.global.u64 %rd2, [pointers]; mov.u64 %rd3, bytes; sub.u64 %rd2, %rd2, %rd3; cvt.u32.u64 %r3, %rd2; add.u32 %r2, %r2, %r3;
        ld.global.u64 %rd2, [packed]; sub.u64 %rd2, %rd2, %rd3; cvt.u32.u64 %r3, %rd2; add.u32 %r2, %r2, %r3;
        st.u32 [%out], %r2;";
    let sum = 0xfe_ff_ff_01_u32.wrapping_add(3 << 16).wrapping_add(1.5_f32.to_bits());
    assert_eq!(results(module, body), [sum.wrapping_add(77 + 2 + 4); 32]);
}

#[test]
fn an_access_beyond_a_variable_is_found() {
    let reason = run(".global .u32 few[3]; .global .u32 more[9];", "ld.global.u32 %r2, [few+12];").expect_err("beyond");
    let Reason::OutOfBounds(access) = &reason else { panic!("{reason}") };
    assert_eq!((access.distance(), access.nearest.expect("it is near").bytes), (Some(0), 12));
}
