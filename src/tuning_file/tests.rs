use std::fs;

use super::*;
use crate::random::SplitMix64;

fn info() -> DeviceInfo {
    let nominal_bandwidth = Some(4_900_000_000_000);
    DeviceInfo { nominal_bandwidth, ..DeviceInfo::of_none("NVIDIA H200", DriverKind::Cuda) }
}

fn with_row(before: &str, info: &DeviceInfo, row: Tuned) -> String {
    TuningFile::with_row(before.as_bytes(), info, row).unwrap()
}

fn row() -> Tuned {
    Tuned::new([[3, 3], [4, 3], [4, 4], [4, 4], [5, 2]], 256, 512).unwrap()
}

#[test]
fn a_section_is_read_as_it_was_written_and_leaves_others_alone() {
    let other = DeviceInfo { name: "NVIDIA H100 80GB HBM3".into(), ..info() };
    let first = with_row("", &other, row());
    let second = Tuned::new([[0, 0]; 5], 32, 1024).unwrap();
    let both = with_row(&first, &info(), second);
    assert_eq!(TuningFile::parse(both.as_bytes(), &other), Ok(Some(row())));
    assert_eq!(TuningFile::parse(both.as_bytes(), &info()), Ok(Some(second)));
    let again = with_row(&both, &info(), row());
    assert_eq!(TuningFile::parse(again.as_bytes(), &info()), Ok(Some(row())));
    assert_eq!(again.matches("[NVIDIA H200]").count(), 1, "{again}");
    // There is always room for one more.
    let many: String = (0..MAX_SECTIONS).map(|number| format!("[{number}]\n")).collect();
    let full = with_row(&many, &info(), row());
    assert_eq!(TuningFile::parse(full.as_bytes(), &info()), Ok(Some(row())));
    let fuller = TuningFile::parse(format!("{full}[one more]").as_bytes(), &info());
    assert_eq!(fuller, Err("it has more than 128 sections".into()));
}

#[test]
fn what_is_not_a_section_of_this_gpu_stays_as_it_is() {
    let before = "# Mine.\n\n[first]\na=b\r\n# Of the second.\n[ second ]\n\n  c =  d\n# Of ours.\n[NVIDIA H200]\nx = y\n\n# Of the last.\n[last]\n# At the end.";
    let expected = before.replace("[NVIDIA H200]\nx = y\n", "") + "\n";
    let after = with_row(before, &info(), row());
    let (kept, own) = after.split_at(expected.len());
    assert_eq!(kept, expected);
    assert!(own.starts_with("[NVIDIA H200]\ncompute_capability = 9.0\n"), "{own}");
    assert_eq!(with_row(&after, &info(), row()), after);
    // A file that is not one of ours loses nothing.
    for (text, why) in [("\u{0}a", "line 1 is neither"), ("[a]\nNotes of mine\n", "line 2 is neither")] {
        let refused = TuningFile::with_row(text.as_bytes(), &info(), row()).unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
    }
    assert_eq!(TuningFile::with_row(b"\xff", &info(), row()), Err("it is not UTF-8".into()));
}

#[test]
fn the_oldest_sections_make_room_for_a_new_one() {
    // Lines in a shorter form than ours: in ours, the file would be too long.
    let full = format!("[{}]\n{}", "old", "a=b\n".repeat(MAX_BYTES / 4 - 384));
    let some = with_row("", &DeviceInfo { name: "other".into(), ..info() }, row());
    for before in [full.clone(), full.clone() + &"c=d\n".repeat(382), "#".repeat(MAX_BYTES)] {
        assert!(before.len() <= MAX_BYTES);
        let after = with_row(&before, &info(), row());
        assert!(after.len() <= MAX_BYTES, "{}", after.len());
        assert_eq!(TuningFile::parse(after.as_bytes(), &info()), Ok(Some(row())));
    }
    assert!(with_row(&full, &info(), row()).contains("[old]"), "there is room for both");
    let two = full + &"c=d\n".repeat(300) + some.strip_prefix(COMMENT).unwrap();
    let after = with_row(&two, &info(), row());
    assert!(!after.contains("[old]") && after.contains("[other]"), "the older one goes");
}

