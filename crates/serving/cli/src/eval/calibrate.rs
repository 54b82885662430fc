//! `autoact eval --calibrate`: fits a calibration on the judged answers of an evaluation.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use autoact_registry::CALIBRATION_FILE;
use autoact_score::{Fitted, Judged, calibration_error, fit};
use autoact_trajectory::{Calibration, Evidence, NextAttempt};
use clap::Args;
use serde_json::{Value, json};

use super::approval::{Approval, Rated, ranked};
use super::compare::cast::calibration;
use super::compare::table::{fraction, percent};
use super::judgement::evidence_from;
use super::set::path_of;

/// Fitting a calibration.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CalibrateOptions {
    /// The confidence that an approval needs, 0 to 1; 0: the verdict alone decides [default: what
    /// the adapters' calibration says].
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["planner", "table", "figure", "run", "data", "protocol"])]
    pub(super) min_confidence: Option<f64>,
    /// Fit a calibration on these questions and write it to this file. Verdicts alone decide
    /// meanwhile.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["min_confidence", "planner", "table", "figure", "run", "data", "protocol"])]
    pub(super) calibrate: Option<PathBuf>,
    /// The share of approved answers that are to be right.
    #[arg(long, value_name = "SHARE", default_value_t = 0.97, value_parser = share, requires = "calibrate")]
    pub(super) precision: f64,
    /// Fit on the answers of an earlier run too: a file of `--output`, asked with
    /// `--min-confidence 0` or `--calibrate`. May be given several times.
    #[arg(long, value_name = "FILE", requires = "calibrate")]
    pub(super) judged: Vec<PathBuf>,
}

impl CalibrateOptions {
    /// The confidence that the questions ask of an approval.
    pub(super) fn least(&self) -> Option<f64> {
        if self.calibrate.is_some() { Some(0.0) } else { self.min_confidence }
    }

    /// Whether a calibration can be fitted on these questions, before any is asked.
    pub(super) fn check(&self, set: &str) -> anyhow::Result<()> {
        if self.calibrate.is_none() {
            return Ok(());
        }
        let file = |set: &str| path_of(set).canonicalize().ok();
        let measures = |own: &str| set == own || file(set).is_some_and(|set| file(own) == Some(set));
        anyhow::ensure!(
            !["held-out", "plain"].into_iter().any(measures),
            "`held-out` and `plain` measure what was fitted elsewhere; fix: `--set typed`, `--set dev`, or a set of your own"
        );
        self.earlier().map(drop)
    }

    /// The judged answers of the earlier runs.
    fn earlier(&self) -> anyhow::Result<Vec<Judged>> {
        let mut judged = Vec::new();
        for path in &self.judged {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            for (at, line) in text.lines().enumerate() {
                judged.extend(read(line).with_context(|| format!("`{}`, line {}", path.display(), at + 1))?);
            }
        }
        Ok(judged)
    }
}

/// A share: 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// The judged answers with evidence in a row of `--output`.
fn read(line: &str) -> anyhow::Result<Vec<Judged>> {
    let row: Value = serde_json::from_str(line).context("not a row of `autoact eval --output`")?;
    let question = row["question"].as_str().context("not a row of `autoact eval --output`")?;
    let judgements = row["judgements"].as_array().context("no `judgements`; fix: run `autoact eval --output` again")?;
    let mut judged = Vec::new();
    // that there is no answer needs no confidence
    for one in judgements.iter().filter(|one| !one["answer"].is_null()) {
        let asked = one["threshold"].as_f64().unwrap_or_default();
        anyhow::ensure!(asked <= 0.0, "asked with a threshold, so its verdicts are unknown; fix: ask with `--min-confidence 0`");
        let missing = one["evidence"].as_object().and_then(|parts| Evidence::PARTS.iter().find(|part| !parts.contains_key(**part)));
        if let Some(part) = missing {
            anyhow::bail!("its evidence has no `{part}`: an earlier release wrote it; fix: run `autoact eval --output` again");
        }
        if let Some(evidence) = evidence_from(&one["evidence"]) {
            let flag = |name: &str| one[name].as_bool().with_context(|| format!("no `{name}`"));
            judged.push(Judged { question: question.to_owned(), evidence, approved: flag("approved")?, right: flag("right")? });
        }
    }
    Ok(judged)
}

