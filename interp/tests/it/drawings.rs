//! Drawings of accesses, as golden text: a kernel accesses offsets that the test chooses, and the
//! test draws its report.
//!
//! `WARPSTRIDE_BLESS=1 cargo test --test it drawings` rewrites `tests/data/drawings`; read the
//! difference afterwards.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use roxmltree::Document;
use warpstride_interp::{InstructionReport, Memory, Report, WarpAccess};

use super::{launch, shape};

/// Marks an inactive lane.
const OFF: u32 = u32::MAX;
/// The size of the accessed memory in bytes.
const BYTES: u32 = 1 << 15;

/// Runs one instruction with each lane's offset in `[A]`, in memory of [`BYTES`] bytes: shared
/// memory if the instruction says so, else global.
fn access(instruction: &str, offsets: [u32; 32]) -> Report {
    let text = format!(
        ".version 7.0 .target sm_80 .address_size 64 .file 1 \"/folder/a<b>&'c'.cu\"
        .visible .entry gather(.param .u64 offsets, .param .u64 buffer) {{
            .reg .pred %p; .reg .b16 %h<2>; .reg .b32 %r<6>; .reg .f32 %f<5>; .reg .f64 %d<3>; .reg .b64 %rd<6>;
            .shared .align 16 .b8 tile[{BYTES}];
            ld.param.u64 %rd1, [offsets]; ld.param.u64 %rd2, [buffer]; mov.u32 %r1, %tid.x;
            mad.wide.u32 %rd3, %r1, 4, %rd1; ld.global.u32 %r2, [%rd3]; setp.ne.u32 %p, %r2, 0xffffffff;
            cvt.u64.u32 %rd4, %r2; add.u64 %rd4, %rd4, %rd2; mov.u32 %r3, tile; add.u32 %r4, %r2, %r3;
            .loc 1 7 3
            @%p {instruction};
            ret; }}",
        instruction = instruction.replace("[A]", if instruction.contains(".shared") { "[%r4]" } else { "[%rd4]" })
    );
    let memory = Memory::new(1 << 20);
    let params = [memory.upload(&offsets).expect("it fits"), memory.alloc(BYTES.into()).expect("it fits")];
    let params: Vec<u8> = params.into_iter().flat_map(u64::to_le_bytes).collect();
    launch(&text, shape(1, 32), &params, &memory).unwrap_or_else(|stop| panic!("{stop}"))
}

/// The report of the instruction, and its access.
fn accessed(report: &Report) -> (&InstructionReport, &WarpAccess) {
    let instruction = report.instruction("@%p").expect("it is in the text");
    let worst = instruction.worst_global.as_ref().or(instruction.worst_shared.as_ref());
    (instruction, worst.expect("it accessed something"))
}

#[track_caller]
fn is_drawn_as(name: &str, instruction: &str, offset: fn(u32) -> u32) {
    let report = access(instruction, std::array::from_fn(|lane| offset(lane as u32)));
    let drawing = accessed(&report).1.draw();
    is_drawn_narrow(&accessed(&report).1.draw_within(80), &drawing);
    is_golden(name, &drawing);
}

/// Asserts that a drawing fits 80 columns, but for the line that explains it, and that its cells
/// hold what those of the wide one do.
#[track_caller]
fn is_drawn_narrow(narrow: &str, wide: &str) {
    let cells = |drawing: &str| {
        let rows =
            drawing.lines().filter(|line| line.contains('│') && !line.contains("sector") && !line.contains("bank"));
        let cells = rows.flat_map(|row| row.split_once('│').expect("a label").1.chars());
        let mut cells: Vec<char> = cells.filter(|c| ![' ', '│'].contains(c)).collect();
        cells.sort_unstable();
        cells
    };
    assert_eq!(cells(narrow), cells(wide), "{narrow}");
    let count = narrow.lines().count();
    assert!(narrow.lines().take(count - 1).all(|line| line.chars().count() <= 80), "{narrow}");
}

