use super::*;

#[test]
fn an_entry_keeps_what_it_is_made_of() {
    let (last_block, last_pc) = ((1 << BLOCK_BITS) - 2, MAX_INSTRUCTIONS as u32 - 1);
    for (block, warp, lane, pc, clock) in [(0, 0, 0, 0, 0), (last_block, 31, 31, last_pc, u32::MAX)] {
        let entry = Entry::new(block, warp, lane, Deed::new(pc, true, Sync::of("st.relaxed.gpu.b64"), 8), clock);
        assert!(!entry.is_none() && entry.writes() && entry.is_strong() && entry.as_list().is_none());
        assert_eq!((entry.block(), entry.warp(), entry.pc(), entry.clock), (block, warp, pc, clock));
        assert_eq!(entry.who(lane as u32).thread, warp * 32 + lane as u32);
    }
    assert_eq!(Entry::list(last_block, 77).as_list(), Some(77));
    assert!(Entry::default().is_none());
}

/// Each kind of access that PTX distinguishes, in several blocks.
fn kinds() -> Vec<Entry> {
    let opcodes = ["ld.b32", "st.b32", "ld.relaxed.gpu.b32", "st.relaxed.gpu.b32", "ld.relaxed.cta.b32"];
    let opcodes =
        opcodes.into_iter().chain(["st.relaxed.cta.b32", "ld.volatile.b64", "st.volatile.b64", "st.relaxed.cta.b64"]);
    let of = |opcode: &str, block| {
        let width = if opcode.ends_with("64") { 8 } else { 4 };
        Entry::new(block, 0, 0, Deed::new(0, opcode.starts_with("st"), Sync::of(opcode), width), 0)
    };
    opcodes.flat_map(|opcode| (0..3).map(move |block| of(opcode, block))).collect()
}

/// Tries every access that may come later.
#[test]
fn what_replaces_another_races_with_all_that_the_other_would_race_with() {
    let kinds = kinds();
    for (e, f) in kinds.iter().flat_map(|e| kinds.iter().map(move |f| (*e, *f))) {
        let all = |later: &dyn Fn(&Entry) -> bool| {
            kinds.iter().filter(|g| later(g)).all(|g| !f.conflicts(*g) || e.conflicts(*g))
        };
        assert!(!e.replaces(f, true) || all(&|_| true), "{e:?} {f:?}");
        let wide = |g: &Entry| !g.is_strong() || g.what & DEVICE != 0;
        assert!(!wide(&e) || !wide(&f) || !e.replaces(f, false) || all(&wide), "{e:?} {f:?}");
        assert!(!e.covers(f) || all(&|g| g.block() != e.block()), "{e:?} {f:?}");
        // No entry is kept without need.
        assert!(e.replaces(f, true) || !all(&|_| true), "{e:?} {f:?}");
    }
}
