//! The boundary of PTX: names and scopes, refusals that name their line, and the parser's
//! robustness against any text.

use proptest::prelude::*;
use warpstride_interp::ErrorKind;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Config, Memory, Module, run};

use super::{PRELUDE, functions, launch, refusal, run_on, shape};

/// The values that 32 threads store through `%out`, 4 bytes each.
fn results(body: &str) -> Vec<u32> {
    functions::results("", body)
}

#[test]
fn each_scope_has_its_own_variables_registers_and_labels() {
    // Two inlinings of one piece of assembly: two tiles, 4224 bytes apart, and a label used twice.
    let scope = "{ .reg .b32 %r5; .shared .align 16 .b8 tile[4224]; mov.u32 %r5, tile; mov.u32 %r2, %r5; bra $x; $x: }";
    let body = format!(
        "mov.u32 %r5, 9; {scope} mov.u32 %r3, %r2; {scope} sub.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r5; st.u32 [%out], %r2;"
    );
    assert_eq!(results(&body), [4224 + 9; 32]);
}

#[test]
fn a_refusal_names_the_line_of_the_source() {
    let refused = |location: &str| {
        let text = format!(
            "{PRELUDE}.file 1 \"dir/uml\\303\\244ut.cu\"\n.visible .entry k() {{\n{location}\nbogus;\nret;\n}}"
        );
        launch(&text, shape(1, 1), &[], &Memory::new(1)).expect_err("it cannot run").to_string()
    };
    assert!(refused(".loc 1 12 3").contains("(PTX line 7, dir/uml\u{e4}ut.cu:12): "), "{}", refused(".loc 1 12 3"));
    assert!(refused("").contains("(PTX line 7): "), "{}", refused(""));
}

#[test]
fn an_offset_beyond_a_frame_is_refused() {
    let text = format!(
        "{PRELUDE}.func f() {{ .reg .b32 %r; .local .b32 x[4], y;
        ld.local.u32 %r, [y+9223372036854775807]; }} .visible .entry k() {{ call f; }}"
    );
    let refused = refusal(&text).to_string();
    assert!(refused.contains("its offset exceeds 32 bits"), "{refused}");
}

#[test]
fn an_inner_scope_branches_outwards() {
    assert_eq!(results("mov.u32 %r2, 1; { { bra $out; } } mov.u32 %r2, 2; $out: st.u32 [%out], %r2;"), [1; 32]);
}

#[test]
fn vectors_pack_and_unpack() {
    let body = "{ .reg .b16 l, h; .reg .b64 w; mov.b32 {l, h}, 0x12345678; mov.b32 %r2, {h, l};
        mov.b64 w, {%r2, %r1}; mov.b64 {_, %r3}, w; add.u32 %r2, %r2, %r3; } st.u32 [%out], %r2;";
    assert_eq!(results(body), (0..32).map(|lane| 0x5678_1234 + lane).collect::<Vec<_>>());
}

#[test]
fn generic_addresses_count_in_the_space_they_lie_in() {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{
            .local .align 8 .b8 depot[16]; .shared .align 8 .b8 tile[128];
            .reg .b32 %r<5>; .reg .b64 %rd<8>; .reg .pred %p;
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
            mov.u64 %rd4, tile; cvta.shared.u64 %rd5, %rd4; add.s64 %rd5, %rd5, %rd2; st.u32 [%rd5], %r1;
            cvta.to.shared.u64 %rd6, %rd5; ld.shared.u32 %r2, [%rd6];
            mov.u64 %rd4, depot; cvta.local.u64 %rd7, %rd4; st.u32 [%rd7+4], %r2; ld.local.u32 %r3, [%rd4+4];
            // Half of the lanes in shared memory, half in global: two accesses.
            setp.lt.u32 %p, %r1, 16; selp.b64 %rd6, %rd5, %rd3, %p; st.u32 [%rd6], %r3;
            ld.u32 %r4, [%rd6]; st.global.u32 [%rd3], %r4;
        }}"
    );
    let ran = run_on(&text, shape(1, 32), &[0; 32], &Config::default());
    let (report, out) = ran.unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(out, (0..32).collect::<Vec<_>>());
    let counters = report.counters;
    assert_eq!([counters.shared_store.instructions, counters.shared_load.instructions], [2, 2]);
    assert_eq!([counters.global_store.instructions, counters.global_load.instructions], [2, 1]);
    assert_eq!([counters.global_store.sectors, counters.global_load.sectors], [2 + 4, 2]);
}