#[test]
fn what_was_measured_on_another_gpu_or_with_other_kernels_is_stale() {
    let text = with_row("", &info(), row());
    let why = |text: &str, info: &DeviceInfo| TuningFile::parse(text.as_bytes(), info).unwrap_err();
    for (other, key) in [
        (DeviceInfo { compute_capability: (9, 1), ..info() }, "compute_capability"),
        (DeviceInfo { multiprocessors: 131, ..info() }, "multiprocessors"),
        (DeviceInfo { nominal_bandwidth: None, ..info() }, "bandwidth"),
        (DeviceInfo { l2_bytes: 1, ..info() }, "l2_bytes"),
    ] {
        assert!(why(&text, &other).starts_with(&format!("[NVIDIA H200] has {key} = ")), "{key}");
    }
    // Memory of one GPU may have a clock that differs by some percent from another's.
    for (bandwidth, is_fresh) in [(4_700, true), (5_100, true), (4_650, false), (5_200, false)] {
        let other = DeviceInfo { nominal_bandwidth: Some(bandwidth * 1_000_000_000), ..info() };
        assert_eq!(TuningFile::parse(text.as_bytes(), &other).is_ok(), is_fresh, "{bandwidth}");
    }
    let unknown = DeviceInfo { nominal_bandwidth: None, ..info() };
    let wrong = with_row("", &unknown, row()).replace("bandwidth = 0", "bandwidth = much");
    assert_eq!(why(&wrong, &unknown), "[NVIDIA H200] has bandwidth = much, and this device has 0");
    let version = text.replace(&format!("version = {}", env!("CARGO_PKG_VERSION")), "version = 0.0.1");
    assert!(why(&version, &info()).contains("[NVIDIA H200] has version = 0.0.1, and this program has"));
    let ptx = text.replace(ptx::PROVENANCE, "of another day");
    assert!(why(&ptx, &info()).contains("[NVIDIA H200] has ptx = of another day, and this"));
    let unknown = DeviceInfo { name: "another".into(), ..info() };
    assert_eq!(why(&text, &unknown), "it has no section [another]");
    let soft = DeviceInfo { kind: DriverKind::Soft, ..unknown };
    assert_eq!(TuningFile::parse(text.as_bytes(), &soft), Ok(None));
}

#[test]
fn a_wrong_file_is_refused_with_the_reason() {
    let text = with_row("", &info(), row());
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is in {text}");
        TuningFile::parse(text.replace(from, to).as_bytes(), &info()).unwrap_err()
    };
    for (from, to, why) in [
        ("tiles_1 = 3 3", "tiles_1 = 8 3", "tiles_1 is 8 3, and its numbers are at most 7 and 4"),
        ("tiles_16 = 5 2", "tiles_16 = 5 6", "tiles_16 is 5 6, and its numbers are at most 10 and 5"),
        ("tiles_1 = 3 3", "tiles_1 = 3", "tiles_1 is `3`, not two numbers"),
        ("tiles_1 = 3 3", "tiles_1 = 3 -3", "tiles_1 has `-3`, which is not a whole number that fits"),
        ("tiles_1 = 3 3", "tiles_1 = 3 4294967296", "tiles_1 has `4294967296`, which is not a whole number that fits"),
        ("tiles_1 = 3 3\n", "", "it lacks the line of tiles_1"),
        ("copy_block = 256", "copy_block = 0", "copy_block is 0, and a block has"),
        ("copy_block = 256", "copy_block = 100", "copy_block is 100, and a block has"),
        ("fill_block = 512", "fill_block = 2048", "fill_block is 2048, and a block has"),
        ("fill_block = 512", "fill_block = 512\nfill_block = 512", "`fill_block` is one line too many"),
        ("[NVIDIA H200]", "NVIDIA H200", "line 2 is neither"),
        ("[NVIDIA H200]", "[NVIDIA H200]\n[NVIDIA H200]", "line 3 begins a second section"),
    ] {
        let found = changed(from, to);
        assert!(found.contains(why), "{to:?}: {found}");
    }
    assert_eq!(TuningFile::parse(b"\xff", &info()), Err("it is not UTF-8".into()));
    let long = vec![b'#'; MAX_BYTES + 1];
    assert_eq!(TuningFile::parse(&long, &info()), Err("it has more than 4194304 bytes".into()));
}

fn with_plan(before: &str, info: &DeviceInfo, number: u64, way: &str) -> (String, Plans) {
    TuningFile::with_plan(before.as_bytes(), info, (number, way.into())).unwrap()
}

fn found(text: &str, info: &DeviceInfo) -> (Option<Tuned>, Plans, Option<String>) {
    let Parsed { row, weights, plans } = TuningFile::found(text.as_bytes(), info);
    let why = [row.as_ref().err(), weights.as_ref().err(), plans.as_ref().err()]
        .into_iter()
        .flatten()
        .map(|(why, _)| why.as_str());
    let why: Vec<&str> = why.collect();
    let why = (!why.is_empty()).then(|| why.join(". "));
    (row.unwrap_or_default(), plans.unwrap_or_default(), why)
}

