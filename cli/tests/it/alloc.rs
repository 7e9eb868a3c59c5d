//! `warpstride alloc`: replays of logs, and what an allocation costs.

use std::fs;

use super::{Folder, soft};

#[test]
fn a_log_from_a_seed_is_replayed_and_drawn() {
    let folder = Folder::with_input(b"");
    let document = folder.run("--json alloc replay --seed 1 --svg out.svg").succeeded().json();
    let [active, reserved, ns] =
        ["peak_active", "peak_reserved", "ns_per_call"].map(|member| document[member].as_f64().expect("a number"));
    assert!(active > 1e10 && reserved >= active && reserved <= 1.1 * active && ns > 0.0, "{document}");
    assert!((0.0..1.0).contains(&document["fragmentation"].as_f64().unwrap()), "{document}");
    assert!(document["schema"].is_u64() && document["device"].is_null(), "{document}");
    assert_eq!((&document["operations"], &document["streams"]), (&1_000_000.into(), &4.into()), "{document}");
    assert!(fs::read_to_string(folder.path("out.svg")).unwrap().contains("reserved"));
}

#[test]
fn a_log_is_replayed_and_written() {
    let rows = "0,0,allocate,0x100,1000,7\n0,0,allocate,0x500,2000000,8\n0,0,free,0x100,1000,8\n";
    let folder = Folder::with("log.csv", format!("Thread,Time,Action,Pointer,Size,Stream\n{rows}"));
    let replay = |line: &str| folder.run(&format!("alloc replay {line}")).succeeded();
    let document = replay("--json log.csv --write out.csv").json();
    assert_eq!((&document["operations"], &document["peak_active"]), (&3.into(), &2_001_000.into()), "{document}");
    let again = replay("--json out.csv").json();
    for member in ["operations", "streams", "peak_active", "peak_reserved"] {
        assert_eq!(again[member], document[member], "{member}");
    }
    assert_eq!(document["left_out"], serde_json::json!([]));
    // A log this small has no ratio that says anything.
    let told = replay("out.csv").ended(0, &["3 operations on 2 streams, simulated memory", "peak reserved"], &[]);
    assert!(!told.stdout.contains("times as much"), "{}", told.stdout);
    folder.write("one.csv", "Thread,Time,Action,Pointer,Size,Stream\n0,0,allocate,0x100,100000000,7\n");
    replay("one.csv").ended(0, &["1 operation on 1 stream, simulated memory", "times as much"], &[]);
}

#[test]
fn rows_that_are_left_out_are_counted_and_named() {
    let rows = "0,0,allocate,0x10,1024,0\n0,0,allocate failure,0x0,85899345920,0\n0,0,free,0x10,1024,0\n";
    let folder = Folder::with("log.csv", format!("Thread,Time,Action,Pointer,Size,Stream\n{rows}"));
    let document = folder.run("--json alloc replay log.csv").succeeded().json();
    let left_out = serde_json::json!([{ "why": "failed allocations", "rows": 1, "first_line": 3 }]);
    assert_eq!((&document["operations"], &document["left_out"]), (&2.into(), &left_out));
    let parts = ["2 operations on 1 stream,", "1 of the log's rows: failed allocations, the first on line 3"];
    folder.run("alloc replay log.csv").ended(0, &parts, &[]);
}

#[test]
fn a_replay_that_cannot_be_is_refused() {
    let folder = Folder::with_input(b"");
    let replay = |line: &str| folder.run(&format!("alloc replay{line}"));
    replay(" log.csv").failed(&["cannot read", "log.csv"]);
    folder.write("log.csv", "Thread,Time,Action,Pointer,Size,Stream\n0,0,free,0x1,5,0\n");
    replay(" log.csv").failed(&["log.csv", "line 2", "0x1 is freed, but is not allocated"]);
    folder.write("log.csv", "Thread,Time,Action,Pointer,Size,Stream\n0,0,allocate,0x1,100000000000,0\n");
    replay(" log.csv").failed(&["log.csv: line 2 of the log: the device has no", "on a GPU with more memory"]);
    folder.write("log.csv", "Thread,Time,Action,Pointer,Size,Stream\n0,0,lost,0x0,17,0\n");
    replay(" log.csv").failed(&["line 2 of the log: rows are missing here (17)", "log with a faster one"]);
    replay(" log.csv --write log.csv").failed(&["same file"]);
    for wrong in ["", " --seed x", " --seed 1 log.csv"] {
        assert_eq!(replay(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_log_that_needs_too_much_memory_is_told_by_its_own_lines() {
    let block = |pointer: u32, gib: u64| format!("0,0,allocate,{pointer:#x},{},0\n", gib << 30);
    let rows = [block(1, 20), block(2, 30), "0,0,free,0x1,21474836480,0\n".into(), block(3, 10), block(4, 60)];
    let folder = Folder::with("log.csv", format!("Thread,Time,Action,Pointer,Size,Stream\n{}", rows.concat()));
    let run = folder.run("--json alloc replay log.csv").ended(1, &[], &[]);
    let (message, kind) = (run.json()["error"]["message"].clone(), run.json()["error"]["kind"].clone());
    let message = message.as_str().expect("a message");
    let held = "most is held by line 3 of the log (32212254720 bytes), line 5 of the log (10737418240 bytes); replay";
    assert!(message.contains("line 6 of the log: the device has no 60.0 GiB") && message.contains(held), "{message}");
    assert!(!message.contains(".rs") && kind == "out_of_memory", "{message}");
}

#[test]
fn an_allocation_that_hits_the_cache_makes_no_call_that_can_synchronise() {
    let document = soft("--json alloc bench").succeeded().json();
    assert_eq!(document["synchronizing_calls"], 0, "{document}");
    let sizes = document["sizes"].as_array().unwrap();
    assert_eq!(sizes.iter().map(|size| size["bytes"].as_u64().unwrap()).collect::<Vec<_>>(), [512, 65_536, 1_048_576]);
    assert!(sizes.iter().all(|size| size["cache_ns"].is_f64() && size["driver_ns"].is_null()), "{document}");
    let threads: Vec<_> = document["threads"].as_array().unwrap().iter().map(|some| some["threads"].as_u64()).collect();
    assert_eq!(threads, [Some(1), Some(8)]);
    assert_eq!((&document["pairs"], &document["uncached_pairs"]), (&200_000.into(), &1000.into()));
    let rate = document["threads"][0]["pairs_per_second"].as_f64().unwrap();
    let ns = sizes[0]["cache_ns"].as_f64().unwrap();
    assert!((rate * ns / 1e9 - 1.0).abs() < 1e-9, "one thread's rate and its time are one figure: {document}");
    let parts = [
        "means of 200000 pairs, the driver's of 1000 pairs",
        "1 thread, on one stream: ",
        "8 threads, each on its own stream: ",
        "million pairs of 512 bytes a second",
        "calls that can synchronise: 0",
    ];
    soft("alloc bench").ended(0, &parts, &[]);
}
