//! Programs as tools: their input, their output, their failures and their end.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_tools::{Caller, Corpus, Observation, Page, ToolLibrary};
use autoact_trajectory::{Action, Trajectory};

/// Runs a shell script as the tool `Run` with a timeout.
fn run(script: &str, params: &str, timeout: &str) -> Observation {
    let script = script.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!(
        r#"
[[tool]]
name = "Run"
definition = "Runs."
usage = "Run[input]"
effect = "side_effect"
timeout = "{timeout}"
max_observation_bytes = 200
run = {{ kind = "command", sandbox = false, program = "sh", args = ["-c", "{script}"], env = {{ GREETING = "hello" }} }}

[[tool]]
name = "Finish"
definition = "Ends."
usage = "Finish[answer]"
run = {{ kind = "finish" }}
"#
    );
    let corpus = Arc::new(Corpus::from_pages(vec![Page { title: "A".into(), text: "A.".into() }]).unwrap());
    let library = ToolLibrary::parse(&text, "test", corpus).unwrap();
    library.execute_as(
        Caller { tenant: "acme", key: "acme/t1/3", deadline: None },
        &Action { tool: "Run".into(), params: params.into() },
        &Trajectory::default(),
    )
}

fn ok(script: &str, params: &str) -> String {
    let observation = run(script, params, "20s");
    assert!(!observation.is_error, "{observation:?}");
    observation.text
}

#[test]
fn the_input_is_one_line_and_the_output_the_observation() {
    assert_eq!(ok("read -r line; echo \"got $line\"; echo more", "10 km\nto miles"), "got 10 km to miles more");
    assert_eq!(ok("true", "x"), "(nothing)");
    // whoever does not read its input has not failed, however long that is
    assert_eq!(ok("echo done", &"x".repeat(500_000)), "done");
}

