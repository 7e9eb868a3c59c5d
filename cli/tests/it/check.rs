//! `check`: files that hold and files that fall short, every oracle, and files made to do harm.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::cuda_cpp::compilers;
use super::{Folder, Run, command, npy, npy_with_header, schemas, warpstride};

/// Kernels that leave their arguments as they are, that store 0 to 31, that load two words apart,
/// that race and stop, that subtracts from a square, and one without an end.
const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
    .visible .entry scaled(.param .f32 f, .param .u64 a, .param .u64 b, .param .u64 c) { ret; }
    .visible .entry iota(.param .u64 a) {
        .reg .b32 %r<2>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
        st.global.u32 [%rd2], %r1;
        ret;
    }
    .visible .entry apart(.param .u64 a) {
        .reg .b32 %r<3>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 8, %rd1;
        ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd1], %r2;
        ret;
    }
    .visible .entry far(.param .u64 a) {
        .reg .b32 %r<3>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [a]; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1+4096], %r1;
        ret;
    }
    .visible .entry rest(.param .u64 a, .param .f32 b, .param .f32 c) {
        .reg .f32 %f<4>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [a]; ld.param.f32 %f1, [b]; ld.param.f32 %f2, [c];
        mul.f32 %f3, %f1, %f1; sub.f32 %f3, %f3, %f2; st.global.f32 [%rd1], %f3; ret;
    }
    .visible .entry endless() { L: bra L; }";

impl Folder {
    /// Checks a file of a warp of `entry` and these lines.
    fn check(&self, entry: &str, lines: &str) -> Run {
        self.check_text(format!("kernel = \"k.ptx\"\nentry = \"{entry}\"\ngrid = [1]\nblock = [32]\n{lines}\n"))
    }

    /// Checks a kernel with these arguments and this wanted result.
    fn check_result(&self, entry: &str, args: &str, result: &str) -> Run {
        self.check(entry, &format!("args = [{args}]\nresult = {{ {result} }}"))
    }

    fn check_text(&self, text: impl AsRef<[u8]>) -> Run {
        self.write("c.toml", text);
        warpstride(["check".into(), self.path("c.toml")])
    }
}

impl Run {
    /// It printed a table in which some expectation fell short, and a sentence with these parts.
    #[track_caller]
    pub(super) fn fell_short(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(1), "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.starts_with("error: ") && self.stderr.contains("fell short"), "{}", self.stderr);
        for part in parts {
            assert!(self.stdout.contains(part), "{part:?} is not in {}", self.stdout);
        }
    }
}

fn example(name: &str) -> PathBuf {
    crate::repository().join("interp/tests/data/check").join(name)
}

#[test]
fn the_examples_say_what_their_comments_promise() {
    for name in ["transpose.toml", "saxpy.toml", "sum.toml", "small.toml"] {
        let run = warpstride(["check".into(), example(name)]).succeeded();
        assert!(run.stdout.lines().skip(2).all(|line| line.starts_with("held  ")), "{name}: {}", run.stdout);
        assert!(run.stdout.lines().all(|line| line.chars().count() <= 200), "{}", run.stdout);
    }
    let naive = warpstride(["check".into(), example("naive.toml")]);
    naive.fell_short(&["1 of 3 expectations fell short", "held        argument 1 is transpose:128x128  16384 equal"]);
    let row = naive.stdout.lines().last().expect("a row").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(row, "FELL SHORT store.sectors <= 1.0 * ideal 16384 <= 2048 8.00x");
    assert!(naive.stderr.ends_with("naive.toml: 1 of 3 expectations fell short; the table says which\n"));
}

/// The page for people who test kernels shows a file and a table as they are.
#[test]
fn the_page_shows_what_is_there() {
    let root = crate::repository();
    let read = |path: &Path| fs::read_to_string(path).expect("readable");
    let page = read(&root.join("docs/testing-kernels.md"));
    assert!(page.contains(&read(&example("transpose.toml"))));
    let naive = Run::of(command(["check", "interp/tests/data/check/naive.toml"]).current_dir(root));
    for printed in [naive.stdout, naive.stderr] {
        assert!(page.contains(&printed), "{printed}");
    }
}

