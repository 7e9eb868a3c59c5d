//! The report of a program in JUnit's format: a suite for each process, a case for each kernel.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use warpstride::error::{counted, printable_line};

use super::super::ci::fell_short;
use super::reports::{Kernel, Process};

pub(super) fn document(processes: &[&Process]) -> String {
    let mut report = Report::new("warpstride run");
    report.add_test_suites(processes.iter().map(|process| suite(process)));
    report.to_string().expect("text goes into a string")
}

fn suite(process: &Process) -> TestSuite {
    let mut suite = TestSuite::new(printable_line(&process.title()));
    suite.add_test_cases(process.kernels.iter().map(|kernel| case(process, kernel)));
    suite
}

fn case(process: &Process, kernel: &Kernel) -> TestCase {
    let status = match kernel.faults() {
        0 => TestCaseStatus::success(),
        faults => {
            let texts = kernel.found().into_iter().map(|found| found.text).chain(kernel.more());
            let account = texts.collect::<Vec<_>>().join("\n");
            fell_short(NonSuccessKind::Failure, &counted(faults, "finding").to_string(), &account)
        }
    };
    let mut case = TestCase::new(printable_line(&kernel.short()), status);
    case.set_classname(printable_line(&process.program()));
    case
}
