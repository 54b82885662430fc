//! Prints pages, questions and gold trajectories of a synthetic knowledge base or the atlas:
//! `cargo run -p autoact-synthetic-kb --example show -- KIND [SEED] [COUNT] [QUESTIONS] [STYLE]`.
//! KIND is `worlds`, `invented` or `atlas`; QUESTIONS is `1`, `2`, `3`, `comparison`, `yes-no`,
//! `inverse`, `difference`, `arithmetic`, `unanswerable`, `mix` or `all`. A last argument `reworded`
//! gives the questions as people type them, `phrased` the same without noise, `misread` trajectories
//! that first ask for something else.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use autoact_base::random::Rng;
use autoact_prompt::transcript;
use autoact_synthetic_kb::{
    Atlas, KnowledgeBase, Mix, NameMaker, Noise, Question, Schema, Solver, Split, ThoughtStyle, Wording, World, WorldSize,
};
use autoact_trajectory::{Trajectory, Turn};
use support::RealTools;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |index: usize, default: &'static str| args.get(index).cloned().unwrap_or_else(|| default.to_owned());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let atlas = Atlas::load(&root.join("corpora/atlas"))?;
    let seed: u64 = arg(1, "1").parse()?;
    let base = match arg(0, "worlds").as_str() {
        "atlas" => atlas.into_base(),
        which => {
            let file = if which == "worlds" { "models/stem/recipe/worlds.toml" } else { "corpora/atlas/schema.toml" };
            let schema = Arc::new(Schema::load_for_training(&root.join(file))?);
            World::invent(&schema, &NameMaker::fit(atlas.base()), seed, WorldSize::default())
        }
    };
    let mix = match arg(3, "mix").as_str() {
        "comparison" => Mix::only_comparison(),
        "yes-no" => Mix::only_yes_no(),
        "inverse" => Mix::only_inverse(),
        "difference" => Mix::only_difference(),
        "arithmetic" => Mix::only_arithmetic(),
        "unanswerable" => Mix::only_unanswerable(),
        "mix" => Mix::default(),
        "all" => Mix::default().with(0.03, 0.15),
        hops => Mix::only_hops(hops.parse()?),
    };
    show(&base, seed, arg(2, "5").parse()?, &mix, &arg(4, "canonical"), &arg(5, "plain"))
}

fn show(base: &KnowledgeBase, seed: u64, count: usize, mix: &Mix, style: &str, words: &str) -> Result<(), Box<dyn Error>> {
    let style = ThoughtStyle::ALL.iter().find(|s| s.name == style).ok_or("no such style")?;
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let page = base.page(rng.below(base.entities().len())).ok_or("no page")?;
        println!("## {}\n{}\n", page.title, page.text().replace('\n', " "));
    }
    let mut shelf = RealTools::over(base);
    let tools = shelf.0.specs().to_vec();
    let solver = Solver { base, style, tools: &tools, detours: 0.05 };
    let noise = if words == "phrased" { Noise::default() } else { Noise::TYPED };
    let wording = Wording { noise, ..Wording::TRAIN };
    for _ in 0..count {
        let Some(mut question) = base.question(&mut rng, mix, Split::Any) else { continue };
        if words != "plain"
            && let Some(reworded) = base.reword(&question, &wording, &mut rng)
        {
            question = reworded;
        }
        println!("# {} {} -> {}", question.id, question.chain.join(" > "), question.answer);
        if words == "misread" {
            if let Some((trajectory, _)) = solver.misread_asked(&question, &mut shelf, &mut rng) {
                println!("{}", transcript(&trajectory));
            }
            continue;
        }
        match solver.solve(&question, &mut shelf, &mut rng) {
            Ok(trajectory) => show_all(&solver, &question, trajectory, &mut shelf, &mut rng)?,
            Err(error) => println!("Question: {}\n(no trajectory: {error})\n", question.text),
        }
    }
    Ok(())
}

/// Prints the trajectory with its reflection, then a wrong one with its correction.
fn show_all(
    solver: &Solver<'_>,
    question: &Question,
    mut gold: Trajectory,
    shelf: &mut RealTools,
    rng: &mut Rng,
) -> Result<(), Box<dyn Error>> {
    let spoilt = solver.spoil(question, &gold, shelf, rng);
    gold.turns.push(Turn::Reflection(solver.reflect(question, &gold)?));
    println!("{}", transcript(&gold));
    if let Some((spoilt, fault)) = spoilt {
        let mut repaired = solver.mend(question, &spoilt, shelf, rng)?;
        repaired.turns.push(Turn::Reflection(solver.reflect(question, &repaired)?));
        println!("--- {}\n{}", fault.as_str(), transcript(&repaired));
    }
    Ok(())
}
