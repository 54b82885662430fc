//! Horizontal bars: values with confidence intervals, and stacked parts of a whole.

use std::fmt::Write as _;

use crate::plot::keys;
use crate::{colour, escape};

const LABELS: f64 = 130.0;
const WIDTH: f64 = 400.0;

/// A fraction with its confidence interval.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRow {
    /// The row's label.
    pub label: String,
    /// Between 0 and 1.
    pub value: f64,
    /// The interval's low end.
    pub low: f64,
    /// The interval's high end.
    pub high: f64,
}

/// One bar per row with its interval, from 0 to 100%. The first row is highlighted.
pub fn intervals(title: &str, rows: &[IntervalRow]) -> String {
    let height = 26 * rows.len() + 22;
    let mut out = format!("<svg viewBox=\"0 0 560 {height}\" width=\"560\" role=\"img\" aria-label=\"{}\">", escape(title));
    let x = |part: f64| LABELS + WIDTH * if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    for tick in 0..=4 {
        let part = f64::from(tick) / 4.0;
        // writing to a string cannot fail
        let _ = write!(
            out,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{1}\" stroke=\"var(--line)\"/>\
             <text x=\"{0:.1}\" y=\"{2}\" text-anchor=\"middle\">{3:.0}%</text>",
            x(part),
            height - 18,
            height - 5,
            100.0 * part
        );
    }
    for (at, row) in rows.iter().enumerate() {
        let y = 26 * at + 4;
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{}\">{}</text><rect x=\"{LABELS}\" y=\"{y}\" width=\"{:.1}\" height=\"16\" fill=\"{}\"/>\
             <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{6}\" y2=\"{6}\" stroke=\"var(--ink)\"/>",
            y + 12,
            escape(&row.label),
            x(row.value) - LABELS,
            colour(usize::from(at > 0)),
            x(row.low),
            x(row.high),
            y + 8,
        );
    }
    out.push_str("</svg>");
    out
}

/// A stacked bar.
#[derive(Debug, Clone, PartialEq)]
pub struct StackRow {
    /// The row's label.
    pub label: String,
    /// The lengths of the parts, in the order of [`Stack::names`].
    pub parts: Vec<f64>,
}

/// Stacked bars. The same part has the same colour in all of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stack {
    /// The title.
    pub title: String,
    /// The parts' names.
    pub names: Vec<String>,
    /// The stacked bars.
    pub rows: Vec<StackRow>,
}

impl Stack {
    /// The SVG markup; `unit` formats the total of a bar.
    pub fn svg(&self, unit: fn(f64) -> String) -> String {
        let longest = self.rows.iter().map(StackRow::whole).fold(0.0, f64::max);
        let height = 26 * self.rows.len() + 4;
        let mut out =
            format!("<figure><svg viewBox=\"0 0 640 {height}\" width=\"640\" role=\"img\" aria-label=\"{}\">", escape(&self.title));
        for (at, row) in self.rows.iter().enumerate() {
            let y = 26 * at + 4;
            let _ = write!(out, "<text x=\"0\" y=\"{}\">{}</text>", y + 12, escape(&row.label));
            let mut left = LABELS;
            for (index, part) in row.parts.iter().enumerate().filter(|(_, part)| part.is_finite() && **part > 0.0) {
                let width = if longest > 0.0 { WIDTH * part / longest } else { 0.0 };
                let name = self.names.get(index).map(String::as_str).unwrap_or_default();
                let _ = write!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"16\" fill=\"{}\"><title>{} {}</title></rect>",
                    colour(index),
                    escape(name),
                    escape(&unit(*part))
                );
                left += width;
            }
            let _ = write!(out, "<text x=\"{:.1}\" y=\"{}\">{}</text>", left + 5.0, y + 12, escape(&unit(row.whole())));
        }
        let _ = write!(out, "</svg><figcaption>{}{}</figcaption></figure>", escape(&self.title), keys(&self.names));
        out
    }
}

impl StackRow {
    fn whole(&self) -> f64 {
        self.parts.iter().filter(|part| part.is_finite()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_never_hold_what_is_no_number() {
        let row = |value| IntervalRow { label: "<b>".into(), value, low: f64::NAN, high: 2.0 };
        let bars = intervals("<b>", &[row(f64::NAN), row(0.5)]);
        let stack = Stack {
            title: "<b>".into(),
            names: vec!["<b>".into()],
            rows: vec![StackRow { label: "<b>".into(), parts: vec![f64::NAN, 0.0] }, StackRow { label: String::new(), parts: vec![] }],
        };
        for markup in [bars, stack.svg(|value| format!("{value:.0}")), Stack::default().svg(|_| String::new())] {
            assert!(!markup.contains("NaN") && !markup.contains("<b>"), "{markup}");
        }
    }

    #[test]
    fn parts_follow_each_other() {
        let rows = vec![StackRow { label: "a".into(), parts: vec![1.0, 3.0] }, StackRow { label: "b".into(), parts: vec![2.0] }];
        let svg = Stack { title: "t".into(), names: vec!["x".into(), "y".into()], rows }.svg(|value| format!("{value:.0} s"));
        assert!(svg.contains("<rect x=\"230.0\" y=\"4\" width=\"300.0\"") && svg.contains(">4 s</text>"), "{svg}");
    }
}
