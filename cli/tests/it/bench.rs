//! `warpstride bench` and `warpstride explain` on the software GPU.

use serde_json::{Value, json};

use super::{has_members, soft, warpstride};

fn document(line: &str) -> Value {
    soft(&format!("--json {line}")).succeeded().json()
}

/// The document of a permute; spaces may stand in a shape and in axes.
fn permute(shape: &str, axes: &str, dtype: &str) -> Value {
    let words = ["--json", "--device", "soft", "bench", "permute", "--shape", shape, "--axes", axes, "--dtype", dtype];
    warpstride(words).succeeded().json()
}

#[test]
fn the_document_of_a_permute_has_every_member_that_scripts_rely_on() {
    let document = document("bench permute --shape 4,10,20,3 --axes 0,3,1,2 --dtype u8 --samples 7");
    // Bytes are read and written.
    let members = json!({
        "schema": 3, "device": { "kind": "soft" }, "op": "permute", "dtype": "u8", "shape": [4, 10, 20, 3],
        "axes": [0, 3, 1, 2], "bytes": 2 * 4 * 10 * 20 * 3, "samples": 7, "verified": true,
    });
    has_members(&document, &members);
    assert!(document["device"]["name"].is_string() && document["kernel"].is_string(), "{document}");
    for member in ["ms", "gbps", "copy_gbps", "fraction_of_copy", "gapless", "launch_us"] {
        assert_eq!(document.get(member), Some(&Value::Null), "{member} of {document}");
    }
    assert!(document["counters"]["global_store"]["sectors"].as_u64() > Some(0), "{document}");
}

#[test]
fn drawn_permutes_are_right_small_on_the_software_gpu_and_the_same_for_a_seed() {
    let drawn = |random: &str| document(&format!("bench permute --random {random}"));
    let (few, more) = (drawn("7,3"), drawn("7,9"));
    let cases = |document: &Value| document["cases"].as_array().expect("a list").clone();
    for member in ["score", "lowest"] {
        assert_eq!(few.get(member), Some(&Value::Null), "{member}: the software GPU has no times");
    }
    assert_eq!((few["schema"].as_u64(), cases(&few).len(), cases(&more).len()), (Some(3), 3, 9));
    assert_eq!(cases(&few)[..], cases(&more)[..3], "a seed draws the same cases");
    assert_ne!(cases(&few)[0]["name"], cases(&drawn("8,1"))[0]["name"]);
    let parts: Vec<_> = ["1/2", "2/2"].iter().flat_map(|part| cases(&drawn(&format!("7,5 --part {part}")))).collect();
    assert_eq!(parts[..], cases(&more)[..5], "the parts together are the whole");
    for case in cases(&more) {
        assert_eq!((&case["op"], &case["verified"]), (&"permute".into(), &true.into()), "{case}");
        assert!(case["dtype"].is_string() && case["read"].as_u64() <= Some(1 << 20), "{case}");
        assert!(case["strategy"].is_string() && case["touched"].as_u64() >= case["bytes"].as_u64(), "{case}");
        let (shape, axes) = (case["shape"].as_array().unwrap(), case["axes"].as_array().unwrap());
        assert!((2..=8).contains(&shape.len()) && shape.len() == axes.len(), "{case}");
    }
    let kinds: std::collections::BTreeSet<_> = cases(&more).iter().map(|case| case["kind"].to_string()).collect();
    assert_eq!(kinds.len(), 9, "nine cases in a row have a kind each: {kinds:?}");
    let text = soft("bench permute --random 7,2").succeeded().stdout;
    assert!(text.contains("permute") && text.contains("No GB/s") && !text.contains("score"), "{text}");
}

#[test]
fn drawn_permutes_are_printed_without_a_device() {
    let drawn = |more: &str| {
        let line = format!("--device cuda:77 bench permute --random 7,12 --cases{more}");
        warpstride(line.split(' ')).succeeded().json()
    };
    let listed = drawn("");
    let cases = listed.as_array().expect("a list, as cases.json is");
    assert_eq!(cases.len(), 12);
    for case in cases {
        let numbers = |member: &str| -> Vec<i64> { serde_json::from_value(case[member].clone()).expect("numbers") };
        let (shape, axes) = (numbers("shape"), numbers("axes"));
        let in_steps = ["reversed", "stepped"].contains(&case["kind"].as_str().expect("a kind"));
        assert_eq!(case.get("steps").is_some(), in_steps, "{case}");
        assert!(case["name"].is_string() && shape.len() == axes.len(), "{case}");
    }
    assert_eq!(drawn(" --part 2/3").as_array().expect("a list")[..], cases[4..8]);
    let document = drawn(" --json");
    assert_eq!((&document["schema"], &document["cases"]), (&3.into(), &listed));
}

