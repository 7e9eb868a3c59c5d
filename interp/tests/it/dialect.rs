//! PTX as people, other compilers and earlier versions write it. NVIDIA's assembler takes all of
//! it, unless a test says that it does not.

use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Config, Memory, Module, run};

use super::{launch, run_on, shape};

/// The words that one thread of `body` stores through the register `p`; it has a few registers.
#[track_caller]
fn words(before: &str, body: &str) -> Vec<u32> {
    let text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n{before}\n.visible .entry k(.param .u64 out) {{
            .reg .b64 p; .reg .b32 a, b; .reg .f32 f; .reg .f64 d; .reg .pred q, r;
            ld.param.u64 p, [out];
            {body}
            ret; }}"
    );
    let ran = run_on(&text, shape(1, 1), &[0; 4], &Config::default());
    ran.unwrap_or_else(|stop| panic!("{body}: {stop}")).1
}

/// The word that `body` leaves in the register `a`.
#[track_caller]
fn word(before: &str, body: &str) -> u32 {
    words(before, &format!("{body} st.global.u32 [p], a;"))[0]
}

/// Why the kernel of that body cannot run.
#[track_caller]
fn refused(before: &str, body: &str) -> String {
    let text = format!(
        ".version 8.0 .target sm_90 .address_size 64 {before} .visible .entry k() {{
            .reg .b32 a; .reg .b64 p; .reg .f32 f; {body} ret; }}"
    );
    super::refusal(&text).to_string()
}

#[test]
fn a_directive_and_a_type_may_touch() {
    assert_eq!(word("", "{ .reg.b32 f, g; mov.b32 f, 3; mov.b32 g, 4; add.s32 a, f, g; }"), 7);
    assert_eq!(word("", ".shared.align 8 .b32 s; st.shared.u32 [s], 7; ld.shared.u32 a, [s];"), 7);
    assert_eq!(word(".global.align 4 .v2.u32 g;", ".reg.v2.b32 v; ld.global.v2.u32 v, [g]; mov.u32 a, v.y;"), 0);
    assert_eq!(word(".global .attribute(.unified(19, 95)) .b32 g = 7;", "ld.global.u32 a, [g];"), 7);
    assert_eq!(word("", "mov .u32 a, 3; add .s32 a, a, 4;"), 7);
}

#[test]
fn a_prototype_may_end_without_a_semicolon() {
    let next = ".visible .func (.param .b32 r) next (.param .b32 x)";
    let body = "{ .reg .b32 y; ld.param.b32 y, [x]; add.s32 y, y, 1; st.param.b32 [r], y; ret; }";
    let call = "ld.global.u32 a, [five];
        { .param .b32 arg; .param .b32 got; st.param.b32 [arg], a; call.uni (got), next, (arg); ld.param.b32 a, [got]; }";
    let five = ".global .align 4 .b32 five = 5;";
    assert_eq!(word(&format!("{next}\n{five}\n{next}\n{body}"), call), 6);
    assert_eq!(word(&format!("{next} .noreturn\n{five}\n{next} .noreturn\n{body}"), call), 6);
    assert_eq!(word(&format!(".visible .entry k(.param .u64 out)\n{five} {next} {body}"), call), 6);
}

#[test]
fn no_function_runs_in_place_of_another() {
    let before = ".visible .func (.param .b32 r) only (.param .b32 x)
        .visible .func (.param .b32 r) g (.param .b32 x) { st.param.b32 [r], 100; ret; }";
    let message = refused(before, "{ .param .b32 x1, r1; st.param.b32 [x1], 1; call.uni (r1), only, (x1); }");
    assert!(message.contains("this module does not define the function \"only\""), "{message}");
}