/// A calibration that was fitted and written.
pub(super) struct Calibrated {
    path: PathBuf,
    advice: PathBuf,
    fitted: Fitted,
    judged: Vec<Judged>,
}

impl Calibrated {
    /// Fits on `asked` and the earlier runs, and writes the calibration. `adapters` is the group's
    /// directory of adapters.
    pub(super) fn new(
        options: &CalibrateOptions,
        path: &Path,
        asked: Vec<Judged>,
        adapters: &Path,
        next_attempt: Option<NextAttempt>,
    ) -> anyhow::Result<Calibrated> {
        let mut judged = asked;
        judged.extend(options.earlier()?);
        let mut fitted = fit(&judged, options.precision).context(
            "cannot fit a calibration; fix: more questions (`--judged` adds earlier runs), a lower `--precision`, or a model whose \
             server reports log-probabilities",
        )?;
        let advice = adapters.join("reflect").join(CALIBRATION_FILE);
        // one that cannot be read is about to be replaced, and says nothing
        let present = || calibration(adapters).ok().flatten().map(|present| present.next_attempt).unwrap_or_default();
        fitted.calibration.next_attempt = next_attempt.unwrap_or_else(present);
        write_whole(path, &json_of(&fitted.calibration)?)?;
        Ok(Calibrated { path: path.to_owned(), advice, fitted, judged })
    }

    /// Confidences of answers, each by a fit that has not seen it.
    pub(super) fn scored(&self) -> Vec<(f64, bool)> {
        self.fitted.confidences.iter().copied().zip(self.judged.iter().map(|one| one.right)).collect()
    }

    /// What it would approve, by confidences of fits that have not seen the answer.
    fn approval(&self) -> Approval {
        let threshold = self.fitted.calibration.threshold;
        let rated = |(one, confidence): (&Judged, &f64)| Rated {
            approved: one.approved && *confidence >= threshold,
            right: one.right,
            answerable: true,
            no_answer: false,
            confidence: Some(*confidence),
            evidence: None,
        };
        Approval::of(&self.judged.iter().zip(&self.fitted.confidences).map(rated).collect::<Vec<_>>())
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Calibration { threshold, terms, histories, precision, .. } = &self.fitted.calibration;
        let (approval, scored) = (self.approval(), self.scored());
        let shown = |interval: Option<autoact_score::Interval>, show: fn(&autoact_score::Interval) -> String| {
            interval.as_ref().map_or_else(|| "–".to_owned(), show)
        };
        let mut out = format!(
            "\ncalibration, fitted on {histories} judged answers for a precision of {:.1}%; measured on answers that a fit has not seen:\n\
             \x20 confidence: AUROC {}, calibration error {:.3}\n\
             \x20 threshold {threshold:.3}: approves {} of the answers; precision {}; coverage {}\n\
             \x20 weights:",
            100.0 * precision,
            shown(ranked(&scored), fraction),
            calibration_error(&scored).unwrap_or_default(),
            percent(&approval.share),
            shown(approval.precision, percent),
            shown(approval.coverage, percent),
        );
        for term in terms {
            // writing to a string cannot fail
            let _ = write!(out, " {} {:+.2}", term.part.replace('_', " "), term.weight);
        }
        let _ = writeln!(
            out,
            "\nwritten to `{}`; it takes effect as `{}`, beside the weights of Reflect-Agent's adapter, once the agents are started anew",
            self.path.display(),
            self.advice.display()
        );
        out
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let (approval, scored) = (self.approval(), self.scored());
        json!({
            "file": self.path.display().to_string(), "put_at": self.advice.display().to_string(),
            "calibration": self.fitted.calibration, "auroc": ranked(&scored), "calibration_error": calibration_error(&scored),
            "approved": approval.share, "precision": approval.precision, "coverage": approval.coverage,
        })
    }
}

fn json_of(calibration: &Calibration) -> anyhow::Result<String> {
    calibration.check()?;
    Ok(format!("{}\n", serde_json::to_string_pretty(calibration)?))
}

