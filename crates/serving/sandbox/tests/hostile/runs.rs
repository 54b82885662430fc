//! What a program that is not hostile can do, and what the caller gets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use autoact_sandbox::{Limits, NOT_EXECUTABLE, NOT_FOUND, Sandbox, SandboxError, Tier, Tiers};

use crate::cases::Does;
use crate::world::{LIMITS, Outcome, World, alive, launcher, marked, poll};

const DEADLINE: Duration = Duration::from_secs(30);

/// Runs a test in each tier that is available.
fn in_each(test: impl Fn(Sandbox, &World)) {
    let (tiers, world) = (Tiers::of(&launcher()), World::new());
    for (tier, available) in [(Tier::Namespaces, &tiers.namespaces), (Tier::Landlock, &tiers.landlock)] {
        match available {
            Ok(()) => test(Sandbox { tier, limits: LIMITS, ..Sandbox::default() }, &world),
            Err(reason) => println!("skipped: `{tier}`: {reason}"),
        }
    }
}

fn run(world: &World, sandbox: &Sandbox, script: &str) -> Outcome {
    let name = format!("sandbox-run-{}-", std::process::id());
    world.run(sandbox, &Does::Shell(script.to_owned()), &name, DEADLINE).unwrap()
}

#[test]
fn input_output_arguments_and_environment_pass() {
    in_each(|sandbox, world| {
        let outcome = run(world, &sandbox, "read line; echo \"got[$line]\" $(pwd); echo complaint >&2; env | sort; exit 7");
        assert_eq!(outcome.status.and_then(|status| status.code()), Some(7), "{}", outcome.stderr);
        let work = outcome.work.path().canonicalize().unwrap();
        assert!(outcome.stdout.starts_with(&format!("got[] {}\n", work.display())), "{}", outcome.stdout);
        assert_eq!(outcome.stderr, "complaint\n");
        let names = outcome.stdout.lines().skip(1).filter_map(|line| Some(line.split_once('=')?.0)).collect::<Vec<_>>();
        let own = ["PWD", "SHLVL", "OLDPWD", "_"];
        let given: Vec<_> = names.into_iter().filter(|name| !own.contains(name)).collect();
        assert_eq!(
            given,
            ["ABSTRACT", "CALLER", "HOSTILE", "KEPT", "MARK", "OUTSIDE", "PATH", "RAW", "SECRET", "SOCKET", "TCP", "UDP", "VICTIM"]
        );
    });
}

#[test]
fn files_of_the_working_directory_go_in_and_come_out() {
    in_each(|sandbox, _| {
        let work = tempfile::tempdir().unwrap();
        fs::create_dir(work.path().join("artifacts")).unwrap();
        fs::write(work.path().join("input"), "rivers").unwrap();
        let script = "mkdir -p artifacts/deep && cat input > artifacts/deep/copy && printf more >> input && ln -s input link";
        let sandbox = Sandbox { launcher: Some(launcher()), ..sandbox };
        let status = sandbox.command("sh", ["-c", script], [("PATH", "/usr/bin:/bin")], work.path()).unwrap().status().unwrap();
        assert!(status.success(), "{status}");
        let text = |name: &str| fs::read_to_string(work.path().join(name)).unwrap();
        assert_eq!((text("artifacts/deep/copy"), text("input")), ("rivers".to_owned(), "riversmore".to_owned()));
    });
}

#[test]
fn granted_paths_are_read_and_not_written() {
    in_each(|sandbox, world| {
        let sandbox = Sandbox { read: vec![world.outside().to_owned()], ..sandbox };
        let outcome = run(world, &sandbox, "cat $SECRET; (echo x > $KEPT) 2>&1; (echo x > $OUTSIDE/new) 2>&1; cat $KEPT");
        assert!(outcome.stdout.contains("4711") && outcome.stdout.contains("as it was"), "{}", outcome.stdout);
        assert!(!world.outside().join("new").exists());
    });
}

#[test]
fn the_network_is_there_when_it_is_granted() {
    in_each(|sandbox, world| {
        let attack = |sandbox: &Sandbox| world.run(sandbox, &Does::Attack("tcp $TCP".to_owned()), "sandbox-network-", DEADLINE).unwrap();
        assert!(attack(&Sandbox { network: true, ..sandbox.clone() }).stdout.contains("ESCAPED"));
        assert!(attack(&sandbox).stdout.contains("contained"));
        // local services are not part of it
        for local in ["unix $SOCKET", "abstract $ABSTRACT"] {
            let sandbox = Sandbox { network: true, read: vec![world.outside().to_owned()], ..sandbox.clone() };
            let outcome = world.run(&sandbox, &Does::Attack(local.to_owned()), "sandbox-network-", DEADLINE).unwrap();
            assert!(outcome.stdout.contains("contained"), "{local}: {}", outcome.stdout);
        }
    });
}

