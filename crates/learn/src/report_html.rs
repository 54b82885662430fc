//! `report.html`: the report for people, one file without anything from elsewhere.

use std::fmt::Write as _;

use crate::records::CurvePoint;
use crate::report::{Report, RowReport};

const STYLE: &str = "\
:root{--ink:#1b2733;--soft:#5b6b7a;--line:#d9e0e6;--a:#1f6feb;--b:#d9822b;--back:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e4eaf0;--soft:#93a3b1;--line:#33404c;--a:#6ea8ff;--b:#f0ad5e;--back:#12181f}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid var(--line)}
table{border-collapse:collapse;margin:.6rem 0}th,td{text-align:left;padding:.2rem 1rem .2rem 0;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.soft{color:var(--soft)}.plots{display:flex;flex-wrap:wrap;gap:1rem}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}figure{margin:0}figcaption{font-size:.9rem}";

/// The page.
pub(crate) fn html(report: &Report) -> String {
    let mut page = String::new();
    let name = escape(&report.task);
    // writing to a string cannot fail
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{name}: what the group learned</title><style>{STYLE}</style><h1>{name}: what the group learned</h1>\
         <p>{}</p><p class=soft>base <code>{}</code> ({}), run <code>{}</code></p>",
        escape(&report.description),
        escape(&report.model),
        escape(&report.base_digest.chars().take(12).collect::<String>()),
        escape(&report.run)
    );
    headline(report, &mut page);
    evaluation(report, &mut page);
    funnel(report, &mut page);
    trainings(report, &mut page);
    iterated(report, &mut page);
    judges(report, &mut page);
    questions(report, &mut page);
    costs(report, &mut page);
    page.push_str("</html>\n");
    page
}

fn headline(report: &Report, page: &mut String) {
    let Some(gain) = report.gain else { return };
    let _ = write!(
        page,
        "<p><b>{:+.1} points</b> of exact match over the base on the evaluation questions (95% confidence: {:+.1} to {:+.1}).</p>",
        100.0 * gain.mean,
        100.0 * gain.low,
        100.0 * gain.high
    );
}

fn evaluation(report: &Report, page: &mut String) {
    if report.evaluation.is_empty() {
        return;
    }
    page.push_str("<h2>Evaluation</h2>");
    bars(&report.evaluation, page);
    page.push_str(
        "<table><tr><th>group<th class=n>questions<th class=n>exact match<th class=n>95% interval<th class=n>F1<th class=n>approved\
         <th class=n>right if approved<th class=n>planning loops<th class=n>seconds",
    );
    for row in &report.evaluation {
        let _ = write!(
            page,
            "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{} to {}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{:.2}<td class=n>{:.2}",
            escape(&row.title),
            row.questions,
            percent(row.exact.mean),
            percent(row.exact.low),
            percent(row.exact.high),
            percent(row.f1),
            percent(row.approved),
            percent(row.approved_right),
            row.steps,
            row.seconds
        );
    }
    page.push_str("</table><table><tr><th>kind");
    let kinds: Vec<&String> =
        report.evaluation.iter().flat_map(|row| row.kinds.keys()).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    report.evaluation.iter().for_each(|row| {
        let _ = write!(page, "<th class=n>{}", escape(&row.title));
    });
    for kind in kinds {
        let _ = write!(page, "<tr><td>{}", escape(kind));
        for row in &report.evaluation {
            let (right, count) = row.kinds.get(kind).copied().unwrap_or_default();
            let _ = write!(page, "<td class=n>{right} of {count}");
        }
    }
    page.push_str("</table>");
}

/// Exact match with its interval, a bar a row.
fn bars(rows: &[RowReport], page: &mut String) {
    let height = 26 * rows.len() + 22;
    let _ = write!(page, "<svg viewBox=\"0 0 560 {height}\" width=560 role=img aria-label=\"exact match by group\">");
    let x = |part: f64| 130.0 + 400.0 * part;
    for tick in 0..=4 {
        let part = f64::from(tick) / 4.0;
        let _ = write!(
            page,
            "<line x1={0:.1} x2={0:.1} y1=0 y2={1} stroke=\"var(--line)\"/><text x={0:.1} y={2} text-anchor=middle>{3:.0}%</text>",
            x(part),
            height - 18,
            height - 5,
            100.0 * part
        );
    }
    for (at, row) in rows.iter().enumerate() {
        let y = 26 * at + 4;
        let color = if at == 0 { "var(--a)" } else { "var(--b)" };
        let _ = write!(
            page,
            "<text x=0 y={}>{}</text><rect x=130 y={y} width={:.1} height=16 fill=\"{color}\"/>\
             <line x1={:.1} x2={:.1} y1={2} y2={2} stroke=\"var(--ink)\"/>",
            y + 12,
            escape(&row.title),
            400.0 * row.exact.mean,
            x(row.exact.low),
            x(row.exact.high),
        );
    }
    page.push_str("</svg>");
}

