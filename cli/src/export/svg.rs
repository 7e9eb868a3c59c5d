//! A run as charts in SVG, each an image by itself. `plotters` draws them; its text needs no fonts
//! here.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{pipelines, roofline};
use crate::run::Run;
use crate::run::answer::Answer;
use crate::run::transfers::{Direction, HostSide, Transfer, Transfers};
use warpstride::error::{Error, ErrorKind, Result, printable};
use warpstride::roofline::peak::{Peaks, Warm};

/// Pixels of a chart.
pub(crate) const SIZE: (u32, u32) = (920, 460);
const MIB: f64 = (1_u64 << 20) as f64;

pub(crate) const READ: RGBColor = RGBColor(31, 119, 180);
pub(crate) const WRITE: RGBColor = RGBColor(214, 90, 49);
pub(super) const COPY: RGBColor = RGBColor(46, 139, 87);
pub(super) const GREY: RGBColor = RGBColor(110, 118, 130);
pub(super) const PURPLE: RGBColor = RGBColor(128, 72, 160);
pub(super) const OCHRE: RGBColor = RGBColor(200, 150, 20);

/// A chart and the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chart {
    /// `roofline`, for example.
    pub(crate) name: String,
    /// The caption.
    pub(crate) title: String,
    /// The image.
    pub(crate) svg: String,
    /// A line below it, or nothing.
    pub(crate) note: String,
}

/// Draws every chart that the run has figures for, with the ranks of its answer.
///
/// # Errors
///
/// `InvalidArgument` where a number of the run cannot be drawn.
pub(crate) fn charts(run: &Run, before: Option<&Run>, answer: Option<&Answer<'_>>) -> Result<Vec<Chart>> {
    drawn(run, before, answer)
        .map_err(|why| failed(format!("a chart of this run cannot be drawn: {why}; is the file whole?")))
}

fn drawn(run: &Run, before: Option<&Run>, answer: Option<&Answer<'_>>) -> Result<Vec<Chart>> {
    let mut charts = Vec::new();
    let mut add = |name: &str, title: &str, svg, note| {
        charts.push(Chart { name: name.into(), title: title.into(), svg, note });
    };
    if let Some(peaks) = run.peaks.as_ref().filter(|_| run.has_times()) {
        for (name, title, svg, note) in roofline::charts((run, before), answer, peaks)? {
            add(name, title, svg, note);
        }
        add("sizes", "Speed by the bytes that are touched over and over", sizes(run, peaks)?, String::new());
    }
    if let Some(transfers) = run.transfers.as_ref().filter(|all| all.copies.iter().any(|copy| copy.gbps.is_some())) {
        add(
            "transfers",
            "Speed of copies between host and device by their bytes",
            self::transfers(transfers)?,
            String::new(),
        );
    }
    charts.extend(run.pipeline.iter().map(pipelines::charts).collect::<Result<Vec<_>>>()?.into_iter().flatten());
    // With a name for readers who do not see it. Points that are links are not parts of an image.
    for Chart { title, svg, .. } in &mut charts {
        let role = if svg.contains("href=") { "group" } else { "img" };
        *svg = svg.replacen("<svg ", &format!("<svg role=\"{role}\" aria-label=\"{}\" ", escaped(title)), 1);
    }
    Ok(charts)
}

/// Returns text as XML holds it.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Says why a chart cannot be drawn.
pub(crate) fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, error.to_string())
}

/// Fails on numbers that fit on no axis.
pub(super) fn check(values: impl IntoIterator<Item = f64>, most: f64, what: &str) -> Result<()> {
    let wrong = values.into_iter().find(|value| !(0.0..most).contains(value));
    wrong.map_or(Ok(()), |value| Err(failed(format!("{value} is not {what}"))))
}

pub(super) fn check_speeds(values: impl IntoIterator<Item = f64>) -> Result<()> {
    check(values, 1e12, "a bandwidth in GB/s")
}

/// A chart of lines in the making.
pub(super) type Lines<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, RangedCoordf64>>;

/// An axis: its range, the name below it, and its labels at most.
pub(super) type XAxis<'x, X> = (X, &'x str, usize);
/// Labels that an axis has where nothing else is said.
pub(super) const LABELS: usize = 11;

/// Draws a chart of the lines that `draw` adds, over `x` and from 0 to `top`. `room` is pixels for
/// the labels of speeds.
pub(super) fn chart<X: AsRangedCoord<Value = f64>>(
    (x, x_name, labels): XAxis<'_, X>,
    x_label: &dyn Fn(&f64) -> String,
    (top, y_name, room): (f64, &str, u32),
    corner: SeriesLabelPosition,
    draw: impl FnOnce(&mut Lines<'_, '_, X::CoordDescType>) -> Result<()>,
) -> Result<String>
where
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    image(SIZE.1, [14, 14, room], x, top, |_, chart| {
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(labels).x_label_formatter(x_label).y_label_formatter(&|speed| format!("{speed:.0}"));
        mesh.x_desc(x_name).y_desc(y_name).light_line_style(WHITE).draw().map_err(failed)?;
        draw(chart)?;
        let legend = &mut chart.configure_series_labels();
        legend.position(corner).background_style(WHITE.mix(0.8)).border_style(GREY).draw().map_err(failed)
    })
}

/// The area that has a chart, and texts beside it.
type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;

