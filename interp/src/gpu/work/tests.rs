use super::*;
use crate::gpu::isa;
use crate::gpu::modifiers::Sync;

#[test]
fn work_grows_with_what_an_instruction_takes() {
    let of = |opcode: &str| isa::forms(opcode).next().unwrap().work(Access::default());
    assert_eq!(["add.s32", "mov.b32", "bra", "add.f32"].map(of), [1; 4]);
    assert!(of("add.s32") < of("ld.global.b32") && of("ld.global.b32") < of("atom.global.add.u32"));
    assert!(of("fma.rn.f32") < of("ex2.approx.f32") && of("ex2.approx.f32") < of("sin.approx.f32"));
    assert_eq!(of("add.rn.f16x2"), 2 * of("add.rn.f16"));
    let locked = Access { width: 8, sync: Sync::of("ld.relaxed.gpu.global.u64"), ..Access::default() };
    assert!(isa::forms("ld.relaxed.gpu.global.u64").next().unwrap().work(locked) > of("ld.global.b32"));
    // No form is free, and none is so expensive that a launch of a few thousand would be
    // stopped.
    assert!(isa::FORMS.iter().all(|form| (1..=1000).contains(&form.work(Access::default()))));
}
