//! The course of a replay as a picture in SVG.

use plotters::prelude::*;

use super::play::Outcome;
use warpstride::error::{Error, ErrorKind, Result};

/// Pixels of the picture.
const SIZE: (u32, u32) = (920, 460);
const ACTIVE: RGBColor = RGBColor(31, 119, 180);
const RESERVED: RGBColor = RGBColor(214, 90, 49);
const GIB: f64 = (1_u64 << 30) as f64;

impl Outcome {
    /// Draws the bytes in use and the bytes reserved over the operations of the log.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a log without operations, of which there is nothing to draw.
    pub(crate) fn svg(&self) -> Result<String> {
        let failed =
            |why: String| Error::new(ErrorKind::InvalidArgument, format!("this replay cannot be drawn: {why}"));
        let Some(last) = self.samples.last() else { return Err(failed("its log is empty".into())) };
        // Small logs are drawn in MiB.
        let (unit, name) = if self.peak_reserved as f64 >= GIB { (GIB, "GiB") } else { (GIB / 1024.0, "MiB") };
        let most = (self.peak_reserved.max(self.peak_active).max(1) as f64 / unit) * 1.08;
        let mut svg = String::new();
        let draw = |svg: &mut String| -> Result<(), Box<dyn std::error::Error>> {
            let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
            area.fill(&WHITE)?;
            let mut chart = ChartBuilder::on(&area)
                .margin(14)
                .x_label_area_size(44)
                .y_label_area_size(64)
                .build_cartesian_2d(0.0..last.calls as f64, 0.0..most)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_desc("allocations and frees").y_desc(name).light_line_style(TRANSPARENT).draw()?;
            let reserved = self.samples.iter().map(|at| (at.calls as f64, at.reserved as f64 / unit));
            let active = self.samples.iter().map(|at| (at.calls as f64, at.active as f64 / unit));
            let line = |color: RGBColor| move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color);
            chart.draw_series(LineSeries::new(reserved, RESERVED))?.label("reserved").legend(line(RESERVED));
            chart.draw_series(LineSeries::new(active, ACTIVE))?.label("in use").legend(line(ACTIVE));
            let mut labels = chart.configure_series_labels();
            labels.position(SeriesLabelPosition::LowerRight).background_style(WHITE.mix(0.8)).draw()?;
            area.present()?;
            Ok(())
        };
        draw(&mut svg).map_err(|error| failed(error.to_string()))?;
        Ok(svg)
    }
}