#[test]
fn text_that_is_not_understood_is_an_error() {
    for (text, why) in [
        (".func f() .sometimes { ret; }", "the directive \".sometimes\" is not supported"),
        (".entry k() .sometimes 3 { ret; }", "the directive \".sometimes\" is not supported"),
        (".func f() hello { ret; }", "the directive \"hello\" is not supported"),
        (".version { .entry k() { }", "found `{` where a version was expected"),
        (".target 80 .entry k() { }", "found `80` where a target was expected"),
        (".file 1 \"a\", .entry k() { }", "found `.entry` where a time or a size was expected"),
        (".pragma nounroll; .entry k() { }", "found `nounroll` where a string was expected"),
        (".entry k() { p: .callprototype _ () .what; ret; }", "found `.what` where `;` was expected"),
    ] {
        let error = Module::parse(text).expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn vectors_of_registers_have_elements() {
    assert_eq!(word("", ".reg .v2 .b32 v; mov.u32 v.x, 3; mov.u32 v.y, 4; add.s32 a, v.x, v.y;"), 7);
    assert_eq!(word("", ".reg .v4 .b32 v; mov.u32 v.r, 3; mov.u32 v.a, 4; add.s32 a, v.x, v.w;"), 7);
    let body = ".reg .v4 .u32 v<2>; mov.v4.u32 v1, {1, 2, 3, 4}; mov.v4.u32 v1, {v1.w, v1.z, v1.y, v1.x};
        st.global.v4.u32 [p], v1; ld.global.v4.u32 v0, [p]; st.global.u32 [p+4], v0.w;";
    assert_eq!(words("", body), [4, 1, 2, 1]);
    assert_eq!(
        words("", ".reg .v2 .b32 v; .reg .b64 w; mov.b64 w, 0x700000003; mov.b64 v, w; st.global.v2.b32 [p], v;")[..2],
        [3, 7]
    );
    let special = ".reg .v4 .u32 v; mov.v4.u32 v, %ntid; add.u32 a, v.x, v.w; mov.v4.u32 {b, a, _, _}, %nctaid;";
    assert_eq!(word("", special), 1);
    assert!(refused("", ".reg .v2 .b32 v; add.u32 v, a, a;").contains("unsupported PTX"));
    assert!(refused("", ".reg .v2 .b32 v; add.u32 v.z, a, a;").contains("v.z"));
}

#[test]
fn vectors_of_registers_are_numbers_of_16_bytes_at_most() {
    for (kind, fits) in
        [("v2 .b64", true), ("v4 .f16x2", true), ("v4 .b64", false), ("v2 .b128", false), ("v2 .pred", false)]
    {
        let parsed = Module::parse(&format!(".version 8.3 .target sm_90 .entry k() {{ .reg .{kind} v; ret; }}"));
        let error = parsed.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error.contains("a vector of registers has at most 16 bytes"), !fits, "{kind}: {error}");
    }
}

#[test]
fn a_number_that_a_call_passes_has_the_precision_of_the_parameter() {
    let f =
        ".func (.param .f32 r) single(.param .f32 x) { .reg .f32 t; ld.param.f32 t, [x]; st.param.f32 [r], t; ret; }
        .func (.param .f64 r) double(.param .f64 x) { .reg .f64 t; ld.param.f64 t, [x]; st.param.f64 [r], t; ret; }";
    for number in ["1.5", "0f3FC00000", "0d3FF8000000000000"] {
        assert_eq!(word(f, &format!("call (a), single, ({number});")), 1.5_f32.to_bits(), "{number}");
        let double = format!("call (d), double, ({number}); cvt.rn.f32.f64 f, d; mov.b32 a, f;");
        assert_eq!(word(f, &double), 1.5_f32.to_bits(), "{number}");
    }
    assert!(refused(f, "call (a), single, (1);").contains("single, (1)"));
}

#[test]
fn a_number_has_the_precision_that_a_conversion_reads() {
    for (convert, value) in [
        ("cvt.rn.f16.f32 h, 1.5; cvt.u32.u16 a, h;", 0x3e00),
        ("cvt.rn.bf16.f32 h, -1.5; cvt.u32.u16 a, h;", 0xbfc0),
        ("cvt.rni.s32.f32 a, 2.5;", 2),
        ("cvt.rni.s32.f64 a, 0f40600000;", 4),
        ("cvt.rn.f32.f64 f, 0f3FC00000; mov.b32 a, f;", 0x3fc0_0000),
    ] {
        assert_eq!(word("", &format!(".reg .b16 h; {convert}")), value, "{convert}");
    }
}

#[test]
fn an_instruction_on_integers_takes_no_fraction() {
    for wrong in
        ["mov.u32 a, 0f3F800000;", "mov.s64 p, 1.5;", "selp.u32 a, 0f3F800000, a, q;", "st.u32 [p], 0f3F800000;"]
    {
        let message = refused("", &format!(".reg .pred q; {wrong}"));
        assert!(message.contains("a floating-point number where an integer is required"), "{message}");
    }
    assert_eq!(word("", "mov.b32 a, 0f3F800000; and.b32 a, a, 0f7FFFFFFF;"), 1_f32.to_bits());
}

#[test]
fn vectors_of_registers_are_parameters() {
    let f = ".func (.reg .v4 .b32 x) swap(.reg .b32 n, .reg .v2 .f32 y) {
        .reg .b32 t; mov.b32 x.x, y.y; mov.b32 x.y, y.x; mov.b32 x.z, n; add.u32 t, n, 1; mov.b32 x.w, t; ret; }
        .func (.reg .v2 .b64 x) g(.reg .v2 .b64 y) { add.u64 x.x, y.x, y.y; mov.b64 x.y, 1; ret; }";
    let body =
        ".reg .v4 .b32 v; .reg .v2 .f32 w; mov.v2.f32 w, {1.0, 2.0}; call (v), swap, (5, w); st.global.v4.b32 [p], v;";
    assert_eq!(words(f, body), [2_f32.to_bits(), 1_f32.to_bits(), 5, 6]);
    let body = ".reg .v2 .b64 v; mov.v2.b64 v, {3, 4}; call (v), g, (v); call (_), g, (v); cvt.u32.u64 a, v.x;";
    assert_eq!(word(f, body), 7);
    for wrong in [".reg .v2 .b32 v; call (v), swap, (5, v);", ".reg .v4 .b32 v; call (v), swap, (v, a);"] {
        assert!(refused(f, wrong).contains("a value where a variable or a vector is required"), "{wrong}");
    }
}

