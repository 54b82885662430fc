//! Compiles `proto/autoact` with protox, so that no `protoc` is needed on the machine.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

/// The public API, the services' own contracts, and the stored events.
const FILES: [&str; 7] =
    ["v1/trajectory", "v1/gateway", "agents/v1/agents", "memory/v1/memory", "memory/v1/documents", "store/v2/event", "store/v2/receipt"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files: Vec<PathBuf> = FILES.iter().map(|name| root.join(format!("autoact/{name}.proto"))).collect();
    let descriptors = protox::compile(&files, [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("autoact.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .compile_fds(descriptors)?;
    Ok(())
}