#[test]
fn plans_are_read_as_they_were_written_beside_other_sections() {
    let other = DeviceInfo { name: "NVIDIA H100 80GB HBM3".into(), ..info() };
    let (text, _) = with_plan("", &other, 7, "boxes 2");
    let (text, _) = with_plan(&with_row(&text, &info(), row()), &info(), 9, "rows");
    let (text, plans) = with_plan(&text, &info(), u64::MAX, "packed_quads");
    assert_eq!(plans, [(9, "rows".into()), (u64::MAX, "packed_quads".into())]);
    assert_eq!(found(&text, &info()), (Some(row()), plans, None));
    // Plans need no row, and a plan that was measured again is the latest.
    assert_eq!(found(&text, &other), (None, vec![(7, "boxes 2".into())], None));
    let (text, plans) = with_plan(&text, &info(), 9, "boxes 1");
    assert_eq!(plans, [(u64::MAX, "packed_quads".into()), (9, "boxes 1".into())]);
    // The row can be tuned again.
    assert_eq!(found(&with_row(&text, &info(), row()), &info()), (Some(row()), plans, None));
}

#[test]
fn plans_that_are_stale_or_wrong_are_not_used_and_say_why() {
    let (text, plans) = with_plan(&with_row("", &info(), row()), &info(), 9, "boxes 1");
    let stale = text.replace(env!("CARGO_PKG_VERSION"), "0.0.1");
    let (row, none, why) = found(&stale, &info());
    assert!(
        row.is_none() && none.is_empty() && why.unwrap().matches("version = 0.0.1, and this program has").count() == 2
    );
    // A new plan starts the section anew.
    assert_eq!(with_plan(&stale, &info(), 9, "boxes 1").1, plans);
    for (from, to, says) in [
        ("plan_0000000000000009", "plan_9", "`plan_9` does not name a plan"),
        ("plan_0000000000000009", "plan_+000000000000009", "`plan_+000000000000009` does not name a plan"),
        ("= boxes 1", "= Boxes", "has `Boxes`, which is not the way of a plan"),
        ("= boxes 1", "=", "has ``, which is not the way of a plan"),
    ] {
        let (row, none, why) = found(&text.replace(from, to), &info());
        assert!(row.is_some() && none.is_empty() && why.as_ref().unwrap().contains(says), "{to}: {why:?}");
    }
}

#[test]
fn the_oldest_plans_go() {
    let mut text = String::new();
    for number in 0..1100 {
        text = with_plan(&text, &info(), number, "boxes 1").0;
    }
    let plans = found(&text, &info()).1;
    assert_eq!((plans.len(), plans[0].0, plans[1023].0), (1024, 76, 1099));
    let more = text.clone() + "plan_00000000000000ff = rows\n";
    assert!(found(&more, &info()).2.unwrap().contains("more than 1024 plans"));
}

/// Weights of many digits, all of which differ.
fn weights() -> Weights {
    let mut weights = Weights::NONE;
    let mut number = 0.0;
    for kernel in Estimated::ALL {
        for width_log2 in 0..WIDTHS.len() {
            for weight in weights.of_kernel_mut(*kernel, width_log2) {
                (*weight, number) = (number / 3.0, number + 1.0);
            }
        }
    }
    weights.boxes[4] = [0.0, Weights::LARGEST, 1.0];
    weights
}

fn with_weights(before: &str, info: &DeviceInfo, weights: &Weights) -> String {
    TuningFile::with_weights(before.as_bytes(), info, weights).unwrap()
}

fn found_weights(text: &str) -> Option<Weights> {
    let found = TuningFile::found(text.as_bytes(), &info()).weights;
    assert_eq!(TuningFile::parse_weights(text.as_bytes(), &info()), found.clone().map_err(|(why, _)| why));
    found.unwrap_or_default()
}