#[test]
fn lanes_may_reach_several_allocations_at_once() {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 a, .param .u64 b) {{
            .reg .b32 %r<3>; .reg .b64 %rd<5>; .reg .pred %p;
            ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;
            setp.eq.u32 %p, %r2, 0; selp.b64 %rd3, %rd1, %rd2, %p; mad.wide.u32 %rd4, %r1, 2, %rd3;
            st.global.u16 [%rd4], %r1; ld.global.u16 %r2, [%rd4]; st.global.u8 [%rd4+1], %r2;
        }}"
    );
    let memory = Memory::new(1 << 20);
    let (a, b) = (memory.alloc(64).expect("it fits"), memory.alloc(64).expect("it fits"));
    let params: Vec<u8> = [a, b].into_iter().flat_map(u64::to_le_bytes).collect();
    let report = launch(&text, shape(1, 32), &params, &memory).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!((report.global_store.sectors, report.counters.global_store.requests), (8, 2));
    for (address, odd) in [(a, 0), (b, 1)] {
        let out = memory.download::<u8>(address, 64).expect("it is there");
        for lane in (odd..32).step_by(2) {
            assert_eq!(out[2 * lane..2 * lane + 2], [lane as u8; 2]);
        }
    }
}

#[test]
fn narrow_loads_extend_by_their_type() {
    let body =
        "st.global.u32 [%out], 0x8090; ld.global.s8 %r2, [%out]; ld.global.u8 %r3, [%out]; ld.global.s16 %r4, [%out];
        ld.global.s32 %rd2, [%out]; sub.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%out], %r2;";
    assert_eq!(results(body), [(0x8090_u16 as i16 as u32).wrapping_sub(256); 32]);
}

#[test]
fn dynamic_shared_memory_lies_behind_the_static() {
    let text = format!(
        "{PRELUDE}.extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .u32 unused[4];
        .visible .entry k(.param .u64 p) {{ .shared .align 4 .b8 tile[20]; .reg .b32 %r<4>; .reg .b64 %rd1;
            mov.u32 %r1, dynamic; mov.u32 %r2, tile; sub.u32 %r3, %r1, %r2; st.shared.u32 [dynamic+28], %r3;
            ld.param.u64 %rd1, [p]; ld.shared.u32 %r2, [%r1+28]; st.global.u32 [%rd1], %r2;
        }}"
    );
    let with = |dynamic_shared| run_on(&text, LaunchShape { dynamic_shared, ..shape(1, 1) }, &[0], &Config::default());
    let stop = with(0).expect_err("the launch gives too little memory");
    assert!(stop.to_string().contains("at 0x3c of shared memory, which has 32 bytes"), "{stop}");
    assert_eq!(with(32).unwrap_or_else(|stop| panic!("{stop}")).1, [32]);
}

#[test]
fn special_registers_know_their_thread() {
    let body = "mov.u32 %r2, %laneid; mov.u32 %r3, %ntid.x; mad.lo.u32 %r2, %r3, 100, %r2; mov.u32 %r4, %nctaid.y;
        add.u32 %r2, %r2, %r4; mov.u32 %r5, %lanemask_lt; popc.b32 %r5, %r5; add.u32 %r2, %r2, %r5; mov.u32 %r6, %clock;
        setp.ge.u32 %p1, %r6, 10; mov.u64 %rd2, %clock64; mov.u64 %rd3, %globaltimer; setp.gt.u64 %p2, %rd3, %rd2;
        and.pred %p1, %p1, %p2; selp.b32 %r7, 1000000, 0, %p1; add.u32 %r2, %r2, %r7; st.u32 [%out], %r2;";
    assert_eq!(results(body), (0..32).map(|lane| 1_000_000 + 3200 + 1 + 2 * lane).collect::<Vec<_>>());
}

