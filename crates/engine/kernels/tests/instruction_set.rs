//! The environment variable that selects a lower instruction set.

use std::process::Command;

use autoact_kernels::instruction_set;

/// Not a test of its own: the test below runs it in processes with other environments.
#[test]
fn report() {
    println!("uses {}", instruction_set());
}

fn used_with(wanted: &str) -> Option<String> {
    let output = Command::new(std::env::current_exe().ok()?)
        .args(["--exact", "report", "--nocapture", "--test-threads=1"])
        .env("AUTOACT_ISA", wanted)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.split("uses ").nth(1)).map(str::to_owned)
}

#[test]
fn the_environment_chooses_a_lesser_set() {
    let best = instruction_set();
    assert_eq!(used_with("portable").as_deref(), Some("portable"));
    assert_eq!(used_with(best).as_deref(), Some(best));
    assert_eq!(used_with("no such set").as_deref(), Some(best), "unknown names change nothing");
    assert_eq!(used_with("amx").as_deref(), Some(best), "a set that the machine lacks changes nothing");
    if best.starts_with("avx512") || best == "amx" {
        assert_eq!(used_with("avx2").as_deref(), Some("avx2"));
        assert_eq!(used_with("avx512").as_deref(), Some("avx512"));
    }
    if best == "amx" {
        assert_eq!(used_with("avx512-bf16-vnni").as_deref(), Some("avx512-bf16-vnni"));
    }
}
