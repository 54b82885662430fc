//! Sunrise and sunset.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::moment;
use crate::sun::Sun;
use crate::{OutOfRange, YEARS};

/// How far the air lifts the sun at the horizon, in degrees: the usual 34'.
const REFRACTION_DEGREES: f64 = 34.0 / 60.0;
/// Between two looks at the sun's height, in days: 10 minutes.
const LOOK_DAYS: f64 = 1.0 / 144.0;
/// Halvings that make 10 minutes less than a millisecond.
const HALVINGS: usize = 24;

/// What the sun does on a day at a place.
#[derive(Debug, Clone, PartialEq)]
pub struct SunDay {
    /// When its upper limb comes above the horizon; at most two on a day.
    pub rises: Vec<Timestamp>,
    /// When it goes below it.
    pub sets: Vec<Timestamp>,
    /// When it stands highest.
    pub noon: Timestamp,
    /// Whether it is up at `noon`: without rises and sets, a polar day.
    pub up_at_noon: bool,
    /// For how many seconds of the day it is up.
    pub daylight_seconds: i64,
}

/// Sunrise and sunset on a day from midnight to midnight in a time zone, at sea level with a free
/// horizon. Latitude and longitude are in degrees; north and east are positive.
///
/// # Errors
/// The year is not in [`YEARS`], the place is not on the globe, or the time zone skips the day.
pub fn sun_day(latitude: f64, longitude: f64, date: Date, zone: &TimeZone) -> Result<SunDay, OutOfRange> {
    if !YEARS.contains(&date.year()) {
        return Err(OutOfRange::Year(i64::from(date.year())));
    }
    if !(-90.0..=90.0).contains(&latitude) {
        return Err(OutOfRange::Latitude(latitude));
    }
    if !(-180.0..=180.0).contains(&longitude) {
        return Err(OutOfRange::Longitude(longitude));
    }
    let midnight = |date: Date| date.to_zoned_datetime(zone.clone()).map(|midnight| moment::days(midnight.timestamp()));
    let tomorrow = date.checked_add(1.day()).and_then(midnight);
    let (Ok(start), Ok(end)) = (midnight(date), tomorrow) else { return Err(OutOfRange::Year(i64::from(date.year()))) };
    if end <= start {
        return Err(OutOfRange::Skipped(date));
    }
    let height = |days: f64| Sun::at(days).upper_limb(latitude, longitude, REFRACTION_DEGREES);

    let looks = looks(start, end, &height);
    let (mut rises, mut sets, mut daylight) = (Vec::new(), Vec::new(), 0.0);
    for pair in looks.windows(2) {
        let (left, right) = (pair[0], pair[1]);
        if (left.1 < 0.0) == (right.1 < 0.0) {
            daylight += if left.1 < 0.0 { 0.0 } else { right.0 - left.0 };
            continue;
        }
        let crossing = crossing(left, right, &height);
        if left.1 < 0.0 {
            rises.push(moment::timestamp(crossing));
            daylight += right.0 - crossing;
        } else {
            sets.push(moment::timestamp(crossing));
            daylight += crossing - left.0;
        }
    }
    let highest = looks.iter().copied().fold((start, f64::MIN), |best, look| if look.1 > best.1 { look } else { best });
    let daylight_seconds = (daylight * 86_400.0).round() as i64;
    Ok(SunDay { rises, sets, noon: moment::timestamp(highest.0), up_at_noon: highest.1 >= 0.0, daylight_seconds })
}

/// The sun's height every 10 minutes, and where it turns between two of them: so no two crossings
/// are between neighbours.
fn looks(start: f64, end: f64, height: &impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let mut looks = vec![(start, height(start))];
    let mut time = start;
    while time < end {
        time = (time + LOOK_DAYS).min(end);
        looks.push((time, height(time)));
    }
    let mut all = Vec::with_capacity(looks.len() + 4);
    for at in 0..looks.len() {
        all.push(looks[at]);
        let (Some(left), Some(right)) = (at.checked_sub(1).and_then(|left| looks.get(left)), looks.get(at + 1)) else { continue };
        let (before, after) = (looks[at].1 - left.1, right.1 - looks[at].1);
        if before * after < 0.0 {
            all.push(turn(left.0, right.0, before > 0.0, height));
        }
    }
    all.sort_by(|left, right| left.0.total_cmp(&right.0));
    all
}

/// The time between two others at which the sun stands highest, or lowest.
fn turn(mut left: f64, mut right: f64, highest: bool, height: &impl Fn(f64) -> f64) -> (f64, f64) {
    for _ in 0..2 * HALVINGS {
        let third = (right - left) / 3.0;
        if (height(left + third) < height(right - third)) == highest { left += third } else { right -= third }
    }
    let middle = f64::midpoint(left, right);
    (middle, height(middle))
}

/// When the sun crosses the horizon between two looks.
fn crossing(left: (f64, f64), right: (f64, f64), height: &impl Fn(f64) -> f64) -> f64 {
    let (mut from, mut to, below) = (left.0, right.0, left.1 < 0.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(from, to);
        if (height(middle) < 0.0) == below { from = middle } else { to = middle }
    }
    f64::midpoint(from, to)
}