#[test]
fn refusals_name_instruction_kernel_and_line() {
    let refused = |body: &str| {
        let text = format!(
            "{PRELUDE}.global .align 4 .u32 table[2] = {{1, 2}}; .extern .global .u32 elsewhere; .func takes(.reg .u32 a) {{ ret; }} .extern .func malloc(.param .b64 size); .extern .func outside(.param .b64 size);\n.visible .entry k(.param .u32 q) {{\n.reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .b128 %w; .reg .pred %p, %q;\n{body}\n}}"
        );
        let error = refusal(&text);
        assert_eq!(error.kind(), ErrorKind::UnsupportedPtx);
        let message = error.to_string();
        assert!(message.starts_with("unsupported PTX: `"), "{message}");
        assert!(message.contains("in kernel \"k\" (PTX line 7): "), "{message}");
        assert!(message.ends_with("; run it on a CUDA device instead"), "{message}");
        message
    };
    for (body, why) in [
        ("wgmma.mma_async.sync %r1;", "`wgmma.mma_async.sync %r1` in"),
        ("call.uni (retval0), f, (param0);", "`call.uni (retval0), f, (param0)` in"),
        ("add.s32 %r1, %rd1, 3;", "%rd1 is a register of another width"),
        ("add.s32 %r1, %r3, 3;", "the name \"%r3\" is not declared"),
        ("add.s32 %r1, %r2;", "a different number of operands"),
        ("mov.u32 %r1, table;", "the address of table has 64 bits"),
        ("mov.u64 %rd1, elsewhere;", "\"elsewhere\" is declared `.extern`, and this module does not define it"),
        ("call outside, (%rd1);", "this module does not define the function \"outside\""),
        ("call malloc, (%rd1);", "the declaration of \"malloc\" differs from the CUDA runtime's"),
        ("call takes, (1, 2);", "takes has a different number of parameters"),
        ("{ .param .b64 p; call takes, (p); }", "p has 8 bytes, but the function expects 4"),
        ("{ .param .b32 p; st.param.b64 [p], %rd1; }", "it reaches beyond the 4 bytes of p"),
        ("{ .param .b8 p[8]; st.param.b32 [p+2], %r1; }", "its address is misaligned"),
        ("call (), %rd1, ();", "a call through a register without a prototype"),
        ("brx.idx %r1, nothing;", "there is no table \"nothing\" in scope"),
        ("mov.b128 %w, 0;", "`mov.b128 %w, 0` in"),
        ("bra $nowhere;", "there is no label \"$nowhere\" in scope"),
        ("{ $inner: } bra $inner;", "there is no label \"$inner\" in scope"),
        ("ld.param.u32 %r1, [absent];", "\"absent\" is not declared"),
        ("ld.global.v4.b64 {%rd0,%rd1,%rd2,%rd0}, [%rd1];", "no access is wider than 16 bytes"),
        ("add.rn.f32 %r1, %r1, 1;", "it has an integer where a floating-point number is required"),
        ("ld.param.u32 {%r1,%r2,%r0,%r0}, [q];", "its number of operands does not fit its type"),
        ("ld.param.v4.u8 {%r1}, [q];", "its number of operands does not fit its type"),
        ("bar.warp.sync;", "it does not have exactly one operand"),
        ("clz.b32 %r1, %r1, [%rd1];", "a different number of operands"),
        ("setp.lt.and.s32 %p, %r1, %r2;", "its number of operands does not fit its opcode"),
        ("setp.lt.f8 %p|%q, %r1, %r2;", "does not support this comparison"),
        ("set.lt.u64.s32 %rd1, %r1, %r2;", "a result of type \"u64\" is not supported"),
        ("add.cc.u16 %r1, %r1, %r2;", "does not support this instruction"),
        ("madc.wide.u32 %r1, %r1, %r2, %r1;", "does not support this instruction"),
        ("add.s32 %r1, %r1, !%p;", "has a form that the software GPU does not support"),
        ("lop3.or.b32 %r1|%p, %r1, %r2, %r1, 3, %p;", "does not support this form of `lop3`, `lop3.or.b32`"),
        ("mov.b32 {%r0,%r0,%r0,%r0}, %r1;", "splits a value into more than four parts"),
        ("ret %r1;", "it takes no operands"),
        ("membar.gl %r1;", "it takes no operands"),
        ("nanosleep.u32;", "it gives no duration"),
        ("nanosleep.u32 t;", "the name \"t\" is not declared"),
        ("mad.lo.u32 %r1, {%r1, %r1}, %r1;", "it has a vector where a single value is required"),
        ("setp.eq.and.or.u32 %p, %r1, %r1, %p;", "does not support this comparison"),
        ("setp.eq.u32.and %p, %r1, %r1;", "its number of operands does not fit its opcode"),
    ] {
        let message = refused(body);
        assert!(message.contains(why), "{body}: {message}");
    }
}

#[test]
fn addresses_know_their_space() {
    let body = ".shared .b32 tile[1]; .local .b32 own[1]; mov.u64 %rd2, tile; cvta.shared.u64 %rd2, %rd2;
        mov.u64 %rd3, own; cvta.local.u64 %rd3, %rd3; mov.u32 %r2, 0;
        isspacep.shared %p1, %rd2; @%p1 or.b32 %r2, %r2, 1; isspacep.global %p1, %rd2; @%p1 or.b32 %r2, %r2, 2;
        isspacep.local %p1, %rd3; @%p1 or.b32 %r2, %r2, 4; isspacep.shared::cta %p1, %rd3; @%p1 or.b32 %r2, %r2, 8;
        isspacep.global %p1, %out; @%p1 or.b32 %r2, %r2, 16; isspacep.param %p1, %out; @%p1 or.b32 %r2, %r2, 32;
        st.u32 [%out], %r2;";
    assert_eq!(results(body), vec![1 | 4 | 16; 32]);
}

