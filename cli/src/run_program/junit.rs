//! The report of a program in JUnit's format: a suite for each process, with a case
//! for each kernel and one for the rest.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use warpstride::error::{counted, printable_line};

use super::super::ci::{Found, fell_short, junit};
use super::reports::{Kernel, Process};

pub(super) fn document(processes: &[&Process]) -> String {
    junit("warpstride run", processes.iter().map(|process| suite(process)))
}

fn suite(process: &Process) -> TestSuite {
    let mut suite = TestSuite::new(printable_line(&process.title()));
    suite.add_test_cases(process.kernels.iter().map(|kernel| of_kernel(process, kernel)));
    suite.add_test_case(of_program(process));
    suite
}

fn of_kernel(process: &Process, kernel: &Kernel) -> TestCase {
    case(process, &kernel.short(), kernel.faults(), kernel.found(), kernel.more())
}

/// The calls of the program, and the order of its streams.
fn of_program(process: &Process) -> TestCase {
    case(process, "calls and streams", process.own_faults(), process.found_by_itself(), process.more())
}

fn case(process: &Process, name: &str, faults: u64, found: Vec<Found>, more: Option<String>) -> TestCase {
    let status = match faults {
        0 => TestCaseStatus::success(),
        faults => {
            let account = found.into_iter().map(|found| found.text).chain(more).collect::<Vec<_>>().join("\n");
            fell_short(NonSuccessKind::Failure, &counted(faults, "finding").to_string(), &account)
        }
    };
    let mut case = TestCase::new(printable_line(name), status);
    case.set_classname(printable_line(&process.program()));
    case
}
