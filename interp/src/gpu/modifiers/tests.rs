use super::*;

#[test]
fn an_opcode_says_what_it_orders() {
    let said = |opcode| {
        let sync = Sync::of(opcode);
        (sync.is_strong(), sync.acquires(), sync.releases(), sync.is_device_wide())
    };
    assert_eq!(said("ld.global.nc.v2.b32"), (false, false, false, false));
    assert_eq!(said("ld.volatile.shared.u32"), (true, false, false, true));
    assert_eq!(said("ld.acquire.cta.shared::cta.b32"), (true, true, false, false));
    assert_eq!(said("st.release.gpu.b64"), (true, false, true, true));
    assert_eq!(said("atom.shared::cta.add.u32"), (true, false, false, true));
    assert_eq!(said("atom.add.acq_rel.cta.u32"), (true, true, true, false));
    assert_eq!(said("membar.cta"), (true, true, true, false));
    assert_eq!(said("membar.gl"), (true, true, true, true));
    assert_eq!(said("fence.sc.cluster"), (true, true, true, false));
    assert_eq!(said("fence.sys"), (true, true, true, true));
    assert!(Sync::of("red.release.gpu.add.u32").is_reduction() && !Sync::of("atom.add.u32").is_reduction());
}
