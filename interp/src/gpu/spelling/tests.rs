use super::*;

/// Orders that ptxas 13.5 takes.
#[test]
fn modifiers_find_their_places() {
    for (written, spelled) in [
        ("div.ftz.rn.f32", "div.rn.ftz.f32"),
        ("cvt.f32.f64.rn", "cvt.rn.f32.f64"),
        ("cvt.u32.rzi.f32", "cvt.rzi.u32.f32"),
        ("st.global.volatile.f32", "st.volatile.global.f32"),
        ("ld.u32.global", "ld.global.u32"),
        ("ld.global.u32.v2", "ld.global.v2.u32"),
        ("ld.ca.global.u32", "ld.global.ca.u32"),
        ("add.f32.rn", "add.rn.f32"),
        ("fma.sat.rn.f32", "fma.rn.sat.f32"),
        ("setp.s32.lt", "setp.lt.s32"),
        ("setp.and.lt.s32", "setp.lt.and.s32"),
        ("set.u32.f32.lt", "set.lt.u32.f32"),
        ("atom.u32.global.add", "atom.global.add.u32"),
        ("shfl.b32.sync.bfly", "shfl.sync.bfly.b32"),
        ("vote.ballot.sync.b32", "vote.sync.ballot.b32"),
        ("add.u32.cc", "add.cc.u32"),
        ("prmt.f4e.b32", "prmt.b32.f4e"),
        ("slct.f32.f32.ftz", "slct.ftz.f32.f32"),
        ("cvta.u64.global", "cvta.global.u64"),
        ("mad.f32", "mad.rn.f32"),
        ("ldu.global.v2.f32", "ld.global.v2.f32"),
        ("mad.sat.ftz.f32", "mad.rn.ftz.sat.f32"),
    ] {
        assert_eq!(ordered(written).as_deref(), Some(spelled), "{written}");
    }
    for unknown in ["", "add", "cvt.f64.f32.rn.rn", "tex.2d.v4.f32.f32", &format!("ld{}", ".x".repeat(40))] {
        assert_eq!(ordered(unknown), None, "{unknown}");
    }
}
