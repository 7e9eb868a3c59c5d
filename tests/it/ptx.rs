//! The shape of the PTX: what compiles without complaint, but would be slow, or two tiles instead
//! of one.

use std::sync::LazyLock;

use warpstride::abi::{
    CAST, ELEMENTS, ENTRIES, EntryId, Family, INTERLEAVE, Index, Key, NAIVE, NORMALIZE, OLDEST, PADDED, PROBE_COPY,
    RAGGED_TILE, STAGGERED, TILE, TILED, VECTOR_TILE, WIDTHS,
};
use warpstride::element::DType;
use warpstride::ptx;

/// All entries.
static TEXT: LazyLock<String> = LazyLock::new(ptx::text);

/// The statements of an entry's body, with inline assembly as LLVM copies it.
fn body(entry: &str) -> Vec<&'static str> {
    let start = TEXT.find(&format!(".entry {entry}(")).unwrap_or_else(|| panic!("{entry} is not in the PTX"));
    let text = &TEXT[start..];
    let text = &text[..text.find("\n}").expect("a body ends")];
    text.split([';', '\n']).map(|line| line.trim_start_matches([' ', '\t', '{'])).collect()
}

fn count(body: &[&str], opcode: &str) -> usize {
    body.iter().filter(|line| line.split_whitespace().any(|word| word == opcode)).count()
}

/// How an access of `width` bytes is spelled.
fn suffix(width: usize) -> String {
    if width == 16 { "v2.b64".to_owned() } else { format!("b{}", width * 8) }
}

#[test]
fn the_module_is_for_what_its_entries_need_together() {
    assert_eq!(ptx::TARGET, format!("sm_{}{}", OLDEST.0, OLDEST.1));
    assert!(TEXT.contains("\n.target sm_80\n"));
    let from = ["prebuilt, rustc ", "built from source, rustc "];
    assert!(from.iter().any(|from| ptx::PROVENANCE.starts_with(from)), "{}", ptx::PROVENANCE);
}

/// A device loads only that kernel for one kernel, for the oldest architecture that has what is in
/// it.
#[test]
fn a_module_of_an_entry_has_the_header_and_the_entry() {
    let header = &TEXT[..TEXT.find("\n.visible").expect("entries")];
    for family in [ELEMENTS, VECTOR_TILE, RAGGED_TILE] {
        for entry in family.entries() {
            let header = header.replace("sm_80", if entry.is_hinted() { "sm_80" } else { "sm_75" });
            let module = ptx::module(entry);
            assert_eq!(module.matches(".entry").count(), 1, "{entry}");
            let text = module.strip_prefix(&header).expect("the header comes first");
            assert!(
                text.starts_with(&format!("\n.visible .entry {entry}(")) && text.ends_with("\n}\n"),
                "{entry}: {text}"
            );
            assert!(TEXT.contains(text), "{entry}");
        }
    }
}

#[test]
fn every_access_names_its_space() {
    for line in TEXT.lines().map(|line| line.trim_start_matches('\t')) {
        for access in ["ld.", "st."] {
            if let Some(rest) = line.strip_prefix(access) {
                // A load that other blocks wait for has its order and scope before.
                let space = rest.trim_start_matches("acquire.gpu.").split('.').next();
                assert!(["global", "shared", "param"].map(Some).contains(&space), "{line:?}");
            }
        }
        assert!(!line.starts_with("call") && !line.contains(".local"), "{line:?}");
    }
}

