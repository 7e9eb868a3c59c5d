use super::*;

#[test]
fn files_beyond_the_limit_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("same.cu"), "text").unwrap();
    let instructions = (0..40).map(|at| warpstride::interp::InstructionReport {
        line: at + 1,
        instruction: "ld.global.u32 %r1, [%rd1]".into(),
        source: Some(format!("folder{at}/same.cu:1")),
        kind: warpstride::interp::stop::AccessKind::Load,
        round: None,
        cache_lines: 0,
        executions: 1,
        thread_executions: 32,
        counted: Default::default(),
        worst_global: None,
        worst_shared: None,
    });
    let report = Report { instructions: instructions.collect(), ..Report::default() };
    let files = files(&report, "folder3/same.cu", folder.path());
    assert_eq!(
        (files.len(), files[0].file.as_str(), files[1].file.as_str()),
        (40, "folder3/same.cu", "folder0/same.cu")
    );
    assert_eq!(files.iter().filter(|file| file.source.is_ok()).count(), MAX_FILES);
    let why = "folder16/same.cu is not read, because 16 files were";
    assert_eq!(files[16].source.as_ref().unwrap_err(), why);
}
