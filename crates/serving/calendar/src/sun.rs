//! Where the sun is, seen from the earth.
//!
//! Longitude and distance are those of VSOP87D, with nutation and aberration as in Jean Meeus,
//! "Astronomical Algorithms", 2nd edition, chapters 22 and 25. Within the years 1900 to 2100 the
//! longitude is good to about 0.3 seconds of arc, which the sun passes in 7 seconds.

use crate::sun_terms::{LONGITUDE, RADIUS, Term};

/// Of a Julian millennium.
const DAYS_PER_MILLENNIUM: f64 = 365_250.0;
/// The correction from the equinox of VSOP87 to that of the FK5, in degrees (Meeus, chapter 32).
const FK5_DEGREES: f64 = -0.090_33 / 3600.0;
/// What aberration takes from the longitude at one astronomical unit, in degrees.
const ABERRATION_DEGREES: f64 = -20.4898 / 3600.0;
/// Half the sun's width seen from one astronomical unit, in degrees.
const SEMIDIAMETER_DEGREES: f64 = 959.63 / 3600.0;
/// How much lower the sun stands at the horizon for somebody on the ground than for the earth's
/// centre, in degrees.
const PARALLAX_DEGREES: f64 = 8.794 / 3600.0;

/// The sun at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sun {
    /// Apparent ecliptic longitude, from the true equinox of the date, in degrees from 0 to 360.
    pub(crate) longitude: f64,
    /// In astronomical units.
    distance: f64,
    /// The tilt of the earth's axis, with nutation, in degrees.
    obliquity: f64,
    /// What nutation adds to the longitude, in degrees.
    nutation: f64,
    /// Days of UT from 2000-01-01 12:00.
    days: f64,
}

impl Sun {
    /// The sun at a time of `days` from 2000-01-01 12:00 UT.
    pub(crate) fn at(days: f64) -> Sun {
        let dynamical = days + delta_t(2000.0 + days / 365.2425) / 86_400.0;
        let millennia = dynamical / DAYS_PER_MILLENNIUM;
        let distance = sum(RADIUS, millennia);
        let (nutation, tilt) = nutation(millennia * 10.0);
        let longitude = sum(LONGITUDE, millennia).to_degrees() + 180.0 + FK5_DEGREES + nutation + ABERRATION_DEGREES / distance;
        Sun { longitude: longitude.rem_euclid(360.0), distance, obliquity: mean_obliquity(millennia * 10.0) + tilt, nutation, days }
    }

    /// How high the sun's upper limb stands above the horizon of a place, in degrees, if the air
    /// bends its light by `refraction` degrees. Latitude and longitude (east is positive) are in
    /// degrees.
    pub(crate) fn upper_limb(&self, latitude: f64, longitude: f64, refraction: f64) -> f64 {
        let (lambda, epsilon, phi) = (self.longitude.to_radians(), self.obliquity.to_radians(), latitude.to_radians());
        let declination = (epsilon.sin() * lambda.sin()).asin();
        let ascension = (epsilon.cos() * lambda.sin()).atan2(lambda.cos());
        let hour_angle = (self.sidereal_degrees() + longitude).to_radians() - ascension;
        let sine = phi.sin() * declination.sin() + phi.cos() * declination.cos() * hour_angle.cos();
        let centre = sine.clamp(-1.0, 1.0).asin().to_degrees();
        centre + refraction + SEMIDIAMETER_DEGREES / self.distance - PARALLAX_DEGREES
    }

    /// Apparent sidereal time at Greenwich (Meeus, chapter 12).
    fn sidereal_degrees(&self) -> f64 {
        let centuries = self.days / 36_525.0;
        let mean = 280.460_618_37 + 360.985_647_366_29 * self.days + centuries * centuries * (0.000_387_933 - centuries / 38_710_000.0);
        mean.rem_euclid(360.0) + self.nutation * self.obliquity.to_radians().cos()
    }
}