#[track_caller]
fn is_golden(name: &str, drawing: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/drawings").join(name).with_extension("txt");
    if std::env::var_os("WARPSTRIDE_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        fs::write(&path, drawing).expect("writing the drawing");
    }
    let golden = fs::read_to_string(&path).expect("a drawing; WARPSTRIDE_BLESS=1 makes it");
    assert_eq!(drawing, golden, "{name}: not as drawn before; now it is\n{drawing}");
}

#[test]
fn accesses_to_global_memory_are_drawn_as_sectors() {
    is_drawn_as("global-coalesced", "ld.global.f32 %f1, [A]", |lane| 4 * lane);
    is_drawn_as("global-misaligned", "ld.global.f32 %f1, [A]", |lane| 4 * lane + 20);
    is_drawn_as("global-every-second-word", "ld.global.f32 %f1, [A]", |lane| 8 * lane);
    is_drawn_as("global-column", "st.global.f32 [A], %f1", |lane| 512 * lane + 12);
    is_drawn_as("global-scattered", "ld.global.f32 %f1, [A]", |lane| lane * lane * 7919 % 128 * 4);
    is_drawn_as("global-broadcast", "ld.global.f32 %f1, [A]", |_| 64);
    is_drawn_as("global-bytes", "ld.global.u8 %h1, [A]", |lane| lane + 3);
    is_drawn_as("global-16-bytes", "st.global.v4.f32 [A], {%f1, %f2, %f3, %f4}", |lane| 16 * lane);
    is_drawn_as("global-5-lanes", "ld.global.f64 %d1, [A]", |lane| if lane % 7 == 3 { 24 * lane } else { OFF });
    is_drawn_as("global-1-lane", "ld.global.u8 %h1, [A]", |lane| if lane == 31 { 1000 } else { OFF });
}

#[test]
fn a_narrow_drawing_has_half_of_each_row_in_order_and_no_empty_rows() {
    let narrow = |name, instruction, offset: fn(u32) -> u32| {
        let report = access(instruction, std::array::from_fn(|lane| offset(lane as u32)));
        is_golden(name, &accessed(&report).1.draw_within(80));
    };
    narrow("narrow-global-misaligned", "ld.global.f32 %f1, [A]", |lane| 4 * lane + 20);
    narrow("narrow-shared-2-way", "ld.shared.f32 %f1, [A]", |lane| 8 * lane);
    narrow("narrow-shared-column", "ld.shared.f32 %f1, [A]", |lane| 128 * lane);
}

#[test]
fn accesses_to_shared_memory_are_drawn_as_banks() {
    is_drawn_as("shared-conflict-free", "ld.shared.f32 %f1, [A]", |lane| 4 * lane);
    is_drawn_as("shared-2-way", "ld.shared.f32 %f1, [A]", |lane| 8 * lane);
    is_drawn_as("shared-column", "ld.shared.f32 %f1, [A]", |lane| 128 * lane);
    is_drawn_as("shared-padded-column", "st.shared.f32 [A], %f1", |lane| 132 * lane);
    is_drawn_as("shared-broadcast", "ld.shared.f32 %f1, [A]", |lane| lane / 8 * 4);
    is_drawn_as("shared-8-bytes", "ld.shared.f64 %d1, [A]", |lane| 8 * lane);
    is_drawn_as("shared-8-bytes-2-way", "st.shared.f64 [A], %d1", |lane| 16 * lane);
    is_drawn_as("shared-8-bytes-in-pairs", "ld.shared.f64 %d1, [A]", |lane| lane / 2 * 8);
    is_drawn_as("shared-16-bytes", "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [A]", |lane| 16 * lane);
    is_drawn_as("shared-9-lanes", "st.shared.f32 [A], %f1", |lane| if lane < 9 { 64 * lane } else { OFF });
}