#[test]
fn steps_of_one_instruction_share_its_guard_and_sources() {
    // The guard, a source and a result are one predicate; and sums carry through any number of
    // words.
    let body = "setp.lt.u32 %p1, %r1, 20; @%p1 setp.lt.and.u32 %p1|%p2, %r1, 10, %p1; @!%p1 setp.ge.u32 %p2, %r1, 30;
        selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; add.u32 %r2, %r2, %r3;
        add.cc.u32 %r4, %r1, 0xffffffff; addc.cc.u32 %r4, 0xffffffff, 0; addc.u32 %r4, 0, 0; mad.lo.u32 %r2, %r4, 10, %r2;
        st.u32 [%out], %r2;";
    let wanted = |lane: u32| match lane {
        0 => 1,
        1..10 => 11,
        // In these lanes the second predicate was set, and then replaced where the first is off.
        10..30 => 10,
        _ => 12,
    };
    assert_eq!(results(body), (0..32).map(wanted).collect::<Vec<_>>());
}

#[test]
fn what_is_no_ptx_names_its_line() {
    let error = |text: &str| {
        let error = Module::parse(text).expect_err("it is not PTX");
        assert_eq!(error.kind(), ErrorKind::UnsupportedPtx);
        error.to_string()
    };
    let nested = format!(".global .u32 x = {}", "{".repeat(100_000));
    let deep = format!(".entry k() {}", "{".repeat(100_000));
    for (text, line, why) in [
        ("\n\nhello", 3, "the directive \"hello\" is not supported"),
        ("{", 1, "found `{` where a directive was expected"),
        (".address_size 32", 1, "addresses of 32 bits are not supported"),
        (".entry k() {\nadd.s32 a", 2, "the text ends where `;` was expected; is the file complete?"),
        (".entry k() { }\n.entry k() { }", 2, "the name \"k\" is declared twice"),
        (".global .u32 x;\n.const .u32 x;", 2, "the name \"x\" is declared twice"),
        (".func f() { }\n.entry f() { }", 2, "the name \"f\" is declared twice"),
        (".func f();\n.func f() { }\n.func f() { }", 3, "the name \"f\" is declared twice"),
        (".global .u32 x = {1,", 1, "the text ends where a value was expected; is the file complete?"),
        (&nested, 1, "lists nested more than 64 deep are not supported"),
        (".entry k(.param .u24 x) { }", 1, "the type \".u24\" is not supported"),
        (".global .align 3 .u32 x;", 1, "an alignment of 3 is not supported"),
        (".shared .b8 x[4611686018427387904][8];", 1, "\"x\" is larger than any memory"),
        (".entry a(){ ret } .entry b(){ ret; }", 1, "found `}` where `;` was expected"),
        (".entry a(){ mov.b64 {%r1, %r2}, %rd1 } .entry b(){ ret; }", 1, "found `}` where `;` was expected"),
        (".version 7.0 .address_size 32", 1, "addresses of 32 bits are not supported"),
        (".entry k() { .loc 1 2 ret; }", 1, "found `ret` where a column of a line was expected"),
        (".entry k() .maxntid { }", 1, "found `{` where a number was expected"),
        (&deep, 1, "scopes nested more than 64 deep are not supported"),
        ("\n\n\n.global .b32 x[][4294967296][4294967296][16] = {1};", 4, "\"x\" is larger than any memory"),
        ("\n\n\n.func f(.reg .b32 a[4]) { ret; }", 4, "the register \"a\" is declared as an array"),
        (".entry k() {\nL: L: ret; }", 2, "the name \"L\" is declared twice in one scope"),
        (".entry k() {\n.reg .b32 a; .reg .b64 a; }", 2, "the name \"a\" is declared twice in one scope"),
        (".entry k() {\n.reg .b32 %r<5>, %r<6>; }", 2, "the name \"%r\" is declared twice in one scope"),
        (".entry k() {\n.reg .b32 %r<20>; .reg .b64 %r1<5>; }", 2, "the name \"%r1\" is declared twice in one scope"),
        (".entry k() {\n.reg .b32 %r4, %r<5>; }", 2, "the name \"%r\" is declared twice in one scope"),
        (".entry k() {\n.reg .b32 %r<5>, %r4; }", 2, "the name \"%r4\" is declared twice in one scope"),
        (".entry k() {\n.shared .b32 s; .local .b32 s; }", 2, "the name \"s\" is declared twice in one scope"),
    ] {
        assert_eq!(error(text), format!("PTX line {line}: {why}"));
    }
    let scopes = ".entry k() {\n.reg .b32 %r<5>, %r5, %r1<5>, a; L: { .reg .b32 a, %r<5>; L: } }";
    Module::parse(scopes).expect("each scope has names of its own");
}

