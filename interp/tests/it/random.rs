//! Random programs on the software GPU: they give an H100's results, and together use every form.
//! The short form runs a tenth of the recorded programs, and those whose output on the H100
//! differs.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use warpstride_interp::check::{Party, Problem, Strength, Within};
use warpstride_interp::{Checks, Finding};

use crate::programs::record::{DIFFERS, MISCOMPILED, Miscompiled, PROGRAMS, Record, entry};
use crate::programs::{Catalog, Program, draw};

use crate::long::{is_long, short_or_long};

/// Draws the programs of these seeds and calls `with` for each, on all processors.
fn for_each(seeds: impl IntoIterator<Item = u64>, catalog: &Catalog, with: impl Fn(&Program) + Sync) {
    let (seeds, next) = (seeds.into_iter().collect::<Vec<_>>(), AtomicUsize::new(0));
    let work = || {
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            with(&draw(*seed, catalog));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
}

#[test]
fn every_recorded_program_gives_what_the_device_gave() {
    let record = Record::committed();
    let renew = "renew tests/data/random-h100.json on a GPU as CONTRIBUTING.md says";
    let catalog = record.catalog().unwrap_or_else(|lost| panic!("{lost}; {renew}"));
    assert_eq!(record.programs.len() as u64, PROGRAMS, "{renew}");
    let differs = |entry: &&String| entry.ends_with(DIFFERS);
    let differing = (0..PROGRAMS).filter(|seed| differs(&&record.programs[*seed as usize]));
    assert!(differing.eq(MISCOMPILED.iter().map(|known| known.seed)), "explain them, or mend what is wrong");
    let is_run =
        |seed: &u64| is_long() || seed.is_multiple_of(10) || MISCOMPILED.iter().any(|known| known.seed == *seed);
    for_each((0..PROGRAMS).filter(is_run), &catalog, |program| {
        let (seed, text) = (program.seed, program.text());
        let output = program.interpret().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let (found, expected) = (entry(&text, Some(&output)), &record.programs[seed as usize]);
        assert_eq!(found[..8], expected[..8], "seed {seed} draws another program than the record's: {renew}");
        assert!(
            found == *expected || differs(&expected),
            "seed {seed}: another output than the one of {}",
            record.device
        );
    });
}

#[test]
fn what_is_miscompiled_has_its_cause_and_runs_without_it() {
    let catalog = Record::committed().catalog().expect("the record's forms are there");
    for known in MISCOMPILED {
        let program = draw(known.seed, &catalog);
        let without = program.clone().without(known.cause);
        let [before, after] = [&program, &without].map(|program| program.text().matches(known.cause).count());
        assert!(before > 0 && after == 0, "seed {}: {before} times {}, then {after}", known.seed, known.cause);
        assert!(program_lines(&without) > program_lines(&program) / 2, "seed {}: little is left", known.seed);
        let (_, findings) = without.checked(Checks::ALL).expect("it runs");
        assert!(findings.iter().all(is_of_scopes), "seed {}: {findings:?}", known.seed);
    }
}

#[test]
fn a_known_difference_is_of_its_program_and_has_no_other_cause() {
    let catalog = Record::committed().catalog().expect("the record's forms are there");
    let known = &MISCOMPILED[0];
    let program = draw(known.seed, &catalog);
    // A device with no other error, and one with further errors.
    let without_its_cause = |program: &Program| !program.text().contains(known.cause);
    assert!(Miscompiled::explains(&program, without_its_cause).is_some_and(|found| found.seed == known.seed));
    assert!(Miscompiled::explains(&program, |_| false).is_none());
    assert!(Miscompiled::explains(&draw(known.seed + 1, &catalog), |_| true).is_none());
}

#[test]
fn programs_use_every_function_of_the_table_and_none_stops() {
    let catalog = Catalog::new("sm_90", |_| true);
    let opcodes = Mutex::new(HashSet::new());
    for_each(0..600, &catalog, |program| {
        let text = program.text();
        program.interpret().unwrap_or_else(|why| panic!("seed {}: {why}\n{text}", program.seed));
        opcodes.lock().expect("no thread panics").extend(text.split_whitespace().map(str::to_owned));
    });
    let absent = catalog.not_in(&opcodes.into_inner().expect("no thread panicked"));
    assert!(absent.is_empty(), "no program has any of {absent:?}");
}

#[test]
fn programs_are_clean_under_every_checker() {
    for_each(0..short_or_long(50, 150), &Catalog::new("sm_90", |_| true), |program| {
        let (_, findings) = program.checked(Checks::ALL).expect("it runs");
        let wrong = findings.iter().filter(|finding| !is_of_scopes(finding));
        let told: String = wrong.map(|finding| format!("{finding}\n")).collect();
        assert!(told.is_empty(), "seed {}: {told}", program.seed);
    });
}

/// Returns whether a finding concerns atomic accesses of two blocks, of which at least one has a
/// scope without the other block. Programs draw scopes without regard to the threads that meet
/// there. PTX calls that a race, although an H100 orders such accesses.
fn is_of_scopes(finding: &Finding) -> bool {
    let is_atomic = |party: &Party| matches!(party.strength, Strength::Atomic { .. });
    let is_narrow = |party: &Party| party.strength == Strength::Atomic { block: true };
    matches!(&finding.problem, Problem::Race { within: Within::Grid, later, earlier, .. }
        if is_atomic(later) && is_atomic(earlier) && (is_narrow(later) || is_narrow(earlier)))
}

#[test]
fn a_seed_gives_the_same_program_and_output_every_time() {
    let catalog = Catalog::new("sm_80", |_| true);
    for seed in 0..20 {
        let [first, second] = [draw(seed, &catalog), draw(seed, &catalog)];
        assert_eq!(first.text(), second.text());
        assert_eq!(first.interpret(), second.interpret());
    }
}

#[test]
fn reducing_keeps_what_fails_and_little_else() {
    let catalog = Catalog::new("sm_80", |_| true);
    let fails = |program: &Program| program.text().contains(" mul.wide.s32");
    let program = (0..).map(|seed| draw(seed, &catalog)).find(fails).expect("one of many");
    let reduced = program.reduced(fails);
    let [before, after] = [program_lines(&draw(reduced.seed, &catalog)), program_lines(&reduced)];
    assert!(fails(&reduced) && after < before / 2, "{after} lines of {before}");
    reduced.interpret().expect("it still runs");
}

/// The number of lines that the generator drew, without those of an empty program.
fn program_lines(program: &Program) -> usize {
    program.text().lines().count() - program.clone().reduced(|_| true).text().lines().count()
}
