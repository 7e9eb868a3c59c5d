//! The badge of the lesson in which a learner writes a whole kernel: a picture with the score, and
//! a document that says for which kernel it is.

use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use warpstride::roofline::model::DeviceModel;

use super::super::{destination, require};
use super::folder::{self, Folder};
use super::lessons::Lesson;

/// The lesson.
const CAPSTONE: &str = "capstone";
/// Most bytes of a kernel's or a badge's file.
const MAX_BYTES: usize = 1 << 20;
/// Bytes of a sector, and of an element of the lesson's arrays.
const SECTOR: u64 = 32;
const ELEMENT: u64 = 4;

/// The work and the times of the kernels of some launches, beside those that are needed.
#[derive(Default)]
pub(super) struct Score {
    /// Sectors of the launches whose time is not predicted.
    needed: u64,
    touched: u64,
    /// The predicted milliseconds of the others, and those of copies of the same bytes.
    copied_ms: f64,
    predicted_ms: f64,
}

impl Score {
    /// Adds a launch by its document. A kernel must read and write each element of the result once.
    pub(super) fn add(&mut self, launch: &Value) {
        let number = |pointer: &str| launch.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let bytes = ELEMENT * number("/result/elements");
        let device = DeviceModel::ALL.iter().find(|device| launch["model"]["device"] == device.name);
        if let (Some(device), Some(ms)) = (device, launch["model"]["ms"].as_f64()) {
            self.copied_ms += device.ramp_us / 1e3 + 2.0 * bytes as f64 / device.memory.copy / 1e6;
            self.predicted_ms += ms;
            return;
        }
        self.needed += 2 * bytes.div_ceil(SECTOR);
        self.touched += number("/counters/global_load/sectors") + number("/counters/global_store/sectors");
    }

    /// The share of the touched sectors that were needed, in whole per cent.
    fn sectors(&self) -> u64 {
        100 * self.needed / self.touched.max(1)
    }

    /// The speed of the launches whose time is predicted over that of copies, in whole per cent.
    fn speed(&self) -> u64 {
        if self.predicted_ms > 0.0 { (100.0 * self.copied_ms / self.predicted_ms).min(100.0) as u64 } else { 0 }
    }

    /// The mean of both.
    fn per_cent(&self) -> u64 {
        u64::midpoint(self.sectors(), self.speed())
    }

    /// The score of a lesson that has one.
    pub(super) fn of(&self, lesson: &Lesson) -> Option<u64> {
        (lesson.name == CAPSTONE).then(|| self.per_cent())
    }

    /// Writes the badge of a kernel beside it, and returns the score that the badge shows: a better
    /// one than this stays.
    pub(super) fn award(&self, lesson: &Lesson, folder: &Folder, kernel: &str) -> Result<u64> {
        let score = self.per_cent();
        let [picture, document] = ["badge.svg", "badge.json"].map(|name| folder.lesson(lesson).join(name));
        for path in [&picture, &document] {
            folder.ensure_no_link(path)?;
        }
        if let Some(better) = shown(&document).filter(|better| (score + 1..=100).contains(better)) {
            return Ok(better);
        }
        let kernel: String = Sha256::digest(kernel).iter().map(|byte| format!("{byte:02x}")).collect();
        let date = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let text = json!({
            "schema": 1, "lesson": lesson.name, "score": score, "sectors": self.sectors(), "speed": self.speed(),
            "date": date.to_string(),
            "version": env!("CARGO_PKG_VERSION"), "seed": lesson.seed, "kernel_sha256": kernel,
        });
        for (path, text) in [(picture, drawn(score)), (document, format!("{text:#}\n"))] {
            destination::replace(&destination::at(&path)?, |file| file.write_all(text.as_bytes()))?;
        }
        Ok(score)
    }
}

/// The kernel of a lesson that has a score, which is to be a whole file: the badge has its digest.
pub(super) fn kernel(lesson: &Lesson, folder: &Path) -> Result<Option<String>> {
    if lesson.name != CAPSTONE {
        return Ok(None);
    }
    let path = folder.join("task.cu");
    let text = folder::read(&path, MAX_BYTES, "a kernel")?;
    let includes = |(at, _): (usize, &str)| text[..at].trim_end().ends_with('#');
    require!(
        !text.match_indices("include").any(includes),
        InvalidArgument,
        "{} includes another file, and the badge is for one file; write the whole kernel there",
        path.display()
    );
    Ok(Some(text))
}

/// The score of a badge that is there.
fn shown(document: &Path) -> Option<u64> {
    let text = folder::read(document, MAX_BYTES, "a badge").ok()?;
    serde_json::from_str::<Value>(&text).ok()?["score"].as_u64()
}

/// The picture.
fn drawn(score: u64) -> String {
    let words = format!("warpstride transpose: {score} of 100");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"250\" height=\"24\">\n\
         <title>{words}</title>\n\
         <rect width=\"170\" height=\"24\" fill=\"#24292f\"/>\n\
         <rect x=\"170\" width=\"80\" height=\"24\" fill=\"#2554a8\"/>\n\
         <g fill=\"#fff\" font-family=\"sans-serif\" font-size=\"13\" text-anchor=\"middle\">\n\
         <text x=\"85\" y=\"16\">warpstride transpose</text>\n\
         <text x=\"210\" y=\"16\">{score} of 100</text>\n\
         </g>\n\
         </svg>\n"
    )
}