#[test]
fn modifiers_stand_in_any_order() {
    let body = "mov.f32 f, 0f40400000; div.ftz.rn.f32 f, f, f; st.global.f32 [p], f;
        mov.f64 d, 0d401C000000000000; cvt.f32.f64.rn f, d; st.global.volatile.f32 [p+4], f;
        setp.s32.lt q, 1, 2; setp.and.eq.u32 r, 1, 1, q; selp.u32 a, 7, 3, r; st.u32.global [p+8], a;
        add.u32.cc a, 0xffffffff, 1; addc.u32 a, 0, 0; atom.u32.global.add b, [p+12], a;";
    assert_eq!(words("", body), [1_f32.to_bits(), 7_f32.to_bits(), 7, 1]);
}

#[test]
fn a_body_may_declare_variables_of_the_module() {
    assert_eq!(word("", ".global .b32 seven = 7; ld.global.u32 a, [seven];"), 7);
    assert_eq!(word("", ".const .b32 seven[2] = {6, 7}; ld.const.u32 a, [seven+4];"), 7);
    let scopes =
        "{ .global .b32 x = 3; ld.global.u32 a, [x]; } { .global .b32 x = 4; ld.global.u32 b, [x]; } add.u32 a, a, b;";
    assert_eq!(word(".global .b32 x = 100;", scopes), 7);
    let follow = ".reg .b64 z; ld.global.u64 z, [y]; ld.u32 a, [z];";
    for pointer in [
        ".global .b32 x = 7; .global .u64 y = x;",
        ".global .b32 x = 7, other = 3; .global .u64 y[2] = {generic(x), other};",
        ".const .b32 x[2] = {3, 7}; { .global .b32 y = 3; } .global .u64 y = generic(x) + 4;",
        ".global .u64 x = 7, y = x;",
        ".global .b32 x = 7; { .global .b32 x = 3; } .global .u64 y = x; { .global .b32 x = 4; }",
    ] {
        assert_eq!(word(".global .b32 x = 100;", &format!("{pointer} {follow}")), 7, "{pointer}");
    }
    let later = ".global .u64 y = x; .global .b32 x = 3;";
    assert_eq!(word(".global .b32 x = 7;", &format!("{later} {follow}")), 7);
    assert_eq!(
        word("", ".reg .b64 z; .global .u64 y = y; ld.global.u64 z, [y]; setp.eq.u64 q, z, 0; selp.u32 a, 3, 7, q;"),
        7
    );
    assert!(refused("", &format!("{later} {follow}")).contains("points to x, which is not declared"));
    assert_eq!(
        word(
            ".global .b32 x = 7;",
            &format!(
                "{{ {} }}",
                "
        .global .u64 y = x; .reg .b64 z; ld.global.u64 z, [y]; ld.global.u32 a, [z];"
            )
        ),
        7
    );
    assert!(refused("", "{ .global .b32 x; } ld.global.u32 a, [x];").contains("the name \"x\" is not declared"));
}

