//! Our side of the comparisons in `bench/`: runs jobs that a driver gives as JSON and answers with
//! timings. `autoact-bench engine` serves prompts through the public engine API,
//! `autoact-bench train` trains adapters, `autoact-bench machine` says where figures are made.

mod engine;
mod train;

use autoact_allocator as _;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Answers jobs, one JSON object per line on standard input, by one JSON object per line.
    Engine(engine::Args),
    /// Prints the processor, the kernels' path and the memory's speed as a JSON object.
    Machine,
    /// Trains adapters on the documents of a JSON file; one JSON object per step.
    Train(train::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().what {
        What::Engine(args) => engine::run(args),
        What::Machine => {
            println!("{}", serde_json::to_string(&autoact_kernels::Machine::measure())?);
            Ok(())
        }
        What::Train(args) => train::run(&args),
    }
}
