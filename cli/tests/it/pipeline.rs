//! `warpstride pipeline` on the software GPU, and reports of what a GPU measured.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::Path;

use image::{ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};
use tempfile::TempDir;
use warpstride::io::{ArrayFile, npy};
use warpstride::pipeline::frames::{Pixel, Synthetic};

use super::report::Reports;
use super::{OLD, Run, warpstride};

const MODES: [&str; 4] = ["blocking", "async", "streams", "graph"];

fn pipeline<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let first = ["--device", "soft", "pipeline"].map(OsString::from);
    warpstride(first.into_iter().chain(args.into_iter().map(|arg| arg.as_ref().to_owned())))
}

/// Runs with a line of options and one path.
fn with_path(options: &str, option: &str, path: &Path) -> Run {
    let words = options.split(' ').map(OsString::from);
    pipeline(words.chain([option.into(), path.into()]))
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn results(path: &Path) -> (Vec<usize>, Vec<f32>) {
    let mut reader = npy::Reader::open(path).expect("the results");
    assert_eq!((reader.descr(), reader.is_fortran()), ("<f4", false));
    let mut bytes = vec![0; reader.bytes()];
    reader.read_into(&mut bytes).expect("the elements");
    let numbers = bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four bytes")));
    (reader.shape().to_vec(), numbers.collect())
}

/// The result of an element: ImageNet's normalisation of its channel, and the model's steps.
fn expected(value: f32, scale: f64, channel: usize, steps: usize) -> f32 {
    let (mean, deviation) = ([0.485, 0.456, 0.406][channel], [0.229, 0.224, 0.225][channel]);
    let normalised = value.mul_add((scale / deviation) as f32, (-mean / deviation) as f32);
    (0..steps).fold(normalised, |x, _| x.mul_add(0.999, 0.001))
}

/// The results of frames of bytes, which lie as images do.
fn of_images(frames: &[u8], [height, width]: [usize; 2], steps: usize) -> Vec<f32> {
    let pixels = height * width;
    let planes = |frame: &[u8]| {
        let at = |channel: usize, pixel: usize| f32::from(frame[3 * pixel + channel]);
        let plane = |channel| (0..pixels).map(move |pixel| (channel, pixel));
        let all = (0..3).flat_map(plane);
        all.map(|(channel, pixel)| expected(at(channel, pixel), 1.0 / 255.0, channel, steps)).collect::<Vec<_>>()
    };
    frames.chunks(3 * pixels).flat_map(planes).collect()
}

fn random<T: Pixel>(frames: usize, elements: usize) -> Vec<T> {
    let mut all = vec![T::default(); frames * elements];
    Synthetic { seed: 17, elements }.fill(0, &mut all);
    all
}

#[test]
fn every_mode_gives_what_a_cpu_gives() {
    let folder = folder();
    let path = folder.path().join("out.npy");
    for mode in MODES {
        // The last batch has five frames of eight, or one alone.
        for (frames, batch) in [(21, 8), (1, 3), (9, 1)] {
            let options = format!("--frames {frames} --batch {batch} --mode {mode} --shape 3,5,7 --intensity 1.5");
            with_path(&options, "--output", &path).succeeded();
            let (shape, found) = results(&path);
            assert_eq!(shape, [frames, 3, 5, 7]);
            let bytes = random::<u8>(frames, 105);
            assert!(found == of_images(&bytes, [5, 7], 6), "u8 {options}");

            with_path(&format!("{options} --dtype f32 --slots 2"), "--output", &path).succeeded();
            let singles = random::<f32>(frames, 105);
            let planes = singles.iter().enumerate().map(|(at, &x)| expected(x, 1.0, at / 35 % 3, 6));
            assert!(results(&path).1 == planes.collect::<Vec<_>>(), "f32 {options}");
        }
    }
}

/// A folder with five images of 6 x 4 pixels, one of them in an array of two.
fn images() -> (TempDir, Vec<u8>) {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let picture = |seed: u32| RgbImage::from_fn(4, 6, |x, y| Rgb([x + seed, 9 * y, x * y + seed].map(|v| v as u8)));
    picture(1).save(at("a.png")).expect("an image");
    picture(50).save_with_format(at("b.jpg"), ImageFormat::Jpeg).expect("an image");
    let stack: Vec<u8> = (0..2 * 72).map(|at| (3 * at) as u8).collect();
    npy::write(&mut File::create(at("c.npy")).expect("a file"), "|u1", &[2, 6, 4, 3], &stack).expect("an array");
    picture(90).save(at("d.PNG")).expect("an image");
    fs::write(at("notes.txt"), "no image").expect("a file");
    let lossy = image::open(at("b.jpg")).expect("an image").into_rgb8();
    let frames = [picture(1).into_raw(), lossy.into_raw(), stack, picture(90).into_raw()].concat();
    (folder, frames)
}

#[test]
fn a_folder_of_images_is_a_source() {
    let ((folder, frames), output) = (images(), self::folder());
    let (input, path) = (folder.path().to_str().expect("plain"), output.path().join("out.npy"));
    for mode in MODES {
        let run = with_path(&format!("--input {input} --batch 2 --mode {mode} --intensity 0"), "--output", &path);
        run.ended(0, &[], &["skipped 1 other file", "notes.txt"]);
        let (shape, found) = results(&path);
        assert_eq!(shape, [5, 3, 6, 4]);
        assert!(found == of_images(&frames, [6, 4], 0), "{mode}");
    }
    with_path(&format!("--input {input} --size 3,5"), "--output", &path).succeeded();
    assert_eq!(results(&path).0, [5, 3, 3, 5]);
}

#[test]
fn written_planes_are_normalised_alone_unless_a_model_is_asked_for() {
    let (folder, output) = (self::folder(), self::folder());
    let (input, path) = (folder.path().to_str().expect("plain"), output.path().join("out.npy"));
    let picture = RgbImage::from_fn(16, 16, |x, y| Rgb([(16 * y + x) as u8, (255 - x) as u8, (x * y) as u8]));
    picture.save(folder.path().join("a.png")).expect("an image");
    let (means, deviations) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    for mode in MODES {
        with_path(&format!("--input {input} --mode {mode}"), "--output", &path).succeeded();
        let (shape, found) = results(&path);
        assert_eq!(shape, [1, 3, 16, 16]);
        for (at, &value) in found.iter().enumerate() {
            let (channel, pixel) = (at / 256, at % 256);
            let byte = f64::from(picture.as_raw()[3 * pixel + channel]);
            let expected = (byte / 255.0 - means[channel]) / deviations[channel];
            // The factor, the offset and the result each round once; no term is above 4.5.
            assert!((f64::from(value) - expected).abs() < 1e-6, "{mode}, {channel}, {pixel}: {value} for {expected}");
        }
    }
    let random = with_path("--json --frames 2 --shape 3,2,2 --batch 1 --mode streams", "--output", &path);
    assert_eq!(random.succeeded().json()["pipeline"]["steps"], 0);
    assert!(results(&path).1 == of_images(&self::random::<u8>(2, 12), [2, 2], 0));
    with_path(&format!("--input {input} --intensity 10"), "--output", &path).succeeded();
    assert!(results(&path).1 == of_images(picture.as_raw(), [16, 16], 40));
    assert_eq!(document("--frames 2 --shape 3,2,2 --batch 1 --mode streams")["pipeline"]["steps"], 40);
}

#[test]
fn a_hostile_folder_is_an_error_that_names_the_file() {
    let ((folder, _), output) = (images(), self::folder());
    let (input, path) = (folder.path().to_str().expect("plain"), output.path().join("out.npy"));
    fs::write(&path, OLD).expect("the old output");
    let hostile = |name: &str, bytes: &[u8], parts: &[&str]| {
        fs::write(folder.path().join(name), bytes).expect("a file");
        let run = with_path(&format!("--quiet --input {input} --batch 1"), "--output", &path);
        run.failed(&[&[name], parts].concat());
        fs::remove_file(folder.path().join(name)).expect("it is there");
        assert_eq!(fs::read(&path).expect("the old output"), OLD);
        assert_eq!(fs::read_dir(output.path()).expect("a folder").count(), 1);
    };
    let whole = fs::read(folder.path().join("a.png")).expect("an image");
    hostile("e.png", &whole[..whole.len() - 20], &["save it again"]);
    hostile("b2.jpg", b"no image", &["save it again"]);
    hostile("e.npy", b"no array", &["not a .npy file"]);
    hostile("b.png", &[], &["save it again"]);
    let mut other = std::io::Cursor::new(Vec::new());
    RgbImage::new(4, 5).write_to(&mut other, ImageFormat::Png).expect("an image");
    hostile("e.png", other.get_ref(), &["5 x 4 pixels", "6 x 4", "--size"]);
    let empty = self::folder();
    with_path("--quiet", "--input", empty.path()).failed(&["has no images"]);
    with_path("--quiet", "--input", &empty.path().join("none")).failed(&["check that it is a folder"]);
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let folder = folder();
    with_path("--quiet", "--output", &folder.path().join("none/out.npy")).failed(&["check that its folder exists"]);
    #[cfg(target_os = "linux")]
    for mode in MODES {
        let options = format!("--quiet --mode {mode} --frames 50 --batch 4");
        with_path(&options, "--output", Path::new("/dev/full")).failed(&["/dev/full", "no room is left"]);
    }
    let path = folder.path().join("one");
    let run = with_path(&format!("--quiet --trace {}", path.display()), "--output", &path);
    run.failed(&["--output and --trace are one file"]);
}

#[test]
fn no_image_is_replaced() {
    let (folder, _) = images();
    let input = folder.path().to_str().expect("plain");
    let at = |name: &str| folder.path().join(name);
    for (option, name) in [("--output", "c.npy"), ("--trace", "a.png"), ("--output", "b.jpg")] {
        let before = fs::read(at(name)).expect("an image");
        let run = with_path(&format!("--quiet --input {input} --batch 2 --mode streams"), option, &at(name));
        run.failed(&["input and output are the same file", name]);
        assert!(fs::read(at(name)).expect("an image") == before, "{name}");
    }
    // Files that are not images may be overwritten.
    let options = format!("--quiet --input {input} --batch 2 --mode streams");
    with_path(&options, "--trace", &at("notes.txt")).succeeded();
    assert_eq!(fs::read(at("notes.txt")).expect("the trace")[0], b'{');
}

#[test]
fn options_that_do_not_go_together_are_wrong_usage() {
    for wrong in [
        "--output o.npy --batch 1,8",
        "--output o.npy --mode all",
        "--output o.npy --reuse",
        "--input . --frames 3",
        "--input . --dtype f32",
        "--size 3,3",
        "--batch 0",
        "--frames 0",
        "--slots 0",
        "--mode fast",
        "--dtype f64",
        "--shape 3,0,4",
        "--shape 3,4",
        "--intensity -1",
        "--intensity nan",
        "--intensity 1e300",
    ] {
        let run = pipeline(wrong.split(' '));
        assert_eq!(run.code, Some(2), "{wrong}: {}", run.stderr);
    }
    pipeline("--quiet --shape 3,9000000000000000000,9 --frames 1".split(' ')).failed(&["more bytes than"]);
    pipeline("--quiet --shape 3,3000000,300000 --frames 1".split(' ')).failed(&["memory"]);
}

fn document(options: &str) -> Value {
    pipeline(options.split(' ').chain(["--json"])).succeeded().json()
}

#[test]
fn a_document_has_every_mode_and_batch_size_without_times() {
    let document = document("--frames 90 --batch 1,4 --shape 3,4,4 --intensity 2");
    assert_eq!((&document["schema"], &document["device"]["kind"]), (&3.into(), &"soft".into()));
    let all = &document["pipeline"];
    let head = ["source", "shape", "dtype", "input_bytes", "output_bytes", "steps", "intensity"];
    let head = head.map(|member| all[member].clone());
    assert_eq!(json!(head), json!(["random", [3, 4, 4], "u8", 48, 192, 8, 2.0]));
    let runs = all["runs"].as_array().expect("a list");
    let names: Vec<_> = runs.iter().map(|run| (run["batch"].as_u64(), run["mode"].as_str())).collect();
    let expected = [1, 4].into_iter().flat_map(|batch| MODES.map(|mode| (Some(batch), Some(mode))));
    assert_eq!(names, expected.collect::<Vec<_>>());
    for run in runs {
        assert_eq!((&run["verified"], &run["frames"]), (&true.into(), &90.into()));
        for member in ["seconds", "frames_per_second", "bound", "fraction_of_bound", "overlap", "idle", "timeline"] {
            assert_eq!(run[member], Value::Null, "{member}");
        }
        let waits = run["waits_per_batch"].as_f64().expect("a number");
        assert_eq!(waits > 0.0, run["mode"] == "blocking", "{run}");
        let slots = if run["mode"] == "blocking" { 1 } else { 6 };
        assert_eq!(run["slots"], slots);
        // The memory of the ring is all there is, in whole pages.
        let ring = slots * run["batch"].as_u64().expect("a number") * (48 + 192);
        assert!((ring..ring + slots * 8192).contains(&run["host_bytes"].as_u64().expect("a number")), "{run}");
    }
}

#[test]
fn frames_that_are_sent_again_are_right_too() {
    let document = document("--frames 40 --batch 4 --shape 3,4,4 --reuse --mode streams,graph --slots 3");
    assert_eq!(document["pipeline"]["source"], "reused");
    let runs = document["pipeline"]["runs"].as_array().expect("a list");
    assert!(runs.len() == 2 && runs.iter().all(|run| run["verified"] == true), "{runs:?}");
}

#[test]
fn a_trace_has_the_stages_of_the_last_run() {
    let folder = folder();
    let path = folder.path().join("trace.json");
    let run = with_path("--frames 60 --batch 2 --mode streams", "--trace", &path);
    run.ended(0, &[], &["say nothing about a GPU"]);
    let trace: Value = serde_json::from_slice(&fs::read(&path).expect("the trace")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    for name in ["random_generation", "cpu_to_gpu", "normalization", "model", "gpu_to_cpu", "sink"] {
        let found = events.iter().filter(|event| event["ph"] == "X" && event["name"] == name).count();
        assert_eq!(found, 8, "{name}");
    }
    // A viewer draws overlapping events of one thread wrongly.
    for thread in events.iter().filter(|event| event["name"] == "thread_name") {
        let own = events.iter().filter(|event| event["ph"] == "X" && event["tid"] == thread["tid"]);
        let spans: Vec<f64> = own.flat_map(|event| [&event["ts"], &event["dur"]]).filter_map(Value::as_f64).collect();
        assert!(spans.chunks(2).zip(spans[2..].chunks(2)).all(|(one, next)| one[0] + one[1] <= next[0] + 1e-3));
    }
}

/// The software GPU's document with times as a GPU's has them.
fn timed() -> Value {
    let mut document = document("--frames 30 --batch 1,8 --shape 3,4,4");
    document["device"]["kind"] = "cuda".into();
    for run in document["pipeline"]["runs"].as_array_mut().expect("a list") {
        run["seconds"] = 0.5.into();
        run["frames_per_second"] = 60.0.into();
        run["bound"] = json!({ "link": 64.0, "compute": 100.0 });
        run["fraction_of_bound"] = 0.9375.into();
        run["overlap"] = 0.25.into();
        let stage = |name: &str, track: &str, start: f64| json!({ "name": name, "track": track, "batch": 0, "start_us": start, "end_us": start + 5.0 });
        run["timeline"] = json!([
            stage("random_generation", "source", 0.0),
            stage("cpu_to_gpu", "upload", 5.0),
            stage("model", "work", 10.0),
            stage("gpu_to_cpu", "download", 15.0),
        ]);
    }
    document
}

#[test]
fn a_report_draws_rates_and_timelines() {
    let reports = Reports::of(&timed());
    let at = |name: &str| reports.path(name);
    reports.report("").ended(0, &["93.8 %", "link", "25.0 %"], &[]);
    reports.report("--html page.html --svg charts").succeeded();
    reports.report("--markdown page.md").succeeded();
    let page = fs::read_to_string(at("page.html")).expect("the page");
    let words = [("pipeline", "bound: the slower of link and compute"), ("pipeline-graph", "random_generation")];
    for (name, part) in words {
        let chart = fs::read_to_string(at("charts").join(name).with_extension("svg")).expect("the chart");
        roxmltree::Document::parse(&chart).expect("the chart is XML");
        assert!(chart.contains(part) && page.contains(part), "{part}");
    }
    assert!(page.contains("Timeline of mode blocking, batches of 8") && page.contains("25 % of the time"), "{page}");
    assert!(fs::read_to_string(at("page.md")).expect("the page").contains("## Pipeline"));

    let mut wrong = timed();
    wrong["pipeline"]["runs"][0]["frames_per_second"] = json!(-1.0);
    Reports::of(&wrong).report("--html other.html").failed(&["a number of frames"]);
    wrong = timed();
    wrong["pipeline"]["runs"][4]["timeline"][0]["start_us"] = json!(-1.0);
    Reports::of(&wrong).report("--html other.html").failed(&["a time of a stage"]);
}
