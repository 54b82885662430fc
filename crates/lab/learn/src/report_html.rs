//! `report.html`: the report for people, as one self-contained file.

use std::fmt::Write as _;

use autoact_plot::{Axis, IntervalRow, Page, Plot, Series, escape, intervals};

use crate::records::CurvePoint;
use crate::report::{Report, RowReport};
use crate::report_figures::figures;

/// The page.
pub(crate) fn html(report: &Report) -> String {
    let mut page = String::new();
    // writing to a string cannot fail
    let _ = write!(
        page,
        "<p>{}</p><p class=soft>base <code>{}</code> ({}), run <code>{}</code></p>",
        escape(&report.description),
        escape(&report.model),
        escape(&report.base_digest.chars().take(12).collect::<String>()),
        escape(&report.run)
    );
    headline(report, &mut page);
    evaluation(report, &mut page);
    page.push_str(&figures(report));
    funnel(report, &mut page);
    trainings(report, &mut page);
    iterated(report, &mut page);
    judges(report, &mut page);
    questions(report, &mut page);
    costs(report, &mut page);
    let mut whole = Page::new(&format!("{}: what the group learned", report.task));
    whole.push(&page);
    whole.finish()
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

/// Exact match with its confidence interval, one bar for each row.
fn bars(rows: &[RowReport], page: &mut String) {
    let row = |row: &RowReport| {
        let exact = &row.exact;
        IntervalRow { label: row.title.clone(), value: exact.mean, low: exact.low, high: exact.high }
    };
    page.push_str(&intervals("exact match by group", &rows.iter().map(row).collect::<Vec<_>>()));
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
    let without = format!("and {} without an answer", instruct.unanswerable);
    row("questions", (instruct.examples + instruct.accepted).to_string(), without);
    if let Some(selection) = &report.selection {
        let votes: Vec<String> = selection.votes.iter().map(|vote| format!("{} {:.0}%", escape(&vote.tool), 100.0 * vote.share)).collect();
        row("tools selected", selection.selected.len().to_string(), format!("votes: {}", votes.join(", ")));
    }
    if let Some(kept) = &report.filter {
        let note = format!("{:.2} planning loops each, {} tokens written", report.synthesis.steps, report.synthesis.completion_tokens);
        row("trajectories", kept.trajectories.to_string(), note);
        row("with reward 1", kept.right.to_string(), format!("{} wrong, {} without an answer", kept.wrong, kept.unanswered));
        let note = format!(
            "{} perhaps guessed, {} off topic, {} repeating, {} identical, {} surplus; {} questions confirmed; {} of the kept say that there is no answer",
            kept.lucky,
            kept.off_topic,
            kept.repeating,
            kept.identical,
            kept.surplus + kept.unbalanced,
            kept.confirmed,
            kept.no_answer
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

/// A loss curve: training loss and validation loss in different colours.
fn plot(name: &str, curve: &[CurvePoint], page: &mut String) {
    let line = |of: fn(&CurvePoint) -> Option<f64>| curve.iter().filter_map(move |point| Some((point.step as f64, of(point)?)));
    let plot = Plot::new(name, Axis::linear("step"), Axis::linear("loss"))
        .size(300.0, 180.0)
        .with(Series::new("training", line(|point| point.loss)))
        .with(Series::new("validation", line(|point| point.validation)).bold());
    page.push_str(&plot.svg());
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
    if let Some(calibration) = &report.calibration {
        let _ = write!(page, "<p>{}.", escape(&calibration.to_string()));
        if let Some(discrimination) = &calibration.discrimination {
            let _ = write!(page, "<p>{}.", escape(&discrimination.to_string()));
        }
    }
}

fn questions(report: &Report, page: &mut String) {
    page.push_str("<h2>Questions it asked itself</h2><table><tr><th>question<th>answer<th>about");
    for entry in &report.instruct.samples {
        let question = autoact_score::with_options(&entry.question, &entry.options);
        let pages = escape(&entry.pages.join(", "));
        let _ =
            write!(page, "<tr><td>{}<td>{}<td class=soft>{pages}", escape(&question), escape(entry.answer.as_deref().unwrap_or("none")));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_text_is_escaped_in_html() {
        let mut page = String::new();
        plot("<b>", &[], &mut page);
        assert!(!page.contains("<b>") && !page.contains("NaN"));
    }
}
