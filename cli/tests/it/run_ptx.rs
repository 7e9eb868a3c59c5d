//! Foreign PTX: values, counters, and what is said of arguments that do not go together.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Folder, OLD, Run, command, has_members, npy, npy_with_header, soft, warpstride};
use serde_json::{Value, json};

/// `dst[i] = 2 * src[i]` for `i < len`, and kernels that go wrong.
const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry twice(.param .u64 dst, .param .u64 src, .param .u32 len) {
        .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [dst]; ld.param.u64 %rd2, [src]; ld.param.u32 %r1, [len];
        mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
        mad.lo.u32 %r5, %r2, %r3, %r4;
        setp.ge.u32 %p, %r5, %r1;
        @%p bra done;
        mad.wide.u32 %rd3, %r5, 4, %rd2; mad.wide.u32 %rd4, %r5, 4, %rd1;
        ld.global.f32 %f1, [%rd3]; add.f32 %f2, %f1, %f1; st.global.f32 [%rd4], %f2;
    done:
        ret;
    }
    .visible .entry scalars(.param .u64 dst, .param .u32 a, .param .u64 b, .param .f32 c, .param .f64 d, .param .u16 e) {
        .reg .b16 %h<2>; .reg .b32 %r<3>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [dst];
        ld.param.u32 %r1, [a]; st.global.u32 [%rd1], %r1;
        ld.param.u64 %rd2, [b]; st.global.u64 [%rd1+8], %rd2;
        ld.param.u32 %r2, [c]; st.global.u32 [%rd1+16], %r2;
        ld.param.u64 %rd3, [d]; st.global.u64 [%rd1+24], %rd3;
        ld.param.u16 %h1, [e]; st.global.u16 [%rd1+32], %h1;
        ret;
    }
    .visible .entry rest(.param .u64 dst, .param .f32 a, .param .f32 b) {
        .reg .f32 %f<4>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [dst]; ld.param.f32 %f1, [a]; ld.param.f32 %f2, [b];
        mul.f32 %f3, %f1, %f1; sub.f32 %f3, %f3, %f2; st.global.f32 [%rd1], %f3;
        ret;
    }
    .visible .entry foreign(.param .u64 dst) {
        .reg .b32 %r<3>;
        tex.level.of.nothing %r1, %r2;
        ret;
    }";

impl Folder {
    /// A folder with the PTX in it.
    fn with_ptx() -> Self {
        Self::with("k.ptx", PTX)
    }

    /// Runs `entry` in blocks of 64 threads with these arguments and what else stands in `more`, in
    /// the folder.
    fn launch(&self, entry: &str, grid: &str, arguments: &[&str], more: &[&str]) -> Run {
        let shape = format!("--entry {entry} --grid {grid} --block 64");
        Run::of(command(words("k.ptx", &shape, arguments, more)).current_dir(self.path("")))
    }

    /// Launches `twice` on 4 floats of a file.
    fn launch_on(&self, file: &str) -> Run {
        self.launch("twice", "1", &[&format!("npy:{file}"), "f32[4]=zeros", "u32:4"], &[])
    }

    /// The elements of a file of this header, as bytes.
    #[track_caller]
    fn dumped(&self, name: &str, header: &str) -> Vec<u8> {
        let bytes = fs::read(self.path(name)).expect("it was written");
        let end = bytes.iter().position(|&byte| byte == b'\n').expect("a header") + 1;
        let found = String::from_utf8_lossy(&bytes[10..end]);
        assert!(found.starts_with(header), "{header:?} does not begin {found:?}");
        bytes[end..].to_vec()
    }

    /// The titles in `out.svg`.
    pub(super) fn titles(&self) -> Vec<String> {
        let image = fs::read_to_string(self.path("out.svg")).expect("it is there");
        let image = roxmltree::Document::parse(&image).expect("it is XML");
        let titles = image.descendants().filter(|node| node.attribute("class") == Some("title"));
        titles.filter_map(|node| node.text().map(str::to_owned)).collect()
    }

    fn dumped_f32(&self, name: &str, header: &str) -> Vec<f32> {
        let words = self.dumped(name, header);
        words.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
    }
}

