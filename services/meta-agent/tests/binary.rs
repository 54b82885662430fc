//! The binary itself: killed and started again it goes on, a full disk is told, a wrong task is
//! told once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::zombie_processes)] // tests

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn task(dir: &Path) {
    let text = format!(
        "name = \"small\"\ndescription = \"Questions about planets.\"\ncorpus = {:?}\ntools = {:?}\n\
         [[examples]]\nquestion = \"Which planet does Europa circle?\"\nanswer = \"Jupiter\"\n\
         [[examples]]\nquestion = \"What is the diameter of Ganymede?\"\nanswer = \"5268 km\"\n\
         [instruct]\nquestions = 40\nround = 8\n",
        root().join("tasks/science/pages.jsonl"),
        root().join("corpora/atlas/tools.toml")
    );
    std::fs::write(dir.join("task.toml"), text).unwrap();
}

fn command(dir: &Path, until: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meta-agent"));
    command.env_clear().arg("--task").arg(dir.join("task.toml")).arg("--model").arg(root().join("models/stem"));
    command.arg("--run").arg(dir.join("run")).args(["--until", until]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn questions(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("run/questions.jsonl")).unwrap_or_default().lines().count()
}

fn log(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn killed_or_ended_it_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    task(dir.path());
    for (signal, enough, code) in [(Signal::SIGKILL, 6, None), (Signal::SIGTERM, 14, Some(130))] {
        let mut child = command(dir.path(), "instruct").stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while questions(dir.path()) < enough && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "no questions");
            std::thread::yield_now();
        }
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(status.code() == code || status.success(), "{status}");
    }
    let before = questions(dir.path());
    let output = command(dir.path(), "instruct").output().unwrap();
    assert!(output.status.success(), "{}", log(&output));
    assert_eq!(questions(dir.path()), 40 + 4, "four have no answer");
    assert!(before >= 14);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["instruct"]["accepted"], 38);
}

/// A bound on the size of files stands in for a full disk: writes fail in the same way.
#[test]
fn a_full_disk_is_told_and_what_was_done_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    task(dir.path());
    let whole = command(dir.path(), "instruct");
    let mut bounded = Command::new("bash");
    bounded.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$@\"", "bash"]).arg(whole.get_program()).args(whole.get_args());
    let output = bounded.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", log(&output));
    assert!(log(&output).contains("cannot write") && log(&output).contains("is kept"), "{}", log(&output));
    let before = questions(dir.path());
    assert!(before > 2);
    let output = command(dir.path(), "instruct").output().unwrap();
    assert!(output.status.success(), "{}", log(&output));
    assert_eq!(questions(dir.path()), 40 + 4, "four have no answer");
}

#[test]
fn a_wrong_task_is_told_with_its_own_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("task.toml"), "name = \"x\"\n").unwrap();
    let output = command(dir.path(), "report").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(log(&output).contains("no examples") && log(&output).contains("no `corpus`"), "{}", log(&output));
    assert_eq!(Command::new(env!("CARGO_BIN_EXE_meta-agent")).env_clear().output().unwrap().status.code(), Some(64));
}