#[test]
fn weights_are_read_as_they_were_written_beside_other_sections() {
    let (text, plans) = with_plan(&with_row("", &info(), row()), &info(), 9, "rows");
    assert_eq!(found_weights(&text), None);
    let mut weights = weights();
    let text = with_weights(&text, &info(), &weights);
    assert_eq!((found_weights(&text), found(&text, &info())), (Some(weights), (Some(row()), plans.clone(), None)));
    assert!(
        text.contains("[NVIDIA H200, estimates]\n") && text.contains("\nwhole_tiles_1 = 0 0.3333333333333333 "),
        "{text}"
    );
    weights.rows[0][1] = 2.5;
    let again = with_row(&with_weights(&text, &info(), &weights), &info(), row());
    assert_eq!((found_weights(&again), found(&again, &info())), (Some(weights), (Some(row()), plans, None)));
    // A section goes alone.
    let without = TuningFile::without_weights(again.as_bytes(), &info()).unwrap();
    assert_eq!(
        (found_weights(&without), found(&without, &info())),
        (None, (Some(row()), found(&again, &info()).1, None))
    );
    assert_eq!(TuningFile::without_weights(without.as_bytes(), &info()), Ok(without));
    // Weights need no row.
    assert_eq!(found(&with_weights("", &info(), &weights), &info()), (None, Plans::new(), None));
}

#[test]
fn weights_that_are_stale_or_wrong_are_not_used_and_say_why() {
    let text = with_weights(&with_row("", &info(), row()), &info(), &weights());
    let stale = text.replacen(ptx::PROVENANCE, "of another day", 2);
    let (none, _, why) = found(&stale, &info());
    assert!(none.is_none() && why.unwrap().contains("[NVIDIA H200, estimates] has ptx = of another day, and this"));
    assert_eq!(found_weights(&stale), None);
    let line = "boxes_16 = 0 1000 1\n";
    for (to, says) in [
        ("", "it lacks the line of boxes_16"),
        ("boxes_8 = 0 1000 1\n", "it lacks the line of boxes_16"),
        ("boxes_16 = 0 1000\n", "boxes_16 is `0 1000`, not 3 weights from 0 to 1000 in digits"),
        ("boxes_16 = 0 1000 1 1\n", "boxes_16 is `0 1000 1 1`, not 3 weights"),
        ("boxes_16 = 0  1000 1\n", "boxes_16 is `0  1000 1`, not 3 weights"),
        ("boxes_16 = 0 1000.1 1\n", "boxes_16 is `0 1000.1 1`, not 3 weights"),
        ("boxes_16 = 0 1000 -1\n", "boxes_16 is `0 1000 -1`, not 3 weights"),
        ("boxes_16 = 0 1000 NaN\n", "boxes_16 is `0 1000 NaN`, not 3 weights"),
        ("boxes_16 = 0 1000 inf\n", "boxes_16 is `0 1000 inf`, not 3 weights"),
        ("boxes_16 = 0 1000 1e2\n", "boxes_16 is `0 1000 1e2`, not 3 weights"),
        ("boxes_16 = 0 1000 .\n", "boxes_16 is `0 1000 .`, not 3 weights"),
        ("boxes_16 = 0 1000 .5\n", "boxes_16 is `0 1000 .5`, not 3 weights"),
        ("boxes_16 = 0 1000 \u{665}\n", "boxes_16 is `0 1000 \u{665}`, not 3 weights"),
        (
            &format!("boxes_16 = 0 1000 1.{}\n", "0".repeat(200)),
            &format!("boxes_16 is `0 1000 1.{}`, not 3", "0".repeat(119)),
        ),
    ] {
        assert!(text.contains(line), "{text}");
        let changed = text.replace(line, to);
        let (row, _, why) = found(&changed, &info());
        assert!(row.is_some() && why.as_ref().is_some_and(|why| why.contains(says)), "{to}: {why:?}");
        assert_eq!(found_weights(&changed), None);
    }
    let more = text + "elements_32 = 1\n";
    assert!(
        found(&more, &info()).2.unwrap().contains("`elements_32` is one line too many in [NVIDIA H200, estimates]")
    );
}

#[test]
fn equal_weights_have_one_place() {
    let [mut first, second] = [weights(); 2];
    first.rows[2][0] = 0.25;
    let [one, other] = [&first, &second].map(TunedWeights::of);
    assert_eq!((TunedWeights::of(&first), one == other), (one, false));
    assert_eq!((one.weights(), other.weights()), (&first, &second));
}

#[test]
fn a_list_of_plans_has_a_number_that_stays() {
    let named = |text: &str| Some(text.to_owned());
    let [first, second] = [vec![(3, "rows".to_owned()), (1, "copy".into())], vec![(3, "copy".into())]];
    let [one, other] = [&first, &second].map(|plans| MeasuredPlans::of(plans.clone()));
    assert_eq!((MeasuredPlans::of(first), MeasuredPlans::of(Vec::new())), (one, MeasuredPlans::NONE));
    assert_eq!(
        [one.way(|| 3, named), one.way(|| 1, named), one.way(|| 2, named)],
        [Some("rows".into()), Some("copy".into()), None]
    );
    assert_eq!((other.way(|| 3, named), MeasuredPlans::NONE.way(|| 3, named)), (Some("copy".into()), None));
    assert_eq!(MeasuredPlans::from_number(one.number()), one);
}