#[test]
fn operands_are_elements_negations_and_expressions() {
    assert_eq!(word("", ".shared .align 4 .b32 s[4]; st.shared.u32 s[2], 7; ld.shared.u32 a, [s+8];"), 7);
    assert_eq!(word("", ".shared .b32 pad; .shared .align 4 .b16 s[4]; mov.u32 a, s[2];"), 8);
    assert_eq!(word("", ".shared .align 8 .v2 .b32 s[4]; mov.u32 a, s[3];"), 12);
    assert_eq!(word(".global .u32 g[3] = {1, 2, 7};", "ld.global.u32 a, g[2];"), 7);
    assert_eq!(word("", "setp.eq.u32 q, 1, 2; selp.u32 a, 7, 3, !q;"), 7);
    assert_eq!(word("", "setp.eq.u32 q, 1, 2; and.pred r, !q, !q; mov.pred q, !r; selp.u32 a, 3, 7, q;"), 7);
    for (expression, value) in [
        ("(3 + 4) * 1", 7),
        ("3 + 4 * 2 - 1", 10),
        ("-(2)", -2_i32 as u32),
        ("~3 & 0xff", 0xfc),
        ("!3", 0),
        ("1 ? 2 : 3", 2),
        ("3 > 2 ? 1 : 0", 1),
        ("(.s64) -8 >> 1", -4_i32 as u32),
        ("(.u64) -1 / 2 >> 32", 0x7fff_ffff),
        ("-1 / 2", 0),
        ("-1U / 2 >> 32", 0x7fff_ffff),
        ("7 % 4", 3),
        ("1 << 4 | 5 ^ 1", 20),
        ("1 < 2 && 0", 0),
        ("0 || 2 <= 2", 1),
        ("WARP_SZ * 2", 64),
        ("0xFFFFFFFFFFFFFFFF / 3 == 0x5555555555555555", 1),
        ("-7 / 2 == -3", 1),
        ("-7 % 3", 0),
        ("(7 % 3) - 2 < 0", 0),
        ("~0 < 0", 0),
        ("(1 ? -1 : 1U) > 0", 0),
        ("(0 ? 1 : -1U) > 0", 1),
        ("1 << 65", 2),
        ("8 >> 65", 4),
        ("-8 >> 65", -4_i32 as u32),
    ] {
        assert_eq!(word("", &format!("mov.u32 a, {expression};")), value, "{expression}");
    }
    assert_eq!(word("", "mov.f32 f, 1.0 / 4.0 + 0.5; mov.b32 a, f;"), 0.75_f32.to_bits());
    assert_eq!(words("", "st.global.f32 [p], 1.5; st.global.f32 [p+4], -0.5;")[..2], [1.5_f32, -0.5].map(f32::to_bits));
    assert_eq!(
        words("", "mov.u32 a, 3; st.global.u32 [p], a + 4; mov.u64 p, p; add.u32 a, a-2, 0; st.global.u32 [p+4], a;")
            [..2],
        [7, 1]
    );
    assert_eq!(word("", "st.global.u32 [p+4*2], 7; ld.global.u32 a, [p+16-(2*4)];"), 7);
    assert_eq!(word(".global .u32 g[2] = {1 << 3, 8 - 1};", "ld.global.u32 a, [g+4];"), 7);
    assert_eq!(word("", "mov.u32 a, %warpid + 1 << 3;"), 8);
    for wrong in
        ["1 / 0", "1 % 0", "1.0 + 1", "!1.0", "1.0 ? 2 : 3", "(3", "3 +", "(.f32) 1", "1 ? 2", &"(".repeat(100_000)]
    {
        assert!(refused("", &format!("mov.u32 a, {wrong};")).contains("operands have a form"), "{wrong}");
    }
}