#[test]
fn wrong_draws_are_refused_with_what_to_give() {
    let (seed, part, with) = (
        "a seed and a number of cases from 1 to 1000",
        "the number of a part, from 1, and the number of parts",
        "'--random <SEED,N>' cannot be used with",
    );
    for (args, said) in [
        ("--random", "a value is required for '--random <SEED,N>'"),
        ("--random 1", seed),
        ("--random a,b", seed),
        ("--random 1,0", seed),
        ("--random 1,100000000", seed),
        ("--random 7,3,1", seed),
        ("--random -1,3", ""),
        ("--random 1,3 --part 3/2", part),
        ("--random 1,3 --part 0/2", part),
        ("--random 1,3 --part 2", part),
        ("--random 1,3 --part 1/4", "3 cases cannot be cut into 4 parts"),
        ("--random 1,3 --shape 4,6", with),
        ("--random 1,3 --axes 1,0", with),
        ("--random 1,3 --dtype u8", with),
        ("--random 1,3 --cases --save x", "'--cases'"),
        ("--random 1,3 --cases --measure", "'--cases'"),
        ("--random 1,3 --cases --samples 5", "'--cases' cannot be used with"),
        ("--shape 4,6 --axes 1,0 --part 1/2", "--random <SEED,N>"),
        ("--shape 4,6 --axes 1,0 --cases", "--random <SEED,N>"),
        ("--shape 4,6", "--axes <A>"),
    ] {
        soft(&format!("bench permute {args}")).ended(2, &[], &[said]);
    }
}

#[test]
fn a_strided_copy_takes_a_step_that_an_array_has() {
    let strided = |step| format!("bench strided-copy --elements 1000 --dtype f32 --step {step}");
    assert_eq!(soft(&strided("0")).code, Some(2));
    soft(&strided("9223372036854775807")).failed(&["too far apart", "smaller step"]);
}

#[test]
fn the_operations_are_listed() {
    let listed = document("bench --list");
    let names = listed["operations"].as_array().expect("a list").iter().map(|entry| &entry["op"]);
    let names: Vec<_> = names.collect();
    assert_eq!(names[..3], ["permute", "affine", "copy"]);
    let text = warpstride(["bench", "--list"]).succeeded().stdout;
    assert_eq!(text.lines().count(), names.len(), "{text}");
    for (op, arguments) in [
        (
            "permute",
            "(--shape S --axes A [--dtype TYPE] | --random SEED,N | --file FILE) [--measure] [--part I/K] [--cases]",
        ),
        ("affine", "--shape S --axes A --from TYPE --to TYPE [--channels AXIS]"),
        ("sum", "(--elements N | --shape S --axis K) [--dtype TYPE]"),
    ] {
        let mut entries = listed["operations"].as_array().expect("a list").iter();
        let entry = entries.find(|entry| entry["op"] == op).expect("it is listed");
        assert_eq!(entry["arguments"], arguments, "{op}");
    }
    let help = warpstride(["bench", "permute", "--help"]).succeeded().stdout;
    for usage in [
        "permute --shape <S> --axes <A> [--dtype <TYPE>]\n           [OPTIONS]",
        "permute --random <SEED,N> [--part <I/K>] [--cases]\n           [OPTIONS]",
        "permute --file <FILE> [OPTIONS]",
    ] {
        assert!(help.contains(usage), "{help}");
    }
}

#[test]
fn every_listed_operation_runs_under_its_name_with_the_arguments_listed() {
    let listed = document("bench --list");
    for entry in listed["operations"].as_array().expect("a list") {
        let text = |member: &str| entry[member].as_str().expect("a text");
        let op = text("op");
        let mut words = vec!["bench", op];
        // The first of two alternatives, which stand in parentheses.
        let (one, rest) = text("arguments").split_once(" | ").unwrap_or((text("arguments"), ""));
        let rest = rest.split_once(") ").map_or("", |(_, rest)| rest);
        let given = one.trim_start_matches('(').split(' ').chain(rest.split(' '));
        for word in given.filter(|word| !word.is_empty() && !word.contains(['[', ']'])) {
            words.push(match word {
                "N" => "64",
                "K" => "2",
                "S" => "4,6",
                "A" => "1,0",
                "R,W" => "8,4",
                "N,H,W,C" => "1,4,4,3",
                "TYPE" => "f32",
                option => option,
            });
        }
        let document = document(&words.join(" "));
        assert_eq!((&document["op"], &document["verified"]), (&op.into(), &true.into()), "{words:?}");
        assert!(!text("about").is_empty(), "{op}");
    }
}

