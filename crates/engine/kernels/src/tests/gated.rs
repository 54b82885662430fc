use super::{Noise, bits, encode};
use crate::simd::testing::with_each_isa;
use crate::{Format, GatedBuffers, Inputs, LowRank, Matrix, Part, Team, gated, linear, swiglu};

/// The product after a gated layer is that after its three steps one by one, to the bit: for few
/// and many rows, with and without biases, updates of some rows and columns, and for units that
/// are no whole tiles.
#[test]
fn a_gated_layer_is_its_steps_in_turn() {
    let (cols, outputs) = (96, 24);
    for format in [Format::F32, Format::Bf16, Format::Q8_0] {
        for (n, units, rank) in [(1, 64, 0), (5, 96, 3), (96, 96, 17), (131, 64, 0), (150, 704, 4), (100, 72, 2), (530, 32, 1)] {
            if format.row_bytes(units).is_none() {
                continue;
            }
            let mut noise = Noise::new(n as u64);
            let (x, both) = (noise.vec(n * cols), encode(format, &noise.vec(2 * units * cols), cols));
            let (bias, down) = (noise.vec(2 * units), encode(format, &noise.vec(outputs * units), units));
            let (gate, up) = both.split_at(both.len() / 2);
            let matrix = |bytes| Matrix::new(format, bytes, units, cols).unwrap();
            let part = |weight, bias, column| Part { weight, bias: (rank != 1).then_some(bias), column };
            let parts = [part(matrix(gate), &bias[..units], 0), part(matrix(up), &bias[units..], units)];
            // one for all rows and units, one for rows in the middle and units of both halves
            let (from, to) = (n / 3, n - n / 4);
            let (a, b) = (noise.vec(2 * rank * cols), noise.vec(2 * rank * units));
            let (c, d) = (noise.vec((rank + 1) * cols), noise.vec((rank + 1) * (units - 9)));
            let updates = [
                LowRank { rows: 0..n, column: 0, rank: 2 * rank, a: &a, b: &b[..2 * rank * units] },
                LowRank { rows: from..to, column: 20, rank: rank + 1, a: &c, b: &d },
            ];
            let updates = if rank == 0 { &[] } else { &updates[..] };
            let last = Part { weight: Matrix::new(format, &down, outputs, units).unwrap(), bias: None, column: 0 };
            let (e, f) = (noise.vec(2 * units), noise.vec(2 * outputs));
            let after = [LowRank { rows: from..n, column: 0, rank: 2, a: &e, b: &f }];
            with_each_isa(|isa| {
                let team = Team::new(1 + n % 3).unwrap();
                for updated in [false, true] {
                    let after = if updated { &after[..] } else { &[] };
                    let (mut inputs, mut expected) = (Inputs::new(), vec![f32::NAN; n * outputs]);
                    inputs.set_with(&team, format, &x, cols, true);
                    let (mut gate_up, mut act) = (vec![f32::NAN; n * 2 * units], vec![f32::NAN; n * units]);
                    linear(&team, &inputs, &parts, updates, &mut gate_up, 2 * units);
                    swiglu(&gate_up, units, &mut act);
                    let mut inner = Inputs::new();
                    inner.set_with(&team, format, &act, units, updated);
                    linear(&team, &inner, &[last], after, &mut expected, outputs);

                    let (mut found, mut to) = (vec![f32::NAN; n * outputs], Inputs::new());
                    gated(&team, &inputs, &parts, updates, &mut GatedBuffers::default(), &mut to, format, updated);
                    linear(&team, &to, &[last], after, &mut found, outputs);
                    assert!(bits(&found) == bits(&expected), "{isa} {format} {n} rows, {units} units, rank {rank}, {updated}");
                }
            });
        }
    }
}