#[test]
fn an_index_may_be_a_register_and_counts_elements_of_the_type() {
    let before = ".global .b32 g[4] = {1, 2, 7, 4}; .const .b16 c[4] = {1, 2, 7, 4};";
    let fill = ".shared .b32 s0[4]; .shared .align 16 .v2 .b32 s[4]; .reg .b64 w; .reg .b16 h; .reg .s32 n;
        st.shared.u32 [s+8], 7; mov.u32 b, 1; mov.u64 w, 1; mov.u16 h, 1; mov.s32 n, -1;";
    for read in [
        "ld.shared.u32 a, s[b+1];",
        "ld.shared.u32 a, s[h+1];",
        "ld.shared.u32 a, s[w+1];",
        "mov.u64 w, 0x100000002; ld.shared.u32 a, s[w];",
        "ld.shared.u32 a, s[n+6>>1];",
        "ld.shared.u32 a, s[n+3];",
        "ld.shared.u32 a, s[2];",
        "ld.shared.v2.u32 {a, b}, s[b+1];",
        "st.shared.u32 s[n], 7; ld.shared.u32 a, s0[b+2];",
        "st.shared.u32 s[-1], 7; ld.shared.u32 a, s0[3];",
        "ld.shared.u32 a, s[%laneid+2];",
        "mov.u32 a, s[b+1]; ld.shared.u32 a, [a];",
        "cvta.shared.u64 w, s[b+1]; ld.u32 a, [w];",
        "ld.shared.u32 a, s[b]; ld.shared.u32 a, s[b+1];",
        "setp.eq.u32 q, b, 1; @!q ld.shared.u32 a, s[b]; @q ld.shared.u32 a, s[b+1];",
        "ld.global.u32 a, g[b+1];",
        "ld.global.u32 a, g[w+1];",
        "mov.b64 w, g[b+1]; ld.global.u32 a, [w];",
        "ld.const.u16 a, c[b+1];",
        ".local .b32 l[4]; st.local.u32 l[b+2], 7; ld.local.u32 a, [l+12];",
    ] {
        assert_eq!(word(before, &format!("{fill} {read}")), 7, "{read}");
    }
    assert_eq!(word(".extern .shared .b32 s[];", "mov.u32 b, 3; mov.u32 a, s[b];"), 12);
    assert_eq!(word(".extern .shared .b32 s[];", "mov.u32 a, s[2];"), 8);
    assert_eq!(word("", ".shared .b32 s[4]; mov.u32 a, s[-1];"), -4_i32 as u32);
    let array = ".shared .b32 s[4]; .reg .pred q;";
    for index in ["f", "q"] {
        assert!(
            refused("", &format!("{array} ld.shared.u32 a, s[{index}];"))
                .contains(&format!("the index {index} is not a register of integers"))
        );
    }
    assert!(refused("", "ld.global.u32 a, p[a];").contains("p is not an array"));
    let f = ".func (.param .b32 r) third(.param .b32 x[4]) {
        .reg .b32 t; ld.param.b32 t, x[2]; st.param.b32 [r], t; ret; }";
    let call = ".param .b32 x[4], r; st.param.b32 x[2], 7; call (r), third, (x);";
    assert_eq!(word(f, &format!("{{ {call} ld.param.b32 a, [r]; }}")), 7);
    let message = refused(f, &format!("{call} mov.u32 a, 2; ld.param.b32 a, x[a];"));
    assert!(message.contains("a register is the index of x, a parameter of a function"), "{message}");
}

/// The addresses that ptxas 13.5 computes for sm_75, in bytes behind the array's.
#[test]
fn an_index_has_32_bits_or_wraps_in_16_and_has_the_sign_of_its_type() {
    for (kind, bytes) in [
        ("s16", [-12, -8, 8]),
        ("u16", [0x3fff4, 0x3fff8, 8]),
        ("b16", [0x3fff4, 0x3fff8, 8]),
        ("s8", [-12, -8, 8]),
        ("u8", [0x3f4, 0x3f8, 0x408]),
        ("b8", [0x3f4, 0x3f8, 0x408]),
        ("s32", [-12, -8, 8]),
    ] {
        for (index, bytes) in ["k", "k+1", "k+5"].into_iter().zip(bytes) {
            let body = format!(
                ".reg .{kind} k; .reg .s32 n; .shared .b32 s[8]; mov.s32 n, -3; cvt.{}.s32 k, n; mov.u32 a, s[{index}];",
                kind.replace('b', "u")
            );
            assert_eq!(word("", &body) as i32, bytes, "{kind}, {index}");
        }
    }
    for (value, index, bytes) in [("0x200000005", "k", 20), ("2", "k+0x100000001", 12), ("2", "k+-3", 0xffff_fffc)] {
        let body = format!(
            ".reg .b64 k, w; .global .b32 g[4]; mov.b64 k, {value}; mov.b64 k, g[{index}]; mov.b64 w, g;
                sub.u64 k, k, w; shr.u64 w, k, 32; cvt.u32.u64 b, w; cvt.u32.u64 a, k; add.u32 a, a, b;"
        );
        assert_eq!(word("", &body), bytes, "{value}, {index}");
    }
}

#[test]
fn an_offset_is_one_expression() {
    for (offset, bytes) in [
        ("+1<<3", 8),
        ("+8|4", 12),
        ("+1?4:8", 4),
        ("+(4==4)*4", 4),
        ("+4+1<<2", 20),
        ("+-4+8", 4),
        ("-4+8", 4),
        ("", 0),
    ] {
        let body = format!(".shared .b32 s[8]; mov.u32 b, s+{bytes}; st.shared.u32 [b], 7;");
        assert_eq!(word("", &format!("{body} ld.shared.u32 a, [s{offset}];")), 7, "{offset}");
        assert_eq!(word("", &format!("{body} mov.u32 b, s; ld.shared.u32 a, [b{offset}];")), 7, "{offset}");
        assert_eq!(word("", &format!("mov.u32 b, 100; add.u32 a, b{offset}, 0;")), 100 + bytes, "{offset}");
    }
}

