//! Registers wider than the value that an instruction loads, stores or converts.

use warpstride_interp::ErrorKind;
use warpstride_interp::Memory;

use super::{launch, refusal, shape};

/// Instructions that NVIDIA's assembler accepts, and the value that an H100 leaves in `%rd2`.
/// `%rd1` is `0x89abcdef_fedcba98`, and `%rd3` is its address.
const TAKEN: [(&str, u64); 16] = [
    ("cvt.s64.s32 %rd2, %rd1;", 0xffff_ffff_fedc_ba98),
    ("cvt.u64.s32 %rd2, %rd1;", 0xffff_ffff_fedc_ba98),
    ("cvt.u64.u32 %rd2, %rd1;", 0xfedc_ba98),
    ("cvt.s64.s8 %rd2, %rd1;", 0xffff_ffff_ffff_ff98),
    ("cvt.u32.u16 %rd2, %rd1;", 0xba98),
    ("cvt.u32.s8 %rd2, %rd1;", 0xffff_ff98),
    ("cvt.s32.s8 %rd2, %rd1;", 0xffff_ffff_ffff_ff98),
    ("cvt.s16.u8 %rd2, %rd1;", 0x98),
    ("cvt.s32.u64 %rd2, %rd1;", 0xffff_ffff_fedc_ba98),
    ("cvt.u8.s32 %rd2, %r1;", 0x98),
    ("cvt.s8.s32 %rd2, %r1;", 0xffff_ffff_ffff_ff98),
    ("cvt.sat.u8.s32 %rd2, %rd1;", 0),
    ("cvt.rn.f32.s32 %rd2, %rd1;", 0xcb91_a2b4),
    ("cvt.f64.f32 %rd2, %rd1;", 0xc7db_9753_0000_0000),
    ("ld.global.s16 %rd2, [%rd3];", 0xffff_ffff_ffff_ba98),
    ("ld.global.f32 %rd2, [%rd3];", 0xfedc_ba98),
];

/// Narrow results that a register of 32 bits holds, by the same rules.
const IN_32_BITS: [(&str, u64); 8] = [
    ("cvt.s16.s8 %r2, %rd1;", 0xffff_ff98),
    ("cvt.u16.s8 %r2, %rd1;", 0xff98),
    ("cvt.s16.u16 %r2, %rd1;", 0xffff_ba98),
    ("cvt.s16.s16 %r2, %rd1;", 0xffff_ba98),
    ("cvt.s16.u32 %r2, %r1;", 0xffff_ba98),
    ("cvt.s16.s32 %r2, %r1;", 0xffff_ba98),
    ("cvt.s16.u64 %r2, %rd1;", 0xffff_ba98),
    ("cvt.u16.s64 %r2, %rd1;", 0xba98),
];

/// Instructions that it does not accept.
const REFUSED: [&str; 14] = [
    "cvt.s64.s32 %rs2, %rd1;",
    "cvt.u32.u32 %rs2, %r1;",
    "cvt.u32.u32 %r2, %rs1;",
    "cvt.s64.s32 %rd2, %f1;",
    "cvt.f64.f32 %rd2, %fd1;",
    "cvt.f64.f32 %rd2, %s1;",
    "cvt.rn.f32.s32 %fd1, %r1;",
    "cvt.rn.f32.s32 %s2, %r1;",
    "ld.global.u32 %rs2, [%rd3];",
    "ld.global.u32 %f1, [%rd3];",
    "ld.global.f32 %fd1, [%rd3];",
    "ld.global.f32 %s2, [%rd3];",
    "st.global.b64 [%rd3], %r1;",
    "st.global.f32 [%rd3], %s1;",
];

fn program(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data) {{
        .reg .b16 %rs<3>; .reg .b32 %r<3>; .reg .s32 %s<3>; .reg .f32 %f<3>; .reg .f64 %fd<3>; .reg .b64 %rd<4>;
        ld.param.u64 %rd3, [data]; ld.global.u64 %rd1, [%rd3]; ld.global.u32 %r1, [%rd3]; mov.b64 %rd2, -1;
        {body}\nst.global.u64 [%rd3+8], %rd2; ret; }}"
    )
}

#[test]
fn of_a_wider_source_the_low_bits_count_and_a_wider_result_is_extended() {
    let widened = IN_32_BITS.map(|(body, expected)| (format!("{body} cvt.u64.u32 %rd2, %r2;"), expected));
    for (body, expected) in TAKEN.map(|(body, expected)| (body.to_owned(), expected)).into_iter().chain(widened) {
        let memory = Memory::new(1 << 12);
        let data = memory.upload(&[0x89ab_cdef_fedc_ba98_u64, 0]).expect("it fits");
        launch(&program(&body), shape(1, 1), &data.to_le_bytes(), &memory).unwrap_or_else(|stop| panic!("{stop}"));
        assert_eq!(memory.download::<u64>(data + 8, 1).expect("it is there"), [expected], "{body}");
    }
}

#[test]
fn narrower_registers_and_those_of_other_types_are_refused() {
    for body in REFUSED {
        let error = refusal(&program(body));
        assert_eq!(error.kind(), ErrorKind::UnsupportedPtx);
        assert!(error.to_string().contains("which does not hold one of type"), "{error}");
    }
}