/// Replaces a file: a reader sees the old text or the new one.
fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut name = path.file_name().with_context(|| format!("`{}` is no file", path.display()))?.to_owned();
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    let written = std::fs::File::create(&unfinished).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&unfinished, path)).with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers that are right where the thoughts are likely, with some exceptions.
    fn judged(from: usize) -> Vec<Judged> {
        let one = |at: usize| {
            let thoughts = -((at * 37 % 100) as f64) / 100.0;
            let other = (at * 53 % 17) as f64 / 17.0;
            let evidence = Evidence {
                verdict: other,
                thoughts,
                lowest_thought: 2.0 * thoughts,
                inputs: -other,
                all_thoughts: 9.0 * thoughts,
                ..Evidence::from_values([-1.0; Evidence::PARTS.len()])
            };
            Judged {
                question: format!("question {at}"),
                evidence,
                approved: !at.is_multiple_of(20),
                right: thoughts > -0.7 && !at.is_multiple_of(90),
            }
        };
        (from..from + 200).map(one).collect()
    }

    fn row(judged: &Judged, threshold: f64) -> String {
        let evidence = super::super::judgement::evidence_json(&judged.evidence);
        let one = json!({ "answer": "", "approved": judged.approved, "right": judged.right, "threshold": threshold, "evidence": evidence });
        json!({ "question": judged.question, "judgements": [one, { "threshold": null, "evidence": null }] }).to_string()
    }

    #[test]
    fn a_calibration_is_fitted_on_all_runs_and_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (path, earlier) = (dir.path().join("calibration.json"), dir.path().join("earlier.jsonl"));
        std::fs::write(&path, "an older one").unwrap();
        std::fs::write(&earlier, judged(200).iter().map(|one| row(one, 0.0) + "\n").collect::<String>()).unwrap();
        let options =
            CalibrateOptions { calibrate: Some(path.clone()), precision: 0.95, judged: vec![earlier], ..CalibrateOptions::default() };
        options.check("dev").unwrap();
        let calibrated = Calibrated::new(&options, &path, judged(0), Path::new("models/stem/adapters"), None).unwrap();
        let stored = || Calibration::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((stored().histories, stored().precision, stored().next_attempt), (400, 0.95, NextAttempt::Continues));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing unfinished stays");
        // what the group is given stays, unless it is said
        let again = |adapters: &Path, next| Calibrated::new(&options, &path, judged(0), adapters, next).map(drop).unwrap();
        again(dir.path(), Some(NextAttempt::Anew));
        assert_eq!(stored().next_attempt, NextAttempt::Anew);
        let adapters = tempfile::tempdir().unwrap();
        std::fs::create_dir(adapters.path().join("reflect")).unwrap();
        std::fs::copy(&path, adapters.path().join("reflect").join(CALIBRATION_FILE)).unwrap();
        again(adapters.path(), None);
        assert_eq!(stored().next_attempt, NextAttempt::Anew);
        let json = calibrated.json();
        let mean = |name: &str| json[name]["mean"].as_f64().unwrap();
        assert!(mean("precision") >= 0.95 && mean("coverage") > 0.8 && mean("auroc") > 0.9, "{json}");
        assert_eq!(json["put_at"], "models/stem/adapters/reflect/calibration.json");
        let text = calibrated.text();
        assert!(text.contains("fitted on 400 judged answers") && text.contains("adapters/reflect/calibration.json"), "{text}");
    }

    #[test]
    fn what_cannot_be_fitted_leaves_the_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("calibration.json");
        std::fs::write(&path, "an older one").unwrap();
        let options = CalibrateOptions { calibrate: Some(path.clone()), precision: 0.95, ..CalibrateOptions::default() };
        assert!(Calibrated::new(&options, &path, judged(0)[..15].to_vec(), Path::new("adapters"), None).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "an older one");
    }

    #[test]
    fn nothing_is_fitted_on_questions_that_measure() {
        let options = CalibrateOptions { calibrate: Some("c.json".into()), ..CalibrateOptions::default() };
        assert!(options.check("held-out").is_err() && options.check("plain").is_err() && options.check("dev").is_ok());
        assert_eq!((options.least(), CalibrateOptions::default().least()), (Some(0.0), None));
        assert!(CalibrateOptions::default().check("held-out").is_ok());
    }

    #[test]
    fn rows_of_other_runs_are_refused() {
        let one = &judged(0)[..1];
        assert_eq!(read(&row(&one[0], 0.0)).unwrap(), one);
        // of a release that did not know the last part
        let earlier = row(&one[0], 0.0).replace(Evidence::PARTS[6], "other");
        for wrong in [earlier, row(&one[0], 0.5), "{}".into(), "x".into(), json!({ "question": "?" }).to_string()] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
