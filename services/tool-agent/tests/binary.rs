//! The binary itself: what is missing is one clear line.

use std::process::Command;

fn fails(args: &[&str], parts: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_tool-agent"))
        .env_clear()
        .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--log-level", "off"])
        .args(args)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn a_missing_corpus_tool_library_or_model_is_named() {
    let corpus = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(corpus.path(), "{\"title\": \"Loire\", \"text\": \"A river.\"}\n").unwrap();
    let corpus = corpus.path().to_str().unwrap();
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/atlas/tools.toml");
    fails(&["--corpus", "no/such.jsonl"], &["cannot open corpus `no/such.jsonl`", "; fix: set `--corpus FILE`"]);
    fails(&["--corpus", corpus, "--tools", "no/such.toml"], &["cannot open tools `no/such.toml`", "; fix: set `--tools FILE`"]);
    fails(&["--corpus", corpus, "--tools", tools, "--model", "no/such"], &["cannot open model `no/such`", "; fix: set `--model DIR`"]);
}
