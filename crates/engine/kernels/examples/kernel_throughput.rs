//! Measures the speed of the kernels on this machine:
//!
//! `cargo run --release -p autoact-kernels --example kernel_throughput [-- [linear|attention|rows] [seconds per figure]]`
//!
//! The environment variable `AUTOACT_ISA` selects a lower instruction set, `AUTOACT_THREADS` the
//! number of threads. Figures are the best of many repetitions. Products of few rows are limited by
//! reading weights from memory, so their figure is GB/s; that of many rows is GFLOP/s.

#![allow(clippy::expect_used)] // a program for developers
use std::hint::black_box;
use std::time::{Duration, Instant};

use autoact_kernels::*;

/// Bytes of weights that a product cycles through, so that none are in a cache.
const COLD: usize = 256 << 20;

/// Bytes of weights in one measurement, small enough to fit a quiet moment of a busy machine.
const SAMPLE: usize = 12 << 20;

struct Bench {
    threads: usize,
    time: Duration,
}

impl Bench {
    /// Minimum duration of `f` in seconds.
    fn best(&self, mut f: impl FnMut()) -> f64 {
        let begin = Instant::now();
        let mut best = f64::MAX;
        let mut times = 0;
        while begin.elapsed() < self.time || times < 3 {
            let start = Instant::now();
            f();
            best = best.min(start.elapsed().as_secs_f64());
            times += 1;
        }
        best
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let seconds = args.next().and_then(|s| s.parse().ok()).unwrap_or(0.5);
    let threads = std::env::var("AUTOACT_THREADS").ok().and_then(|n| n.parse().ok());
    let threads = threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    println!("machine: {}; threads of these figures: {threads}", Machine::measure());
    let bench = Bench { threads, time: Duration::from_secs_f64(seconds) };
    if what.is_empty() || what == "linear" {
        products(&bench);
    }
    if what.is_empty() || what == "attention" {
        attention(&bench);
    }
    if what.is_empty() || what == "rows" {
        rows(&bench);
    }
}

fn products(bench: &Bench) {
    let team = Team::new(bench.threads).expect("threads");
    let shapes = [
        ("SmolLM q k v", 576, vec![576, 192, 192]),
        ("SmolLM o", 576, vec![576]),
        ("SmolLM gate up", 576, vec![1536, 1536]),
        ("SmolLM down", 1536, vec![576]),
        ("SmolLM vocabulary", 576, vec![49_152]),
        ("Qwen gate up", 896, vec![4864, 4864]),
        ("Qwen down", 4864, vec![896]),
    ];
    println!("{:<18} {:<5} {:>10}  GB/s (us) of 1, 2, 4, 8 rows; GFLOP/s of 32, 512 rows", "product", "", "");
    for (name, cols, outs) in shapes {
        for format in [Format::Bf16, Format::F32, Format::Q8_0] {
            let width: usize = outs.iter().sum();
            let bytes_of = |rows: usize| rows * format.row_bytes(cols).expect("columns");
            let layers = COLD.div_ceil(bytes_of(width));
            let weights: Vec<u8> = (0..layers * bytes_of(width)).map(|i| if i % 2 == 0 { 1 } else { 0x3c }).collect();
            print!("{name:<18} {format:<5}");
            for n in [1, 2, 4, 8, 32, 512] {
                let (x, mut y) = (vec![0.5f32; n * cols], vec![0f32; n * width]);
                let mut inputs = Inputs::new();
                inputs.set(format, &x, cols);
                let mut layer = 0;
                let many = if n <= 8 { SAMPLE.div_ceil(bytes_of(width)) } else { 1 };
                let time = bench.best(|| {
                    for _ in 0..many {
                        let mut rest = &weights[layer * bytes_of(width)..][..bytes_of(width)];
                        let mut column = 0;
                        let parts: Vec<Part<'_>> = outs
                            .iter()
                            .map(|out| {
                                let (bytes, next) = rest.split_at(bytes_of(*out));
                                rest = next;
                                column += out;
                                Part { weight: Matrix::new(format, bytes, *out, cols).expect("shape"), bias: None, column: column - out }
                            })
                            .collect();
                        linear(&team, &inputs, &parts, &[], black_box(&mut y), width);
                        layer = (layer + 1) % layers;
                    }
                }) / many as f64;
                if n <= 8 {
                    print!("  {:5.1} ({:5.0})", bytes_of(width) as f64 / time / 1e9, time * 1e6);
                } else {
                    print!("  {:5.0}", 2.0 * (n * cols * width) as f64 / time / 1e9);
                }
            }
            println!();
        }
    }
}

fn attention(bench: &Bench) {
    let team = Team::new(bench.threads).expect("threads");
    for (name, heads, kv_heads) in [("SmolLM", 9, 3), ("Qwen", 14, 2)] {
        let width = heads * 64;
        for (keys, rows) in [(512, 512), (2048, 512), (256, 1), (2048, 1), (8192, 1)] {
            for (format, word) in [(KvFormat::F32, 0.1f32.to_bits()), (KvFormat::Bf16, 0x3dcc_3dcc)] {
                let shape = AttentionShape { heads, kv_heads, dim: 64, window: usize::MAX, format };
                // as many layers as fill the caches, for a single query
                let layers = if rows == 1 { 64 } else { 1 };
                let blocks: Vec<Vec<u32>> = (0..layers * keys / BLOCK).map(|_| vec![word; shape.block_len()]).collect();
                let blocks: Vec<&[u32]> = blocks.iter().map(|b| &b[..]).collect();
                let (q, mut out) = (vec![0.1f32; rows * width], vec![0f32; rows * width]);
                let mut layers = blocks.chunks(keys / BLOCK).cycle();
                let time = bench.best(|| {
                    if let Some(blocks) = layers.next() {
                        attend(&team, &shape, &q, width, &[Queries { row: 0, rows, first: keys - rows, blocks }], black_box(&mut out));
                    }
                });
                let seen: usize = (keys - rows + 1..=keys).sum();
                let (flops, bytes) = (4 * seen * width, 4 * keys / BLOCK * shape.block_len());
                println!(
                    "{name} attention, {format:<4}, {rows} queries up to {keys} keys: {:.0} us, {:.0} GFLOP/s, {:.1} GB/s",
                    time * 1e6,
                    flops as f64 / time / 1e9,
                    bytes as f64 / time / 1e9
                );
            }
        }
    }
}

fn rows(bench: &Bench) {
    let (n, width, inner) = (512, 576, 1536);
    let x = vec![0.3f32; n * 2 * inner];
    let mut y = vec![0f32; n * inner];
    let report = |name: &str, numbers: usize, time: f64| {
        println!("{name}, {n} rows: {:.0} us, {:.2} ns a number", time * 1e6, time * 1e9 / numbers as f64)
    };
    let weight = vec![1.0f32; width];
    report("rms_norm of 576", n * width, bench.best(|| rms_norm(&x[..n * width], &weight, 1e-5, black_box(&mut y[..n * width]))));
    report("swiglu of 1536", n * inner, bench.best(|| swiglu(&x, inner, black_box(&mut y))));
    report("add of 576", n * width, bench.best(|| add(black_box(&mut y[..n * width]), &x[..n * width])));
    let angles = vec![0.6f32; n * 32];
    report("rotate of 12 x 64", n * 768, bench.best(|| rotate(black_box(&mut y[..n * 960]), 960, 12, 64, &angles, &angles)));
    for format in [Format::F32, Format::Bf16, Format::Q8_0] {
        let mut inputs = Inputs::new();
        report(&format!("inputs of 576 for {format}"), n * width, bench.best(|| inputs.set(format, black_box(&x[..n * width]), width)));
    }
    for threads in [2, 3] {
        let team = Team::new(threads).expect("threads");
        let time = bench.best(|| (0..1000).for_each(|_| team.run(8, &|i| _ = black_box(i)))) / 1e3;
        println!("an empty job of 8 tasks for {threads} threads: {:.2} us", time * 1e6);
    }
}
