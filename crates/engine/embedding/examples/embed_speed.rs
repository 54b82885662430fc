//! Prints how fast a model embeds: `cargo run --release -p autoact-embedding --example embed_speed
//! -- DIR [THREADS]`.

use std::time::{Duration, Instant};

use autoact_embedding::{EmbedError, Embedder, MiniLm, MiniLmOptions};

/// The least time that each figure is measured over.
const MEASURED: Duration = Duration::from_secs(6);
/// A sentence of 12 words.
const SENTENCE: &str = "The committee meets on the second Monday of every month at noon.";

fn main() -> Result<(), EmbedError> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| "models/all-minilm-l6-v2".to_owned());
    let threads = arguments.next().and_then(|threads| threads.parse().ok()).unwrap_or(0);
    let begun = Instant::now();
    let model = MiniLm::open(dir, MiniLmOptions { threads })?;
    println!("{}: opened in {:.2} s", model.name(), begun.elapsed().as_secs_f64());

    // sentences of 4 to 36 words, as paragraphs have them
    let words: Vec<&str> = SENTENCE.split(' ').collect();
    let sentences: Vec<String> =
        (0..256).map(|n| words.iter().cycle().skip(n).take(4 + n % 33).copied().collect::<Vec<_>>().join(" ")).collect();
    rate("sentences of 4 to 36 words", &model, &sentences)?;
    rate(
        "segments of 200 words",
        &model,
        &(0..32).map(|_| words.iter().cycle().take(200).copied().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>(),
    )?;
    for (what, query) in [("query of 5 words", "When does the committee meet?"), ("query of 12 words", SENTENCE)] {
        let mut times = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < MEASURED / 2 {
            let asked = Instant::now();
            model.embed(&[query])?;
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("{what}: {:.2} ms median, {:.2} ms 95%", times[times.len() / 2], times[times.len() * 95 / 100]);
    }
    Ok(())
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
