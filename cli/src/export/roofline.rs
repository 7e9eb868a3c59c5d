//! The roofline of a run, on logarithmic axes: movers by the part of the bytes that they write,
//! operations with arithmetic by the bytes that they move for each floating-point operation.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::svg::{COPY, GREY, OCHRE, PURPLE, READ, SIZE, WRITE, check, check_speeds, escaped, failed};
use crate::run::Run;
use crate::run::answer::Answer;
use crate::run::table::percent;
use warpstride::element::DType;
use warpstride::error::{Result, counted, printable, printable_line};
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::{Group, Record, Subject};

/// The groups' colours, in the order of reports.
const COLOURS: [RGBColor; 6] = [READ, WRITE, COPY, PURPLE, OCHRE, BLACK];

/// A measurement in a chart.
struct Point<'r> {
    /// The place of its case in the run.
    case: usize,
    record: &'r Record,
    place: (f64, f64),
    /// Its number in the answer.
    number: Option<usize>,
    /// True for a measurement of the earlier run.
    is_before: bool,
}

/// A ceiling: its name, its line, and the pixels of a dash.
type Roof = (&'static str, Vec<(f64, f64)>, u32);

/// Draws the charts that the run has cases for, each with its name and title.
pub(super) fn charts(
    run: &Run,
    before: Option<&Run>,
    peaks: &Peaks,
) -> Result<Vec<(&'static str, &'static str, String)>> {
    let ceilings = peaks.ceilings();
    check_speeds([ceilings.read, ceilings.write, ceilings.copy, peaks.nominal.unwrap_or(0.0)])?;
    let mut charts = Vec::new();
    let moved = points(run, before, |subject| {
        let part = subject.written as f64 / subject.bytes as f64;
        (subject.bytes > 0 && flops(subject).is_none()).then_some(part)
    });
    if !moved.is_empty() {
        let mode = |part: &f64| match (part * 100.0).round() as i64 {
            0 => "read only".into(),
            50 => "copy".into(),
            100 => "write only".into(),
            percent => format!("{percent} %"),
        };
        // Bytes in parts of 1000, which the ceiling of a mix is counted in.
        let roof = (0..=100).map(|percent| (percent as f64 / 100.0, ceilings.of(1000 - 10 * percent, 10 * percent)));
        let roofs = roofs([("ceiling of the mix, measured", roof.collect(), 12)], peaks, 0.0..1.0);
        let x = (-0.04..1.04, "part of the bytes that is written", 11);
        charts.push((
            "roofline",
            "Movers: speed by the part of the bytes that is written",
            plot(x, &mode, &moved, &roofs)?,
        ));
    }
    let computed = points(run, before, |subject| Some(subject.bytes as f64 / flops(subject)?));
    if !computed.is_empty() {
        let of = |pick: fn(f64, f64) -> f64, from: f64| computed.iter().map(|point| point.place.0).fold(from, pick);
        let x = 0.7 * of(f64::min, 1.0)..1.4 * of(f64::max, 1.0);
        let flat = |gbps: f64| vec![(x.start, gbps), (x.end, gbps)];
        let lines = [
            ("read, measured", flat(ceilings.read), 5),
            ("write, measured", flat(ceilings.write), 8),
            ("copy, measured", flat(ceilings.copy), 12),
        ];
        let roofs = roofs(lines, peaks, x.clone());
        let x = (x.log_scale().base(2.0), "bytes moved for each addition or multiplication", 11);
        let label = |bytes: &f64| if *bytes < 1.0 { format!("{bytes:.2}") } else { format!("{bytes:.0}") };
        charts.push((
            "roofline-flops",
            "Arithmetic: speed by the bytes for each operation",
            plot(x, &label, &computed, &roofs)?,
        ));
    }
    Ok(charts)
}

/// Additions and multiplications of floating-point numbers; `None` of an operation that has none,
/// or others too.
fn flops(subject: &Subject) -> Option<f64> {
    let each = match subject.op.as_str() {
        "mul" | "add" | "sum" => 1.0,
        "triad" | "axpy" | "dot" | "affine" | "normalize" => 2.0,
        "nstream" => 3.0,
        _ => return None,
    };
    let is_float = matches!(subject.dtype?, DType::F16 | DType::Bf16 | DType::F32 | DType::F64);
    is_float.then(|| each * subject.shape.iter().map(|&extent| extent as f64).product::<f64>())
}

/// The timed cases of both runs that `x` has a place for, the earlier ones first.
fn points<'r>(run: &'r Run, before: Option<&'r Run>, x: impl Fn(&Subject) -> Option<f64>) -> Vec<Point<'r>> {
    let answer = Answer::of(run);
    let number_of =
        |record: &Record| answer.as_ref()?.findings.iter().position(|found| std::ptr::eq(found.record, record));
    let of = |run: &'r Run, is_before: bool| {
        let point = |(case, record): (usize, &'r Record)| {
            let place = (x(&record.subject)?, record.gbps?);
            let number = number_of(record).map(|at| at + 1);
            Some(Point { case, record, place, number, is_before })
        };
        run.cases.iter().enumerate().filter_map(point).collect::<Vec<_>>()
    };
    let mut points = before.map_or(Vec::new(), |before| of(before, true));
    points.extend(of(run, false));
    points
}

