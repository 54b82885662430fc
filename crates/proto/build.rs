//! Compiles `proto/autoact/v1` with protox, so that no `protoc` is needed on the machine.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 4] = ["trajectory", "agents", "gateway", "memory"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files: Vec<PathBuf> = FILES.iter().map(|name| root.join(format!("autoact/v1/{name}.proto"))).collect();
    let descriptors = protox::compile(&files, [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("autoact.v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().build_transport(true).compile_fds(descriptors)?;
    Ok(())
}
