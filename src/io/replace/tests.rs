use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

#[test]
fn a_writer_that_panics_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let destination = Destination::new(folder.path().join("result")).unwrap();
    let (mut temporary, mut was_listed) = (PathBuf::new(), false);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        destination.replace(|_| {
            temporary = fs::read_dir(folder.path())?.next().expect("the temporary file")?.path();
            was_listed = unfinished().iter().any(|path| path.file_name() == temporary.file_name());
            panic!("as a writer may")
        })
    }));
    let payload = outcome.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"as a writer may"));
    assert!(was_listed && !temporary.exists() && !destination.path().exists());
    // Another program may make a file of that name.
    assert!(unfinished().iter().all(|path| path.file_name() != temporary.file_name()));
}

/// A link that appears behind the first look is neither followed nor written through.
#[test]
#[cfg(unix)]
fn a_link_that_takes_the_name_of_an_output_leads_to_no_file() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), b"precious").unwrap();
    fs::set_permissions(at("precious"), fs::Permissions::from_mode(0o777)).unwrap();
    let file = Destination::new(at("file")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let pipe = Destination::new(at("pipe")).unwrap();
    assert_eq!(pipe.kind(), DestinationKind::Stream);
    fs::remove_file(at("pipe")).unwrap();
    for name in ["file", "pipe"] {
        symlink(at("precious"), at(name)).unwrap();
    }
    file.replace(|file| file.write_all(b"result")).unwrap();
    let there = fs::symlink_metadata(at("file")).unwrap();
    assert!(there.is_file() && there.permissions().mode() & 0o111 == 0, "{there:?}");
    let error = pipe.replace(|stream| stream.write_all(b"result")).unwrap_err().to_string();
    assert!(error.contains("another program has replaced it"), "{error}");
    assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
}