#[test]
fn constant_variables_have_addresses_of_their_own() {
    let is = |space: &str, variable: &str| {
        let body = format!(
            ".reg .b64 g; mov.u64 g, {variable}; cvta.{variable}.u64 g, g; isspacep.{space} q, g; selp.u32 a, 1, 0, q;"
        );
        word(
            ".const .b32 const_[2]; .global .b32 global_[2];",
            &body.replace(&format!("g, {variable};"), &format!("g, {variable}_;")),
        )
    };
    assert_eq!(
        [is("const", "const"), is("global", "const"), is("const", "global"), is("global", "global")],
        [1, 0, 0, 1]
    );
}

#[test]
fn special_registers_are_right_or_refused_by_what_they_are() {
    assert_eq!(word("", "mov.u32 a, %clock_hi;"), 0);
    assert_eq!(
        word("", "mov.u32 a, %globaltimer_hi; mov.u32 b, %globaltimer_lo; mov.u32 a, %nsmid; mov.u32 b, %smid;"),
        1
    );
    assert_eq!(word("", ".reg .b64 w; mov.u64 w, %gridid; cvt.u32.u64 a, w;"), 0);
    assert_eq!(word("", ".shared .b32 s[3]; mov.u32 a, s; mov.u32 a, %total_smem_size;"), 12);
    for (register, meaning) in [
        ("%envreg3", "a value that the driver sets for the program"),
        ("%pm3", "a performance counter of a multiprocessor"),
        ("%pm3_64", "a performance counter of a multiprocessor"),
        ("%reserved_smem_offset_0", "a bound of the shared memory that the system keeps"),
        ("%aggr_smem_size", "the shared memory that the system takes with the block's"),
    ] {
        let message = refused("", &format!("mov.u32 a, {register};"));
        let why = format!("it reads the special register {register}, {meaning}, which the software GPU does not have");
        assert!(message.contains(&why), "{message}");
    }
    assert!(refused("", "cvt.u64.u32 p, %clock;").contains("it reads %clock with another instruction than `mov`"));
    assert!(refused("", "mov.u32 a, %pma;").contains("the name \"%pma\" is not declared"));
}

/// The four words that each block of a kernel with these directives stores: rank, blocks of its
/// cluster, clusters of the grid, number of its cluster.
fn clusters(directives: &str, grid: u32) -> Result<Vec<u32>, String> {
    let text = format!(
        ".version 8.3 .target sm_90 .address_size 64
        .visible .entry ranks(.param .u64 out) {directives} {{
            .reg .b64 p, d; .reg .b32 b, a; ld.param.u64 p, [out];
            mov.u32 b, %ctaid.x; mul.wide.u32 d, b, 16; add.u64 p, p, d;
            mov.u32 a, %cluster_ctarank; st.global.u32 [p], a; mov.u32 a, %cluster_nctarank; st.global.u32 [p+4], a;
            mov.u32 a, %nclusterid.x; st.global.u32 [p+8], a; mov.u32 a, %clusterid.x; st.global.u32 [p+12], a;
            ret; }}"
    );
    let ran = run_on(&text, shape(grid, 1), &[0; 16], &Config::default());
    ran.map(|(_, words)| words).map_err(|stop| stop.to_string())
}