#[test]
fn lines_stay_lines_where_the_entry_says_so() {
    let text = r#"
[[tool]]
name = "Python"
definition = "Runs a program."
schema = '{"type":"object","properties":{"program":{"type":"string","contentMediaType":"text/x-python"}},"required":["program"]}'
effect = "read_only"
multiline = true
run = { kind = "command", sandbox = false, program = "sh", args = ["-c", "printf '%s\n' \"$1\"; printf '\n\n\n  x\ty\n'", "sh", "{program}"] }

[[tool]]
name = "Finish"
definition = "Ends."
schema = '{"type":"object","properties":{"text":{"type":"string","contentMediaType":"text/markdown"}},"required":["text"]}'
run = { kind = "finish" }
"#;
    let corpus = Arc::new(Corpus::from_pages(vec![Page { title: "A".into(), text: "A.".into() }]).unwrap());
    let library = ToolLibrary::parse(text, "test", corpus.clone()).unwrap();
    assert_eq!(library.spec("Python").unwrap().usage, r#"Python{"program": string}"#);
    let call = Action { tool: "Python".into(), params: r#"{"program":"for i in x:\n  print(i)"}"#.into() };
    let observation = library.execute(&call, &Trajectory::default());
    assert_eq!(observation.text, "for i in x:\n  print(i)\n\n  x\ty");
    assert_eq!(library.spec("Finish").unwrap().answer(r##"{"text":"# Rivers\n- Loire"}"##), "# Rivers\n- Loire");
    let built_in = text.replace("run = { kind = \"finish\" }", "multiline = true\nrun = { kind = \"finish\" }");
    let refused = ToolLibrary::parse(&built_in, "test", corpus).unwrap_err();
    assert_eq!(refused.mistakes().len(), 1);
}

#[test]
fn the_program_can_name_the_call() {
    assert_eq!(ok("echo \"$IDEMPOTENCY_KEY\"", ""), "acme/t1/3");
}

#[test]
fn the_environment_is_empty_and_the_directory_temporary() {
    // SAFETY of the process: the test runner's own variables are what must not be seen
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    assert_eq!(ok("echo \"$GREETING|$CARGO_MANIFEST_DIR|$HOME|$LANG\"", ""), "hello|||C.UTF-8");
    let directory = ok("touch file; pwd", "");
    assert!(directory.starts_with(std::env::temp_dir().to_str().unwrap()), "{directory}");
    assert!(!Path::new(&directory).exists());
}

#[test]
fn a_failure_is_told_by_its_first_line() {
    let observation = run("echo out; echo >&2; echo 'no such unit: x' >&2; echo more >&2; exit 3", "", "20s");
    assert_eq!((observation.text.as_str(), observation.is_error), ("Run failed: exit code 3: no such unit: x", true));
    assert_eq!(run("exit 1", "", "20s").text, "Run failed: exit code 1: no message");
    assert_eq!(run("kill -9 $$", "", "20s").text, "Run failed: killed by signal 9: no message");
}

#[test]
fn too_much_output_is_cut_and_the_program_may_finish() {
    let observation = run("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done", "", "20s");
    assert!(observation.truncated && !observation.is_error, "{observation:?}");
    assert!(observation.text.len() <= 200 && observation.text.ends_with(" … (cut)"));
}

#[test]
fn a_megabyte_is_an_observation_like_any_other() {
    let observation = run("head -c 1048000 /dev/zero | tr '\\0' x", "", "20s");
    assert!(observation.truncated && !observation.is_error && observation.text.len() == 200, "{observation:?}");
}

#[test]
fn files_of_a_successful_run_become_artifacts() {
    let script = "printf 'river,km\\nLoire,1006\\n' > \"$ARTIFACTS_DIR/rivers.csv\"; echo 2 columns > \"$ARTIFACTS_DIR/rivers.csv.about\"; ls; echo done";
    let observation = run(script, "", "20s");
    assert_eq!((observation.text.as_str(), observation.artifacts.len()), ("done", 1), "{observation:?}");
    let artifact = &observation.artifacts[0];
    assert_eq!((artifact.name.as_str(), artifact.kind.as_str(), artifact.text.as_str()), ("rivers.csv", "table", "2 columns"));
    assert_eq!(artifact.data, b"river,km\nLoire,1006\n");
    assert!(run(&format!("{script}; exit 1"), "", "20s").artifacts.is_empty());
}

#[test]
fn at_the_deadline_the_whole_group_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let script = format!("sleep 300 & echo $! > {0}; echo $$ >> {0}; sleep 300", pids.display());
    let start = Instant::now();
    let observation = run(&script, "", "1s");
    assert_eq!((observation.text.as_str(), observation.is_error), ("Run failed: no answer within 1s", true));
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_gone(&pids, 2);
}

#[test]
fn what_a_program_leaves_behind_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let start = Instant::now();
    assert_eq!(ok(&format!("sleep 300 & echo $! > {}; echo done", pids.display()), ""), "done");
    assert!(start.elapsed() < Duration::from_secs(15));
    assert_gone(&pids, 1);
}

/// Runs a script of which a process leaves the group and holds the output open: `setsid` starts a
/// session, and a group, of its own.
fn run_with_an_escaped_process(start: &str, after: &str, timeout: &str) -> (Observation, Duration) {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let script = format!("setsid sh -c 'echo $$ > {0}; {start}' & while [ ! -s {0} ]; do :; done; {after}", pid.display());
    let begun = Instant::now();
    let observation = run(&script, "", timeout);
    let took = begun.elapsed();
    // it lives, and is ours to end; nothing of this process waits for it
    let pid: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    assert!(matches!(gone, Ok(()) | Err(nix::errno::Errno::ESRCH)), "{gone:?}");
    (observation, took)
}

/// Threads of this process that serve a program.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "tool-io").count()
}

#[test]
fn a_process_that_holds_the_output_open_costs_neither_the_output_nor_a_thread() {
    let (observation, took) = run_with_an_escaped_process("exec sleep 300", "echo done", "20s");
    assert_eq!((observation.text.as_str(), observation.is_error), ("done", false));
    assert!(took < Duration::from_secs(15), "{took:?}");
    let (observation, _) = run_with_an_escaped_process("exec sleep 300", "echo out; echo 'no such unit' >&2; exit 3", "20s");
    assert_eq!((observation.text.as_str(), observation.is_error), ("Run failed: exit code 3: no such unit", true));
    assert_eq!(threads(), 0);
}

#[test]
fn a_process_that_goes_on_writing_does_not_hold_the_call_up() {
    let (observation, took) = run_with_an_escaped_process("exec yes again", "echo done", "20s");
    // how much of it came before the end is chance
    assert!(!observation.is_error && observation.text.len() <= 200, "{observation:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[test]
fn what_was_written_until_the_deadline_is_told() {
    let observation = run("echo 'page 1 of 9'; sleep 300", "", "1s");
    assert_eq!(observation.text, "Run failed: no answer within 1s; until then it wrote: page 1 of 9");
    let (observation, took) = run_with_an_escaped_process("exec sleep 300", "echo begun; sleep 300", "2s");
    assert_eq!(observation.text, "Run failed: no answer within 2s; until then it wrote: begun");
    assert!(observation.is_error && took < Duration::from_secs(20), "{observation:?} {took:?}");
    // however much it was
    let observation = run("exec yes again", "", "1s");
    assert!(observation.is_error && observation.truncated && observation.text.len() <= 200, "{observation:?}");
    assert_eq!(threads(), 0);
}

#[test]
fn a_program_may_read_slowly_and_close_its_output_early() {
    let long = "x".repeat(300_000);
    assert_eq!(ok("exec 2>&-; sleep 0.1; wc -c", &long), "300001");
    assert_eq!(ok("echo done; exec >&- 2>&-; sleep 0.1", "x"), "done");
}

#[test]
fn a_program_that_is_not_there_is_an_observation() {
    let text = run("true", "", "20s").text;
    assert_eq!(text, "(nothing)");
    let missing = ToolLibrary::parse(
        "[[tool]]\nname = \"Run\"\ndefinition = \"Runs.\"\nusage = \"Run[x]\"\neffect = \"read_only\"\n\
         run = { kind = \"command\", sandbox = false, program = \"no-such-program-of-ours\" }\n\
         [[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[x]\"\nrun = { kind = \"finish\" }\n",
        "test",
        Arc::new(Corpus::from_pages(vec![Page { title: "A".into(), text: "A.".into() }]).unwrap()),
    )
    .unwrap();
    let observation = missing.execute(&Action { tool: "Run".into(), params: String::new() }, &Trajectory::default());
    assert!(observation.is_error);
    assert!(observation.text.starts_with("Run failed: cannot start `no-such-program-of-ours`"), "{}", observation.text);
}

/// Polls until none of the processes in the file is alive (a zombie that waits for its new parent
/// does not count as alive).
fn assert_gone(pids: &Path, count: usize) {
    let text = std::fs::read_to_string(pids).unwrap();
    assert_eq!(text.lines().count(), count);
    let deadline = Instant::now() + Duration::from_secs(10);
    for pid in text.lines() {
        while alive(pid) {
            assert!(Instant::now() < deadline, "process {pid} is still alive");
            std::thread::yield_now();
        }
    }
}

fn alive(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'),
        Err(_) => false,
    }
}