#[test]
fn no_speed_is_told_of_the_software_gpu() {
    let parts = ["verified", "sectors/ideal: ", "No GB/s: the software GPU"];
    let run = soft("--quiet bench permute --shape 40,30 --axes 1,0 --dtype f32").ended(0, &parts, &[]);
    assert_eq!(run.stdout.matches("GB/s").count(), 1, "{}", run.stdout);
}

#[test]
fn an_explanation_has_axes_kernel_reason_and_traffic() {
    let document = document("explain --shape 64,1080,1920,3 --axes 0,3,1,2 --dtype u8");
    has_members(&document, &json!({ "schema": 3, "op": "permute", "dtype": "u8" }));
    has_members(&document, &json!({ "shape": [64, 1080, 1920, 3], "axes": [0, 3, 1, 2] }));
    // Height and width stay together: three axes are left, the result's shortest stride first.
    let (pixels, frame) = (1080 * 1920, 1080 * 1920 * 3);
    let axis = |extent: i64, source: i64, destination: i64| {
        json!({
            "extent": extent, "source_stride": source, "source_stride_bytes": source,
            "destination_stride": destination, "destination_stride_bytes": destination,
        })
    };
    assert_eq!(document["planned_axes"], json!([axis(pixels, 3, 1), axis(3, 1, pixels), axis(64, frame, frame)]));
    assert!(document["kernel"].is_string() && document["reason"].is_string(), "{document}");
    for extents in ["grid", "block"] {
        assert_eq!(document[extents].as_array().map(Vec::len), Some(3), "{document}");
    }
    let traffic = json!({ "bytes": 64 * frame, "sectors": 64 * frame / 32 });
    assert_eq!((&document["read"], &document["written"]), (&traffic, &traffic));
    let requested = &document["requested"];
    assert_eq!(requested["exact"], false, "{requested}");
    for side in ["load", "store"] {
        let ideal = 64 * frame / 32;
        let sectors = requested[side]["sectors"].as_i64().unwrap_or_default();
        assert!((ideal * 19 / 20..ideal * 5 / 4).contains(&sectors), "{requested}");
    }
}

#[test]
fn an_explanation_reads_as_text() {
    let parts = ["permute [100, 70] f64, axes [1, 0]", "70 (560)", "kernel ", "because ", "launch ", "asks for "];
    let run = soft("explain --shape 100,70 --axes 1,0 --dtype f64").ended(0, &parts, &[]);
    assert!(run.stdout.contains("56000 bytes in 1750 sectors"), "{}", run.stdout);
}

#[test]
fn lists_of_numbers_may_have_spaces_and_be_empty() {
    assert_eq!(permute("4, 5", " 1,0 ", "u8")["shape"], json!([4, 5]));
    // An array of no axes has one element.
    let scalar = permute("", "", "f64");
    assert_eq!((&scalar["bytes"], &scalar["verified"]), (&16.into(), &true.into()));
    let words = ["--device", "soft", "--json", "explain", "--shape", "", "--axes", "", "--dtype", "f64"];
    assert_eq!(warpstride(words).succeeded().json()["read"]["bytes"], 8);
}

#[test]
fn a_launch_that_no_gpu_takes_is_explained_as_refused() {
    let line = "explain --shape 3037000499,3037000499 --axes 1,0 --dtype u8";
    soft(line).ended(0, &["no GPU has more than 65535 blocks in y", "split_at"], &[]);
    assert_eq!(document(line)["requested"], Value::Null);
}

#[test]
fn what_the_software_gpu_or_no_memory_can_do_is_refused() {
    for (line, parts) in [
        ("bench permute --shape 4294967296,4294967296 --axes 1,0 --dtype f64", ["4294967296", "use"]),
        ("explain --shape 4294967296,4294967296 --axes 1,0 --dtype f64", ["4294967296", "use"]),
        ("bench --tune", ["software GPU", "NVIDIA GPU"]),
        ("peaks", ["software GPU", "NVIDIA GPU"]),
    ] {
        soft(line).failed(&parts);
    }
}