#[test]
fn blocks_have_ranks_in_the_clusters_that_directives_give() {
    let pairs = [0, 2, 2, 0, 1, 2, 2, 0, 0, 2, 2, 1, 1, 2, 2, 1];
    assert_eq!(clusters(".explicitcluster .reqnctapercluster 2, 1, 1", 4).as_deref(), Ok(&pairs[..]));
    assert_eq!(clusters(".reqnctapercluster 2", 4).as_deref(), Ok(&pairs[..]));
    let alone = [0, 1, 4, 0, 0, 1, 4, 1, 0, 1, 4, 2, 0, 1, 4, 3];
    assert_eq!(clusters(".maxclusterrank 4", 4).as_deref(), Ok(&alone[..]));
    for (directives, grid, why) in [
        (".reqnctapercluster 2", 3, "a grid of [3, 1, 1] blocks; its clusters have [2, 1, 1]"),
        (".reqnctapercluster 2, 2", 4, "a grid of [4, 1, 1] blocks; its clusters have [2, 2, 1]"),
        (".reqnctapercluster 0", 4, "clusters of 0 blocks; a GPU has clusters of 1 to 16"),
        (".reqnctapercluster 17", 17, "clusters of 17 blocks"),
        (".explicitcluster", 4, "give the launch a shape of clusters"),
        (".blocksareclusters .reqntid 1 .reqnctapercluster 2", 4, "it uses clusters of blocks (`.blocksareclusters`)"),
    ] {
        let message = clusters(directives, grid).expect_err(directives);
        assert!(message.contains(why), "{directives}: {message}");
    }
    let three =
        ".version 8.3 .target sm_90 .entry k(.param .u64 out) .reqnctapercluster 2, 2, 2 { .reg .b64 p; .reg .b32 a, b;
        ld.param.u64 p, [out]; mov.u32 a, %cluster_ctarank; atom.global.or.b32 b, [p], a; mov.u32 a, %cluster_ctaid.z;
        atom.global.add.u32 b, [p+4], a; mov.u32 a, %cluster_nctaid.y; st.global.u32 [p+8], a; ret; }";
    let grid = LaunchShape { grid: [2, 2, 2], block: [1; 3], dynamic_shared: 0 };
    assert_eq!(run_on(three, grid, &[0; 4], &Config::default()).expect("it runs").1, [7, 4, 2, 0]);
}

#[test]
fn a_kernel_is_refused_by_the_feature_that_it_uses() {
    let text = ".version 6.5 .target sm_52 .address_size 64 .global .texref pictures; .global .surfref planes[2];
        .global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = nearest };
        .func unused() { .reg .b32 a; bogus.b32 a; }
        .visible .entry plain(.param .u64 out) { .reg .b64 p; ld.param.u64 p, [out]; st.global.u32 [p], 7; ret; }";
    assert_eq!(run_on(text, shape(1, 1), &[0; 1], &Config::default()).expect("it runs").1, [7]);
    let before = ".global .texref t;";
    for (body, feature) in [
        (
            "tex.2d.v4.f32.f32 {f, f, f, f}, [t, {f, f}];",
            "it uses textures (`tex.2d`), which the software GPU does not have",
        ),
        ("suld.b.1d.b32.trap a, [t, {a}];", "it uses surfaces (`suld.b`)"),
        ("wgmma.fence.sync.aligned;", "it uses tensor cores (`wgmma.fence`)"),
        ("st.bulk.weak.shared::cta [a], 8, 0;", "it uses bulk copies (`st.bulk`)"),
        (
            "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [a], [a];",
            "it uses clusters of blocks (`clusterlaunchcontrol.try_cancel`)",
        ),
        ("vadd.u32.u32.u32 a, a.b0, a.b1;", "it uses video instructions (`vadd.u32`)"),
        ("mov.u64 p, t;", "is a texture, surface or sampler, which the software GPU does not have"),
        ("add.u77 a, a, a;", "the software GPU does not support this form of `add`, `add.u77`"),
        ("bogus.u32 a;", "the software GPU does not support this instruction, `bogus.u32`"),
    ] {
        let message = refused(before, body);
        assert!(message.contains(feature), "{body}: {message}");
    }
}

#[test]
fn a_refusal_names_the_users_line_of_what_a_header_inlined() {
    let message = refused(
        ".file 1 \"dir/user.cu\" .file 2 \"/usr/include/mma.hpp\" .file 3 \"other.cuh\"",
        ".loc 1 7 3 mov.u32 a, 1; .loc 3 20 1, function_name $L, inlined_at 1 7 3 mov.u32 a, 1;
         .loc 2 100 5, function_name $L+8, inlined_at 3 20 1 tex.1d.v4.f32.s32 {f, f, f, f}, [p, {a}];",
    );
    assert!(message.contains("dir/user.cu:7): it uses textures"), "{message}");
}

/// The module that also begins the mutated texts of `mutations.rs`.
#[test]
fn all_of_it_runs_in_one_kernel() {
    let text = include_str!("../data/dialect.ptx");
    let ran = run_on(text, shape(1, 1), &[0; 6], &Config::default()).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(ran.1, [7, 1, 4, 7, 0.75_f32.to_bits(), 7]);
}