/// The ceilings, and the nominal one where the device names it.
fn roofs(measured: impl IntoIterator<Item = Roof>, peaks: &Peaks, x: Range<f64>) -> Vec<Roof> {
    let nominal = peaks.nominal.map(|nominal| ("nominal", vec![(x.start, nominal), (x.end, nominal)], 2));
    measured.into_iter().chain(nominal).collect()
}

/// Draws points below ceilings, over `x` with its name and its labels at most.
fn plot<X: AsRangedCoord<Value = f64>>(
    (x, x_name, labels): (X, &str, usize),
    x_label: &dyn Fn(&f64) -> String,
    points: &[Point<'_>],
    roofs: &[Roof],
) -> Result<String>
where
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let parts = points.iter().filter_map(|point| point.record.fraction_of_ceiling);
    check(parts, 1e12, "a part of a ceiling")?;
    check_speeds(points.iter().flat_map(|point| [point.place.0, point.place.1]))?;
    let speeds =
        || roofs.iter().flat_map(|roof| &roof.1).chain(points.iter().map(|point| &point.place)).map(|place| place.1);
    let least = speeds().filter(|&speed| speed > 0.0).fold(f64::MAX, f64::min);
    let y = (least / 2.0).min(100.0)..1.6 * speeds().fold(1.0, f64::max);
    let (mut svg, mut drawn) = (String::new(), String::new());
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut builder = ChartBuilder::on(&area);
        builder.margin(14).x_label_area_size(44).y_label_area_size(64);
        let mut chart = builder.build_cartesian_2d(x, y.log_scale()).map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        // A logarithmic axis names some speeds twice.
        let named = RefCell::new(HashSet::new());
        let y_label =
            |speed: &f64| Some(format!("{speed:.0}")).filter(|label| named.borrow_mut().insert(label.clone()));
        let y_label = |speed: &f64| y_label(speed).unwrap_or_default();
        mesh.x_labels(labels).x_label_formatter(x_label).y_label_formatter(&y_label);
        mesh.label_style(("sans-serif", 14))
            .x_desc(x_name)
            .y_desc("GB/s")
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for (name, line, dash) in roofs {
            legend(&mut chart, line, *dash, name)?;
        }
        for (group, colour) in Group::ALL.into_iter().zip(COLOURS) {
            if points.iter().any(|point| point.record.subject.group == group) {
                let none = chart.draw_series(std::iter::empty::<Circle<(f64, f64), i32>>()).map_err(failed)?;
                none.label(group.title()).legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
            }
        }
        let mut labels = chart.configure_series_labels();
        labels
            .label_font(("sans-serif", 14))
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(GREY);
        labels.draw().map_err(failed)?;
        for point in points.iter().filter(|point| point.place.1 > 0.0) {
            mark(&mut drawn, point, chart.backend_coord(&point.place));
        }
        area.present().map_err(failed)?;
    }
    let svg = svg.replacen('>', &format!("><desc>{}</desc>", escaped(&words(points))), 1);
    // XML takes no control characters, not even as references.
    Ok(printable(&svg.replace("</svg>", &(drawn + "</svg>"))))
}

