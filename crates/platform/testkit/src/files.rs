//! Where the programs, the model and the corpus are.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use autoact_certificates as certificates;
use autoact_tls::TlsFiles;

/// The project's root directory.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(3).unwrap_or(here).to_path_buf()
}

/// A program of the workspace, built in the same profile as the running test.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe().context("a test has a path")?;
    // target/<profile>/deps/<test>
    let path = test.ancestors().nth(2).unwrap_or(Path::new(".")).join(name);
    anyhow::ensure!(
        path.is_file(),
        "the program `{}` is not built; fix: `cargo build --workspace --bins`, or run `./test`",
        path.display()
    );
    Ok(path)
}

/// A service of the workspace, as a program and the arguments that make it this one: the agents are
/// one program.
pub fn service(name: &str) -> anyhow::Result<(PathBuf, Vec<String>)> {
    if matches!(name, "plan-agent" | "tool-agent" | "reflect-agent") {
        return Ok((program("agents")?, vec![name.to_owned()]));
    }
    Ok((program(name)?, Vec::new()))
}

/// The files of mutual TLS of `name`, in a directory that `autoact certs init` made.
pub fn tls_files(dir: &Path, name: &str) -> TlsFiles {
    let ((ca, _), (cert, key)) = (certificates::files(dir, certificates::AUTHORITY), certificates::files(dir, name));
    TlsFiles { ca, cert, key }
}

/// A nats-server: `$AUTOACT_NATS_SERVER`, the quickstart's, or one on `PATH`.
pub fn nats_server() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("AUTOACT_NATS_SERVER").map(PathBuf::from);
    let fetched = Some(root().join(".quickstart/bin/nats-server"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|dir| dir.join("nats-server")).find(|file| file.is_file());
    let mut candidates = [named, fetched, on_path].into_iter().flatten();
    candidates.find(|file| file.is_file()).context("no nats-server found; fix: `scripts/fetch-nats`, or run `./test`")
}

/// libfaketime, which gives a process a clock of its own: `$AUTOACT_FAKETIME`, the one that
/// `scripts/fetch-faketime` fetched, or the machine's.
pub fn faketime() -> anyhow::Result<PathBuf> {
    const LIBRARY: &str = "libfaketimeMT.so.1";
    let named = std::env::var_os("AUTOACT_FAKETIME").map(PathBuf::from);
    let machine = [std::env::consts::ARCH].map(|arch| PathBuf::from(format!("/usr/lib/{arch}-linux-gnu/faketime")).join(LIBRARY));
    let mut candidates = named.into_iter().chain([root().join(".quickstart/lib").join(LIBRARY)]).chain(machine);
    candidates.find(|file| file.is_file()).context("no libfaketime found; fix: `scripts/fetch-faketime`")
}

/// What a group works with.
#[derive(Debug, Clone)]
pub struct Assets {
    /// The base model.
    pub model: PathBuf,
    /// The adapters' directory; `none` for the base alone.
    pub adapters: PathBuf,
    /// The knowledge base's pages.
    pub corpus: PathBuf,
    /// The tool library.
    pub tools: PathBuf,
    /// Whether the model was trained: its answers mean something.
    pub trained: bool,
}

/// Set (to anything) to run the tests without the bundled model: with a tiny random one, whose
/// answers mean nothing.
pub const RANDOM_MODEL: &str = "TESTKIT_RANDOM_MODEL";

impl Assets {
    /// The bundled model and knowledge base. With [`RANDOM_MODEL`] set, a model of random weights
    /// made in `dir` and three pages.
    pub fn bundled(dir: &Path) -> anyhow::Result<Assets> {
        if std::env::var_os(RANDOM_MODEL).is_some() {
            return Assets::random(dir);
        }
        let stem = root().join("models/stem");
        let atlas = root().join("corpora/atlas");
        let assets = Assets {
            adapters: stem.join("adapters"),
            corpus: atlas.join("pages.jsonl"),
            tools: atlas.join("tools.toml"),
            model: stem,
            trained: true,
        };
        for file in [&assets.model.join("model.safetensors"), &assets.corpus] {
            anyhow::ensure!(
                file.is_file(),
                "the bundled file `{}` is missing; fix: get the whole repository, or set {RANDOM_MODEL}=1 to run the tests that need no trained model",
                file.display()
            );
        }
        Ok(assets)
    }

    /// Random weights and three pages. Decoding is constrained, so that even such a model keeps to
    /// the format.
    pub fn random(dir: &Path) -> anyhow::Result<Assets> {
        let model = dir.join("random-model");
        random_model(&model)?;
        let corpus = dir.join("pages.jsonl");
        std::fs::write(&corpus, PAGES)?;
        Ok(Assets { model, adapters: "none".into(), corpus, tools: root().join("corpora/atlas/tools.toml"), trained: false })
    }
}

const PAGES: &str = concat!(
    r#"{"title": "Peru", "text": "Peru is a country in South America. The capital of Peru is Lima."}"#,
    "\n",
    r#"{"title": "Lima", "text": "Lima is a city in Peru. It lies on the coast of the Pacific Ocean."}"#,
    "\n",
    r#"{"title": "Loire", "text": "The Loire is a river in France. It flows into the Atlantic Ocean."}"#,
    "\n"
);

/// A copy of the tiny golden Llama whose context is long enough for a trajectory (its rotary
/// positions have no table in the weights).
fn random_model(to: &Path) -> anyhow::Result<()> {
    let from = root().join("tests/golden/fixtures/llama2");
    std::fs::create_dir_all(to)?;
    for name in ["model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        std::fs::copy(from.join(name), to.join(name)).with_context(|| format!("cannot copy the fixture `{name}`"))?;
    }
    let mut config: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(from.join("config.json"))?)?;
    config["max_position_embeddings"] = 8192.into();
    std::fs::write(to.join("config.json"), config.to_string())?;
    Ok(())
}
