use super::*;

const REGISTERS: [&str; 13] =
    ["pred", "b8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"];

/// The registers that ptxas 13.5 accepts for sm_90 as a source and as a result of `cvt` and
/// `ld`.
#[test]
fn a_register_holds_what_the_assembler_takes() {
    for (kind, takes) in [
        ("u8", "b8 b16 u16 s16 b32 u32 s32 b64 u64 s64"),
        ("s16", "b16 u16 s16 b32 u32 s32 b64 u64 s64"),
        ("u32", "b32 u32 s32 b64 u64 s64"),
        ("s64", "b64 u64 s64"),
        ("f32", "b32 f32 b64"),
        ("f64", "b64 f64"),
        ("b8", "b8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64"),
        ("b32", "b32 u32 s32 f32 b64 u64 s64 f64"),
        ("b64", "b64 u64 s64 f64"),
    ] {
        let taken: Vec<&str> = REGISTERS.into_iter().filter(|register| holds(register, kind, false)).collect();
        assert_eq!(taken.join(" "), takes, "{kind}");
    }
    let taken = |kind| REGISTERS.into_iter().filter(|register| holds(register, kind, true)).collect::<Vec<_>>();
    assert_eq!(taken("f32").join(" "), "b32 u32 s32 f32 b64");
    assert_eq!(taken("f64").join(" "), "b64 u64 s64 f64");
}