#[test]
fn a_tile_is_reserved_once_and_moved_in_whole_elements() {
    let pitch = |family: &Family, width: usize| {
        let padding = if family.entry(4, Index::Narrow) == PADDED.entry(4, Index::Narrow) { width.max(4) } else { 0 };
        TILE as usize * width + padding
    };
    for family in [&TILED, &PADDED, &STAGGERED] {
        for (width, index) in WIDTHS.iter().flat_map(|&width| [(width, Index::Narrow), (width, Index::Wide)]) {
            let entry = family.entry(width, index).expect("every width").name();
            let body = body(entry);
            let tiles: Vec<_> = body.iter().filter(|line| line.contains(".shared .align")).collect();
            let bytes = TILE as usize * pitch(family, width);
            assert_eq!(tiles, [&format!(".shared .align 16 .b8 tile[{bytes}]")], "{entry}");
            assert_eq!(count(&body, "bar.sync"), 1, "{entry}");
            for access in ["ld.global", "st.shared", "ld.shared", "st.global"] {
                assert_eq!(count(&body, &format!("{access}.{}", suffix(width))), 4, "{access} in {entry}");
            }
            let at = |opcode: &str| body.iter().position(|line| line.starts_with(opcode)).expect(opcode);
            let last_load = body.iter().rposition(|line| line.starts_with("ld.global")).expect("four loads");
            assert!(last_load < at("st.shared"), "{entry} uses a value before all loads are under way");
        }
    }
}

#[test]
fn copy_and_naive_move_whole_elements() {
    let copy = body("copy_b128");
    for access in ["ld.global", "st.global"] {
        assert_eq!(count(&copy, &format!("{access}.{}", suffix(16))), 1, "{access} in copy");
        assert_eq!(count(&copy, &format!("{access}.b8")), 1, "the tail of copy");
        for width in WIDTHS {
            for index in [Index::Narrow, Index::Wide] {
                let entry = NAIVE.entry(width, index).expect("every width").name();
                assert_eq!(count(&body(entry), &format!("{access}.{}", suffix(width))), 4, "{access} in {entry}");
            }
        }
    }
}

/// A block's variable is local to the braces of inline assembly: inlined or copied twice, it would
/// be two.
#[test]
fn shared_memory_is_reserved_at_most_once_in_every_entry() {
    for entry in ENTRIES {
        let body = body(entry.name);
        let reserved = body.iter().filter(|line| line.contains(".shared .align")).count();
        assert!(reserved <= 1, "{} reserves shared memory {reserved} times", entry.name);
    }
}

/// Accesses without a policy would be those of the entry that has none, in the place of both.
#[test]
fn every_access_to_global_memory_of_a_hinted_kernel_is_hinted() {
    for entry in EntryId::all().filter(|entry| entry.is_hinted()).map(EntryId::entry) {
        let body = body(entry.name);
        let spelled = |what: &str| body.iter().filter(|line| line.starts_with(what)).count();
        for access in ["ld.global", "st.global"] {
            let (all, hinted) = (spelled(access), spelled(&format!("{access}.L2::cache_hint")));
            // Elements that fill no quad of structs or planes are each loaded and stored in one
            // place, as are the last bytes of a copy and the elements outside of quads of one
            // operand or two; and so are the ends of runs.
            match entry.name {
                name if name.starts_with("ragged") || name.starts_with("packed_quads") => {
                    assert!(hinted > 0 && spelled(&format!("{access}.v4")) == 0, "{access} in {name}");
                    assert_eq!(spelled("ld.global.L2::128B"), 0, "loads of lines in {name}");
                }
                name if name.starts_with("boxes") => {
                    // Rows are copied asynchronously, except at the ends of the source. Edges of
                    // lines are stored one by one.
                    let whole = if access == "ld.global" { "cp.async.c" } else { "st.global.L2::cache_hint.v4" };
                    let copies = |line: &&&str| line.starts_with(whole) && line.contains("cache_hint");
                    assert!(spelled(whole) > 0, "{whole} in {name}");
                    assert_eq!(body.iter().filter(copies).count(), spelled(whole), "{whole} in {name}");
                    assert_eq!(spelled("st.global.v4"), 0, "whole vectors in {name}");
                }
                // Operands in other orders, and the ends of rows, move element by element.
                name if name.starts_with("binary") => {
                    let whole = if access == "ld.global" { 2 } else { 1 };
                    assert_eq!((hinted, spelled(&format!("{access}.v4"))), (whole, 0), "whole vectors in {name}");
                }
                name => {
                    let of_two = ["triad"].iter().any(|operation| name.starts_with(operation));
                    let of_one = ["copy", "mul"].iter().any(|operation| name.starts_with(operation));
                    let rest = match access {
                        "ld.global" if of_two => 2,
                        _ => usize::from(of_two || of_one || name.contains("_quads_")),
                    };
                    assert!(hinted > 0 && all == hinted + rest, "{access} in {name}: {hinted} of {all}");
                }
            }
        }
        // Loads stay longer than stores.
        let policies =
            ["evict_last", "evict_first"].map(|policy| spelled(&format!("createpolicy.fractional.L2::{policy}.b64")));
        assert_eq!((policies, spelled("createpolicy")), ([1, 1], 2), "{}", entry.name);
    }
}