fn funnel(report: &Report, page: &mut String) {
    let instruct = &report.instruct;
    page.push_str("<h2>From examples to data</h2><table>");
    let mut row = |what: &str, count: String, note: String| {
        let _ = write!(page, "<tr><td>{what}<td class=n>{count}<td class=soft>{note}");
    };
    row("examples", instruct.examples.to_string(), String::new());
    let causes: Vec<String> = instruct.rejected.iter().map(|(cause, count)| format!("{} {count}", escape(cause))).collect();
    row("generations", instruct.generated.to_string(), format!("rejected: {}", causes.join(", ")));
    row("questions", (instruct.examples + instruct.accepted).to_string(), String::new());
    if let Some(selection) = &report.selection {
        let votes: Vec<String> = selection.votes.iter().map(|vote| format!("{} {:.0}%", escape(&vote.tool), 100.0 * vote.share)).collect();
        row("tools selected", selection.selected.len().to_string(), format!("votes: {}", votes.join(", ")));
    }
    if let Some(kept) = &report.filter {
        let note = format!("{:.2} planning loops each, {} tokens written", report.synthesis.steps, report.synthesis.completion_tokens);
        row("trajectories", kept.trajectories.to_string(), note);
        row("with reward 1", kept.right.to_string(), format!("{} wrong, {} without an answer", kept.wrong, kept.unanswered));
        let note = format!(
            "{} perhaps guessed, {} ungrounded, {} identical, {} surplus; {} questions confirmed",
            kept.lucky, kept.ungrounded, kept.identical, kept.surplus, kept.confirmed
        );
        row("kept", kept.kept.to_string(), note);
    }
    let reflect = &report.reflect;
    let note = format!(
        "right {} of {}, wrong {} of {}; at the first draw {}",
        reflect.right_agreed, reflect.right, reflect.wrong_agreed, reflect.wrong, reflect.first_agreed
    );
    row("judgements that agree with the reward", (reflect.right_agreed + reflect.wrong_agreed).to_string(), note);
    page.push_str("</table>");
}

fn trainings(report: &Report, page: &mut String) {
    if report.curves.is_empty() {
        return;
    }
    page.push_str("<h2>Training</h2><div class=plots>");
    for (name, curve) in &report.curves {
        plot(name, curve, page);
    }
    page.push_str(
        "</div><table><tr><th>adapter<th class=n>documents<th class=n>epochs<th class=n>steps<th class=n>validation loss<th class=n>of the base\
         <th class=n>parameters<th class=n>tokens/s",
    );
    for one in &report.training {
        let loss = |loss: Option<f64>| loss.map_or_else(|| "–".to_owned(), |loss| format!("{loss:.4}"));
        let _ = write!(
            page,
            "<tr><td>{}<td class=n>{} + {}<td class=n>{}{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{:.0}",
            escape(&if one.round == 1 { one.adapter.clone() } else { format!("{}, round {}", one.adapter, one.round) }),
            one.documents,
            one.validation_documents,
            one.epochs,
            if one.stopped_early { " (early stop)" } else { "" },
            one.steps,
            loss(one.validation_loss),
            loss(one.base_loss),
            one.parameters,
            one.tokens_per_second
        );
    }
    page.push_str("</table>");
}