#[test]
fn a_section_with_a_wrong_line_loses_no_plan() {
    let (text, _) = with_plan("", &info(), 9, "boxes 1");
    let wrong = text + "plan_3 = rows\n";
    let refused = TuningFile::with_plan(wrong.as_bytes(), &info(), (4, "rows".into())).unwrap_err();
    assert_eq!(refused, "`plan_3` does not name a plan");
}

#[test]
fn threads_that_keep_plans_lose_none_and_follow_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new").join("tuning.txt");
    let followed = Mutex::new(Plans::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (path, followed) = (&path, &followed);
            scope.spawn(move || {
                for number in 0..8 {
                    let plan = (8 * thread + number, "boxes 1".to_owned());
                    TuningFile::keep(path, &info(), plan, |plans| *lock(followed) = plans).unwrap();
                }
            });
        }
    });
    let plans = found(&fs::read_to_string(&path).unwrap(), &info()).1;
    assert_eq!((plans.len(), &plans), (32, &*lock(&followed)));
    let mut names: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["tuning.txt", "tuning.txt.lock"], "nothing else is left beside");
    let refused = TuningFile::keep(&path.join("below"), &info(), (1, "rows".into()), |_| panic!("it is not kept"));
    assert!(refused.unwrap_err().to_string().starts_with("cannot keep a measured plan in "));
}

/// `fuzz/` continues from here.
#[test]
fn a_mutated_file_is_read_within_limits_or_refused() {
    let other = DeviceInfo { name: "another".into(), ..info() };
    let text = with_row(&with_row("", &other, row()), &info(), row());
    let (text, _) = with_plan(&text, &info(), 9, "boxes 1");
    let text = with_weights(&text, &info(), &weights());
    let mut random = SplitMix64(1);
    let (mut accepted, mut written, mut read_plans, mut read_weights) = (0, 0, 0, 0);
    for _ in 0..20_000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(3) {
            let place = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[place] = random.draw() as u8,
                1 => bytes[place] = b"0123456789 =[]#\n-.e"[random.below(19) as usize],
                2 => drop(bytes.drain(place..bytes.len().min(place + random.below(40) as usize))),
                _ => bytes.truncate(place.max(1)),
            }
            bytes.push(b'\n');
        }
        read_plans += usize::from(TuningFile::parse_plans(&bytes, &info()).is_ok_and(|plans| plans > 0));
        if let Ok(Some(found)) = TuningFile::parse_weights(&bytes, &info()) {
            assert_eq!(found_weights(&with_weights("", &info(), &found)), Some(found));
            read_weights += 1;
        }
        if let Ok(Some(row)) = TuningFile::parse(&bytes, &info()) {
            assert_eq!(Tuned::new(row.across_log2(), row.copy_block(), row.fill_block()), Ok(row));
            accepted += 1;
        }
        // A row that is written into what can be read can be read.
        match TuningFile::with_row(&bytes, &info(), self::row()) {
            Ok(after) => {
                assert_eq!(TuningFile::parse(after.as_bytes(), &info()), Ok(Some(self::row())), "{after}");
                written += 1;
            }
            Err(why) => assert_eq!(read(&bytes).err(), Some(why)),
        }
    }
    assert!((100..15_000).contains(&accepted), "{accepted} of 20000 are accepted");
    assert!((accepted..20_000).contains(&written), "{written} of 20000 can be added to");
    assert!((100..19_000).contains(&read_plans), "{read_plans} of 20000 have plans");
    assert!((100..19_000).contains(&read_weights), "{read_weights} of 20000 have weights");
}

#[test]
fn only_a_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(contents(&folder.path().join("none")), Ok(None));
    assert_eq!(contents(folder.path()), Err("it is a folder, a pipe or a device".into()));
    assert_eq!(TuningFile::before(&folder.path().join("none")), Ok(Vec::new()));
    let notes = folder.path().join("notes");
    fs::write(&notes, "[a]\nNotes of mine").unwrap();
    let refused = TuningFile::before(&notes).unwrap_err();
    assert_eq!(refused, "line 2 is neither `key = value` nor `[name]`");
    let path = folder.path().join("long");
    fs::write(&path, vec![b'#'; 2 * MAX_BYTES]).unwrap();
    let text = contents(&path).unwrap().unwrap();
    assert_eq!(text.len(), MAX_BYTES + 1);
    assert!(read(&text).is_err() && TuningFile::before(&path).is_err());
}