#[test]
fn lines_mean_nothing() {
    let text =
        ".version 7.0 .target sm_80, debug .address_size 64 .file 1 \"a\", 5, 6 .visible .entry k(.param .u64 p) {
        .reg .b32 %r1; .reg .b64 %rd1; ld.param.u64 %rd1, [p];
        .loc 1 5 0 mov.u32 %r1, 9; .loc 1 6 0, function_name L + 4, inlined_at 1 2 3 st.global.u32 [%rd1], %r1; ret; }";
    let ran = run_on(text, shape(1, 1), &[0], &Config::default());
    assert_eq!(ran.unwrap_or_else(|stop| panic!("{stop}")).1, [9]);
}

#[test]
fn debug_sections_and_hints_are_skipped() {
    let text = format!(
        "{PRELUDE}.file 1 \"a.rs\"\n.extern .func (.param .b32 r) f(.param .b64 p);\n.func g() {{ {{ ret; }} }}
        .weak .entry k(.param .u64 .ptr .align 1 p) .maxntid 256, 1, 1 .minnctapersm 2 {{ .pragma \"nounroll\"; ret; }}
        .section .debug_abbrev {{ .b8 1, 2\n .b8 17 }}\n"
    );
    let module = Module::parse(&text).expect("it parses");
    let kernel = module.kernel("k").expect("a kernel");
    kernel.supported().expect("it is empty");
    assert_eq!((kernel.params()[0].align, kernel.param_bytes(), module.kernels().count()), (8, 8, 1));
}

/// Launches every kernel of a text that can be launched, with a small work limit.
fn run_all(text: &str) {
    let Ok(module) = Module::parse(text) else { return };
    let config = Config { threads: 1, work_limit: 2000, ..Config::default() };
    for kernel in module.kernels().filter(|kernel| kernel.supported().is_ok()) {
        let memory = Memory::new(1 << 10);
        let address = memory.alloc(1 << 10).expect("it fits");
        let params: Vec<u8> = address.to_le_bytes().into_iter().cycle().take(kernel.param_bytes()).collect();
        let _ = run(kernel, &shape(2, 40), &params, &memory, &config);
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Module::parse(&text);
        let _ = Module::parse(&String::from_utf8_lossy(&bytes));
    }

    /// Pieces of PTX in any order get further than noise.
    #[test]
    fn no_shuffled_ptx_breaks_the_parser(
        words in prop::collection::vec(prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()), 0..60),
    ) {
        run_all(&words.join(" "));
        run_all(&format!("{PRELUDE}.entry k(.param .u64 p) {{ .reg .b32 %r<3>; .reg .b64 %rd<3>; {} }}", words.join(" ")));
    }

    /// A compiler's module, cut off, with a piece missing or a byte changed.
    #[test]
    fn no_damaged_module_breaks_the_parser(at in 0..4000_usize, gap in 0..40_usize, byte: u8) {
        let whole = &include_bytes!("../data/cuda/programs-13.5-sm_90.ptx")[..4000];
        let _ = Module::parse(&String::from_utf8_lossy(&whole[..at]));
        run_all(&String::from_utf8_lossy(&[&whole[..at], &whole[(at + gap).min(4000)..], b"}"].concat()));
        let mut changed = whole.to_vec();
        changed[at] = byte;
        changed.push(b'}');
        run_all(&String::from_utf8_lossy(&changed));
    }
}

/// Pieces of PTX.
const WORDS: &str = r#".entry k ( ) { } [ ] ; , .param .u64 .reg .b32 %r<3> %r1 %rd1 %p @ @! .shared .align 4 tile tile[64]
    [] mov.u32 ld.param.u64 add.s32 bra $L $L: bar.sync 0x7fffffff 0f3F800000 - + 9223372036854775807
    ld.global.v4.b32 {%r1,%r1,%r2,%r2} [%rd1+4] [p] p .loc .file "a" ret setp.eq.u32 st.shared.u8 %tid.x
    %clock64 mov.b64 _ .local .extern ="#;