/// A loss curve: training in one colour, validation in another.
fn plot(name: &str, curve: &[CurvePoint], page: &mut String) {
    let (width, height, left, bottom) = (300.0, 170.0, 34.0, 18.0);
    let last = curve.iter().map(|point| point.step).max().unwrap_or(1).max(1) as f64;
    let losses = curve.iter().filter_map(|point| point.loss.or(point.validation)).filter(|loss| loss.is_finite());
    let top = losses.fold(0.1f64, f64::max);
    let place = |step: u64, loss: f64| {
        let x = left + (width - left - 4.0) * step as f64 / last;
        let y = (height - bottom) * (1.0 - (loss / top).clamp(0.0, 1.0));
        format!("{x:.1},{y:.1}")
    };
    let line = |of: &dyn Fn(&CurvePoint) -> Option<f64>| -> String {
        curve.iter().filter_map(|point| Some(place(point.step, of(point)?))).collect::<Vec<_>>().join(" ")
    };
    let _ = write!(
        page,
        "<figure><svg viewBox=\"0 0 {width} {height}\" width={width} role=img aria-label=\"loss of {0}\">\
         <line x1={left} x2={width} y1={1} y2={1} stroke=\"var(--line)\"/><text x=0 y=10>{top:.2}</text><text x=0 y={1}>0</text>\
         <text x={width} y={height} text-anchor=end>step {last:.0}</text>\
         <polyline points=\"{2}\" fill=none stroke=\"var(--a)\"/><polyline points=\"{3}\" fill=none stroke=\"var(--b)\" stroke-width=2 /></svg>\
         <figcaption>{0} <span class=soft>(training blue, validation orange)</span></figcaption></figure>",
        escape(name),
        height - bottom,
        line(&|point| point.loss),
        line(&|point| point.validation),
    );
}

fn iterated(report: &Report, page: &mut String) {
    let Some(iterated) = report.iterated.as_ref().filter(|iterated| iterated.rounds.len() > 1) else { return };
    page.push_str("<h2>Rounds</h2><table><tr><th>round<th class=n>validation questions<th class=n>answered as the database does<th>");
    for round in &iterated.rounds {
        let note = if round.round == iterated.chosen { "kept" } else { round.failed.as_str() };
        let _ =
            write!(page, "<tr><td>{}<td class=n>{}<td class=n>{}<td>{}", round.round, round.questions, percent(round.exact), escape(note));
    }
    page.push_str("</table>");
}

fn judges(report: &Report, page: &mut String) {
    if report.judges.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Reflect-Agent on held-out histories</h2><p class=soft>Precision: of the rejected answers, those that are wrong. Recall: of the wrong \
         answers, those that are rejected.</p><table><tr><th>judge<th class=n>right approved<th class=n>wrong rejected<th class=n>precision\
         <th class=n>recall<th class=n>accuracy",
    );
    for judge in &report.judges {
        let part = |part: Option<f64>| part.map_or_else(|| "–".to_owned(), percent);
        let _ = write!(
            page,
            "<tr><td>{}<td class=n>{} of {}<td class=n>{} of {}<td class=n>{}<td class=n>{}<td class=n>{}",
            escape(&judge.row),
            judge.right.1,
            judge.right.0,
            judge.wrong.1,
            judge.wrong.0,
            part(judge.precision),
            part(judge.recall),
            part(judge.accuracy)
        );
    }
    page.push_str("</table>");
}

fn questions(report: &Report, page: &mut String) {
    page.push_str("<h2>Questions it asked itself</h2><table><tr><th>question<th>answer<th>about");
    for entry in &report.instruct.samples {
        let question = autoact_score::with_options(&entry.question, &entry.options);
        let pages = escape(&entry.pages.join(", "));
        let _ = write!(page, "<tr><td>{}<td>{}<td class=soft>{pages}", escape(&question), escape(&entry.answer));
    }
    page.push_str("</table>");
}

fn costs(report: &Report, page: &mut String) {
    page.push_str("<h2>Costs</h2><table><tr><th>stage<th class=n>seconds");
    for (stage, seconds) in &report.seconds {
        let _ = write!(page, "<tr><td>{stage}<td class=n>{seconds:.1}");
    }
    let _ = write!(page, "</table><p>Peak memory: {:.0} MB.</p>", report.peak_memory as f64 / 1e6);
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_wrote_cannot_become_markup() {
        assert_eq!(escape("<script>\"&"), "&lt;script&gt;&quot;&amp;");
        let mut page = String::new();
        plot("<b>", &[], &mut page);
        assert!(!page.contains("<b>") && !page.contains("NaN"));
    }
}
