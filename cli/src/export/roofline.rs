//! The roofline of a run, on logarithmic axes: movers by the part of the bytes that they write,
//! operations with arithmetic by the bytes that they move for each floating-point operation.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::ops::Range;

use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::svg::{COPY, GREY, OCHRE, PURPLE, READ, SIZE, WRITE, check, check_speeds, escaped, failed};
use crate::run::Run;
use crate::run::answer::Answer;
use crate::run::figures::{ordinal, percent, speed, thousands};
use warpstride::element::DType;
use warpstride::error::{Result, counted, printable, printable_line};
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::{Group, Record, Subject};

/// The groups' colours, in the order of reports.
const COLOURS: [RGBColor; Group::ALL.len()] = [READ, WRITE, COPY, PURPLE, OCHRE, GREY, BLACK];

/// A measurement in a chart.
struct Point<'r> {
    /// The place of its case in the run.
    case: usize,
    record: &'r Record,
    place: (f64, f64),
    /// Its rank, if the answer shows the case.
    rank: Option<usize>,
    /// True for a small array, which has no rank.
    is_left_out: bool,
    /// True for a measurement of the earlier run.
    is_before: bool,
}

/// A ceiling: its name, its line, and the pixels of a dash.
type Roof = (&'static str, Vec<(f64, f64)>, u32);

/// Pixels on the right for the names of ceilings.
const ROOM: u32 = 96;
/// Pixels of a line of text.
const LINE: i32 = 14;

/// Draws the charts that the run has cases for, each with its name and title.
pub(super) fn charts(
    (run, before): (&Run, Option<&Run>),
    answer: Option<&Answer<'_>>,
    peaks: &Peaks,
) -> Result<Vec<(&'static str, &'static str, String, String)>> {
    let ceilings = peaks.ceilings();
    check_speeds([ceilings.read, ceilings.write, ceilings.copy, peaks.nominal.unwrap_or(0.0)])?;
    let mut charts = Vec::new();
    let y = speeds(run, before, peaks)?;
    let moved = points((run, before), answer, |subject| {
        let part = subject.written as f64 / subject.bytes as f64;
        (subject.bytes > 0 && flops(subject).is_none()).then_some(part)
    });
    // A logarithmic axis has no place for 0.
    let computed = points((run, before), answer, |subject| {
        Some(subject.bytes as f64 / flops(subject)?).filter(|bytes| *bytes > 0.0 && bytes.is_finite())
    });
    if !moved.is_empty() {
        let mode = |part: &f64| match (part * 100.0).round() as i64 {
            0 => "0 % (read only)".into(),
            50 => "50 % (copy)".into(),
            100 => "100 % (write only)".into(),
            // Their neighbours need the room.
            10 | 90 => String::new(),
            percent => format!("{percent} %"),
        };
        // Bytes in parts of 1000, which the ceiling of a mix is counted in.
        let roof = (0..=100).map(|percent| (percent as f64 / 100.0, ceilings.of(1000 - 10 * percent, 10 * percent)));
        let roofs = roofs([("ceiling", roof.collect(), 12)], peaks, 0.0..1.0);
        let x = (-0.04..1.04, "share of the bytes that are written", 11);
        charts.push((
            "roofline",
            "Movers: speed by the share of the bytes that are written",
            plot(x, y.clone(), &mode, &moved, &roofs)?,
            note(&moved, &computed),
        ));
    }
    if !computed.is_empty() {
        let of = |pick: fn(f64, f64) -> f64| computed.iter().map(|point| point.place.0).reduce(pick).unwrap_or(1.0);
        let x = 0.8 * of(f64::min)..1.25 * of(f64::max);
        let flat = |gbps: f64| vec![(x.start, gbps), (x.end, gbps)];
        let lines =
            [("read", flat(ceilings.read), 5), ("write", flat(ceilings.write), 8), ("copy", flat(ceilings.copy), 12)];
        let roofs = roofs(lines, peaks, x.clone());
        let x = (x.log_scale().base(2.0), "bytes moved for each addition or multiplication", 11);
        let label = |bytes: &f64| if *bytes < 1.0 { format!("{bytes:.2}") } else { format!("{bytes:.0}") };
        charts.push((
            "roofline-flops",
            "Arithmetic: speed by the bytes for each operation",
            plot(x, y, &label, &computed, &roofs)?,
            note(&computed, &[]),
        ));
    }
    Ok(charts)
}

/// Says which ranks the next chart has, and what "left out" means.
fn note(points: &[Point<'_>], next: &[Point<'_>]) -> String {
    let mut ranks: Vec<usize> = next.iter().filter_map(|point| point.rank).collect();
    ranks.sort_unstable();
    let listed = ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let elsewhere = (!ranks.is_empty()).then(|| format!("{listed}: next chart."));
    let is_left_out = points.iter().any(|point| point.is_left_out);
    let left_out = is_left_out.then(|| "left out: a small array, which has no rank.".into());
    elsewhere.into_iter().chain(left_out).collect::<Vec<_>>().join(" ")
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
fn points<'r>(
    (run, before): (&'r Run, Option<&'r Run>),
    answer: Option<&Answer<'_>>,
    x: impl Fn(&Subject) -> Option<f64>,
) -> Vec<Point<'r>> {
    let shown = answer.map_or(Vec::new(), Answer::shown);
    let ranks: HashMap<usize, usize> = shown.iter().map(|case| (case.at, case.rank)).collect();
    let of = |run: &'r Run, is_before: bool| {
        let point = |(case, record): (usize, &'r Record)| {
            // The limit of an array over several GPUs is a link, not the memory.
            let of_memory = record.subject.spread.is_none().then_some(record.gbps);
            let place = (x(&record.subject)?, of_memory.flatten()?);
            let rank = ranks.get(&case).copied().filter(|_| !is_before);
            let is_left_out = !is_before && answer.is_some_and(|answer| answer.leaves_out(case));
            Some(Point { case, record, place, rank, is_left_out, is_before })
        };
        run.cases.iter().enumerate().filter_map(point).collect::<Vec<_>>()
    };
    let mut points = before.map_or(Vec::new(), |before| of(before, true));
    points.extend(of(run, false));
    points
}

