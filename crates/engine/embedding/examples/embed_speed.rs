//! Prints how fast a model embeds: `cargo run --release -p autoact-embedding --example embed_speed
//! -- DIR [THREADS]`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use autoact_embedding::{EmbedError, Embedder, MiniLm, MiniLmOptions};

/// The least time that each figure is measured over.
const MEASURED: Duration = Duration::from_secs(5);
/// A sentence of 12 words.
const SENTENCE: &str = "The committee meets on the second Monday of every month at noon.";
/// A question of 5 words.
const QUERY: &str = "When does the committee meet?";

fn main() -> Result<(), EmbedError> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| "models/all-minilm-l6-v2".to_owned());
    let threads = arguments.next().and_then(|threads| threads.parse().ok()).unwrap_or(0);
    let begun = Instant::now();
    let model = MiniLm::open(dir, MiniLmOptions { threads })?;
    println!("{}: opened in {:.2} s", model.name(), begun.elapsed().as_secs_f64());

    let sentences: Vec<String> = (0..256).map(|n| words(n, 4 + n % 33)).collect();
    let segments: Vec<String> = (0..32).map(|n| words(n, 200)).collect();
    rate("sentences of 4 to 36 words", &model, &sentences)?;
    rate("segments of 200 words", &model, &segments)?;
    latency("query of 5 words", &model, QUERY)?;
    latency("query of 12 words", &model, SENTENCE)?;

    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let indexing = scope.spawn(|| {
            let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
            while !over.load(Ordering::Relaxed) {
                model.embed(&segments)?;
            }
            Ok(())
        });
        let measured = latency("query of 5 words, while another thread embeds segments", &model, QUERY);
        over.store(true, Ordering::Relaxed);
        measured.and(indexing.join().unwrap_or(Ok(())))
    })
}

/// `count` words from word `skip` on.
fn words(skip: usize, count: usize) -> String {
    let words: Vec<&str> = SENTENCE.split(' ').cycle().skip(skip).take(count).collect();
    words.join(" ")
}

fn rate(what: &str, model: &MiniLm, texts: &[String]) -> Result<(), EmbedError> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    model.embed(&texts)?;
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < MEASURED {
        model.embed(&texts)?;
        done += texts.len();
    }
    println!("{what}: {:.0} texts/s", done as f64 / begun.elapsed().as_secs_f64());
    Ok(())
}

fn latency(what: &str, model: &MiniLm, query: &str) -> Result<(), EmbedError> {
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < MEASURED {
        let asked = Instant::now();
        model.embed(&[query])?;
        times.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("{what}: {:.1} ms median, {:.1} ms 95%", times[times.len() / 2], times[times.len() * 95 / 100]);
    Ok(())
}
