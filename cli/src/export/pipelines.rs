//! Charts of pipelines: frames a second over the batch size, and timelines.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::svg::{
    COPY, Chart, GREY, LABELS, OCHRE, PURPLE, READ, WRITE, chart, check, escaped, failed, image, line, write,
};
use crate::run::pipelines::{PipelineRun, Pipelines, Stage, lanes};
use warpstride::error::{Result, counted};

/// The modes with the colours of their charts.
const MODES: [(&str, RGBColor); 4] = [("blocking", WRITE), ("async", OCHRE), ("streams", READ), ("graph", COPY)];
/// The names of stages with their colours; others are grey.
const STAGES: [(&str, RGBColor); 7] = [
    ("random_generation", OCHRE),
    ("image_decoding", OCHRE),
    ("cpu_to_gpu", READ),
    ("normalization", COPY),
    ("model", PURPLE),
    ("work", PURPLE),
    ("gpu_to_cpu", WRITE),
];
/// Pixels of a row of a timeline, and of what is around the rows.
const ROW: u32 = 34;
const FRAME: u32 = 100;
/// Most rows of a timeline.
const MOST_ROWS: usize = 64;

/// Draws the rates by batch size, and of each mode the timeline with the largest batch.
pub(super) fn charts(all: &Pipelines) -> Result<Vec<Chart>> {
    let mut charts = Vec::new();
    if all.runs.iter().any(|run| run.frames_per_second.is_some()) {
        let title = "Frames a second by the frames of a batch".into();
        charts.push(Chart { name: "pipeline".into(), title, svg: rates(all)?, note: String::new() });
    }
    for (mode, _) in MODES {
        let shown =
            all.runs.iter().filter(|run| run.mode == mode && run.timeline.is_some()).max_by_key(|run| run.batch);
        let stages = shown.and_then(|run| run.timeline.as_ref()).filter(|stages| !stages.is_empty());
        if let (Some(run), Some(stages)) = (shown, stages) {
            let title = format!("Timeline of mode {mode}, batches of {}", run.batch);
            charts.push(Chart {
                name: format!("pipeline-{mode}"),
                title,
                svg: timeline(run, stages)?,
                note: String::new(),
            });
        }
    }
    Ok(charts)
}

/// A line for each mode, and the bound.
fn rates(all: &Pipelines) -> Result<String> {
    let rate = |run: &PipelineRun| Some((run.batch as f64, run.frames_per_second?));
    let bound = |run: &PipelineRun| Some((run.batch as f64, run.bound?.frames_per_second()));
    let points = || all.runs.iter().filter_map(rate).chain(all.runs.iter().filter_map(bound));
    check(points().flat_map(|(batch, rate)| [batch, rate]), 1e15, "a number of frames")?;
    let first = points().map(|point| point.0).fold(f64::MAX, f64::min).max(1.0);
    let last = points().map(|point| point.0).fold(2.0 * first, f64::max);
    let most = points().map(|point| point.1).fold(1.0, f64::max);
    let sorted = |mut points: Vec<(f64, f64)>| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 == b.0);
        points
    };
    let x = ((first..last).log_scale().base(2.0), "frames of a batch", LABELS);
    let label = |frames: &f64| format!("{frames:.0}");
    // With room for the legend above the lines.
    chart(x, &label, (1.4 * most, "frames/s", 84), SeriesLabelPosition::UpperLeft, |chart| {
        for (mode, colour) in MODES {
            let points = sorted(all.runs.iter().filter(|run| run.mode == mode).filter_map(rate).collect());
            if !points.is_empty() {
                line(chart, points, colour.stroke_width(2), 3, mode)?;
            }
        }
        let bounds = sorted(all.runs.iter().filter_map(bound).collect());
        if !bounds.is_empty() {
            line(chart, bounds, GREY.stroke_width(1), 0, "bound: the slower of link and compute")?;
        }
        Ok(())
    })
}

