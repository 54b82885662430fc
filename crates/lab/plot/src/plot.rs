//! Line plots.

use std::fmt::Write as _;

use crate::axis::Axis;
use crate::{colour, escape};

const LEFT: f64 = 52.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 34.0;

/// One line of a plot.
#[derive(Debug, Clone)]
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    bold: bool,
}

impl Series {
    /// A line through the points in order; points with a coordinate that is not finite are left
    /// out.
    pub fn new(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let points = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        Series { name: name.to_owned(), points, bold: false }
    }

    /// Makes the line thicker.
    #[must_use]
    pub fn bold(mut self) -> Series {
        self.bold = true;
        self
    }
}

/// A plot with its caption.
#[derive(Debug, Clone)]
pub struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    width: f64,
    height: f64,
}

impl Plot {
    /// An empty plot. Below it stand `title` and the names of its lines.
    pub fn new(title: &str, x: Axis, y: Axis) -> Plot {
        Plot { title: title.to_owned(), x, y, series: Vec::new(), width: 460.0, height: 240.0 }
    }

    /// Sets the size in pixels.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Plot {
        (self.width, self.height) = (width, height);
        self
    }

    /// Adds a line.
    #[must_use]
    pub fn with(mut self, series: Series) -> Plot {
        self.x.show(series.points.iter().map(|point| point.0));
        self.y.show(series.points.iter().map(|point| point.1));
        self.series.push(series);
        self
    }

    /// The markup, a `figure` element.
    pub fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let x = |value: f64| LEFT + (width - LEFT - RIGHT) * self.x.place(value);
        let y = |value: f64| TOP + (height - TOP - BOTTOM) * (1.0 - self.y.place(value));
        let mut out =
            format!("<figure><svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-label=\"{}\">", escape(&self.title));
        // writing to a string cannot fail
        let floor = height - BOTTOM;
        for (place, label) in self.y.ticks() {
            let at = TOP + (floor - TOP) * (1.0 - place);
            let _ = write!(
                out,
                "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"var(--line)\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                width - RIGHT,
                LEFT - 5.0,
                at + 4.0,
                escape(&label)
            );
        }
        for (place, label) in self.x.ticks() {
            let at = LEFT + (width - LEFT - RIGHT) * place;
            let _ = write!(
                out,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{floor}\" y2=\"{:.1}\" stroke=\"var(--soft)\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                floor + 4.0,
                floor + 16.0,
                escape(&label)
            );
        }
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><text x=\"2\" y=\"{:.1}\">{}</text>",
            width - RIGHT,
            height - 3.0,
            escape(&self.x.name),
            height - 3.0,
            escape(&self.y.name)
        );
        for (index, series) in self.series.iter().enumerate() {
            let points: Vec<String> = series.points.iter().map(|(px, py)| format!("{:.1},{:.1}", x(*px), y(*py))).collect();
            let thick = if series.bold { 2.5 } else { 1.5 };
            let _ = write!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{thick}\"/>",
                points.join(" "),
                colour(index)
            );
        }
        let _ =
            write!(out, "</svg><figcaption>{}{}</figcaption></figure>", escape(&self.title), keys(self.series.iter().map(|one| &one.name)));
        out
    }
}

/// The legend.
pub(crate) fn keys<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut out = String::from(" <span class=soft>");
    for (index, name) in names.into_iter().enumerate() {
        let _ = write!(out, "<span class=key style=\"background:{}\"></span>{}", colour(index), escape(name));
    }
    out.push_str("</span>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_without_points_is_a_plot() {
        for axis in [Axis::linear("x"), Axis::log("x"), Axis::tail("x", 3)] {
            let svg = Plot::new("<b>", axis, Axis::linear("<b>")).with(Series::new("<b>", [(f64::NAN, 1.0)])).svg();
            assert!(!svg.contains("<b>") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn lines_stay_inside() {
        let svg = Plot::new("t", Axis::linear("x"), Axis::linear("y")).with(Series::new("s", [(0.0, 0.0), (10.0, 5.0)]).bold()).svg();
        assert!(svg.contains("points=\"52.0,206.0 450.0,8.0\""), "{svg}");
    }
}