#[test]
fn ordinary_programs_run() {
    let script = "set -e; seq 1000 | sort -rn | head -1; mkdir d; cp /bin/true d/; d/true; echo x | tee a > b; cmp a b; find . | wc -l; \
        awk 'BEGIN { print 6 * 7 }'; (sleep 0.01; echo later) & wait; mv a c; rm -r d; date > /dev/null; head -c 10 /dev/urandom > r; echo all";
    in_each(|sandbox, world| {
        let outcome = run(world, &sandbox, script);
        assert!(outcome.stdout.ends_with("42\nlater\nall\n"), "{} {}", outcome.stdout, outcome.stderr);
    });
}

#[test]
fn long_arguments_pass() {
    in_each(|sandbox, _| {
        let (work, long) = (tempfile::tempdir().unwrap(), "x".repeat(100_000));
        let sandbox = Sandbox { launcher: Some(launcher()), ..sandbox };
        let args = ["-c", "[ ${#1} = 100000 ] && [ ${#LONG} = 100000 ] && exit $#", "sh", &long, &long, &long];
        let env = [("PATH", "/usr/bin:/bin"), ("LONG", long.as_str())];
        let status = sandbox.command("sh", args, env, work.path()).unwrap().status().unwrap();
        assert_eq!(status.code(), Some(3));
    });
}

#[test]
fn a_program_ends_by_the_signal_that_ended_it() {
    in_each(|sandbox, world| {
        for signal in [1, 2, 3, 6, 8, 9, 11, 13, 14, 15] {
            let outcome = run(world, &sandbox, &format!("kill -{signal} $$"));
            assert_eq!(outcome.status.and_then(|status| status.signal()), Some(signal), "{}", outcome.stderr);
        }
    });
}

#[test]
fn killing_the_launcher_ends_everything() {
    in_each(|sandbox, _| {
        let mark = format!("sandbox-killed-{}-{}-", std::process::id(), sandbox.tier);
        let work = tempfile::Builder::new().prefix(&mark).tempdir().unwrap();
        let script = format!(": {mark}; setsid sleep 300 & setsid sh -c 'sleep 300; : {mark}' & touch ready; sleep 300");
        let env = [("PATH", "/usr/bin:/bin"), ("MARK", mark.as_str())];
        let sandbox = Sandbox { launcher: Some(launcher()), ..sandbox };
        let mut command = sandbox.command("sh", ["-c", script.as_str()], env, work.path()).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        // the launcher's two, three shells and two that sleep
        assert!(poll(Instant::now() + DEADLINE, || (marked(&mark).len() >= 6).then_some(())).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(alive(&mark), None);
    });
}

/// A sandbox is like a container that refuses namespaces.
#[test]
fn where_namespaces_are_refused_landlock_is_left() {
    in_each(|sandbox, world| {
        if sandbox.tier == Tier::Namespaces {
            let outcome = world.run(&sandbox, &Does::Attack("tiers".to_owned()), "sandbox-tiers-", DEADLINE).unwrap();
            assert!(outcome.stdout.contains("namespaces: Err") && outcome.stdout.contains("landlock: Ok"), "{}", outcome.stdout);
        }
    });
}

#[test]
fn what_cannot_be_confined_is_refused() {
    let work = tempfile::tempdir().unwrap();
    let none: [(&str, &str); 0] = [];
    let refused = |sandbox: Sandbox, program: &str| {
        let sandbox = Sandbox { launcher: Some(launcher()), allow_lesser: true, ..sandbox };
        sandbox.command(program, [""], none, work.path()).unwrap_err()
    };
    let tiers = Tiers::of(&launcher());
    if tiers.namespaces.is_err() && tiers.landlock.is_err() {
        println!("skipped: {tiers:?}");
        return;
    }
    for path in ["/", "/proc", "/proc/1", "/sys", "/dev/null", "/tmp", "/no/such/path"] {
        let refused = refused(Sandbox { read: vec![path.into()], ..Sandbox::default() }, "true");
        assert!(matches!(refused, SandboxError::Path { .. }), "{path}: {refused}");
    }
    for program in ["no-such-program", "./no-such-program", "/etc/passwd"] {
        assert!(matches!(refused(Sandbox::default(), program), SandboxError::NoProgram { .. }), "{program}");
    }
    let limits = Limits { memory_bytes: 1, ..Limits::default() };
    assert!(matches!(refused(Sandbox { limits, ..Sandbox::default() }, "true"), SandboxError::Limit { .. }));
    let no_launcher = Sandbox::default().command("true", [""], none, work.path()).unwrap_err();
    assert!(matches!(no_launcher, SandboxError::NoLauncher));
}

#[test]
fn a_program_that_does_not_start_is_told() {
    in_each(|sandbox, _| {
        for (interpreter, code) in [("/no/such/interpreter", NOT_FOUND), ("/dev/null", NOT_EXECUTABLE)] {
            let work = tempfile::tempdir().unwrap();
            let script = work.path().join("script");
            fs::write(&script, format!("#!{interpreter}\n")).unwrap();
            fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
            let sandbox = Sandbox { launcher: Some(launcher()), ..sandbox.clone() };
            let none: [(&str, &str); 0] = [];
            let output = sandbox.command(&script, [""], none, work.path()).unwrap().output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        }
    });
}