fn colour(stage: &str) -> RGBColor {
    STAGES.iter().find(|(name, _)| *name == stage).map_or(GREY, |(_, colour)| *colour)
}

/// A row for each lane, and a rectangle for each stage.
fn timeline(run: &PipelineRun, stages: &[Stage]) -> Result<String> {
    check(stages.iter().flat_map(|stage| [stage.start_us, stage.end_us]), 1e15, "a time of a stage in us")?;
    let lanes = lanes(stages);
    if lanes.len() > MOST_ROWS {
        return Err(failed(format!("a timeline has {}, and {MOST_ROWS} are the most", counted(lanes.len(), "row"))));
    }
    let end = stages.iter().map(|stage| stage.end_us).fold(1e-3, f64::max) / 1e3;
    let height = lanes.len() as u32 * ROW + FRAME;
    let svg = image(height, [100, 14, 0], 0.0..end, lanes.len() as f64, |area, chart| {
        let digits = if end < 1.0 { 3 } else { usize::from(end < 20.0) };
        let label = |ms: &f64| format!("{ms:.digits$} ms");
        let mut mesh = chart.configure_mesh();
        mesh.disable_y_mesh().x_label_formatter(&label).light_line_style(WHITE).draw().map_err(failed)?;
        for (lane, row) in lanes.iter().zip((1..=lanes.len()).rev()) {
            let row = row as f64;
            let rectangle = |&(stage, [start, end]): &(&Stage, [f64; 2])| {
                // Neighbours differ, so that one sees where a batch ends.
                let strength = if stage.batch % 2 == 0 { 0.85 } else { 0.55 };
                let style = colour(&stage.name).mix(strength).filled();
                Rectangle::new([(start / 1e3, row - 0.12), (end / 1e3, row - 0.88)], style)
            };
            chart.draw_series(lane.stages.iter().map(rectangle)).map_err(failed)?;
            let (left, y) = chart.backend_coord(&(0.0, row - 0.5));
            write(area, &lane.title(), (left - 8, y), HPos::Right)?;
        }
        // The names below the rows, in their colours.
        let mut x = 100;
        for (name, colour) in STAGES.iter().filter(|(name, _)| stages.iter().any(|stage| stage.name == *name)) {
            let y = height as i32 - 18;
            area.draw(&Rectangle::new([(x, y - 6), (x + 12, y + 6)], colour.mix(0.85).filled())).map_err(failed)?;
            write(area, name, (x + 17, y), HPos::Left)?;
            x += 40 + 8 * name.len() as i32;
        }
        Ok(())
    })?;
    // With a text alternative.
    Ok(svg.replacen('>', &format!("><desc>{}</desc>", escaped(&words(run, stages))), 1))
}

/// The timeline in words, for readers who do not see it.
fn words(run: &PipelineRun, stages: &[Stage]) -> String {
    let batches: std::collections::BTreeSet<_> = stages.iter().map(|stage| stage.batch).collect();
    let percent = |part: Option<f64>| part.map_or("an unknown part".into(), |part| format!("{:.0} %", 100.0 * part));
    format!(
        "{} batches of {} frames in mode {}: at least two of uploads, work and downloads run in {} of the time, and the device \
         has nothing to do in {}.",
        batches.len(),
        run.batch,
        run.mode,
        percent(run.overlap),
        percent(run.idle)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_is_xml_with_its_words() {
        let track = "work".into();
        let stage = Stage { name: "a < b & c".into(), track, batch: 0, start_us: 0.0, end_us: 10.0 };
        let run = PipelineRun { mode: "a < b & c".into(), batch: 4, overlap: Some(0.5), ..PipelineRun::default() };
        let svg = timeline(&run, &[stage]).unwrap();
        let parsed = roxmltree::Document::parse(&svg).unwrap();
        let words = parsed.root_element().first_element_child().and_then(|first| first.text()).unwrap();
        assert!(words.contains("50 % of the time") && words.contains("in mode a < b & c:"), "{words}");
    }
}