type Logs<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, LogCoord<f64>>>;

/// Adds a dashed line and its entry in the legend.
fn legend<X: Ranged<ValueType = f64>>(
    chart: &mut Logs<'_, '_, X>,
    line: &[(f64, f64)],
    dash: u32,
    name: &str,
) -> Result<()> {
    let style = GREY.stroke_width(2);
    let series = chart.draw_series(DashedLineSeries::new(line.iter().copied(), dash, 4, style)).map_err(failed)?;
    series.label(name).legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 18, y)], dash, 4, style));
    Ok(())
}

/// Adds a point with its name, which browsers show. Beside those of the answer stands the name,
/// too.
fn mark(drawn: &mut String, point: &Point<'_>, (x, y): (i32, i32)) {
    let (name, gbps) = (escaped(&printable_line(&point.record.name)), point.place.1);
    let RGBColor(r, g, b) = COLOURS[point.record.subject.group as usize];
    let colour = format!("#{r:02X}{g:02X}{b:02X}");
    let (look, when) = if point.is_before {
        (format!("fill=\"none\" stroke=\"{colour}\""), "before: ")
    } else {
        (format!("fill=\"{colour}\" fill-opacity=\"0.7\""), "")
    };
    let of = point
        .record
        .fraction_of_ceiling
        .map_or(String::new(), |part| format!(", {} of its ceiling", percent(Some(part))));
    let title = format!("{when}{name}, {gbps:.1} GB/s{of}");
    let circle = format!("<title>{title}</title><circle cx=\"{x}\" cy=\"{y}\" r=\"5\" {look}/>");
    // Writing to a string cannot fail.
    let _ = if point.is_before {
        writeln!(drawn, "<g>{circle}</g>")
    } else {
        writeln!(drawn, "<a class=\"point\" href=\"#case-{}\" aria-label=\"{title}\">{circle}</a>", point.case)
    };
    if let Some(number) = point.number {
        let (at, anchor) = if is_left((x, y), number, &name) { (x - 9, "end") } else { (x + 9, "start") };
        let _ = writeln!(
            drawn,
            "<text x=\"{at}\" y=\"{}\" text-anchor=\"{anchor}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#000000\">{number}. \
             {name}</text>",
            y + 5
        );
    }
}

/// Returns whether a name has its room before the point. Neighbours of one column take turns where
/// the name ends behind the axis, and behind the legend in the lower half.
fn is_left((x, y): (i32, i32), number: usize, name: &str) -> bool {
    let [width, height] = [SIZE.0, SIZE.1].map(|pixels| pixels as i32);
    let start = x - 9 - 7 * (name.chars().count() + 3) as i32;
    let free = if y > height / 2 { width / 3 } else { width / 10 };
    x > 3 * width / 4 || (start > free && number.is_multiple_of(2))
}

/// The chart in words.
fn words(points: &[Point<'_>]) -> String {
    let now: Vec<&Point<'_>> = points.iter().filter(|point| !point.is_before).collect();
    let named = now.iter().filter(|point| point.number.is_some());
    let named: Vec<String> = named.map(|point| format!("{} {:.0} GB/s", point.record.name, point.place.1)).collect();
    let furthest =
        if named.is_empty() { String::new() } else { format!(" Furthest from their ceilings: {}.", named.join(", ")) };
    format!("{} below the ceilings; the tables have the figures of each.{furthest}", counted(now.len(), "case"))
}
