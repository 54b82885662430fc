//! `autoact certs` as a program: what it writes, shows and refuses.
#![allow(clippy::unwrap_used)] // tests

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn autoact(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_autoact")).args(args).output().unwrap()
}

fn shown(dir: &str) -> Vec<Value> {
    let output = autoact(&["certs", "show", dir, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn certificates_are_made_shown_and_renewed() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("tls").display().to_string();
    let made = autoact(&["certs", "init", "--dir", &at, "--days", "9", "--name", "{service}.example.org"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let files: Vec<String> = String::from_utf8(made.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(files.len(), 16);
    assert!(files.iter().all(|file| Path::new(file).exists()));
    let of = |subject: &str| shown(&at).into_iter().find(|found| found["subject"] == subject).unwrap();
    let memory = of("memory");
    assert_eq!((&memory["valid"], &memory["authority"]), (&Value::Bool(true), &Value::Bool(false)));
    assert!(memory["names"].as_array().unwrap().contains(&Value::from("memory.example.org")));
    // nothing is replaced unasked
    let again = autoact(&["certs", "init", "--dir", &at]);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(of("memory"), memory);
    assert_eq!(autoact(&["certs", "renew", "--dir", &at, "--days", "20"]).status.code(), Some(0));
    let renewed = of("memory");
    assert_eq!(renewed["names"], memory["names"]);
    assert!(renewed["valid_to"].as_str() > memory["valid_to"].as_str());
    // keys are never shown
    let text = autoact(&["certs", "show", &at]);
    assert!(!String::from_utf8(text.stdout).unwrap().contains("PRIVATE"));
}

#[test]
fn what_cannot_be_done_names_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display().to_string();
    for args in [&["certs", "renew", "--dir", &at][..], &["certs", "show", &at], &["certs", "init", "--dir", &at, "--name", "a b"]] {
        let output = autoact(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("fix: "), "{args:?}");
    }
    // certificates that only half of the flags name
    let half = autoact(&["--gateway", "https://127.0.0.1:1", "--tls-cert", "x.pem", "tasks", "list"]);
    assert_eq!(half.status.code(), Some(64));
}
