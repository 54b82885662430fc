//! Regenerates the atlas's generated files, as `autoact corpus build` does:
//! `cargo run -p autoact-synthetic-kb --example write_atlas`.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

use autoact_synthetic_kb::Atlas;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../corpora/atlas");
    for (name, text) in Atlas::load(&dir)?.files()? {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        println!("{name}: {} lines", text.lines().count());
        std::fs::write(path, text)?;
    }
    Ok(())
}