#[test]
fn an_entry_of_the_first_versions_declares_its_parameters_in_its_body() {
    let kernel = |version: &str, body: &str| {
        let text = format!(
            ".version {version} .target sm_10 .entry k {{ .reg .u64 p; .reg .u32 a, n; {body}
                st.global.u32 [p], a; exit; }}"
        );
        let module = Module::parse(&text).expect("it parses");
        let kernel = module.kernel("k").expect("it is there");
        kernel.params().iter().map(|param| (param.name.clone(), param.offset, param.size)).collect::<Vec<_>>()
    };
    let old = "{ .param .u64 out; ld.param.u64 p, [out]; } .param .u32 n, m; ld.param.u32 a, [m];";
    assert_eq!(kernel("1.2", old), [("out".into(), 0, 8), ("n".into(), 8, 4), ("m".into(), 12, 4)]);
    assert_eq!(kernel("2.0", ".param .u64 to; st.param.u64 [to], 3; ld.param.u64 p, [to];"), []);
    let text = ".version 1.2 .target sm_10 .entry k { .reg .u64 p; .param .u64 out; ld.param.u64 p, [out];
        st.global.u32 [p], 7; exit; }";
    assert_eq!(run_on(text, shape(1, 1), &[0; 4], &Config::default()).expect("it runs").1[0], 7);
}

#[test]
fn ptx_of_the_first_versions_runs() {
    let text = "
        .version 1.4
        .target sm_10, map_f64_to_f32
        // compiled with nvopencc
        @@DWARF .section .debug_info, \"\",@progbits
        @@DWARF .byte 0x11, 0x22
        .file 1 \"<command-line>\"
        .file 2 \"a.cu\", 1234, 5678
        .reg .u32 %ra<3>;
        .const[2] .align 4 .b32 table[2] = {5, 6};
        .tex .u32 picture;
        .entry _Z1kPi (
                .param .u64 __cudaparm__Z1kPi_out)
        {
        .reg .u16 $rh<3>;
        .reg .u32 $r1, $r2;
        .reg .u64 $rd<3>;
        .reg .f32 $f<5>;
        .loc    2       4       0
$LBB1__Z1kPi:
        ld.param.u64    $rd1, [__cudaparm__Z1kPi_out];
        mov.u16         $rh1, %ctaid.x;
        cvt.u32.u16     $r1, %tid.x;
        ld.const[2].u32 %ra1, [table+4];
        add.u32         $r2, $r1, %ra1;
        mov.f32         $f1, 0f40000000;
        mov.f32         $f2, 0f40400000;
        mad.f32         $f3, $f1, $f2, $f1;
        mad.sat.f32     $f4, $f1, $f2, $f1;
        st.global.u32   [$rd1+0], $r2;
        st.global.f32   [$rd1+4], $f3;
        st.global.f32   [$rd1+8], $f4;
        exit;
$LDWend__Z1kPi:
        } // _Z1kPi
        ";
    let ran = run_on(text, shape(1, 1), &[0; 4], &Config::default()).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(ran.1, [6, 8_f32.to_bits(), 1_f32.to_bits(), 0]);
}

#[test]
fn double_precision_is_not_silently_single() {
    let refused = |target: &str, instruction: &str| {
        let text =
            format!(".version 1.4 .target {target} .entry k() {{ .reg .f64 d; .reg .f32 f; {instruction} exit; }}");
        Module::parse(&text)
            .expect("it parses")
            .kernel("k")
            .expect("it is there")
            .supported()
            .err()
            .map(|e| e.to_string())
    };
    let message = refused("sm_10, map_f64_to_f32", "add.f64 d, d, d;").expect("it is refused");
    assert!(message.contains("it computes in single precision in place of double (`map_f64_to_f32`)"), "{message}");
    assert_eq!(refused("sm_10, map_f64_to_f32", "add.f32 f, f, f;"), None);
    assert_eq!(refused("sm_13", "add.f64 d, d, d;"), None);
}

#[test]
fn only_the_launched_kernel_must_be_supported() {
    let text = ".version 7.0 .target sm_80 .entry bad() .blocksareclusters { ret; } .entry good() { ret; }";
    let module = Module::parse(text).expect("it parses");
    let runs = |name| {
        let kernel = module.kernel(name).expect("it is there");
        run(kernel, &shape(1, 1), &[], &Memory::new(1), &Config::default()).is_ok()
    };
    assert_eq!([runs("good"), runs("bad")], [true, false]);
    launch(
        ".entry k() .maxntid 32 .maxnreg 16 .pragma \"nounroll\"; { .pragma \"x\", \"y\"; ret; }",
        shape(1, 1),
        &[],
        &Memory::new(1),
    )
    .unwrap_or_else(|stop| panic!("{stop}"));
}
