//! Programs that cannot start: one error that names the cause and the fix, an exit code that means
//! something, and nothing left behind.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::files::{Assets, root};
use autoact_testkit::{Output, Program, ports};

/// Longer than the gateway's patience with a NATS that is not there.
const START: Duration = Duration::from_secs(60);
const FAILED: i32 = 1;
const BAD_CONFIG: i32 = 64;
const UNAVAILABLE: i32 = 69;

fn fails(output: &Output, code: i32, words: &[&str]) {
    let text = output.text();
    assert_eq!(output.code, Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    let errors: Vec<&str> = output.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "one error:\n{text}");
    for word in words {
        assert!(output.stderr.contains(word), "`{word}` is missing in:\n{text}");
    }
}

/// A service on free ports.
fn service(name: &str) -> anyhow::Result<Program> {
    Ok(Program::new(name)?.args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]))
}

fn agent(model: &Path, adapter: &str) -> anyhow::Result<Program> {
    let set = |key: &str, value: &str| format!("{key}={value}");
    Ok(service("plan-agent")?.args(["--set", &set("model", &model.display().to_string()), "--set", &set("adapter", adapter)]))
}

#[tokio::test]
async fn a_model_or_an_adapter_that_does_not_fit_is_named() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let model = Assets::random(dir.path())?.model;

    let missing = dir.path().join("no-model");
    fails(&agent(&missing, "")?.run(START).await?, FAILED, &["no-model", "fix: "]);

    let without_weights = dir.path().join("without-weights");
    std::fs::create_dir(&without_weights)?;
    for name in ["config.json", "tokenizer.json"] {
        std::fs::copy(model.join(name), without_weights.join(name))?;
    }
    fails(&agent(&without_weights, "")?.run(START).await?, FAILED, &["without-weights", "safetensors", "fix: "]);

    let truncated = dir.path().join("truncated");
    std::fs::create_dir(&truncated)?;
    for entry in std::fs::read_dir(&model)? {
        let entry = entry?;
        std::fs::copy(entry.path(), truncated.join(entry.file_name()))?;
    }
    let weights = std::fs::read(model.join("model.safetensors"))?;
    std::fs::write(truncated.join("model.safetensors"), &weights[..weights.len() / 2])?;
    fails(&agent(&truncated, "")?.run(START).await?, FAILED, &["model.safetensors", "fix: "]);
    std::fs::write(truncated.join("model.safetensors"), [])?;
    fails(&agent(&truncated, "")?.run(START).await?, FAILED, &["model.safetensors", "fix: "]);

    // it says which base it was trained on, and this is another
    let other = root().join("tests/golden/fixtures/llama3/adapter");
    fails(&agent(&model, &other.display().to_string())?.run(START).await?, FAILED, &["adapter", "base", "fix: "]);
    let missing = dir.path().join("no-adapter");
    fails(&agent(&model, &missing.display().to_string())?.run(START).await?, FAILED, &["no-adapter", "fix: "]);
    Ok(())
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_explained_whole() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let corrupt = dir.path().join("corrupt.toml");
    std::fs::write(&corrupt, "[gateway]\nlisten = \"127.0.0.1:0\"\n[[[\n")?;
    let config = |path: &Path| path.display().to_string();
    for name in ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"] {
        let output = Program::new(name)?.args(["--config", &config(&corrupt)]).run(START).await?;
        fails(&output, BAD_CONFIG, &["corrupt.toml", "line 3"]);
        let output = Program::new(name)?.args(["--config", &config(&dir.path().join("absent.toml"))]).run(START).await?;
        fails(&output, BAD_CONFIG, &["absent.toml"]);
    }
    let wrong = dir.path().join("wrong.toml");
    std::fs::write(&wrong, "[common]\ntelemetry.log_level = 7\n[gateway]\nno_such_key = 1\ngrace_period = \"soon\"\n")?;
    let program = Program::new("gateway")?.args(["--config", &config(&wrong), "--listen", "nowhere"]).env("AUTOACT_NO_SUCH_SETTING", "1");
    let output = program.run(START).await?;
    // every mistake at once, each with its place
    fails(&output, BAD_CONFIG, &["log_level", "no_such_key", "grace_period", "soon", "--listen", "nowhere", "AUTOACT_NO_SUCH_SETTING"]);
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_reached_is_named() -> anyhow::Result<()> {
    let nats = format!("nats://127.0.0.1:{}", ports::free_port()?);
    let output = service("gateway")?.args(["--nats-url", &nats, "--set", "start_limit=2s", "--set", "bus.connect=1s"]).run(START).await?;
    fails(&output, FAILED, &[&nats, "fix: "]);

    let address = format!("http://127.0.0.1:{}", ports::free_port()?);
    let output = Program::new("autoact")?.args(["--gateway", &address, "ask", "Who wrote Hamlet?"]).run(START).await?;
    fails(&output, UNAVAILABLE, &[&address, "autoact up"]);

    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let taken = taken.local_addr()?.to_string();
    let output = Program::new("memory")?.args(["--listen", &taken, "--metrics-listen", "127.0.0.1:0"]).run(START).await?;
    fails(&output, FAILED, &[&taken, "fix: "]);
    Ok(())
}

#[tokio::test]
async fn up_says_what_is_missing_before_it_starts_anything() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let state = dir.path().join("run").display().to_string();
    let up = |flag: &str| anyhow::Ok(Program::new("autoact")?.args(["up", "--state-dir", &state, flag, "nowhere"]));
    for (flag, what) in [("--model", "base model"), ("--corpus", "knowledge base"), ("--tools", "tool library")] {
        // the files that are checked earlier have to be there
        let assets = Assets::random(dir.path())?;
        let mut program = Program::new("autoact")?.args(["up", "--state-dir", &state]);
        for (other, path) in [("--model", &assets.model), ("--corpus", &assets.corpus), ("--tools", &assets.tools)] {
            let path = if other == flag { "nowhere".to_owned() } else { path.display().to_string() };
            program = program.args([other.to_owned(), path]);
        }
        fails(&program.run(START).await?, FAILED, &[what, "nowhere", flag]);
    }
    let output = up("--base-port")?.run(START).await?;
    assert_eq!(output.code, Some(BAD_CONFIG), "{}", output.text());
    let output = Program::new("autoact")?.args(["down", "--state-dir", &state]).run(START).await.context("down without a group")?;
    assert_eq!(output.code, Some(0), "{}", output.text());
    Ok(())
}
