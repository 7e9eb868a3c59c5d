//! Random programs: every backend gives the results of the software GPU without a driver, bit for
//! bit. On a GPU this tests that PTX means the same there as here.

#[path = "../../interp/tests/programs/mod.rs"]
mod programs;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use warpstride::interp::Checks;

use programs::record::{Miscompiled, PROGRAMS, Record, entry};
use programs::{Catalog, Program, draw};

use crate::backend::{Setup, cases};
use crate::program;

cases! {
    Any random_programs_give_what_the_software_gpu_gives,
}

/// The number of programs to run, instead of [`PROGRAMS`] on a GPU and few elsewhere.
const COUNT: &str = "WARPSTRIDE_RANDOM_PROGRAMS";
/// The file for a GPU's results, including those that differ.
const RECORD: &str = "WARPSTRIDE_RANDOM_RECORD";
/// The most differing programs that are reduced and shown.
const SHOWN: usize = 24;

fn random_programs_give_what_the_software_gpu_gives(setup: &Setup) {
    let default = if setup.is_soft() { 50 } else { PROGRAMS };
    let count = std::env::var(COUNT).map_or(default, |count| count.parse().expect("a number of programs"));
    let catalog = catalog(setup);
    let (next, entries, differing) = (AtomicU64::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let work = || {
        let device = program::Program::new(&setup.driver);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                break;
            }
            let program = draw(seed, &catalog);
            let outcome = compare(&device, &program);
            entries.lock().unwrap().push((seed, entry(&program.text(), outcome.as_deref().ok())));
            let Err(difference) = outcome else { continue };
            if let Some(known) = Miscompiled::explains(&program, |without| compare(&device, without).is_ok()) {
                eprintln!("seed {seed} differs, as is known: {difference}; {}", known.why);
                continue;
            }
            let mut differing = differing.lock().unwrap();
            let shown = differing.len() < SHOWN;
            differing.push(if shown { show(&device, program) } else { format!("seed {seed}: {difference}") });
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(8));
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let differing = differing.into_inner().unwrap();
    if let (Ok(path), false) = (std::env::var(RECORD), setup.is_soft() || count != PROGRAMS) {
        let mut entries = entries.into_inner().unwrap();
        entries.sort();
        let programs = entries.into_iter().map(|(_, entry)| entry).collect();
        let forms = catalog.patterns();
        let device = setup.driver.info().name.clone();
        let record = Record { device, target: catalog.target, forms, refused: catalog.refused, programs };
        let text = serde_json::to_string_pretty(&record).expect("texts alone");
        std::fs::write(path, text + "\n").expect("writing the record");
    }
    assert!(differing.is_empty(), "{} of {count} programs differ:\n{}", differing.len(), differing.join("\n"));
}

/// Returns the catalog for programs. By default it has the whole table. On a GPU of the record's
/// kind it is the record's, so that the programs are the same. If a record is made, or on another
/// GPU, it has the forms of the table that the assembler accepts.
fn catalog(setup: &Setup) -> Catalog {
    if setup.is_soft() {
        return Catalog::new("sm_90", |_| true);
    }
    let device = program::Program::new(&setup.driver);
    let target = if setup.driver.info().compute_capability < (9, 0) { "sm_80" } else { "sm_90" };
    let record = Record::committed();
    if record.target == target && std::env::var_os(RECORD).is_none() {
        return record.catalog().unwrap_or_else(|lost| panic!("{lost}; set {RECORD} and make another record"));
    }
    Catalog::new(target, |module| device.module(module).is_ok())
}

/// Returns the output on which the driver and the software GPU agree, or how they differ.
fn compare(device: &program::Program, program: &Program) -> Result<Vec<u8>, String> {
    let expected = program.interpret()?;
    let found = run(device, program).map_err(|error| error.to_string())?;
    match program.difference(&found, &expected) {
        None => Ok(found),
        Some(difference) => Err(difference),
    }
}

fn run(device: &program::Program, program: &Program) -> warpstride::Result<Vec<u8>> {
    let module = device.module(&program.text())?;
    let (output, input) = (device.buffer(program.output_bytes())?, device.upload(&program.input)?);
    let stream = device.stream()?;
    stream.fill(&output, 0, 0, output.bytes)?;
    let params = program.params(output.address, input.address);
    // SAFETY: programs stay within the two buffers, which live until the stream is synchronised,
    // and the parameters are as their entry declares them.
    unsafe { stream.launch(module.function("random")?, &program.shape, &params) }?;
    device.download(&output, &stream)
}

/// Reduces the program while it differs, and says where it was written.
fn show(device: &program::Program, program: Program) -> String {
    let seed = program.seed;
    // A program that is itself wrong proves nothing, and may stop the device.
    let is_clean = |program: &Program| program.checked(Checks::ALL).is_ok_and(|(_, findings)| findings.is_empty());
    let reduced = program.reduced(|smaller| is_clean(smaller) && compare(device, smaller).is_err());
    let difference = compare(device, &reduced).err().unwrap_or_else(|| "differs now and then".to_owned());
    let path = std::env::temp_dir().join(format!("warpstride-random-{seed}.ptx"));
    let written = match std::fs::write(&path, reduced.text()) {
        Ok(()) => format!("the reduced program is {}", path.display()),
        Err(_) => reduced.text(),
    };
    format!(
        "seed {seed}, {:?} x {:?} threads: {difference} (software GPU); {written}",
        reduced.shape.grid, reduced.shape.block
    )
}