/// The ceilings, and the nominal one where the device names it.
fn roofs(measured: impl IntoIterator<Item = Roof>, peaks: &Peaks, x: Range<f64>) -> Vec<Roof> {
    let nominal = peaks.nominal.map(|nominal| ("data sheet", vec![(x.start, nominal), (x.end, nominal)], 2));
    measured.into_iter().chain(nominal).collect()
}

/// The speeds of an axis that both charts share.
fn speeds(run: &Run, before: Option<&Run>, peaks: &Peaks) -> Result<Range<f64>> {
    let cases = run.cases.iter().chain(before.iter().flat_map(|before| &before.cases)).filter_map(|case| case.gbps);
    let ceilings = [peaks.read.gbps, peaks.write.gbps, peaks.copy.gbps];
    let all: Vec<f64> = cases.chain(ceilings).chain(peaks.nominal).collect();
    check_speeds(all.iter().copied())?;
    let least = all.iter().copied().filter(|&speed| speed > 0.0).fold(f64::MAX, f64::min);
    Ok((least / 2.0).min(100.0)..1.6 * all.iter().copied().fold(1.0, f64::max))
}

/// Draws points below ceilings, over `x` with its name and its labels at most, and over speeds.
fn plot<X: AsRangedCoord<Value = f64>>(
    (x, x_name, labels): (X, &str, usize),
    y: Range<f64>,
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
    let (mut svg, mut drawn) = (String::new(), String::new());
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut builder = ChartBuilder::on(&area);
        builder.margin(14).margin_right(ROOM).x_label_area_size(44).y_label_area_size(64);
        let mut chart = builder.build_cartesian_2d(x, y.log_scale()).map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        // A logarithmic axis names some speeds twice.
        let named = RefCell::new(HashSet::new());
        let y_label = |speed: &f64| {
            Some(thousands(speed.round() as u64)).filter(|label| named.borrow_mut().insert(label.clone()))
        };
        let y_label = |speed: &f64| y_label(speed).unwrap_or_default();
        mesh.x_labels(labels).x_label_formatter(x_label).y_label_formatter(&y_label);
        mesh.label_style(("sans-serif", 14))
            .x_desc(x_name)
            .y_desc("GB/s")
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for (_, line, dash) in roofs {
            let dashes = DashedLineSeries::new(line.iter().copied(), *dash, 4, GREY.stroke_width(2));
            chart.draw_series(dashes).map_err(failed)?;
        }
        legend(&mut chart, points)?;
        let ends = roofs.iter().filter_map(|(name, line, _)| Some((*name, chart.backend_coord(line.last()?))));
        name_roofs(&mut drawn, ends.collect());
        let places: Vec<(&Point<'_>, (i32, i32))> = points
            .iter()
            .filter(|point| point.place.1 > 0.0)
            .map(|point| (point, chart.backend_coord(&point.place)))
            .collect();
        places.iter().for_each(|(point, place)| mark(&mut drawn, point, *place));
        name_points(&mut drawn, &places);
        area.present().map_err(failed)?;
    }
    let svg = svg.replacen('>', &format!("><desc>{}</desc>", escaped(&words(points))), 1);
    // XML takes no control characters, not even as references.
    Ok(printable(&svg.replace("</svg>", &(drawn + "</svg>"))))
}

type Logs<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, LogCoord<f64>>>;

/// Adds the groups' colours.
fn legend<'a, 'b: 'a, X: Ranged<ValueType = f64>>(chart: &mut Logs<'a, 'b, X>, points: &[Point<'_>]) -> Result<()> {
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
    labels.draw().map_err(failed)
}

