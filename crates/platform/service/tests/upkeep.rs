//! Histograms that nobody scrapes do not grow. A file of its own: it looks at the memory of its
//! process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use autoact_config::Common;
use autoact_service::Setup;
use autoact_telemetry::prometheus::UPKEEP_PERIOD;

/// Each takes 24 bytes until it is sorted into its bucket.
const SAMPLES: usize = 1_000_000;
const ROUNDS: usize = 12;

/// This process's memory in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test(start_paused = true)]
async fn samples_that_nobody_scrapes_are_sorted_all_the_same() {
    let setup = Setup::bind("plan-agent", Common::on_ports(0, 0)).await.unwrap();
    let mut before = 0;
    for round in 0..ROUNDS {
        let histogram = metrics::histogram!("upkeep_test_seconds");
        for sample in 0..SAMPLES {
            histogram.record(sample as f64 / SAMPLES as f64);
        }
        // the clock stands still but for this: the service's own task runs now
        tokio::time::advance(UPKEEP_PERIOD).await;
        tokio::task::yield_now().await;
        if round == 1 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    let all = (ROUNDS - 2) * SAMPLES * 24;
    assert!(grown < all / 3, "{grown} of {all} bytes");
    drop(setup);
}
