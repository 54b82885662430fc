//! Writes training documents of an adapter to a file, for a trainer outside of this project
//! (`pytorch/train_adapters` of this crate). Format: for each document the number of tokens, then
//! each token, as 16-bit little-endian integers. A token's id is in its lower 13 bits; bit 15 says
//! that it is a target, bit 14 that the adapter acts on it, bit 13 that an invocation begins there.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use autoact_pretrain::{AdapterDocuments, Encoder, Paths, Recipe, Role, Worlds};
use autoact_train::DocumentSource;
use tokenizers::Tokenizer;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [role, seed, first, worlds, output] = args.as_slice() else {
        return Err("usage: documents plan|tool|reflect SEED FIRST_WORLD WORLDS OUTPUT".into());
    };
    let role = Role::ALL.into_iter().find(|known| known.as_str() == role).ok_or("the role is plan, tool or reflect")?;
    let (first, worlds): (u64, u64) = (first.parse()?, worlds.parse()?);
    let model = PathBuf::from("models/stem");
    let recipe = model.join("recipe/recipe.toml");
    let paths = Paths { recipe: recipe.clone(), atlas: PathBuf::from("corpora/atlas"), model: model.clone(), work: PathBuf::new() };
    let mut recipe = Recipe::load(&recipe)?;
    recipe.seed = seed.parse()?;
    let tokenizer = Tokenizer::from_file(model.join("tokenizer.json")).map_err(|error| error.to_string())?;
    let mut source = AdapterDocuments::new(Worlds::load(&paths, &recipe)?, Encoder::new(tokenizer)?, &recipe, role)?;
    let per_world = recipe.worlds.documents;
    source.seek(first * per_world);
    let mut out = std::io::BufWriter::new(std::fs::File::create(output)?);
    let (mut documents, mut tokens) = (0_u64, 0_u64);
    for _ in 0..worlds * per_world {
        let document = source.next();
        let length = document.tokens.len();
        if length == 0 || length > usize::from(u16::MAX) {
            continue;
        }
        let mut words = Vec::with_capacity(length + 1);
        words.push(u16::try_from(length)?);
        for (at, (token, loss)) in document.tokens.iter().zip(&document.loss).enumerate() {
            let acts = document.invocations.iter().any(|range| range.contains(&at));
            let begins = document.invocations.iter().any(|range| range.start == at);
            let flags = u16::from(*loss) << 15 | u16::from(acts) << 14 | u16::from(begins) << 13;
            words.push(u16::try_from(*token)? | flags);
        }
        let bytes: Vec<u8> = words.into_iter().flat_map(u16::to_le_bytes).collect();
        out.write_all(&bytes)?;
        documents += 1;
        tokens += length as u64;
    }
    out.flush()?;
    eprintln!("{documents} documents, {tokens} tokens");
    Ok(())
}