fn sum(series: &[&[Term]], millennia: f64) -> f64 {
    let power =
        |terms: &[Term]| terms.iter().map(|(amplitude, phase, frequency)| amplitude * (phase + frequency * millennia).cos()).sum::<f64>();
    series.iter().rev().fold(0.0, |total, terms| total * millennia + power(terms))
}

/// The tilt of the earth's axis without nutation, in degrees.
fn mean_obliquity(centuries: f64) -> f64 {
    23.439_291_11 + centuries * (-46.8150 + centuries * (-0.000_59 + centuries * 0.001_813)) / 3600.0
}

/// A term of the nutation: multiples of D, M, M', F and Ω, then the amplitudes in longitude and in
/// obliquity, each with its change in a century, in 0.0001 seconds of arc.
type Wobble = ([f64; 5], (f64, f64), (f64, f64));

/// The largest terms of the IAU theory of 1980 (Meeus, table 22.A); those left out are below 0.006
/// seconds of arc each.
const WOBBLES: [Wobble; 17] = [
    ([0.0, 0.0, 0.0, 0.0, 1.0], (-171_996.0, -174.2), (92_025.0, 8.9)),
    ([-2.0, 0.0, 0.0, 2.0, 2.0], (-13_187.0, -1.6), (5736.0, -3.1)),
    ([0.0, 0.0, 0.0, 2.0, 2.0], (-2274.0, -0.2), (977.0, -0.5)),
    ([0.0, 0.0, 0.0, 0.0, 2.0], (2062.0, 0.2), (-895.0, 0.5)),
    ([0.0, 1.0, 0.0, 0.0, 0.0], (1426.0, -3.4), (54.0, -0.1)),
    ([0.0, 0.0, 1.0, 0.0, 0.0], (712.0, 0.1), (-7.0, 0.0)),
    ([-2.0, 1.0, 0.0, 2.0, 2.0], (-517.0, 1.2), (224.0, -0.6)),
    ([0.0, 0.0, 0.0, 2.0, 1.0], (-386.0, -0.4), (200.0, 0.0)),
    ([0.0, 0.0, 1.0, 2.0, 2.0], (-301.0, 0.0), (129.0, -0.1)),
    ([-2.0, -1.0, 0.0, 2.0, 2.0], (217.0, -0.5), (-95.0, 0.3)),
    ([-2.0, 0.0, 1.0, 0.0, 0.0], (-158.0, 0.0), (0.0, 0.0)),
    ([-2.0, 0.0, 0.0, 2.0, 1.0], (129.0, 0.1), (-70.0, 0.0)),
    ([0.0, 0.0, -1.0, 2.0, 2.0], (123.0, 0.0), (-53.0, 0.0)),
    ([2.0, 0.0, 0.0, 0.0, 0.0], (63.0, 0.0), (0.0, 0.0)),
    ([0.0, 0.0, 1.0, 0.0, 1.0], (63.0, 0.1), (-33.0, 0.0)),
    ([2.0, 0.0, -1.0, 2.0, 2.0], (-59.0, 0.0), (26.0, 0.0)),
    ([0.0, 0.0, -1.0, 0.0, 1.0], (-58.0, -0.1), (32.0, 0.0)),
];

/// What nutation adds to longitudes and to the obliquity, in degrees.
fn nutation(centuries: f64) -> (f64, f64) {
    let t = centuries;
    let angles = [
        297.850_36 + t * (445_267.111_48 - t * 0.001_914_2),
        357.527_72 + t * (35_999.050_34 - t * 0.000_160_3),
        134.962_98 + t * (477_198.867_398 + t * 0.008_697_2),
        93.271_91 + t * (483_202.017_538 - t * 0.003_682_5),
        125.044_52 - t * (1_934.136_261 - t * 0.002_070_8),
    ];
    WOBBLES.iter().fold((0.0, 0.0), |(longitude, obliquity), (multiples, in_longitude, in_obliquity)| {
        let angle: f64 = multiples.iter().zip(angles).map(|(multiple, angle)| multiple * angle).sum();
        let angle = angle.rem_euclid(360.0).to_radians();
        let degrees = |(amplitude, change): &(f64, f64)| (amplitude + change * t) / 10_000.0 / 3600.0;
        (longitude + degrees(in_longitude) * angle.sin(), obliquity + degrees(in_obliquity) * angle.cos())
    })
}

