//! Arrays over several GPUs: files by `--gpus`, and `bench redistribute`.

use serde_json::json;

use super::{Folder, npy, npy_with_header};

/// The output of each of these commands.
fn outputs(folder: &Folder, commands: &[String]) -> Vec<(String, Vec<u8>)> {
    let output = |command: &String| {
        folder.run(command).succeeded();
        folder.written()
    };
    commands.iter().map(output).collect()
}

#[test]
fn files_are_the_same_over_any_number_of_gpus() {
    let bytes: Vec<u8> = (0..7 * 5 * 3 * 2).map(|byte| (byte * 37) as u8).collect();
    let fortran = "{'descr': '<i2', 'fortran_order': True, 'shape': (7, 5, 3), }";
    for input in [npy("<i2", "(7, 5, 3)", &bytes), npy_with_header(fortran, &bytes)] {
        let folder = Folder::with_input(&input);
        for axes in ["2,0,1", "1,0,2", "0,1,2", "2,1,0"] {
            let over = |gpus: &str| format!("--device soft permute in.npy out.npy --axes {axes}{gpus}");
            let commands = ["", " --gpus 1", " --gpus 2", " --gpus 8"].map(over);
            let outputs = outputs(&folder, &commands);
            assert!(outputs.iter().all(|output| *output == outputs[0]), "axes {axes}");
        }
    }
    let folder = Folder::with_input(&npy("|u1", "(3, 4)", &(0..12).collect::<Vec<u8>>()));
    let run = folder.run("--device soft transpose in.npy out.npy --gpus 3 --json").succeeded();
    assert_eq!(run.json()["gpus"], 3);
    assert_eq!(folder.written().1, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
}

#[test]
fn scalars_and_arrays_without_elements_go_over_gpus_too() {
    for (shape, axes, bytes) in [("()", "", 4), ("(0, 3)", "1,0", 0)] {
        let folder = Folder::with_input(&npy("<f4", shape, &vec![7; bytes]));
        folder.run(&format!("--device soft permute in.npy out.npy --gpus 2 --axes {axes}")).succeeded();
        assert_eq!(folder.written().1, vec![7; bytes], "{shape}");
    }
}

#[test]
fn what_gpus_cannot_do_is_refused() {
    let folder = Folder::with_input(&npy("<f4", "(3, 4)", &[7; 48]));
    let refused = |options: &str| folder.run(&format!("--device soft transpose in.npy out.npy {options}"));
    refused("--gpus 0").ended(1, &[], &["--gpus is 0; give 1 or more"]);
    for with in ["--device-memory 1MiB", "--resume", "--variant padded"] {
        let run = refused(&format!("--gpus 2 {with}"));
        assert_eq!(run.code, Some(2), "{with}: {}", run.stderr);
    }
    folder.is_untouched();
}

#[test]
fn a_redistribution_is_planned_verified_and_counted() {
    let folder = Folder::with("any", "");
    let command = "--device soft bench redistribute --shape 64,48 --axes 1,0 --from 0:2 --to 0:2";
    let document = folder.run(&format!("{command} --json")).succeeded().json();
    assert_eq!(document["name"], "redistribute f32 64x48 by 1,0 from 0:2 to 0:2 over 2 GPUs");
    assert_eq!(document["spread"], json!({ "gpus": 2, "from": "0:2", "to": "0:2" }));
    let members = ["verified", "written", "read", "ms", "gbps", "group"].map(|member| &document[member]);
    assert_eq!(json!(members), json!([true, 3072, 0, null, null, "distributed"]));
    assert_eq!(document["links"]["crossing_bytes"], 6144);
    // Those of both GPUs: each loads its half once.
    assert_eq!(document["counters"]["ideal"]["global_load"], 64 * 48 * 4 / 32);
    folder.run(command).ended(
        0,
        &[
            "redistribute [64, 48] f32, axes [1, 0], from 0:2 to 0:2 over 2 GPUs, on software GPU",
            "6144 bytes from rank to rank, at most 3072 of one rank; nothing is packed",
            "rank 0: 3072 to 1, 3072 to 0 (itself)",
        ],
        &[],
    );
}

#[test]
fn a_kept_redistribution_is_compared() {
    let folder = Folder::with("any", "");
    let command = "--device soft bench redistribute --shape 8,6,4 --from 0:2,1:2 --to 2:3 --gpus 5";
    folder.run(&format!("{command} --save ./run.json")).succeeded();
    folder.run(&format!("{command} --compare ./run.json")).ended(0, &["from 0:2,1:2 to 2:3 over 5 GPUs", "same"], &[]);
    folder.run("report run.json").ended(0, &["Several GPUs", "from 0:2,1:2 to 2:3 over 5 GPUs"], &[]);
}

#[test]
fn redistributions_that_do_not_fit_are_refused() {
    let folder = Folder::with("any", "");
    for (options, code, says) in [
        ("--from 0:2 --to 0:3 --gpus 2", 1, "is split among 3 ranks, and there are only 2 GPUs"),
        ("--from 2:2", 1, "there is no axis 2 to cut"),
        ("--from 0:0", 1, "give parts, 1 at least"),
        ("--from 0:3+4", 1, "the parts [3, 4] of axis 0 have 7 of its 8"),
        ("--from 0", 1, "write axis:parts, such as 0:4"),
        ("--from 0:2,0:2", 1, "is cut already"),
        ("--axes 0,0", 1, "axes `0,0` of shape [8, 6]"),
        ("--from 0:70000", 1, "more than 65536 ranks"),
        ("--gpus 1000000000", 1, "a host has at most 64 software GPUs"),
        ("--gpus x", 2, "--gpus"),
    ] {
        folder.run(&format!("--device soft bench redistribute --shape 8,6 {options}")).ended(code, &[], &[says]);
    }
}
