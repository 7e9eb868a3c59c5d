use super::*;

fn place(line: u32, source: Option<&str>) -> Place {
    let instruction = "bar.sync 0".into();
    Place { line, instruction, source: source.map(str::to_owned), block: [0; 3], thread: [0; 3] }
}

fn race(within: Within, later: Place, earlier_place: Place) -> Finding {
    let party = |access| Party { access, strength: Strength::Plain, bytes: 4 };
    let [later_party, earlier] = [AccessKind::Load, AccessKind::Store].map(party);
    let problem =
        Problem::Race { space: Space::Shared, address: 0, within, later: later_party, earlier, earlier_place };
    Finding { check: Check::Racecheck, kernel: "k".into(), place: later, problem, times: 1, note: false }
}

#[test]
fn a_pair_of_lines_has_the_advice_of_its_widest_race() {
    let of = |line, source| place(line, Some(source));
    let mut findings = [
        race(Within::Warp, of(1, "k.cu:7"), of(2, "k.cu:9")),
        // The unrolled other way round.
        race(Within::Block, of(4, "k.cu:9"), of(3, "k.cu:7")),
        race(Within::Warp, of(1, "k.cu:7"), of(5, "k.cu:10")),
        race(Within::Warp, place(7, None), place(9, None)),
    ];
    widen(&mut findings);
    let texts = findings.map(|finding| finding.to_string());
    for text in &texts[..2] {
        assert!(text.ends_with("are not ordered; put `__syncthreads()` between them, or make both atomic"), "{text}");
        assert!(text.contains("for `__shared__` memory at 0x0"), "{text}");
    }
    assert!(texts[2].contains("put `__syncwarp()` between"), "{}", texts[2]);
    assert!(texts[3].contains("put a bar.warp.sync between") && texts[3].contains("for shared memory"), "{}", texts[3]);
}

#[test]
fn a_barrier_in_a_condition_is_named_in_the_language_of_the_source() {
    let text = |source| {
        let problem = Problem::Unaligned { arrived: 0xffff_0000, absent: 0xffff };
        let (check, kernel) = (Check::Synccheck, "k".into());
        Finding { check, kernel, place: place(3, source), problem, times: 1, note: false }.to_string()
    };
    let end = "with lanes 16 to 31 of its warp and without lanes 0 to 15; move it out of the condition";
    assert!(text(Some("a/k.cu:7")).ends_with(&format!("comes to `__syncthreads()` {end}")));
    for source in [None, Some("k.rs:7")] {
        assert!(text(source).ends_with(&format!("comes to `bar.sync 0` {end}")), "{}", text(source));
    }
}

#[test]
fn a_mask_is_told_by_its_lanes() {
    let masks = [0, 1, 1 << 31, 0b1011, u32::MAX, 0x5555_5555];
    let texts = ["no lane", "lane 0", "lane 31", "lanes 0 to 1, 3", "lanes 0 to 31", "lanes 0x55555555"];
    assert_eq!(masks.map(lanes), texts);
}
