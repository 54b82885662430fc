//! A calibration keeps its format between releases: a number counts as it was fitted.
#![allow(clippy::unwrap_used)] // tests

use autoact_trajectory::{CALIBRATION_FORMAT, Calibration, InvalidCalibration, NextAttempt, Term};
use autoact_wire::agents_v1;

fn calibration(format: u32) -> Calibration {
    let terms = vec![Term { part: "thoughts".into(), mean: 5.0, deviation: 1.5, weight: 2.0 }];
    Calibration { format, threshold: 0.8, precision: 0.92, intercept: 1.5, terms, histories: 1252, next_attempt: NextAttempt::Anew }
}

#[test]
fn every_format_survives_the_trip() {
    for format in 1..=CALIBRATION_FORMAT {
        let sent = agents_v1::Calibration::from(&calibration(format));
        assert_eq!(Calibration::try_from(sent).unwrap(), calibration(format));
    }
}

#[test]
fn an_agent_that_does_not_say_has_the_first_format() {
    let sent = agents_v1::Calibration { format: 0, ..(&calibration(CALIBRATION_FORMAT)).into() };
    assert_eq!(Calibration::try_from(sent).unwrap(), calibration(1));
}

#[test]
fn a_later_format_is_refused() {
    let later = CALIBRATION_FORMAT + 1;
    assert_eq!(Calibration::try_from(agents_v1::Calibration::from(&calibration(later))).unwrap_err(), InvalidCalibration::Format(later));
}