#[test]
fn the_document_has_all_of_it() {
    let run = warpstride(["--json".into(), "check".into(), example("naive.toml"), example("transpose.toml")]);
    assert_eq!(run.code, Some(1));
    let document = run.json();
    assert_eq!((&document["schema"], &document["held"]), (&json!(3), &json!(false)));
    let [naive, transpose] = &document["files"].as_array().expect("a list")[..] else { panic!("{document}") };
    assert_eq!((&naive["held"], &transpose["held"]), (&json!(false), &json!(true)));
    assert_eq!(naive["kernel"], "transpose_naive");
    assert_eq!(naive["counters"]["global_store"]["sectors"], 16384);
    let short = &naive["expectations"][2];
    let expected = json!({
        "expectation": "store.sectors <= 1.0 * ideal", "found": "16384", "wanted": "<= 2048", "of_ideal": 8.0, "held": false,
    });
    assert_eq!(short, &expected);
    assert_eq!(
        transpose["result"],
        json!({ "arg": 1, "elements": 16384, "differ": 0, "first": null, "tolerance": null })
    );
    assert_eq!((&transpose["findings_total"], &transpose["findings"]), (&json!(0), &json!([])));
    assert!(naive["findings_total"] == 0 && naive["thread_instructions"].as_u64().is_some_and(|count| count > 0));
}

#[test]
fn several_files_are_all_checked() {
    let folder = Folder::with("k.ptx", PTX);
    folder.write("bad.toml", "kernel = 3");
    let files = [example("transpose.toml"), folder.path("bad.toml"), example("naive.toml")];
    let run = warpstride([PathBuf::from("check")].iter().chain(&files));
    run.fell_short(&[
        "6 expectations held",
        "bad.toml: not checked\nerror: ",
        "line 1, `kernel`: ",
        "1 of 3 expectations",
    ]);
    assert!(run.stderr.contains("2 of 3 files fell short") && run.stderr.contains("naive.toml"), "{}", run.stderr);
    let run = warpstride([PathBuf::from("--json"), "check".into()].iter().chain(&files));
    assert_eq!(run.json()["files"][1]["error"]["kind"], "invalid_argument");
    warpstride(["check"]).ended(2, &[], &[]);
    let on_gpu = warpstride(["check".into(), "--device".into(), "cuda".into(), example("transpose.toml")]);
    on_gpu.failed(&["nothing is counted on a GPU", "--device soft"]);
}

/// The tests of the software GPU hold the meaning of each kind of expectation.
#[test]
fn an_expectation_holds_or_falls_short() {
    let folder = Folder::with("k.ptx", PTX);
    let args = "args = [\"u32[64]=iota\"]\n";
    for (held, short) in [
        ("load.sectors <= 2.0 * ideal", "load.sectors <= 1.5 * ideal"),
        ("global_load.requests == store.requests", "global_store.sectors > global_load.sectors"),
        ("thread_instructions == 32 * 6", "thread_instructions < 32"),
    ] {
        folder.check("apart", &format!("{args}expect = [\"{held}\"]")).ended(0, &["1 expectation held", held], &[]);
        folder.check("apart", &format!("{args}expect = [\"{held}\", \"{short}\"]")).fell_short(&[
            "1 of 2 expectations fell short",
            &format!("held        {held} "),
            &format!("FELL SHORT  {short} "),
        ]);
    }
}

/// A file of little-endian f32.
fn floats(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy("<f4", &format!("({},)", values.len()), &bytes)
}

#[test]
fn products_and_sums_are_fused_if_the_file_says_so() {
    let folder = Folder::with("k.ptx", PTX);
    let args = "args = [\"f32[1]=uninit\", \"f32:1.000244140625\", \"f32:1.00048828125\"]\nresult = ";
    let check = |contract: &str, wanted: &str| {
        folder.check("rest", &format!("{contract}{args}{{ arg = 0, oracle = \"fill:{wanted}\", tolerance = 0.0 }}"))
    };
    check("", "0").succeeded();
    check("contract = false\n", "0").succeeded();
    check("contract = true\n", "5.9604644775390625e-8").succeeded();
    check("contract = true\n", "0").fell_short(&["[0] = 5.9604645e-8"]);
    check("contract = 1\n", "0").failed(&["line 5, `contract`: ", "expected true or false"]);
}