/// Elements are read and written as often as BabelStream counts them.
#[test]
fn arithmetic_is_verified_on_every_number_type() {
    for (dtype, width) in [("f16", 2), ("bf16", 2), ("f32", 4), ("f64", 8)] {
        let streams = [("fill", 1), ("mul", 2), ("triad", 3), ("nstream", 4), ("axpy", 3), ("dot", 2)];
        // A row and a column do not count.
        let of_two = [("add", 3), ("sub", 3), ("multiply", 3), ("div", 3), ("add_row", 2), ("add_column", 2)];
        for (op, arrays) in streams.into_iter().chain(of_two) {
            let document = document(&format!("bench {op} --elements 5001 --dtype {dtype}"));
            let counters = json!({ "shared_load": { "bank_conflicts": 0 } });
            has_members(&document, &json!({ "op": op, "verified": true, "counters": counters }));
            has_members(&document, &json!({ "gbps": null, "ms": null, "fraction_of_ceiling": null }));
            assert_eq!(document["bytes"], arrays * width * 5001, "{op} of {dtype}");
            let kernel = document["kernel"].as_str().unwrap();
            let family = if of_two.contains(&(op, arrays)) { "binary" } else { op };
            assert!(kernel == "fill_b128" || kernel == format!("{family}_{dtype}"), "{kernel}");
        }
        for shape in ["30,100", "3,7,33", "2,20000"] {
            for op in ["softmax", "mean-variance"] {
                let document = document(&format!("bench {op} --shape {shape} --dtype {dtype}"));
                assert_eq!(document["verified"], true, "{op} of {shape} {dtype}");
            }
        }
    }
}

#[test]
fn operations_are_verified_and_say_their_bytes_and_kernels() {
    for (line, bytes, kernel, from) in [
        ("permute --shape 0,5 --axes 1,0 --dtype f32", 0, "", ""),
        ("strided-copy --elements 1000 --dtype f32 --step 3", 8000, "patch_b32", ""),
        ("add --elements 0 --dtype f32", 0, "", ""),
        // Every element is read, and one place or one sum of 64 bits is written.
        ("argmax --elements 5001 --dtype f32", 4 * 5001 + 8, "argmax_rows_f32", ""),
        ("sum --elements 5001 --dtype u8", 5001 + 8, "sum_rows_u8", ""),
        ("sum --elements 1000 --dtype f64", 8000, "sum_f64", ""),
        // Zeros are written, of which there are results.
        ("sum --shape 300,0 --axis 1 --dtype f32", 1200, "sum_rows_f32", ""),
        ("softmax --shape 30,100 --dtype f32", 2 * 4 * 3000, "softmax_f32", ""),
        // `from` is the type that elements had before, where it is another.
        ("normalize --shape 2,5,8,3 --dtype f32", 5 * 240, "normalize_3_f32", "u8"),
        ("normalize --shape 2,5,7,1 --dtype f16", 3 * 70, "normalize_1_f16", "u8"),
        ("normalize --shape 3,5,7,4 --dtype bf16", 3 * 420, "normalize_4_bf16", "u8"),
        ("cast --elements 1001 --from u8 --to f32", 5 * 1001, "cast_u8_f32", "u8"),
        ("cast --elements 1001 --from f64 --to f16", 10 * 1001, "cast_f64_f16", "f64"),
        ("cast --elements 1001 --from i32 --to u8", 5 * 1001, "cast_u32_u8", "i32"),
        ("cast --elements 0 --from i32 --to f32", 0, "", "i32"),
        ("gather --shape 100,12 --dtype f32", 100 * 100, "gather_b128", ""),
        ("scatter --shape 100,3 --dtype u16", 16 * 100, "scatter_b16", ""),
    ] {
        let document = document(&format!("bench {line}"));
        let op = line.split(' ').next();
        has_members(&document, &json!({ "op": op, "verified": true, "bytes": bytes, "gbps": null }));
        let named = ["kernel", "from"].map(|member| document[member].as_str().unwrap_or(""));
        assert_eq!(named, [kernel, from], "{line}");
    }
    for dtype in ["f16", "c64", "c128"] {
        assert_eq!(permute("33,65", "1,0", dtype)["verified"], true, "{dtype}");
    }
    let copied = document("bench copy --elements 1000 --dtype f64");
    has_members(&copied, &json!({ "op": "copy", "verified": true, "bytes": 16000, "shape": [1000], "axes": null }));
    soft("bench min --elements 0 --dtype f32").failed(&["no min of no elements"]);
    for (line, wrong) in [
        ("normalize --shape 2,5,8,5 --dtype f32", "1 to 4 channels"),
        ("normalize --shape 2,5,8 --dtype f32", "four whole numbers"),
        ("normalize --shape 2,5,8,3 --dtype f64", "f16, bf16, f32"),
        ("cast --elements 5 --from c64 --to f32", "casts are timed"),
    ] {
        let run = soft(&format!("bench {line}"));
        assert!(run.stderr.contains(wrong), "{line}: {}", run.stderr);
    }
}