/// These kernels come with 32-bit and 64-bit arithmetic.
#[test]
fn narrow_kernels_compute_offsets_in_32_bits() {
    let families = [VECTOR_TILE, RAGGED_TILE];
    let step_in_bytes: Vec<_> = families.into_iter().flat_map(Family::entries).map(EntryId::name).collect();
    let has_wide =
        |name: &str| ENTRIES.iter().any(|entry| entry.name != name && entry.name.replace("_wide", "") == name);
    for name in ENTRIES.iter().map(|entry| entry.name).filter(|name| has_wide(name)) {
        let body = body(name);
        let uses = |opcodes: &[&str]| opcodes.iter().any(|opcode| count(&body, opcode) > 0);
        assert!(!uses(&["mul.hi.u64", "div.u64", "div.s64", "rem.u64", "rem.s64"]), "{name} divides in 64 bits");
        // From one row of a square to the next, tiles of quads step in bytes.
        let is_step = step_in_bytes.contains(&name);
        assert!(is_step || !uses(&["mul.lo.s64", "mad.lo.s64"]), "{name} multiplies in 64 bits");
    }
    for family in [&NAIVE, &TILED, &PADDED, &STAGGERED] {
        for entry in WIDTHS.into_iter().filter_map(|width| family.entry(width, Index::Narrow)) {
            assert_eq!(count(&body(entry.name()), "mul.wide.u32"), 0, "{entry}");
        }
    }
}

/// Every entry is found by its key and by no other's, and stands in one family.
#[test]
fn families_part_the_entries() {
    let mut names: Vec<_> = EntryId::all().map(EntryId::name).collect();
    assert_eq!(names, ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>());
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ENTRIES.len(), "two entries have one name");
    let hinted = RAGGED_TILE.entry(4, Index::Narrow).expect("there is one").hinted((9, 0));
    assert_eq!(hinted.name(), "ragged_tile_b32_hinted");
    assert!(RAGGED_TILE.has(hinted) && hinted.is_hinted() && !VECTOR_TILE.has(hinted));
    assert_eq!(RAGGED_TILE.entry(4, Index::Narrow).map(|entry| entry.hinted((7, 5)).name()), Some("ragged_tile_b32"));
    assert_eq!((RAGGED_TILE.entry(3, Index::Wide), INTERLEAVE.entry(16, Index::Narrow)), (None, None));
    assert_eq!((RAGGED_TILE.entries().len(), CAST.entries().len()), (15, 94));
    assert_eq!(CAST.get(Key::types(DType::Bf16, DType::I64)).name(), "cast_bf16_i64");
    assert_eq!(CAST.find(Key::types(DType::U8, DType::I8)), None);
    assert_eq!(NORMALIZE.get(Key::channels(3).and(Key::dtype(DType::F32))).name(), "normalize_3_f32");
    assert_eq!(NORMALIZE.find(Key::channels(5).and(Key::dtype(DType::F32))), None);
    assert_eq!(PROBE_COPY.get(Key::steps(8)).hinted((8, 0)).name(), "probe_copy_x8_hinted");
}