#[test]
fn atomics_are_drawn_with_the_lanes_that_take_turns() {
    is_drawn_as("global-atomic", "atom.global.add.u32 %r1, [A], %r2", |lane| lane / 4 * 4);
    is_drawn_as("shared-atomic", "atom.shared.add.u32 %r1, [A], %r2", |lane| lane / 8 * 4 + lane % 2 * 128);
    is_drawn_as("shared-atomic-cas", "atom.shared.cas.b32 %r1, [A], %r2, %r3", |lane| lane / 2 * 4);
    is_drawn_as("shared-atomic-count", "red.shared.add.u32 [A], 1", |_| 8);
    is_drawn_as("shared-atomic-loop", "atom.shared.add.u64 %rd5, [A], %rd1", |lane| lane / 4 * 8);
}

/// Two lanes' bytes may share a wavefront where others are off; a compare is a second pass.
#[test]
fn ideal_wavefronts_are_as_few_as_the_bytes_need() {
    type Case = (&'static str, fn(u32) -> u32, [u64; 3]);
    let cases: [Case; 8] = [
        ("ld.shared.u8 %h1, [A]", |lane| lane, [1, 0, 0]),
        ("ld.shared.f64 %d1, [A]", |lane| 8 * lane, [2, 0, 0]),
        ("ld.shared.f64 %d1, [A]", |lane| if lane % 2 == 0 { 8 * lane } else { OFF }, [1, 0, 0]),
        ("ld.shared.f64 %d1, [A]", |_| 0, [1, 0, 0]),
        ("st.shared.v4.f32 [A], {%f1, %f2, %f3, %f4}", |lane| 64 * lane, [0, 4, 0]),
        ("atom.shared.add.u32 %r1, [A], %r2", |_| 0, [0, 0, 1]),
        ("atom.shared.cas.b32 %r1, [A], %r2, %r3", |lane| 4 * lane, [0, 0, 2]),
        ("atom.shared.add.u64 %rd5, [A], %rd1", |lane| 8 * lane, [2, 0, 4]),
    ];
    for (instruction, offset, expected) in cases {
        let ideal = access(instruction, std::array::from_fn(|lane| offset(lane as u32))).ideal;
        assert_eq!([ideal.shared_load, ideal.shared_store, ideal.shared_atomic], expected, "{instruction}");
    }
}

#[test]
fn drawings_are_as_images_what_they_are_as_text() {
    let report = access("ld.global.f32 %f1, [A]", std::array::from_fn(|lane| lane as u32 * 100 / 4 * 4));
    let (_, access) = accessed(&report);
    let image = access.to_svg();
    let image = Document::parse(&image).expect("it is XML");
    let texts: Vec<&str> =
        image.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    for line in access.draw().lines().take(2) {
        assert!(texts.contains(&line), "{line:?} is not among {texts:?}");
    }
    for lane in 0..32 {
        assert_eq!(texts.iter().filter(|text| **text == lane.to_string()).count(), 1, "lane {lane}");
    }
    let moved = image.descendants().filter(|node| node.attribute("class") == Some("moved")).count();
    assert_eq!(moved as u64, report.instruction("@%p").expect("it is there").global.sectors);
}

#[test]
fn an_image_of_a_report_has_every_access_and_escapes_what_it_quotes() {
    let report = access("st.shared.f32 [A], %f1", std::array::from_fn(|lane| lane as u32 * 4));
    let image = report.to_svg();
    let image = Document::parse(&image).expect("it is XML");
    let titles = image.descendants().filter(|node| node.attribute("class") == Some("title"));
    let titles: Vec<&str> = titles.filter_map(|node| node.text()).collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
    assert!(titles[0].ends_with(": ld.global.u32 %r2, [%rd3]"), "{titles:?}");
    assert!(
        titles[1].starts_with("a<b>&'c'.cu:7 (PTX line ") && titles[1].ends_with("): @%p st.shared.f32 [%r4], %f1"),
        "{titles:?}"
    );
}

#[test]
fn an_image_says_what_it_shows() {
    let report = access("st.global.f32 [A], %f1", std::array::from_fn(|lane| lane as u32 * 512));
    let child = |image: &str, name: &str| {
        let image = Document::parse(image).expect("it is XML");
        assert_eq!(image.root_element().attribute("role"), Some("img"));
        let child = image.root_element().children().find(|node| node.has_tag_name(name));
        child.and_then(|node| node.text()).expect("a text").to_owned()
    };
    let (instruction, access) = accessed(&report);
    let drawing = access.draw();
    let [heading, cost] = [0, 1].map(|line| drawing.lines().nth(line).expect("two lines"));
    let said = format!("{heading}. {cost}.");
    assert_eq!(child(&access.to_svg(), "title"), "Memory accesses of a warp");
    assert_eq!(child(&access.to_svg(), "desc"), said);
    let all = child(&report.to_svg(), "desc");
    let title = instruction.title();
    assert!(all.ends_with(&format!("{}. {said}", title.strip_prefix("/folder/").expect("the file's folder"))), "{all}");
}

/// The largest number in the row with this name, summed over the groups of lanes.
fn most_in_a_bank(drawing: &str, name: &str) -> u64 {
    let of_a_group = |line: &str| {
        let numbers = line.split('│').nth(1).expect("cells").split_whitespace();
        numbers.map(|number| number.parse::<u64>().expect("a number")).max().expect("a bank")
    };
    drawing.lines().filter(|line| line.trim_start().starts_with(name)).map(of_a_group).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A drawing counts independently: its counts must equal the counters, and it must fit a
    /// terminal.
    #[test]
    fn drawings_agree_with_the_counters(
        places in prop::array::uniform32(0_u32..1000), spread in 1_u32..40, lanes: u32, full: bool, log_bytes in 0_u32..5,
        shared: bool,
    ) {
        let space = if shared { "shared" } else { "global" };
        let (operation, value) = [
            ("u8", "%h1"), ("u16", "%h1"), ("f32", "%f1"), ("f64", "%d1"), ("v2.f64", "{%d1, %d2}"),
        ][log_bytes as usize];
        let lanes = if full || lanes == 0 { u32::MAX } else { lanes };
        let offset = |lane: usize| (places[lane] % (25 * spread)) << log_bytes;
        let offsets = std::array::from_fn(|lane| if lanes >> lane & 1 == 1 { offset(lane) } else { OFF });
        let report = access(&format!("ld.{space}.{operation} {value}, [A]"), offsets);
        let (counted, access) = accessed(&report);
        let drawing = access.draw();
        prop_assert!(drawing.lines().all(|line| line.chars().count() <= 120), "{}", drawing);
        let cost = drawing.lines().nth(1).expect("two lines");
        let number: u64 = cost.split(' ').next().expect("a word").parse().expect("a number");
        prop_assert_eq!(number, counted.global.sectors + counted.shared.wavefronts, "{}", cost);
        prop_assert_eq!(most_in_a_bank(&drawing, "words"), counted.shared.wavefronts, "{}", drawing);
        Document::parse(&report.to_svg()).expect("it is XML");
    }

    /// The same for atomics, for which the lanes of a bank take turns.
    #[test]
    fn drawings_of_atomics_agree_with_the_counters(
        places in prop::array::uniform32(0_u32..40), spread in 1_u32..40, lanes: u32, shared: bool,
    ) {
        let space = if shared { "shared" } else { "global" };
        let on = |lane: usize| lane == 0 || lanes >> lane & 1 == 1;
        let offsets = std::array::from_fn(|lane| if on(lane) { 4 * (places[lane] * spread) } else { OFF });
        let report = access(&format!("atom.{space}.add.u32 %r1, [A], %r2"), offsets);
        let (counted, access) = accessed(&report);
        prop_assert_eq!(u64::from(access.taken), counted.global.sectors + counted.shared.wavefronts);
        let excess = if shared { counted.shared.bank_conflicts } else { counted.global.sectors - counted.ideal_sectors };
        prop_assert_eq!(u64::from(access.excess), excess);
        prop_assert!(!shared || (1..=counted.shared.wavefronts).contains(&counted.ideal_wavefronts));
        let drawing = access.draw();
        prop_assert!(drawing.lines().all(|line| line.chars().count() <= 120), "{}", drawing);
        prop_assert_eq!(most_in_a_bank(&drawing, "lanes"), counted.shared.wavefronts, "{}", drawing);
    }
}
