use warpstride::device::{Estimated, Weights};

use super::fit::Fit;
use super::*;

#[test]
fn a_file_of_other_contents_is_not_added_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.txt");
    assert_eq!(before(&file).expect("nothing is there"), b"");
    fs::write(&file, "[NVIDIA H200]\nversion: 1\n").expect("a file");
    let refused = before(&file).expect_err("it has a typo").to_string();
    assert!(refused.contains("notes.txt: line 2 is neither") && refused.contains("move it away"), "{refused}");
}

/// Sweeps whose present tiles have the speed 1, those of one micro-tile a row `gain`, and the
/// others none.
fn found(gain: f64) -> [Found; 5] {
    TileShape::of(Target::new((9, 0))).map(|tile| {
        let sweep = |kernel, ragged, now: u32| {
            let tried: Vec<u32> = (0..=tile.most_across(ragged)).collect();
            let speed = |&across: &u32| if across == 0 { gain } else { f64::from(u8::from(across == now)) };
            let gbps = tried.iter().map(speed).collect();
            Sweep { kernel, width: tile.width(), tried, gbps, now }
        };
        (tile, [sweep("vector_tile", false, tile.across()), sweep("ragged_tile", true, tile.ragged_across())])
    })
}

fn blocks(gbps: [f64; 4]) -> [Sweep; 2] {
    ["copy", "fill"].map(|kernel| Sweep { kernel, width: 4, tried: BLOCKS.into(), gbps: gbps.into(), now: 1024 })
}

/// A fit that is better, one that is worse, and one of too few layouts.
fn fits(losses: [f64; 2]) -> Fits {
    let fit = |errors| Fit {
        kernel: Estimated::Rows,
        width_log2: 2,
        layouts: 8,
        errors,
        weights: vec![1.0, 2.5],
        without: Default::default(),
    };
    let of_kernels = vec![fit(Some([0.045, 0.0312])), fit(Some([0.03, 0.05])), fit(None)];
    Fits { of_kernels, losses: Some(losses), present: Weights::of(Target::new((9, 0))) }
}

#[test]
fn estimates_are_written_behind_the_tiles_where_they_are_better() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tuning.txt");
    let destination = destination::at(&file).expect("a place for a file");
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    let (info, row) = (device.info(), row(&found(1.02), &blocks([0.5; 4])).expect("kernels take it"));
    let write = |fit: &dyn Fn() -> Result<Fits>| written((&file, &destination), info, row, fit);
    let text = || fs::read(&file).expect("the file is written");
    let weights = || TuningFile::parse_weights(&text(), info);
    // An error loses no tiles.
    let failed = write(&|| bail!("a kernel was wrong")).expect_err("the fit failed");
    let says = format!("{failed:#}");
    assert!(says.contains("tuning.txt has the tiles and blocks") && says.contains("a kernel was wrong"), "{says}");
    assert_eq!((TuningFile::parse(&text(), info), weights()), (Ok(Some(row)), Ok(None)));
    // Nothing is better, or the choice is not.
    let worse = || fits([1.01, 1.02]);
    assert!(!write(&|| Ok(worse())).expect("it is written").are_written());
    assert_eq!((weights(), worse().weights()), (Ok(None), worse().present));
    let better = || fits([1.02, 1.01]);
    assert!(write(&|| Ok(better())).expect("it is written").are_written());
    assert_eq!(weights(), Ok(Some(better().weights())));
    assert_eq!(better().weights().of_kernel(Estimated::Rows, 2), [1.0, 2.5]);
    // A section that is used stays, and a stale one goes.
    write(&|| Ok(worse())).expect("it is written");
    assert_eq!(weights(), Ok(Some(better().weights())));
    let stale = String::from_utf8(text()).expect("it is text").replace("rows_4 = 1 2.5", "rows_4 = 1 -2.5");
    fs::write(&file, stale).expect("a file");
    weights().expect_err("a weight is less than 0");
    write(&|| Ok(worse())).expect("it is written");
    assert_eq!((TuningFile::parse(&text(), info), weights()), (Ok(Some(row)), Ok(None)));
}

#[test]
fn what_is_written_is_shown_beside_the_best() {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    let (found, blocks, file) = (found(1.005), blocks([0.5, 1.02, 0.5, 1.0]), Path::new("tuning.txt"));
    let tuning = Tuning { tiles: found.to_vec(), blocks, fits: fits([1.018, 1.0165]) };
    let document = json(&device, &tuning, file);
    for (kernel, sweep) in
        document["kernels"].as_array().expect("a list").iter().zip(found.iter().flat_map(|(_, kernels)| kernels))
    {
        let numbers = ["across_log2", "across_log2_now", "across_log2_written"].map(|member| kernel[member].as_u64());
        assert_eq!(numbers, [0, sweep.now, sweep.now].map(|number| Some(number.into())), "{kernel}");
    }
    let numbers = ["best", "now", "written"].map(|member| document["blocks"][1][member].as_u64());
    assert_eq!(numbers, [256, 1024, 256].map(Some));
    let fitted = json!({
        "kernel": "rows", "width": 4, "layouts": 8, "error_now": 0.045, "error_fitted": 0.0312, "fitted_is_written": true,
        "weights": [1.0, 2.5],
    });
    assert_eq!(document["estimates"][0], fitted);
    assert_eq!(
        (&document["estimates"][1]["fitted_is_written"], &document["estimates"][2]["error_now"]),
        (&false.into(), &Value::Null)
    );
    let losses = ["loss_of_choice_now", "loss_of_choice_fitted"].map(|member| document[member].as_f64());
    assert_eq!(losses, [Some(1.018), Some(1.0165)]);
    let text = text(&device, &tuning, file);
    assert!(text.contains("take 1.0180 times as long as the fastest, and 1.0165 times with better"), "{text}");
    for line in ["rows, 4 bytes  8  4.5 %  3.1 %  fitted", "rows, 4 bytes  8  3.0 %  5.0 %  now"] {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(text.lines().any(|found| words(found) == words(line)), "{line}: {text}");
    }
    let row = |(tile, _): &Found| terminal::whole(&format!("    {tile:?},")) + "\n";
    let tiles = found.iter().map(row).collect::<String>();
    assert!(text.contains(&tiles), "the present tiles are written: {text}");
    let line = text.lines().find(|line| line.contains("fill")).expect("a line of fills");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["fill", "256", "1.0", "1024", "1.0", "256"]);
}

#[test]
fn what_gains_less_than_the_noise_stays() {
    let row = |gain: f64| row(&found(gain), &blocks([0.5, gain, 0.5, 1.0])).expect("kernels take it");
    let now = TileShape::of(Target::new((9, 0))).map(|tile| [tile.across(), tile.ragged_across()]);
    assert_eq!(row(1.005), Tuned::new(now, 1024, 1024).expect("the present ones"));
    assert_eq!(row(1.02), Tuned::new([[0; 2]; 5], 256, 256).expect("the best ones"));
    // A block that was not timed is replaced.
    let [mut copy, fill] = blocks([0.5, 1.0, 0.5, 1.0]);
    copy.now = 96;
    assert_ne!(super::row(&found(1.02), &[copy, fill]).expect("kernels take it").copy_block(), 96);
}