/// Writes the names of ceilings behind their right ends, apart from each other.
fn name_roofs(drawn: &mut String, mut ends: Vec<(&str, (i32, i32))>) {
    ends.sort_by_key(|(_, (_, y))| *y);
    let middle = ends.iter().map(|(_, (_, y))| y).sum::<i32>() / ends.len().max(1) as i32;
    let first = ends.iter().map(|(_, (_, y))| *y).min().unwrap_or(0);
    let last = ends.iter().map(|(_, (_, y))| *y).max().unwrap_or(0);
    let height = LINE * (ends.len() as i32 - 1);
    let is_apart = ends.windows(2).all(|two| two[1].1.1 - two[0].1.1 >= LINE);
    let start = if is_apart { first } else { (middle - height / 2).min(last) };
    for (at, (name, (x, y))) in (0..).zip(ends) {
        let y = if is_apart { y } else { start + at * LINE };
        let _ = writeln!(
            drawn,
            "<text x=\"{}\" y=\"{}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#000000\">{name}</text>",
            x + 6,
            y + 4
        );
    }
}

/// Adds a point with its name, which browsers show.
fn mark(drawn: &mut String, point: &Point<'_>, (x, y): (i32, i32)) {
    let (name, gbps) = (escaped(&printable_line(&point.record.name)), point.place.1);
    let RGBColor(r, g, b) = COLOURS[point.record.subject.group as usize];
    let colour = format!("#{r:02X}{g:02X}{b:02X}");
    let (look, when) = if point.is_before {
        (format!("fill=\"none\" stroke=\"{colour}\""), "before: ")
    } else {
        (format!("fill=\"{colour}\" fill-opacity=\"0.7\""), "")
    };
    let of =
        point.record.fraction_of_ceiling.map_or(String::new(), |part| format!(", {} of its ceiling", percent(part)));
    let title = format!("{when}{name}, {}{of}", speed(gbps));
    let circle = format!("<title>{title}</title><circle cx=\"{x}\" cy=\"{y}\" r=\"5\" {look}/>");
    // Writing to a string cannot fail.
    let _ = if point.is_before {
        writeln!(drawn, "<g>{circle}</g>")
    } else {
        writeln!(drawn, "<a class=\"point\" href=\"#case-{}\" aria-label=\"{title}\">{circle}</a>", point.case)
    };
}

/// Writes beside the points of the answer the rank and the name of each, where they have room. A
/// narrow page shows the rank alone.
fn name_points(drawn: &mut String, places: &[(&Point<'_>, (i32, i32))]) {
    let [width, height] = [SIZE.0, SIZE.1].map(|pixels| pixels as i32);
    let is_named = |point: &Point<'_>| point.rank.is_some() || point.is_left_out;
    let mut named: Vec<_> = places.iter().filter(|(point, _)| is_named(point)).copied().collect();
    named.sort_by_key(|(point, _)| point.rank.unwrap_or(usize::MAX));
    // The legend.
    let mut taken = vec![[70, height - 58 - 8 * LINE, 200, height - 58]];
    for (point, (x, y)) in named {
        let name = escaped(&printable_line(&point.record.name));
        let label = point.rank.map_or("left out".into(), |rank| rank.to_string());
        let long = 7 * (point.record.name.chars().count() + label.len() + 3) as i32;
        let candidates =
            [0, LINE, -LINE, 2 * LINE, -2 * LINE].into_iter().flat_map(|down| [true, false].map(|right| (down, right)));
        let boxes = candidates.map(|(down, right)| {
            let start = if right { x + 9 } else { x - 9 - long };
            (down, right, [start, y + down - LINE / 2, start + long, y + down + LINE / 2])
        });
        let is_free = |[left, top, right, bottom]: [i32; 4]| {
            left >= 78
                && right <= width - 4
                && taken
                    .iter()
                    .all(|other| right < other[0] || other[2] < left || bottom <= other[1] || other[3] <= top)
        };
        let boxes: Vec<_> = boxes.collect();
        let Some(&(down, right, place)) = boxes.iter().find(|(.., place)| is_free(*place)).or(boxes.first()) else {
            continue;
        };
        taken.push(place);
        let (at, anchor) = if right { (x + 9, "start") } else { (x - 9, "end") };
        let _ = writeln!(
            drawn,
            "<text class=\"rank\" x=\"{at}\" y=\"{}\" text-anchor=\"{anchor}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#000000\" \
             stroke=\"#FFFFFF\" stroke-width=\"4\" paint-order=\"stroke\">{label}<tspan class=\"name\">. {name}</tspan></text>",
            y + down + 5
        );
    }
}

/// The chart in words.
fn words(points: &[Point<'_>]) -> String {
    let mut ranked: Vec<_> = points.iter().filter_map(|point| Some((point.rank?, point))).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let of = |part: Option<f64>| part.map_or(String::new(), |part| format!(", {} of its ceiling", percent(part)));
    let named = ranked.iter().map(|(rank, point)| {
        let part = of(point.record.fraction_of_ceiling);
        format!("{} {}, {}{part}", ordinal(*rank), point.record.name, speed(point.place.1))
    });
    let named: Vec<String> = named.collect();
    let slowest = if named.is_empty() { String::new() } else { format!(" The slowest: {}.", named.join("; ")) };
    let count = points.iter().filter(|point| !point.is_before).count();
    format!("{} in this chart; the tables have the figures of each.{slowest}", counted(count, "case"))
}
