use super::{Noise, assert_close, bits};
use crate::simd::testing::with_each_isa;
use crate::{Format, Inputs, Team, add, gelu, layer_norm, log_sum_exp, rms_norm, rotate, softmax, swiglu};

#[test]
fn rows_agree_with_plain_arithmetic() {
    for (n, width) in [(1, 1), (3, 16), (5, 37), (2, 576)] {
        let mut noise = Noise::new(2);
        let (x, weight, both) = (noise.vec(n * width), noise.vec(width), noise.vec(2 * n * width));
        let exact = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let normal: Vec<f64> = (exact(&x).chunks(width))
            .flat_map(|row| {
                let scale = 1.0 / (row.iter().map(|x| x * x).sum::<f64>() / width as f64 + 1e-5).sqrt();
                row.iter().zip(&weight).map(|(x, w)| x * scale * f64::from(*w)).collect::<Vec<_>>()
            })
            .collect();
        let gated: Vec<f64> = (exact(&both).chunks(2 * width))
            .flat_map(|row| (0..width).map(|i| row[i] / (1.0 + (-row[i]).exp()) * row[width + i]).collect::<Vec<_>>())
            .collect();
        let sum: Vec<f64> = exact(&x).iter().zip(exact(&both)).map(|(x, y)| x + y).collect();
        with_each_isa(|isa| {
            let mut y = vec![0.0; n * width];
            rms_norm(&x, &weight, 1e-5, &mut y);
            assert_close(&y, &normal, 2e-6, isa);
            let mut alone = vec![0.0; width];
            rms_norm(&x[(n - 1) * width..], &weight, 1e-5, &mut alone);
            assert_eq!(bits(&alone), bits(&y[(n - 1) * width..]), "{isa}");
            swiglu(&both, width, &mut y);
            assert_close(&y, &gated, 1e-6, isa);
            swiglu(&both[2 * (n - 1) * width..], width, &mut alone);
            assert_eq!(bits(&alone), bits(&y[(n - 1) * width..]), "{isa}");
            y.copy_from_slice(&x);
            add(&mut y, &both[..n * width]);
            assert_close(&y, &sum, 1e-6, isa);
        });
    }
}

#[test]
fn rows_of_an_encoder_agree_with_plain_arithmetic() {
    for (n, width) in [(1, 1), (3, 16), (5, 37), (2, 384)] {
        let mut noise = Noise::new(6);
        let (x, weight, bias) = (noise.vec(n * width), noise.vec(width), noise.vec(width));
        let exact: Vec<f64> = x.iter().map(|x| 5.0 * f64::from(*x)).collect();
        let x: Vec<f32> = x.iter().map(|x| 5.0 * x).collect();
        let normal: Vec<f64> = (exact.chunks(width))
            .flat_map(|row| {
                let mean = row.iter().sum::<f64>() / width as f64;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
                let scale = 1.0 / (variance + 1e-5).sqrt();
                row.iter()
                    .zip(weight.iter().zip(&bias))
                    .map(|(x, (w, b))| (x - mean) * scale * f64::from(*w) + f64::from(*b))
                    .collect::<Vec<_>>()
            })
            .collect();
        let shares: Vec<f64> = (exact.chunks(width))
            .flat_map(|row| {
                let sum: f64 = row.iter().map(|x| x.exp()).sum();
                row.iter().map(|x| x.exp() / sum).collect::<Vec<_>>()
            })
            .collect();
        with_each_isa(|isa| {
            let mut y = vec![0.0; n * width];
            layer_norm(&x, &weight, &bias, 1e-5, &mut y);
            assert_close(&y, &normal, 4e-6, isa);
            let mut alone = vec![0.0; width];
            layer_norm(&x[(n - 1) * width..], &weight, &bias, 1e-5, &mut alone);
            assert_eq!(bits(&alone), bits(&y[(n - 1) * width..]), "{isa}");
            y.copy_from_slice(&x);
            softmax(&mut y, width);
            assert_close(&y, &shares, 1e-6, isa);
            alone.copy_from_slice(&x[(n - 1) * width..]);
            softmax(&mut alone, width);
            assert_eq!(bits(&alone), bits(&y[(n - 1) * width..]), "{isa}");
        });
    }
}

#[test]
fn gelu_agrees_with_the_error_function() {
    // x / 2 * (1 + erf(x / sqrt(2))), computed with 30 digits
    let exact = [
        (-6.0, -5.919_526e-9),
        (-3.0, -0.004_049_694_094_9),
        (-1.0, -0.158_655_253_931_5),
        (-0.1, -0.046_017_216_272_3),
        (0.0, 0.0),
        (0.01, 0.005_039_893_563_1),
        (0.5, 0.345_731_230_637),
        (1.0, 0.841_344_746_068_5),
        (2.5, 2.484_475_836_684_4),
        (20.0, 20.0),
    ];
    with_each_isa(|isa| {
        let mut x: Vec<f32> = exact.iter().map(|(x, _)| *x).collect();
        gelu(&mut x);
        for (found, (x, expected)) in x.iter().zip(exact) {
            let expected: f64 = expected;
            assert!((f64::from(*found) - expected).abs() <= 3e-7 * f64::from(x.abs()).max(1.0), "{isa}: {x}: {found} {expected}");
        }
        let mut odd = [f32::NAN, f32::INFINITY, -1e30];
        gelu(&mut odd);
        assert!(odd[0].is_nan() && odd[1] == f32::INFINITY && odd[2] == 0.0, "{isa}: {odd:?}");
    });
}