fn words<'a>(file: &'a str, shape: &'a str, arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut words: Vec<_> = ["--device", "soft", "run-ptx", file].into_iter().chain(shape.split(' ')).collect();
    words.extend(arguments.iter().flat_map(|argument| ["--arg", argument]));
    words.extend(more);
    words
}

/// Runs the kernel `k` of a file in one thread.
fn run_ptx(file: &Path) -> Run {
    warpstride(words(file.to_str().expect("a plain path"), "--entry k --grid 1 --block 1", &[], &[]))
}

/// A file that the tests of the software GPU have.
fn data(name: &str) -> PathBuf {
    crate::repository().join("interp/tests/data").join(name)
}

#[test]
fn files_go_in_and_keep_their_shape() {
    let folder = Folder::with_ptx();
    let elements: Vec<f32> = (0..6).map(|i| i as f32 - 2.5).collect();
    let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
    folder.write("in.npy", npy("<f4", "(2, 3)", &bytes));
    let run = folder.launch("twice", "1", &["npy:in.npy", "npy:in.npy", "u32:6"], &["--dump", "0=out.npy"]);
    run.ended(0, &["twice on software GPU", "thread instructions"], &[]);
    let expected: Vec<f32> = elements.iter().map(|element| 2.0 * element).collect();
    assert_eq!(folder.dumped_f32("out.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"), expected);
    assert_eq!(fs::read(folder.path("in.npy")).expect("it is there"), npy("<f4", "(2, 3)", &bytes));
}

#[test]
fn products_and_sums_are_fused_on_request() {
    let folder = Folder::with_ptx();
    // The square of 1 + 2^-12, less its rounded value.
    let arguments = ["f32[1]=uninit", "f32:1.000244140625", "f32:1.00048828125"];
    for (options, rest) in
        [(&["--dump", "0=out.npy"][..], 0.0), (&["--dump", "0=out.npy", "--contract"], 1.0 / 16_777_216.0)]
    {
        folder.launch("rest", "1", &arguments, options).succeeded();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
        assert_eq!(folder.dumped_f32("out.npy", header), [rest], "{options:?}");
    }
}

#[test]
fn numbers_stand_where_the_kernel_reads_them() {
    let folder = Folder::with_ptx();
    let arguments = ["u8[40]=zeros", "i32:-7", "u64:18446744073709551615", "f32:1.5", "f64:-0.25", "f16:2"];
    folder.launch("scalars", "1", &arguments, &["--dump", "0=out.npy"]).succeeded();
    let out = folder.dumped("out.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (40,), }");
    assert_eq!(out[..4], (-7_i32).to_le_bytes());
    assert_eq!(out[8..16], u64::MAX.to_le_bytes());
    assert_eq!(out[16..20], 1.5_f32.to_le_bytes());
    assert_eq!(out[24..32], (-0.25_f64).to_le_bytes());
    assert_eq!(out[32..34], 0x4000_u16.to_le_bytes());
}