/// Makes an image of `height` pixels with what `draw` draws on it and into its chart over `x` and
/// from 0 to `top`. `left`, `right` and `room` are pixels of the margins and of the labels before
/// the chart.
pub(crate) fn image<X: AsRangedCoord<Value = f64>>(
    height: u32,
    [left, right, room]: [u32; 3],
    x: X,
    top: f64,
    draw: impl for<'a, 'b> FnOnce(&'a Area<'b>, &mut Lines<'a, 'b, X::CoordDescType>) -> Result<()>,
) -> Result<String>
where
    X::CoordDescType: Ranged<ValueType = f64>,
{
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut builder = ChartBuilder::on(&area);
        builder.margin(14).margin_left(left).margin_right(right).x_label_area_size(44).y_label_area_size(room);
        let mut chart = builder.build_cartesian_2d(x, 0.0..top).map_err(failed)?;
        draw(&area, &mut chart)?;
        area.present().map_err(failed)?;
    }
    // XML takes no control characters, not even as references.
    Ok(printable(&svg))
}

/// Writes a text that ends or begins at a place of an image.
pub(super) fn write(area: &Area<'_>, text: &str, place: (i32, i32), end: HPos) -> Result<()> {
    let style = ("sans-serif", 13).into_font().color(&BLACK).pos(Pos::new(end, VPos::Center));
    area.draw(&Text::new(text, place, style)).map_err(failed)
}

/// Adds a line and its entry in the legend.
pub(crate) fn line<X: Ranged<ValueType = f64>>(
    chart: &mut Lines<'_, '_, X>,
    points: impl IntoIterator<Item = (f64, f64)>,
    style: ShapeStyle,
    points_of: u32,
    label: &str,
) -> Result<()> {
    chart
        .draw_series(LineSeries::new(points, style).point_size(points_of))
        .map_err(failed)?
        .label(label)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    Ok(())
}

/// The speed of arrays moved over and over, by their size, with the L2 cache's own.
fn sizes(run: &Run, peaks: &Peaks) -> Result<String> {
    let sizes = &peaks.sizes;
    check_speeds(sizes.iter().flat_map(|warm| [warm.read, warm.write, warm.copy]))?;
    let [first, last] = [sizes.first(), sizes.last()].map(|warm| warm.map_or(1.0, |warm| warm.bytes as f64 / MIB));
    let most = sizes.iter().flat_map(|warm| [warm.read, warm.write, warm.copy]).fold(1.0, f64::max);
    let x = ((first.max(0.01)..last.max(first + 1.0)).log_scale().base(2.0), "MiB", LABELS);
    let label = |mib: &f64| format!("{mib:.0}");
    chart(x, &label, (1.1 * most, "GB/s", 64), SeriesLabelPosition::LowerRight, |chart| {
        let mut speeds = |name, colour: RGBColor, speed: fn(&Warm) -> f64| {
            let points = sizes.iter().map(|warm| (warm.bytes as f64 / MIB, speed(warm)));
            line(chart, points, colour.stroke_width(2), 3, name)
        };
        speeds("read", READ, |warm| warm.read)?;
        speeds("write", WRITE, |warm| warm.write)?;
        speeds("copy", COPY, |warm| warm.copy)?;
        let cache = run.device.l2_bytes as f64 / MIB;
        if (first..last).contains(&cache) {
            line(chart, [(cache, 0.0), (cache, 1.1 * most)], GREY.stroke_width(1), 0, "L2 cache")?;
        }
        Ok(())
    })
}

/// The speed of copies between host and device by their bytes: a line for each kind of memory and
/// direction, and the link.
fn transfers(transfers: &Transfers) -> Result<String> {
    let timed: Vec<(&Transfer, f64)> = transfers.copies.iter().filter_map(|copy| Some((copy, copy.gbps?))).collect();
    check_speeds(timed.iter().map(|point| point.1).chain(transfers.link.map(|link| link.gbps)))?;
    let sizes = || timed.iter().map(|(copy, _)| copy.bytes as f64 / MIB);
    let (first, last) = (sizes().fold(f64::MAX, f64::min).max(1e-4), sizes().fold(1e-3, f64::max));
    let most = timed.iter().map(|point| point.1).chain(transfers.link.map(|link| link.gbps)).fold(1.0, f64::max);
    let kinds = [
        (HostSide::Pinned, COPY),
        (HostSide::Registered, PURPLE),
        (HostSide::WriteCombined, OCHRE),
        (HostSide::Pageable, READ),
        (HostSide::PageableByDriver, WRITE),
    ];
    let x = ((first..last.max(2.0 * first)).log_scale().base(2.0), "MiB in each direction", LABELS);
    chart(x, &f64::to_string, (1.1 * most, "GB/s", 64), SeriesLabelPosition::UpperLeft, |chart| {
        for (memory, colour) in kinds {
            for (direction, width) in [(Direction::H2d, 2), (Direction::D2h, 1), (Direction::Both, 3)] {
                let of_kind = timed.iter().filter(|(copy, _)| copy.memory == memory && copy.direction == direction);
                let points: Vec<(f64, f64)> = of_kind.map(|(copy, gbps)| (copy.bytes as f64 / MIB, *gbps)).collect();
                if !points.is_empty() {
                    let label = format!("{} {}", memory.name(), direction.name());
                    line(chart, points, colour.stroke_width(width), 3, &label)?;
                }
            }
        }
        if let Some(link) = transfers.link {
            line(chart, [(first, link.gbps), (last, link.gbps)], GREY.stroke_width(1), 0, "link, one direction")?;
        }
        Ok(())
    })
}