#[test]
fn the_logarithm_of_a_sum_agrees_with_plain_arithmetic() {
    for n in [1, 15, 16, 17, 1_023, 1_025, 49_152] {
        let x: Vec<f32> = Noise::new(3).vec(n).iter().map(|x| 12.0 * x).collect();
        let expected = x.iter().map(|x| f64::from(*x).exp()).sum::<f64>().ln();
        with_each_isa(|isa| {
            let found = log_sum_exp(&x);
            assert!((found - expected).abs() < 1e-6, "{isa}, {n}: {found} {expected}");
            // far from 0, where the sum itself would overflow or vanish
            for shift in [-2_000.0, 2_000.0] {
                let moved: Vec<f32> = x.iter().map(|x| x + shift).collect();
                let exact = moved.iter().map(|x| (f64::from(*x) - f64::from(shift)).exp()).sum::<f64>().ln() + f64::from(shift);
                let found = log_sum_exp(&moved);
                assert!((found - exact).abs() < 1e-6, "{isa}, {n}, {shift}: {found} {exact}");
            }
        });
    }
    with_each_isa(|isa| {
        let odd = [f32::NEG_INFINITY, 0.5, f32::NAN];
        assert!((log_sum_exp(&odd) - 0.5).abs() < 1e-6, "{isa}");
        assert!(log_sum_exp(&[]) == f64::NEG_INFINITY && log_sum_exp(&odd[..1]) == f64::NEG_INFINITY, "{isa}");
        assert!(log_sum_exp(&[1.0, f32::INFINITY]) == f64::INFINITY, "{isa}");
    });
}

#[test]
fn rotation_turns_pairs_of_every_head() {
    let (n, stride, heads, dim) = (3, 60, 2, 22);
    let mut noise = Noise::new(4);
    let x = noise.vec(n * stride);
    let angles = noise.vec(n * dim / 2);
    let (cos, sin): (Vec<f32>, Vec<f32>) = angles.iter().map(|a| (a.cos(), a.sin())).unzip();
    let mut expected: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    for (r, row) in expected.chunks_mut(stride).enumerate() {
        for head in row[..heads * dim].chunks_mut(dim) {
            for i in 0..dim / 2 {
                let (c, s) = (f64::from(cos[r * dim / 2 + i]), f64::from(sin[r * dim / 2 + i]));
                let (a, b) = (head[i], head[i + dim / 2]);
                (head[i], head[i + dim / 2]) = (a * c - b * s, b * c + a * s);
            }
        }
    }
    with_each_isa(|isa| {
        let mut y = x.clone();
        rotate(&mut y, stride, heads, dim, &cos, &sin);
        assert_close(&y, &expected, 1e-6, isa);
    });
}

#[test]
fn extreme_numbers_give_extreme_results_or_none() {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 1e-45, -1e30, 200.0];
    with_each_isa(|isa| {
        let gate_up: Vec<f32> = odd.iter().chain(&[1.0; 10]).copied().collect();
        let mut y = [0.0; 10];
        swiglu(&gate_up, 10, &mut y);
        assert!(y[0].is_nan() && y[5] == 0.0 && y[9] == 200.0, "{isa} {y:?}");
        assert!(y[8].abs() < 1e-6, "{isa}: a gate far below zero is shut: {y:?}");
        rms_norm(&odd, &[1.0; 10], 1e-5, &mut y);
        rms_norm(&[0.0; 10], &[1.0; 10], 1e-5, &mut y);
        assert_eq!(y, [0.0; 10], "{isa}");
    });
}

#[test]
fn a_team_makes_the_same_rows() {
    let (n, width) = (700, 96);
    let mut noise = Noise::new(9);
    let (x, weight) = (noise.vec(n * width), noise.vec(width));
    let mut expected = vec![0.0; n * width];
    rms_norm(&x, &weight, 1e-5, &mut expected);
    for threads in 1..4 {
        let team = Team::new(threads).unwrap();
        let mut y = vec![0.0; n * width];
        team.rows(&mut y, width, &|row, y| rms_norm(&x[row * width..][..y.len()], &weight, 1e-5, y));
        assert_eq!(bits(&y), bits(&expected));
        for format in [Format::F32, Format::Bf16, Format::Q8_0] {
            let (mut one, mut other) = (Inputs::new(), Inputs::new());
            one.set(format, &x, width);
            other.set_with(&team, format, &x, width, true);
            assert_eq!(format!("{one:?}"), format!("{other:?}"), "{format}");
        }
    }
}

#[test]
#[should_panic(expected = "no whole rows of 7")]
fn rows_must_be_whole() {
    Team::new(2).unwrap().rows(&mut [0.0; 20], 7, &|_, _| {});
}