#[test]
fn permutes_that_convert_are_verified_and_their_bytes_counted() {
    for (line, dtype, bytes, kernel) in [
        ("128,128 --axes 1,0 --from f32 --to f32", "f32", 8 * 128 * 128, "affine_tile_f32_f32"),
        ("2,100,64 --axes 0,2,1 --from f16 --to bf16", "bf16", 4 * 12800, "affine_elements"),
        ("2,128,64 --axes 0,2,1 --from u8 --to f32 --channels 1", "f32", 5 * 16384 + 8 * 64, "affine_tile_u8_f32"),
        ("4,10,20,3 --axes 0,3,1,2 --from u8 --to f16 --channels 1", "f16", 3 * 2400 + 8 * 3, "affine_elements"),
        ("71,91 --axes 1,0 --from f64 --to f64", "f64", 16 * 6461, "affine_elements_f64"),
        ("0,5 --axes 1,0 --from u8 --to f32 --channels 0", "f32", 0, ""),
    ] {
        let document = document(&format!("bench affine --shape {line}"));
        let members = json!({ "op": "affine", "dtype": dtype, "verified": true, "bytes": bytes, "gbps": null });
        has_members(&document, &members);
        assert_eq!(document["kernel"].as_str().unwrap_or(""), kernel, "{line}");
        assert!(document["axes"].is_array(), "{line}");
    }
    for (line, wrong) in [
        ("--axes 1,1 --from u8 --to f32", "name axis 1 twice"),
        ("--axes 1,0 --from f64 --to f32", "doubles become doubles"),
        ("--axes 1,0 --from i32 --to f32", "affine maps read u8, f16"),
        ("--axes 1,0 --from u8 --to f32 --channels 2", "no axis 2"),
    ] {
        soft(&format!("bench affine --shape 4,5 {line}")).ended(2, &[], &[wrong]);
    }
}

#[test]
fn reductions_are_verified_on_every_number_type() {
    for dtype in ["u8", "i8", "u16", "i16", "f16", "bf16", "u32", "i32", "f32", "u64", "i64", "f64"] {
        for op in ["sum", "min", "max", "argmax"] {
            // Signed integers of 64 bits have the sums of unsigned ones.
            let entry = if (op, dtype) == ("sum", "i64") { "u64" } else { dtype };
            for (axis, kind) in [(0, "columns"), (1, "columns"), (2, "rows")] {
                let document = document(&format!("bench {op} --shape 6,50,40 --axis {axis} --dtype {dtype}"));
                let kernel = format!("{op}_{kind}_{entry}");
                has_members(&document, &json!({ "op": op, "verified": true, "kernel": kernel, "axes": [axis] }));
            }
            let all = document(&format!("bench {op} --elements 5001 --dtype {dtype}"));
            let is_whole = dtype.contains('f') && op != "argmax";
            let kernel = format!("{op}{}_{entry}", if is_whole { "" } else { "_rows" });
            has_members(&all, &json!({ "op": op, "verified": true, "kernel": kernel }));
            assert!(!is_whole || all["counters"]["shared_load"]["bank_conflicts"] == 0, "{all}");
        }
    }
    let run = soft("bench sum --elements 9 --dtype c64");
    assert!(run.stderr.contains("reductions are of u8, i8"), "{}", run.stderr);
}

#[test]
fn an_axis_goes_with_a_shape_that_has_it() {
    soft("bench sum --shape 3,4 --axis 2").failed(&["no axis 2"]);
    for wrong in ["--shape 3,4", "--axis 1", "--quiet", "--elements 5 --shape 5 --axis 0", "--elements 5 --axis 0"] {
        assert_eq!(soft(&format!("bench sum {wrong}")).code, Some(2), "{wrong}");
    }
}

#[test]
fn long_axes_beside_empty_ones_are_refused_in_a_sentence() {
    let (long, many) = ("4294967296,4294967296", ["1"; 17].join(","));
    for line in [
        format!("sum --shape {long},0 --axis 2"),
        format!("sum --shape 0,{long} --axis 0"),
        format!("softmax --shape {long},0"),
        format!("softmax --shape {many}"),
        format!("normalize --shape {long},0,3"),
        format!("normalize --shape 0,{long},3"),
    ] {
        soft(&format!("bench {line} --dtype f32")).failed(&["shape"]);
    }
    let affine = "bench affine --shape 9223372036854775807,0 --axes 1,0 --from u8 --to f32 --channels 1";
    soft(affine).failed(&["more bytes than an address can count"]);
}
