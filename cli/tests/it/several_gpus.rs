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
            "6144 bytes from rank to rank, at most 3072 of one rank",
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

/// The description of two hosts, with a line of it replaced.
fn described(replaced: &str, by: &str) -> String {
    let whole = "hosts = 2\ngpus_per_host = 4\nmemory_gbps = 3000\n[link]\ngbps = 300.0\nstart_us = 5\n\
        [network]\ngbps = 25\nstart_us = 10.0\nper = \"gpu\"\n";
    assert!(whole.contains(replaced), "{replaced}");
    whole.replacen(replaced, by, 1)
}

#[test]
fn a_redistribution_is_explained_without_gpus() {
    let folder = Folder::with("any", "");
    let command = "explain --shape 64,48 --axes 1,0 --from 0:2 --to 0:2";
    let says = ["6144 bytes from rank to rank, at most 3072 of one rank", "rank 0: 3072 to 1, 3072 to 0 (itself)"];
    folder.run(command).ended(0, &says, &[]);
    let document = folder.run(&format!("{command} --json")).succeeded().json();
    let members = ["op", "dtype", "axes", "ranks", "crossing_bytes"].map(|member| &document[member]);
    assert_eq!(json!(members), json!(["redistribute", "f32", [1, 0], 2, 6144]));
    assert_eq!(document["orders"][1]["peers"][0], json!({ "to": 0, "bytes": 3072 }));
}

#[test]
fn a_redistribution_is_predicted_over_hosts() {
    let folder = Folder::with("two.toml", described("", ""));
    let command = "explain --shape 4096,4096 --axes 1,0 --from 0:8 --to 0:8 --cluster two.toml";
    let says = [
        "over 2 hosts of 4 GPUs",
        "direct: predicted 0.2078 ms",
        "network: 33554432 bytes, of which GPU 0 sends 4194304",
        "at most 4 messages in 4 steps",
        "direct is chosen: collecting and arranging would take",
        "simulated 0.2078 ms;",
        "rank 1: 1048576 to 2, 1048576 to 3, 1048576 to 0, 1048576 to 5, 1048576 to 6",
    ];
    let text = folder.run(command).succeeded().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in says {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let document = folder.run(&format!("{command} --json")).succeeded().json();
    assert_eq!(document["cluster"]["network"], json!({ "gbps": 25.0, "start_us": 10.0, "per": "gpu" }));
    assert_eq!(document["ways"][1]["route"], "by host");
    let names: Vec<_> = document["ways"][1]["stages"].as_array().unwrap().iter().map(|stage| &stage["name"]).collect();
    assert_eq!(json!(names), json!(["collect", "send", "arrange"]));
    assert_eq!(document["ways"][0]["stages"][0]["network"]["steps"], 4);
    assert_eq!(document["chosen"], "direct");
    // The order is that of the chosen way, and many ranks are predicted, not simulated.
    let many = "explain --shape 4096,4096 --axes 1,0 --from 0:512 --to 0:512 --cluster h100x8:64 --json";
    let document = folder.run(many).succeeded().json();
    assert_eq!(json!([document["chosen"], document["simulated_ms"]]), json!(["by host", null]));
    assert_eq!(document["orders"][0]["peers"].as_array().unwrap().len(), 7 + 63);
}

/// Each figure that cannot be one is refused by its name.
#[test]
fn descriptions_that_are_wrong_are_refused_by_the_name_of_the_figure() {
    for (line, by, says) in [
        ("hosts = 2", "hosts = 0", "`hosts` of a cluster is 0; give 1 to 65536"),
        ("hosts = 2", "hosts = -1", "line 1, `hosts`: invalid value: integer `-1`, expected a whole number from 0"),
        ("hosts = 2", "hosts = 2.5", "line 1, `hosts`: invalid type: floating point `2.5`"),
        ("hosts = 2", "hosts = 99999999999999999999", "line 1"),
        ("hosts = 2\n", "", "missing field `hosts`"),
        ("hosts = 2", "hosts = 2\nracks = 3", "line 2: unknown field `racks`, expected one of `hosts`"),
        ("gpus_per_host = 4", "gpus_per_host = 1000000", "`gpus_per_host` of a cluster is 1000000"),
        ("gbps = 300.0", "gbps = nan", "`link.gbps` of a cluster is NaN; give GB/s above 0"),
        ("gbps = 300.0", "gbps = \"fast\"", "line 5, `link.gbps`: invalid type"),
        ("start_us = 5", "start_us = -0.1", "`link.start_us` of a cluster is -0.1; give microseconds from 0"),
        ("gbps = 25", "gbps = inf", "`network.gbps` of a cluster is inf"),
        ("gbps = 25", "gbps = 0", "`network.gbps` of a cluster is 0"),
        ("start_us = 10.0", "start_us = 1e300", "`network.start_us` of a cluster is 1"),
        ("memory_gbps = 3000", "memory_gbps = -3000", "`memory_gbps` of a cluster is -3000"),
        ("per = \"gpu\"", "per = \"rack\"", "line 10, `network.per`: unknown variant `rack`, expected `gpu` or `host`"),
        ("[network]", "[netw", "line 7"),
    ] {
        let folder = Folder::with("two.toml", described(line, by));
        let run = folder.run("explain --shape 8,8 --from 0:2 --cluster two.toml");
        run.ended(1, &[], &["two.toml", says]);
    }
    let folder = Folder::with("any", vec![0xFF; 8]);
    for (cluster, code, says) in [
        ("missing.toml", 1, "missing.toml"),
        ("any", 1, "save the file as text in UTF-8"),
        ("h100x8:x", 1, "`x` of h100x8 is not a number of hosts"),
        ("h100x8:0", 1, "`hosts` of a cluster is 0"),
        ("h100x8:1", 1, "split among 9 ranks, and the cluster has 8 GPUs"),
    ] {
        folder.run(&format!("explain --shape 9,9 --from 0:9 --cluster {cluster}")).ended(code, &[], &[says]);
    }
    folder.run("explain --shape 9,9 --axes 1,0 --cluster h100x8:1").ended(2, &[], &["spread it by --from or --to"]);
    folder.run("explain --shape 9,9").ended(2, &[], &["--axes"]);
}