/// ΔT, by how many seconds the earth's rotation (UT) is behind even time (TT) in a year such as
/// 2026.5: the polynomials of Espenak and Meeus ("Five Millennium Canon of Solar Eclipses", 2006)
/// for 1860 to 2150. Up to 2005 they follow measurements. From then on they are a forecast, about
/// 6 s too high in 2025; nobody knows the 200 s of 2100 to within a minute.
fn delta_t(year: f64) -> f64 {
    let polynomial =
        |from: f64, coefficients: &[f64]| coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * (year - from) + coefficient);
    match year {
        ..1900.0 => polynomial(1860.0, &[7.62, 0.5737, -0.251_754, 0.016_806_68, -0.000_447_362_4, 1.0 / 233_174.0]),
        ..1920.0 => polynomial(1900.0, &[-2.79, 1.494_119, -0.059_893_9, 0.006_196_6, -0.000_197]),
        ..1941.0 => polynomial(1920.0, &[21.20, 0.844_93, -0.0761, 0.002_093_6]),
        ..1961.0 => polynomial(1950.0, &[29.07, 0.407, -1.0 / 233.0, 1.0 / 2547.0]),
        ..1986.0 => polynomial(1975.0, &[45.45, 1.067, -1.0 / 260.0, -1.0 / 718.0]),
        ..2005.0 => polynomial(2000.0, &[63.86, 0.3345, -0.060_374, 0.001_727_5, 0.000_651_814, 0.000_023_735_99]),
        ..2050.0 => polynomial(2000.0, &[62.92, 0.322_17, 0.005_589]),
        _ => -20.0 + 32.0 * ((year - 1820.0) / 100.0).powi(2) - 0.5628 * (2150.0 - year),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sun_is_where_meeus_has_it() {
        // example 25.b: 1992-10-13 0h TD, apparent longitude 199°54'21.818", R 0.99760775
        let days = 2_448_908.5 - 2_451_545.0;
        let sun = Sun::at(days - delta_t(1992.8) / 86_400.0);
        let wanted = 199.0 + 54.0 / 60.0 + 21.818 / 3600.0;
        assert!((sun.longitude - wanted).abs() < 0.3 / 3600.0, "{}", sun.longitude);
        assert!((sun.distance - 0.997_607_75).abs() < 5e-6, "{}", sun.distance);
    }

    #[test]
    fn nutation_is_that_of_meeus() {
        // example 22.a: 1987-04-10 0h TD, Δψ -3.788", Δε +9.443", ε 23°26'36.850"
        let centuries = -0.127_296_372_348;
        let (longitude, obliquity) = nutation(centuries);
        assert!((longitude * 3600.0 + 3.788).abs() < 0.03, "{longitude}");
        assert!((obliquity * 3600.0 - 9.443).abs() < 0.03, "{obliquity}");
        let tilt = mean_obliquity(centuries) + obliquity;
        assert!((tilt - (23.0 + 26.0 / 60.0 + 36.850 / 3600.0)).abs() < 0.03 / 3600.0, "{tilt}");
    }

    #[test]
    fn delta_t_has_no_steps_of_a_second() {
        for year in [1900.0, 1920.0, 1941.0, 1961.0, 1986.0, 2005.0, 2050.0] {
            assert!((delta_t(year) - delta_t(year - 1e-6)).abs() < 1.0, "{year}");
        }
        assert!((delta_t(1950.0) - 29.07).abs() < 1e-9 && (delta_t(2100.0) - 202.74).abs() < 0.01);
    }
}