/// `iota` and `random` fill buffers of every element type, through a kernel that does not touch
/// them.
#[test]
fn buffers_of_every_type_are_filled() {
    let folder = Folder::with_ptx();
    let filled = |dtype: &str, fill: &str, descr: &str| {
        let buffer = format!("{dtype}[300]={fill}");
        folder.launch("twice", "1", &[&buffer, &buffer, "u32:0"], &["--dump", "0=out.npy"]).succeeded();
        folder.dumped("out.npy", &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (300,), }}"))
    };
    let cases: [(&str, &str, &[u8]); 14] = [
        ("u8", "|u1", &[1]),
        ("i8", "|i1", &[1]),
        ("u16", "<u2", &[1, 1]),
        ("i16", "<i2", &[1, 1]),
        ("f16", "<f2", &[0x04, 0x5c]),
        // 257 has more digits than a bf16, which rounds it to 256.
        ("bf16", "<u2", &[0x80, 0x43]),
        ("u32", "<u4", &[1, 1, 0, 0]),
        ("i32", "<i4", &[1, 1, 0, 0]),
        ("f32", "<f4", &[0x00, 0x80, 0x80, 0x43]),
        ("u64", "<u8", &[1, 1, 0, 0, 0, 0, 0, 0]),
        ("i64", "<i8", &[1, 1, 0, 0, 0, 0, 0, 0]),
        ("f64", "<f8", &[0, 0, 0, 0, 0, 0x10, 0x70, 0x40]),
        ("c64", "<c8", &[0x00, 0x80, 0x80, 0x43, 0, 0, 0, 0]),
        ("c128", "<c16", &[0, 0, 0, 0, 0, 0x10, 0x70, 0x40, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (dtype, descr, element) in cases {
        let width = element.len();
        assert_eq!(&filled(dtype, "iota", descr)[257 * width..258 * width], element, "{dtype}");
        let random = filled(dtype, "random:7", descr);
        assert_eq!(random, filled(dtype, "random:7", descr), "{dtype}: a seed is a buffer");
        assert_ne!(random, filled(dtype, "random:8", descr), "{dtype}: another seed is another");
        // The element that `iota` gives where it counts to 1, of a buffer of ones.
        let (ones, iota) = (filled(dtype, "1", descr), filled(dtype, "iota", descr));
        assert!(ones.chunks(width).all(|one| *one == iota[width..2 * width]), "{dtype}");
    }
    assert!(filled("f32", "-1.5", "<f4").chunks(4).all(|float| float == (-1.5_f32).to_le_bytes()));
    for (buffer, said) in [("u8[3]=256", "a number that u8 has"), ("i32[3]=1.5", "a number that i32 has")] {
        folder.launch("twice", "1", &[buffer], &[]).ended(2, &[], &["does not say what a buffer of ", said]);
    }
    let floats = filled("f32", "random:1", "<f4");
    let floats: Vec<f32> = floats.chunks(4).map(|word| f32::from_le_bytes(word.try_into().expect("a word"))).collect();
    assert!(floats.iter().all(|float| (0.0..1.0).contains(float)));
    let mean = floats.iter().sum::<f32>() / 300.0;
    assert!((0.4..0.6).contains(&mean), "{mean}");
}

#[test]
fn a_struct_is_passed_member_by_member() {
    let folder = Folder::with_ptx();
    let file = crate::repository().join("src/ptx/padded.ptx");
    let members = ["f32[6]=iota", "f32[6]=zeros", "u64:2", "u64:3", "i64:3", "i64:1", "i64:2", "i64:1"];
    let file = file.to_str().expect("a plain path");
    let dump = format!("1={}", folder.text("out.npy"));
    let shape = "--entry padded_b32 --grid 1 --block 32,8";
    let run = |members: &[&str]| warpstride(words(file, shape, members, &["--dump", &dump]));
    run(&members).succeeded();
    assert_eq!(folder.dumped_f32("out.npy", ""), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    // The kernel reads them all, so none is padding.
    run(&members[..7]).failed(&["argument 0 of 1, counted from 0 (64 bytes)", "still misses 8 bytes"]);
}

#[test]
fn the_document_holds_the_launch() {
    let folder = Folder::with_ptx();
    let run =
        folder.launch("twice", "2,1", &["f32[128]=zeros", "f32[128]=iota", "u32:128"], &["--json", "--shared", "16"]);
    let document = run.succeeded().json();
    let shape = json!({ "grid": [2, 1, 1], "block": [64, 1, 1], "shared_bytes": 16, "static_shared_bytes": 0 });
    has_members(&document, &shape);
    folder.write(
        "held.ptx",
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry held() {\n.shared .b8 tile[64];\nret;\n}\n",
    );
    let held = folder.run("--json run-ptx held.ptx --entry held --grid 1 --block 32 --shared 16").succeeded().json();
    has_members(&held, &json!({ "shared_bytes": 16, "static_shared_bytes": 64 }));
    has_members(&document, &json!({ "schema": 3, "kernel": "twice", "device": { "kind": "soft" } }));
    let counters = &document["counters"];
    assert_eq!(counters["global_load"], json!({ "instructions": 4, "requests": 4, "sectors": 16 }));
    assert_eq!(counters["shared_load"], json!({ "instructions": 0, "wavefronts": 0, "bank_conflicts": 0 }));
    // 15 by each thread.
    assert_eq!(document["thread_instructions"].as_u64(), Some(15 * 128));
    assert!(document["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
}

#[test]
fn arguments_that_do_not_go_together_name_the_parameter() {
    let folder = Folder::with_ptx();
    let refused = |arguments: &[&str], parts: &[&str]| folder.launch("twice", "1", arguments, &[]).failed(parts);
    refused(&["f32[4]=zeros", "f32[4]=zeros"], &["\"len\" of kernel \"twice\"", "4 bytes", "no value"]);
    refused(&["f32[4]=zeros", "f32[4]=zeros", "u64:4"], &["--arg u64:4", "\"len\"", "4 bytes and the value 8"]);
    refused(&["f32[4]=zeros", "i32:4"], &["--arg i32:4", "\"src\"", "8 bytes and the value 4"]);
    refused(&["f32[4]=zeros", "f32[4]=zeros", "u32:4", "u32:4"], &["takes 3 parameters"]);
    refused(&["f32[99999999999999]=zeros", "f32[4]=zeros", "u32:4"], &["cannot run `twice`", "400000001 MB"]);
    let run = |more: &[&str]| folder.launch("twice", "1", &["f32[4]=zeros", "f32[4]=zeros", "u32:4"], more);
    run(&["--dump", "3=out.npy"]).failed(&["--dump 3", "3 arguments", "counted from 0"]);
    run(&["--dump", "2=out.npy"]).failed(&["--dump 2", "u32:4"]);
    run(&["--dump", "0=out.npy", "--dump", "1=out.npy"]).failed(&["out.npy", "twice"]);
    run(&["--dump", "0=k.ptx"]).failed(&["same file", "k.ptx"]);
    run(&["--shared", "199999"]).failed(&["99999", "shared memory"]);
}

#[test]
fn files_that_no_kernel_reads_are_refused() {
    let folder = Folder::with_ptx();
    let refused = |bytes: &[u8], parts: &[&str]| {
        folder.write("in.npy", bytes);
        folder.launch_on("in.npy").failed(parts);
    };
    let fortran = npy_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", &[0; 16]);
    refused(&fortran, &["in.npy", "Fortran order"]);
    refused(&npy(">f4", "(4,)", &[0; 16]), &["in.npy", "big-endian"]);
    refused(&npy("<f4", "(4,)", &[0; 12]), &["in.npy", "truncated"]);
    folder.write("in.npy", npy("<f4", "(4,)", &[0; 16]));
    let over = folder.launch("twice", "1", &["npy:in.npy", "f32[4]=zeros", "u32:4"], &["--dump", "0=in.npy"]);
    over.failed(&["same file", "in.npy"]);
    folder.launch_on("absent.npy").failed(&["absent.npy"]);
}

#[test]
fn a_kernel_that_cannot_run_is_named_with_its_line() {
    let folder = Folder::with_ptx();
    folder.launch("foreign", "1", &["f32[4]=zeros"], &[]).failed(&[
        "tex.level.of.nothing",
        "\"foreign\"",
        "PTX line 35",
    ]);
    folder.launch("absent", "1", &[], &[]).failed(&["no kernel `absent`", "twice, scalars, rest, foreign"]);
    run_ptx(&data("probes-h100.json")).failed(&["probes-h100.json"]);
    run_ptx(Path::new("absent.ptx")).failed(&["cannot read absent.ptx"]);
}

#[test]
fn what_is_no_ptx_file_is_refused() {
    let folder = Folder::with_ptx();
    run_ptx(folder.folder.path()).failed(&["cannot read", "that it is PTX as text"]);
    let written = |bytes: &[u8]| {
        folder.write("other.ptx", bytes);
        run_ptx(&folder.path("other.ptx"))
    };
    written(b"").failed(&["other.ptx has no kernel; check the file"]);
    written(b".version 7.0 \xff").failed(&["cannot read", "utf-8", "that it is PTX as text"]);
    written(&[0; 1000]).failed(&["cannot parse", "PTX line 1"]);
    // Only as much of a file that takes no room on the disk is read as shows its size.
    let large = fs::File::create(folder.path("other.ptx")).expect("creating the file");
    large.set_len(5 << 30).expect("a sparse file");
    run_ptx(&folder.path("other.ptx")).failed(&["other.ptx has more than 16 MiB"]);
    #[cfg(unix)]
    run_ptx(Path::new("/dev/zero")).failed(&["/dev/zero has more than 16 MiB"]);
}

#[test]
fn absurd_arguments_are_refused_before_anything_runs() {
    let folder = Folder::with_ptx();
    let (grid, args) = ("2147483647,65535,65535", ["f32[4]=zeros", "f32[4]=zeros", "u32:0"]);
    folder.launch("twice", grid, &args, &[]).failed(&["a grid of [2147483647, 65535, 65535] blocks", "smaller one"]);
    folder.launch("twice", "4294967295", &args, &[]).failed(&["a grid of [4294967295, 1, 1] blocks"]);
    folder.launch("twice", "1", &args, &["--shared", "4294967295"]).failed(&["4294967295 of them dynamic"]);
    let mut bad = npy("<f4", "(4611686018427387904, 4)", &[0; 16]);
    for cut in 0..=bad.len() {
        folder.write("in.npy", &bad[..cut]);
        folder.launch_on("in.npy").failed(&["in.npy"]);
    }
    bad.fill(0xff);
    folder.write("in.npy", &bad);
    folder.launch_on("in.npy").failed(&["in.npy"]);
    folder.launch_on(&folder.text("")).failed(&["not a regular file"]);
}

#[test]
fn a_fault_is_told_and_leaves_the_old_file() {
    let folder = Folder::with_ptx();
    folder.write("out.npy", OLD);
    let run = folder.launch("twice", "1", &["f32[4]=zeros", "f32[64]=iota", "u32:64"], &["--dump", "0=out.npy"]);
    run.failed(&[
        "\"twice\" stopped",
        "st.global.f32",
        "thread (4, 0, 0)",
        "past the end of an allocation of 16 bytes",
    ]);
    assert_eq!(fs::read(folder.path("out.npy")).expect("reading the old output"), OLD);
    assert_eq!(fs::read_dir(folder.folder.path()).expect("listing the folder").count(), 2);
}

/// A launch of which the last 28 of 128 threads do nothing.
const RAGGED: [&str; 3] = ["f32[100]=zeros", "f32[100]=iota", "u32:100"];

#[test]
fn a_report_tells_instructions_apart_and_draws_no_access_that_wastes_nothing() {
    let folder = Folder::with_ptx();
    let parts = ["global load ", "\nglobal memory: lanes ask for 800 of 832 bytes moved, 96.2 %\n"];
    let run = folder.launch("twice", "2", &RAGGED, &["--report"]).ended(0, &parts, &[]);
    let row = |instruction: &str| {
        let row = run.stdout.lines().find(|line| line.contains(instruction)).expect("a row");
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // 3 warps of 32 lanes and one of 4: 25 lanes and 3.25 sectors a request.
    let figures = ["4", "25.00", "4", "13", "13", "3.25", "1.00x"];
    assert_eq!(row("ld.global.f32 %f1, [%rd3]")[4..], figures, "{}", run.stdout);
    assert_eq!(row("st.global.f32 [%rd4], %f2")[4..], figures, "{}", run.stdout);
    for unwanted in ["Shared memory", "The worst", "In Nsight Compute"] {
        assert!(!run.stdout.contains(unwanted), "{}", run.stdout);
    }
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 120), "{}", run.stdout);
    let names = ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "memory_l2_theoretical_sectors_global_ideal"];
    folder.launch("twice", "2", &RAGGED, &["--nsight"]).ended(0, &[&parts[..], &names].concat(), &[]);
}

#[test]
fn the_document_holds_the_instructions_where_they_are_asked_for() {
    let folder = Folder::with_ptx();
    let document = |options: &[&str]| {
        let mut document = folder.launch("twice", "2", &RAGGED, options).succeeded().json();
        document["seconds"] = Value::Null;
        document
    };
    let reported = document(&["--report-json"]);
    assert_eq!(reported, document(&["--json", "--report"]));
    assert!(document(&["--json"]).get("instructions").is_none());
    assert_eq!((&reported["schema"], &reported["counters"]["global_load"]["sectors"]), (&json!(3), &json!(13)));
    let [load, store] = &reported["instructions"].as_array().expect("an array")[..] else { panic!("{reported}") };
    assert_eq!(store["kind"], "store");
    let (text, worst) = ("ld.global.f32 %f1, [%rd3]", json!({ "block": [0, 0, 0], "warp": 0, "execution": 1 }));
    let members = json!({
        "line": 13, "source": null, "instruction": text, "kind": "load", "executions": 4, "active_lanes": 25.0,
        "ideal_sectors": 13, "sectors_per_request": 3.25, "sectors_over_ideal": 1.0, "worst_shared": null,
        "ideal_wavefronts": 0, "worst_global": worst,
    });
    has_members(load, &members);
    assert_eq!(load["global"], json!({ "instructions": 4, "requests": 4, "sectors": 13 }));
    assert_eq!(reported["lines"], json!([]));
    let worst = &load["worst_global"];
    let addresses: Vec<u64> =
        worst["addresses"].as_array().expect("an array").iter().map(|a| a.as_u64().expect("an address")).collect();
    assert_eq!(addresses, (0..32).map(|lane| addresses[0] + 4 * lane).collect::<Vec<_>>());
}

#[test]
fn drawings_go_to_a_file_that_is_replaced_at_the_end() {
    let folder = Folder::with_ptx();
    folder.write("out.svg", OLD);
    let run = |arguments: &[&str], more: &[&str]| {
        folder.launch("twice", "2", arguments, &[&["--draw", "out.svg"], more].concat())
    };
    run(&["f32[4]=zeros", "f32[100]=zeros", "u32:100"], &[]).failed(&["st.global.f32", "past the end"]);
    assert_eq!(fs::read(folder.path("out.svg")).expect("it is there"), OLD);
    run(&RAGGED, &["--dump", "0=out.npy", "--json"]).succeeded().json();
    assert_eq!(folder.titles(), ["PTX line 13: ld.global.f32 %f1, [%rd3]", "PTX line 13: st.global.f32 [%rd4], %f2"]);

    let refused = |path: &str, parts: &[&str]| folder.launch("twice", "1", &RAGGED, &["--draw", path]).failed(parts);
    refused("absent/out.svg", &["cannot write", "absent/out.svg"]);
    refused(&folder.text(""), &["cannot write"]);
    refused("k.ptx", &["same file", "k.ptx"]);
    // One file, written in two ways, before there is one.
    fs::remove_file(folder.path("out.npy")).expect("it is there");
    let again = folder.text("./out.npy");
    folder.launch("twice", "2", &RAGGED, &["--dump", "0=out.npy", "--draw", &again]).failed(&["out.npy", "twice"]);
    assert!(!folder.path("out.npy").exists());
}

#[test]
fn wrong_usage_is_exit_2() {
    for (grid, more, part) in [
        ("0", "", "whole numbers from 1"),
        ("1,1,1,1", "", "whole numbers from 1"),
        ("1", " --arg 7", "i32:7"),
        ("1", " --arg i32:2147483648", "i32 does not have the value `2147483648`"),
        ("1", " --arg f128:1", "c128"),
        ("1", " --arg c64:1", "buffers only"),
        ("1", " --arg f32[4]", "f32[1024]=zeros"),
        ("1", " --arg f32[-4]=zeros", "f32[1024]=zeros"),
        ("1", " --arg f32[4]=random", "random:SEED"),
        ("1", " --arg f64[9999999999999999999]=zeros", "more bytes"),
        ("1", " --dump out.npy", "1=out.npy"),
        ("1", " --check leakcheck", "`leakcheck` is not a checker; choose from memcheck"),
    ] {
        let run = soft(&format!("run-ptx k.ptx --entry k --grid {grid} --block 1{more}")).ended(2, &[], &[part]);
        assert_eq!(run.stdout, "", "{grid}{more}");
    }
}

#[test]
fn checkers_tell_what_they_find_and_fail_the_run() {
    let folder = Folder::with_ptx();
    let right = ["f32[100]=uninit", "f32[100]=iota", "u32:100"];
    folder.launch("twice", "2", &right, &["--check", "all"]).succeeded();
    // A source that was never filled, read 100 times; and a length that is too great for both
    // buffers.
    let wrong = ["f32[100]=zeros", "f32[100]=uninit", "u32:104"];
    folder.launch("twice", "2", &wrong, &["--check", "memcheck,initcheck"]).ended(
        1,
        &["initcheck: kernel \"twice\" at `ld.global.f32", "and 99 times more", "memcheck: ", "0 bytes past the end"],
        &["the checkers have found 3 faults in `twice`"],
    );
    let document = folder.launch("twice", "2", &wrong, &["--check", "initcheck,memcheck", "--json"]).json();
    let findings = document["findings"].as_array().expect("findings");
    let checks: Vec<_> = findings.iter().map(|finding| &finding["check"]).collect();
    assert_eq!(checks, ["initcheck", "memcheck", "memcheck"]);
    assert_eq!((&findings[0]["times"], &findings[0]["thread"]), (&json!(100), &json!([0, 0, 0])));
}

/// Kernels that read nothing of what they are passed.
fn kernels(names: &[&str], parameters: &str) -> String {
    let entries = names.iter().map(|name| format!(".visible .entry {name}({parameters}) {{ ret; }}\n"));
    entries.fold(".version 7.0\n.target sm_80\n.address_size 64\n".into(), |text: String, entry| text + &entry)
}

fn launched(text: &str, arguments: &[&str], more: &[&str]) -> Run {
    let folder = Folder::with_ptx();
    folder.write("other.ptx", text);
    warpstride(words(&folder.text("other.ptx"), "--grid 1 --block 1", arguments, more))
}

#[test]
fn an_entry_is_named_where_there_is_more_than_one() {
    let document = launched(&kernels(&["only"], ""), &[], &["--json"]).succeeded().json();
    assert_eq!(document["kernel"], "only");
    launched(&kernels(&["one", "two"], ""), &[], &[]).failed(&["has 2 kernels", "--entry: one, two"]);
    launched(&kernels(&["one", "two"], ""), &[], &["--entry", "two"]).succeeded();
    launched(&kernels(&["one", "two"], ""), &[], &["--entry", "three"]).failed(&["no kernel `three`", "one, two"]);
    launched(&kernels(&[], ""), &[], &[]).failed(&["has no kernel"]);
    launched(&kernels(&[], ""), &[], &["--entry", "one"]).failed(&["has no kernel"]);
}

#[test]
fn an_argument_of_another_type_is_noted() {
    for (parameter, argument, noted) in [
        (".param .f32 x", "i32:7", true),
        (".param .f32 x", "u32:7", true),
        (".param .u32 x", "f32:7", true),
        (".param .s32 x", "f32:7", true),
        (".param .f64 x", "u64:7", true),
        (".param .f64 x", "f32[4]=zeros", true),
        (".param .u64 x", "f64:7", true),
        (".param .u16 x", "f16:7", true),
        (".param .f16 x", "bf16:7", true),
        (".param .u32 x", "i32:-7", false),
        (".param .s32 x", "u32:7", false),
        (".param .b32 x", "f32:7", false),
        (".param .f32 x", "f32:7", false),
        (".param .u64 x", "f32[4]=zeros", false),
        (".param .u64 .ptr .global .align 4 x", "f32[4]=zeros", false),
        (".param .b64 x", "f64:7", false),
        (".param .align 2 .b8 x[2]", "f16:7", false),
        (".param .align 4 .b8 x[4]", "f32:7", false),
    ] {
        let text = kernels(&["k"], &format!(".param .u32 first, {parameter}"));
        let said = launched(&text, &["i32:1", argument], &[]).succeeded().stderr;
        assert_eq!(said.lines().count(), usize::from(noted), "{parameter} {argument}: {said}");
        let has_parts = [argument, "\"x\"", &parameter[7..11]].iter().all(|part| said.contains(part));
        assert!(has_parts || !noted, "{parameter} {argument}: {said}");
    }
    // Behind a struct, whose members are not known, the parameters are found again.
    let text = kernels(&["k"], ".param .align 8 .b8 s[16], .param .f32 x");
    let said = launched(&text, &["u8:1", "f32:1", "f64:1", "i32:7"], &[]).succeeded().stderr;
    assert!(said.lines().count() == 1 && said.contains("i32:7"), "{said}");
    // A size that is not the parameter's is an error.
    launched(&kernels(&["k"], ".param .u32 x"), &["f32[4]=zeros"], &[]).failed(&["\"x\"", "has 4 bytes"]);
    launched(&kernels(&["k"], ".param .u8 x"), &["u16:4"], &[]).failed(&["has 1 byte and"]);
}