/// A kernel that does nothing leaves what a file holds, and the oracle computes it of the other
/// buffers.
#[test]
fn every_oracle_computes_what_it_says() {
    let folder = Folder::with("k.ptx", PTX);
    let six = |values: [f32; 6]| folder.write("r.npy", floats(&values));
    let args = "\"f32[6]=iota\", \"f32[6]=iota\", \"npy:r.npy\"";
    let check = |oracle: &str| folder.check_result("nothing", args, &format!("arg = 2, oracle = \"{oracle}\""));
    for (oracles, right) in [
        (&["copy", "copy:1", "iota", "permute:2x3:0,1", "copy:2"][..], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (&["reverse", "reverse:0"], [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]),
        (
            &["transpose:2x3", "transpose:2x3:1", "permute:2x3:1,0", "permute:1x2x3:a b c -> c b a:0"],
            [0.0, 3.0, 1.0, 4.0, 2.0, 5.0],
        ),
        (&["fill:2.5"], [2.5; 6]),
        (&["add", "add:0,1", "add:1,0"], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
        (&["mul", "mul:0,1"], [0.0, 1.0, 4.0, 9.0, 16.0, 25.0]),
    ] {
        six(right);
        for oracle in oracles {
            check(oracle).ended(0, &[&format!("argument 2 is {oracle}  6 equal")], &[]);
        }
        if !oracles.contains(&"copy:2") {
            let mut wrong = right;
            (wrong[1], wrong[4]) = (-1.0, 77.0);
            six(wrong);
            // A matrix has rows and columns, and arrays of more axes an index for each.
            let place = |oracle: &str| match oracle {
                "transpose:2x3" | "permute:2x3:0,1" | "permute:2x3:1,0" => "row 0, column 1",
                "permute:1x2x3:a b c -> c b a:0" => "[0, 1, 0]",
                _ => "[1]",
            };
            for oracle in oracles.iter().filter(|&&oracle| oracle == oracles[0] || oracle.starts_with("permute")) {
                let place = place(oracle);
                check(oracle)
                    .fell_short(&[&format!("4 equal; {place} = -1 "), &format!("6 equal; {place} = {}", right[1])]);
            }
        }
    }
    six([1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
    folder.write("y.npy", floats(&[1.0; 6]));
    let args = "\"f32:2\", \"f32[6]=iota\", \"npy:y.npy\", \"npy:r.npy\"";
    let axpy = |oracle: &str| folder.check_result("scaled", args, &format!("arg = 3, oracle = \"{oracle}\""));
    axpy("axpy:0,1,2").succeeded();
    axpy("axpy:0,2,1").fell_short(&["[0] = 1 "]);
    axpy("axpy:1,0,2").failed(&["line 6, `result`", "argument 1 is not a number"]);
}

#[test]
fn sums_and_files_are_compared_with_what_is_found() {
    let folder = Folder::with("k.ptx", PTX);
    let check = |args: &str, result: &str| folder.check_result("nothing", args, result);
    let (of, sum) = ("\"u8[300]=iota\", \"u8[1]=zeros\"", "arg = 2, oracle = \"sum\"");
    let summed = |more: &str| check(&format!("{of}, \"npy:r.npy\""), &format!("{sum}{more}"));
    // 0 to 255, and 0 to 43.
    folder.write("r.npy", npy("<u4", "()", &(255 * 128 + 43 * 22_u32).to_le_bytes()));
    summed("").succeeded();
    check(&format!("{of}, \"u16[1]=zeros\""), "arg = 2, oracle = \"sum:0\"")
        .fell_short(&["0 equal; [0] = 0", "[0] = 33586"]);
    folder.write("r.npy", floats(&[33586.5]));
    summed("").fell_short(&["[0] = 33586.5"]);
    summed(", tolerance = 2e-5").ended(0, &["argument 2 is sum within 2e-5"], &[]);
    summed(", tolerance = 1e-5").fell_short(&["within 1e-5"]);
    // NaN equals NaN, and 0 equals -0; an infinity equals itself alone.
    let values = [f32::NAN, -0.0, f32::INFINITY, 1.0];
    folder.write("r.npy", floats(&values));
    folder.write("e.npy", floats(&[-f32::NAN, 0.0, f32::INFINITY, 1.0]));
    let three = "\"f32[4]=zeros\", \"f32[4]=zeros\", \"npy:r.npy\"";
    check(three, "arg = 2, file = \"e.npy\"").succeeded();
    // A file has a shape.
    for (shape, place) in [("(2, 2)", "row 1, column 0"), ("(2, 1, 2)", "[1, 0, 0]"), ("(4,)", "[2]")] {
        let other = [f32::NAN, 0.0, 7.0, 1.0].map(f32::to_le_bytes).concat();
        folder.write("m.npy", npy("<f4", shape, &other));
        check(three, "arg = 2, file = \"m.npy\"").fell_short(&[&format!("4 equal; {place} = 7")]);
    }
    folder.write("e.npy", floats(&[0.0, 0.0, 1.0, f32::INFINITY]));
    check(three, "arg = 2, file = \"e.npy\", tolerance = 1e9").fell_short(&["1 equal; [0] = NaN", "4 equal; [0] = 0"]);
    let complex: Vec<u8> = [1.0_f32, -2.5].iter().flat_map(|part| part.to_le_bytes()).collect();
    folder.write("e.npy", npy("<c8", "(1,)", &complex));
    let three = "\"c64[1]=zeros\", \"c64[1]=zeros\", \"c64[1]=iota\"";
    check(three, "arg = 2, file = \"e.npy\"").fell_short(&["[0] = 0 + 0i", "[0] = 1 + -2.5i"]);
}

/// Integers wrap around, and halves are rounded once.
#[test]
fn arithmetic_is_that_of_the_elements() {
    let folder = Folder::with("k.ptx", PTX);
    let of = |dtype: &str, result: &str| {
        let [iota, zeros] = ["iota", "zeros"].map(|filled| format!("\"{dtype}[3]={filled}\""));
        folder.check_result("nothing", &format!("{iota}, {iota}, {zeros}"), result)
    };
    for dtype in ["u8", "i8", "u16", "i16", "f16", "u32", "i32", "f32", "u64", "i64", "f64", "bf16"] {
        let check = |oracle: &str| of(dtype, &format!("arg = 2, oracle = \"{oracle}\""));
        check("fill:0").succeeded();
        check("mul").fell_short(&["1 equal; [1] = 0 ", "3 equal; [1] = 1"]);
        check("add:1,1").fell_short(&["1 equal; [1] = 0 ", "3 equal; [1] = 2"]);
        check("copy:0").fell_short(&["1 equal; [1] = 0 ", "3 equal; [1] = 1"]);
    }
    let args = "args = [\"u8[256]=iota\", \"u8[256]=iota\", \"u8[256]=zeros\"]\n";
    let squares =
        folder.check("nothing", &format!("{args}result = {{ arg = 2, oracle = \"mul:0,1\" }}\nchecks = \"all\""));
    // The squares of multiples of 16 are 0 in a byte.
    squares.fell_short(&["16 equal; [1] = 0 ", "held        faults checkers found"]);
    let complex = of("c64", "arg = 2, oracle = \"add\"");
    complex.failed(&["`result`", "the oracle `add`", "do not compute with c64"]);
}

#[test]
fn a_wrong_entry_names_its_line() {
    let folder = Folder::with("k.ptx", PTX);
    folder.check("nope", "checks = \"all\"").failed(&["c.toml line 2, `entry`: ", "k.ptx has no kernel `nope`"]);
    let entry = "kernel = \"k.ptx\"\ngrid = [1]\nblock = [32]\nchecks = \"all\"\n";
    folder.check_text(entry).failed(&["c.toml line 1, `kernel`: "]);
}

#[test]
fn findings_are_shown_as_run_ptx_shows_them() {
    let folder = Folder::with("k.ptx", PTX);
    let racing = folder.check("apart", "args = [\"u32[64]=iota\"]\nchecks = \"racecheck\"");
    racing.fell_short(&["FELL SHORT  faults checkers found", "racecheck", "PTX line"]);
    let run = folder.run("run-ptx k.ptx --grid 1 --block 32 --arg u32[64]=iota --check racecheck --entry apart");
    let finding = run.stdout.lines().find(|line| line.starts_with("racecheck")).expect("a finding");
    assert!(racing.stdout.contains(finding), "{finding:?} is not in {}", racing.stdout);
    // A launch that stops, with what was found before.
    let stopped =
        folder.check("far", "args = [\"u32[4]=uninit\"]\nchecks = \"initcheck\"\nexpect = [\"load.requests == 1\"]");
    let stopped = stopped.ended(1, &[": stopped\n", "initcheck"], &["past the end of an allocation"]);
    // Why it stopped comes before what the checkers found until then.
    let [cause, finding] = ["past the end of an allocation", "initcheck"].map(|part| stopped.stdout.find(part));
    assert!(cause.is_some() && cause < finding, "{}", stopped.stdout);
    let plain = folder.check("far", "args = [\"u32[4]=zeros\"]\nexpect = [\"load.requests == 1\"]");
    plain.failed(&["c.toml: kernel \"far\" stopped at", "past the end of an allocation"]);
}

#[test]
fn ci_systems_get_annotations_and_a_report() {
    let folder = Folder::with("k.ptx", PTX);
    let head = "kernel = \"k.ptx\"\nentry = \"apart\"\ngrid = [1]\nblock = [32]\nargs = [\"u32[64]=iota\"]\n";
    folder.write(
        "wrong.toml",
        format!("{head}checks = \"racecheck\"\nexpect = [\n\"load.requests == 1\",\n\"load.requests == 2\"]"),
    );
    folder.write("right.toml", format!("{head}expect = [\"load.requests == 1\"]"));
    let run = folder.run("check wrong.toml right.toml none.toml --github --junit out.xml");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let annotations: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("::")).collect();
    let [race, short, none] = annotations[..] else { panic!("{annotations:#?}") };
    assert!(
        race.starts_with("::error file=wrong.toml::racecheck: kernel ") && race.contains("%0A  races with"),
        "{race}"
    );
    assert_eq!(short, "::error file=wrong.toml,line=9::load.requests == 2: found 1, wanted == 2");
    assert!(none.starts_with("::error file=none.toml::cannot read none.toml"), "{none}");

    let report = fs::read_to_string(folder.path("out.xml")).expect("the report");
    let report = roxmltree::Document::parse(&report).expect("XML");
    let suites: Vec<[&str; 4]> = report
        .descendants()
        .filter(|node| node.has_tag_name("testsuite"))
        .map(|suite| ["name", "tests", "failures", "errors"].map(|name| suite.attribute(name).expect(name)))
        .collect();
    assert_eq!(suites, [["wrong.toml", "3", "2", "0"], ["right.toml", "1", "0", "0"], ["none.toml", "1", "0", "1"]]);
    let failures: Vec<_> = report.descendants().filter(|node| node.has_tag_name("failure")).collect();
    assert!(failures[0].text().is_some_and(|text| text.starts_with("racecheck: ")), "{:?}", failures[0].text());
    assert_eq!(failures[1].attribute("message"), Some("load.requests == 2: found 1, wanted == 2"));
    schemas::followed_by([folder.path("out.xml")]);

    let over = folder.run("check right.toml --junit right.toml");
    over.failed(&["input and output are the same file"]);
    folder.write("read.toml", head.replace("u32[64]=iota", "npy:in.npy") + "[result]\narg = 0\nfile = \"wanted.npy\"");
    for read in ["k.ptx", "in.npy", "wanted.npy"] {
        folder.write(read, fs::read(folder.path(read)).unwrap_or_default());
        folder.run(&format!("check read.toml --junit {read}")).failed(&["input and output are the same file"]);
    }
    folder.run("check right.toml --junit none/out.xml").failed(&["cannot write none/out.xml"]);
}

#[test]
fn other_tools_get_findings_as_sarif_and_counters_as_a_table() {
    let folder = Folder::with("k.ptx", PTX);
    let head = "kernel = \"k.ptx\"\nentry = \"apart\"\ngrid = [1]\nblock = [32]\nargs = [\"u32[64]=iota\"]\n";
    folder.write("wrong.toml", format!("{head}checks = \"racecheck\"\nexpect = [\n\"load.sectors == 2\"]"));
    let run = folder.run("check wrong.toml none.toml --sarif out.sarif --ncu-csv out.csv");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let log: Value = serde_json::from_slice(&fs::read(folder.path("out.sarif")).expect("the log")).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("a list");
    let members = |result: &Value| {
        let place = &result["locations"][0]["physicalLocation"];
        json!([result["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"]])
    };
    let found: Vec<Value> = results.iter().map(members).collect();
    let wanted = [
        json!(["racecheck/global", "wrong.toml", null]),
        json!(["access/sectors", "wrong.toml", 8]),
        json!(["launch/stopped", "none.toml", null]),
    ];
    assert_eq!(found, wanted);
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("a list");
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("a number") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(result["message"]["text"].is_string() && result["partialFingerprints"].is_object(), "{result}");
    }
    schemas::followed_by([folder.path("out.sarif")]);
    let table = fs::read_to_string(folder.path("out.csv")).expect("the table");
    let metric = "\"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum\",\"sector\",\"8\"";
    assert!(table.starts_with("\"ID\",\"Process ID\"") && table.contains(metric), "{table}");
    folder.run("check wrong.toml --sarif wrong.toml").failed(&["input and output are the same file"]);
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_its_line_and_key() {
    let folder = Folder::with("k.ptx", PTX);
    let refused = |lines: &str, parts: &[&str]| folder.check("iota", lines).failed(parts);
    let (args, expect) = ("args = [\"u32[32]=zeros\"]\n", "expect = [\"load.requests == 0\"]\n");
    refused(args, &["c.toml expects nothing", "result, checks or expect"]);
    refused(
        "expect = [\n\"load.requests == 0\",\n\"load.x == 0\",\n]",
        &["c.toml line 7, `expect`: ", "`load.x` is not a counter"],
    );
    refused("args = [\n\"u32[32]=zeros\",\n\"u33:1\"]", &["line 7, `args`: ", "`u33` does not name an element type"]);
    refused(&format!("{args}colour = 1"), &["line 6: unknown field `colour`", "`kernel`"]);
    refused(&format!("{args}\"\\u001b[31m\" = 1"), &["line 6: unknown field `\\u{1b}[31m`"]);
    refused("shared = -1", &["line 5, `shared`: ", "a whole number from 0 to 4294967295"]);
    refused("shared = 99999999999999999999999", &["line 5, `shared`: "]);
    refused("limit = 0", &["line 5, `limit`: ", "a whole number from 1"]);
    refused("checks = \"all,none\"", &["line 5, `checks`: ", "is not a checker"]);
    refused("expect = \"load.requests == 0\"", &["line 5, `expect`: ", "expected a list"]);
    refused("grid = [1]", &["line 5: duplicate key"]);
    refused("= 1", &["line 5: "]);
    refused(&format!("{expect}args = [\"u32:1\"]"), &["c.toml: argument u32:1: ", "8 bytes and the value 4"]);
    for (result, parts) in [
        ("arg = 0", &["line 7, `result`: give either an oracle or a file"][..]),
        ("oracle = \"iota\"", &["line 7, `result`: missing field `arg`"]),
        ("arg = 1, oracle = \"iota\"", &["line 7, `result`: arg = 1: ", "1 argument, counted from 0"]),
        ("arg = -1, oracle = \"iota\"", &["line 7, `result.arg`: ", "a whole number from 0"]),
        ("arg = 0, oracle = \"iota\", file = \"a.npy\"", &["give either an oracle or a file"]),
        ("arg = 0, oracle = \"iota\", tolerance = 1e-6", &["`result`: tolerance is for floats", "u32"]),
        ("arg = 0, oracle = \"iota\", tolerance = nan", &["`result.tolerance`: give a number from 0"]),
        ("arg = 0, file = \"absent.npy\"", &["`result`: cannot read", "absent.npy"]),
        ("arg = 0, oracle = \"sort\"", &["`result.oracle`: `sort` is not an oracle; use copy, reverse"]),
        ("arg = 0, oracle = \"copy:a\"", &["`result.oracle`: `copy:a` does not end with the numbers"]),
        ("arg = 0, oracle = \"add:1\"", &["`result.oracle`: `add:1` does not end with the numbers"]),
        ("arg = 0, oracle = \"copy:0:0\"", &["`copy:0:0` has too many parts"]),
        ("arg = 0, oracle = \"copy:7\"", &["the oracle `copy:7`: there is no argument 7"]),
        ("arg = 0, oracle = \"copy\"", &["the oracle `copy`: there is no other buffer"]),
        ("arg = 0, oracle = \"transpose:4\"", &["`transpose:4` has no rows and columns"]),
        ("arg = 0, oracle = \"transpose:4x9:0\"", &["the shape has 36 elements", "has 32"]),
        ("arg = 0, oracle = \"permute:4x8:0,2\"", &["`result.oracle`: "]),
        ("arg = 0, oracle = \"permute:18446744073709551615x2:0,1\"", &["has no shape"]),
        (
            "arg = 0, oracle = \"permute:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\"",
            &["has 17 axes; use at most 16"],
        ),
        ("arg = 0, oracle = \"fill:x\"", &["the oracle `fill:x`: u32 does not have the value `x`"]),
        ("arg = 0, oracle = \"sum:0\"", &["it has 1 element of u32, and argument 0 has 32"]),
    ] {
        refused(&format!("{args}{expect}result = {{ {result} }}"), parts);
    }
    let numbers = "\"f32:1\", \"u32[1]=zeros\", \"u32[1]=zeros\", \"f32[1]=uninit\"";
    let scaled = |result: &str| folder.check_result("scaled", numbers, result);
    scaled("arg = 0, oracle = \"iota\"").failed(&["arg = 0: f32:1 is a number"]);
    scaled("arg = 1, oracle = \"copy:0\"").failed(&["argument 0, f32:1, is a number"]);
    scaled("arg = 1, oracle = \"axpy:0,1,2\"").failed(&["argument 0 is f32, and the result u32"]);
    let nothing = ["the oracle `copy:3`", "f32[1]=uninit holds nothing before the launch"];
    scaled("arg = 1, oracle = \"copy:3\"").failed(&nothing);
}

#[test]
fn kernels_of_cuda_cpp_are_compiled() {
    let folder = Folder::with("k.ptx", PTX);
    let source =
        "__global__ void twice(float* out, const float* in) {\n    int i = threadIdx.x;\n    out[i] = 2 * in[i];\n}\n";
    folder.write("twice.cu", source);
    let text = "kernel = \"twice.cu\"\nentry = \"twice\"\ngrid = [1]\nblock = [32]\n\
                args = [\"f32[32]=zeros\", \"f32[32]=iota\"]\nresult = { arg = 0, oracle = \"add:1,1\" }\n\
                expect = [\"load.sectors <= 1.0 * ideal\", \"store.requests == 1\"]\n";
    folder.write("twice.toml", text);
    for compiler in compilers() {
        let Some(library) = &compiler.nvrtc else { continue };
        let arguments = ["--json".into(), "check".into(), folder.path("twice.toml")];
        let document = Run::of(command(arguments).env("WARPSTRIDE_NVRTC", library)).succeeded().json();
        let file = &document["files"][0];
        assert_eq!(file["held"], true, "{document:#}");
        assert_eq!((&file["compiler"]["name"], &file["kernel"]), (&"nvrtc".into(), &"twice".into()), "{file:#}");
    }
}

#[test]
fn what_a_compiler_says_keeps_its_lines() {
    let folder = Folder::with("k.ptx", PTX);
    folder.write("k.cu", "__global__ void k(int* a) {\n    a[0] = nothing;\n}\n");
    folder.write("c.toml", "grid = [1]\nblock = [1]\nkernel = \"k.cu\"\nchecks = \"all\"");
    for compiler in compilers() {
        let mut check = command(["check".into(), folder.path("c.toml")]);
        match &compiler.nvrtc {
            Some(library) => check.env("WARPSTRIDE_NVRTC", library),
            // Clang is taken if there is no other NVRTC.
            None => check.env_remove("WARPSTRIDE_NVRTC").env_remove("VIRTUAL_ENV").env_remove("CONDA_PREFIX"),
        };
        let text = Run::of(&mut check).ended(1, &[], &[]).stderr;
        let lines: Vec<&str> = text.lines().collect();
        let begin = format!("error: {} line 2 does not compile with ", folder.text("k.cu"));
        assert!(lines[0].starts_with(&begin), "{text}");
        assert!(lines[1].contains("k.cu(2): error") || lines[1].contains("k.cu:2:12: error"), "{text}");
        assert!(lines[lines.len() - 1].ends_with("c.toml line 3, `kernel` names this file"), "{text}");
    }
}

#[test]
fn kernels_that_cannot_be_loaded_are_named() {
    let folder = Folder::with("k.ptx", PTX);
    let kernel = |kernel: &str| {
        folder.check_text(format!("grid = [1]\nblock = [1]\nkernel = \"{kernel}\"\nexpect = [\"load.requests == 0\"]"))
    };
    kernel("k.ptx").failed(&["line 3, `kernel`: ", "k.ptx has 7 kernels; name one with `entry`: nothing, scaled"]);
    kernel("absent.cu").failed(&["line 3, `kernel`: cannot read", "absent.cu"]);
    kernel("absent.ptx").failed(&["line 3, `kernel`: cannot read", "absent.ptx"]);
    kernel(".").failed(&["not a regular file"]);
    kernel("c.toml").failed(&["c.toml: PTX line 1"]);
    folder.write("r.npy", npy_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", &[0; 16]));
    let result =
        "args = [\"f32[4]=zeros\", \"f32[4]=zeros\", \"f32[4]=zeros\"]\nresult = { arg = 0, file = \"r.npy\" }";
    folder.check("nothing", result).failed(&["`result`: ", "Fortran order"]);
    folder.check("nothing", &result.replace("r.npy", "/dev/zero")).failed(&["`result`: ", "not a regular file"]);
    folder
        .check("nothing", &result.replace("f32[4]=zeros", "npy:/dev/zero"))
        .failed(&["c.toml: ", "not a regular file"]);
}

#[test]
#[cfg(unix)]
fn devices_and_pipes_are_refused_and_not_read() {
    let folder = Folder::with("k.ptx", PTX);
    let pipe = folder.path("pipe.ptx");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    for kernel in ["pipe.ptx", "/dev/zero", "/dev/stdin"] {
        let text = format!("grid = [1]\nblock = [1]\nkernel = \"{kernel}\"\nchecks = \"all\"");
        folder.check_text(text).failed(&["line 3, `kernel`: cannot read", "not a regular file"]);
    }
    warpstride(["check", "/dev/zero"]).failed(&["/dev/zero has more than 1 MiB"]);
}

#[test]
fn hostile_files_end_in_a_sentence() {
    let folder = Folder::with("k.ptx", PTX);
    let refused = |text: &[u8], parts: &[&str]| folder.check_text(text).failed(parts);
    refused(b"", &["c.toml line 1: missing field"]);
    refused(b"\xff\xfe", &["c.toml", "save the file as text in UTF-8"]);
    refused(&[0; 100], &["c.toml line 1"]);
    refused(&vec![b'a'; (1 << 20) + 1], &["c.toml has more than 1 MiB"]);
    refused(format!("kernel = {}", "[".repeat(500_000)).as_bytes(), &["c.toml line 1"]);
    refused(format!("kernel = {}", "{a=".repeat(300_000)).as_bytes(), &["c.toml line 1"]);
    refused(format!("{}b = 1", "a.".repeat(500_000)).as_bytes(), &["c.toml"]);
    let launch = "kernel = \"k.ptx\"\nentry = \"endless\"\nblock = [1]\nexpect = [\"load.requests == 0\"]\n";
    refused(format!("{launch}grid = [0]").as_bytes(), &["line 5, `grid`: give one to three whole numbers from 1"]);
    refused(format!("{launch}grid = [1, 1, 1, 1]").as_bytes(), &["`grid`: give one to three"]);
    refused(format!("{launch}grid = [4294967296]").as_bytes(), &["`grid`: give one to three"]);
    refused(format!("{launch}grid = [4294967295]").as_bytes(), &["a grid of [4294967295, 1, 1] blocks"]);
    refused(format!("{launch}grid = [2147483647, 65535]").as_bytes(), &["units of work", "`limit`"]);
    let most = format!("{launch}grid = [1]\nlimit = 9223372036854775807");
    refused(most.as_bytes(), &["line 6, `limit`: give a whole number from 1 to 17179869184"]);
    refused(format!("{launch}grid = [1]\nlimit = 1000").as_bytes(), &["a loop that never ends", "raise `limit`"]);
    let memory = "args = [\"f32[4]=zeros\", \"f32[4]=zeros\", \"f32[99999999999999]=zeros\"]\nchecks = \"all\"";
    folder.check("nothing", memory).failed(&["c.toml: this takes 400000001 MB"]);
    let many = vec!["\"load.requests == 0\""; 30_000].join(",");
    let run = folder.check("iota", &format!("args = [\"u32[32]=zeros\"]\nexpect = [{many}]")).succeeded();
    assert!(run.stdout.contains("30000 expectations held"), "{}", &run.stdout[..200]);
}

#[test]
fn a_sentence_about_a_long_value_has_its_beginning_and_its_end() {
    let folder = Folder::with("k.ptx", PTX);
    let digits = "9".repeat(100_000);
    let fill = folder.check_result("iota", "\"u32[1]=zeros\"", &format!("arg = 0, oracle = \"fill:{digits}\""));
    let kernel = format!("grid = [1]\nblock = [1]\nchecks = \"all\"\nkernel = \"{}\"", "k".repeat(100_000));
    let runs = [
        (fill, "`result`: the oracle `fill:9999", "give a number that it has\n"),
        (folder.check_text(kernel), "`kernel`: cannot read ", "(os error 36)\n"),
    ];
    for (run, begin, end) in runs {
        assert!(run.stderr.contains(begin) && run.stderr.ends_with(end), "{}", run.stderr);
        assert!(run.stderr.len() < 3000, "{} bytes", run.stderr.len());
        run.failed(&["c.toml line", "…"]);
    }
}

/// Every beginning of a file is a file, or is refused with a sentence.
#[test]
fn a_file_that_is_cut_ends_in_a_sentence() {
    let folder = Folder::with("k.ptx", PTX);
    let text = "kernel = \"k.ptx\"\nentry = \"iota\"\ngrid = [1]\nblock = [32]\nargs = [\"u32[32]=zeros\"]\nchecks = \"all\"\n\
                result = { arg = 0, oracle = \"iota\" }\nexpect = [\"store.sectors <= 1.0 * ideal\"]\n";
    folder.check_text(text).succeeded();
    for cut in (0..text.len()).step_by(5) {
        let run = folder.check_text(&text[..cut]);
        let is_refused = run.code == Some(1) && run.stderr.starts_with("error: ");
        assert!(run.code == Some(0) || is_refused, "{cut}: {}", run.stderr);
    }
}

#[test]
fn the_document_of_a_failure_is_one() {
    let folder = Folder::with("k.ptx", PTX);
    folder.write("c.toml", "kernel = 3");
    let run = warpstride(["--json".into(), "check".into(), folder.path("c.toml")]);
    assert_eq!((run.code, run.json()["error"]["kind"].clone()), (Some(1), Value::from("invalid_argument")));
    folder.check("far", "args = [\"u32[4]=uninit\"]\nchecks = \"initcheck\"");
    let run = warpstride(["--json".into(), "check".into(), folder.path("c.toml")]);
    let document = run.json();
    let file = &document["files"][0];
    assert_eq!((&document["held"], &file["held"]), (&json!(false), &json!(false)));
    assert_eq!(file["error"]["kind"], "kernel_fault");
    assert_eq!(file["findings"].as_array().map(Vec::len), Some(1));
}
