//! What `autoact load compare` is given: a report, a build that it starts, or a group that runs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use autoact_load::{Build, LoadError, Report};
use autoact_trajectory::rfc3339;
use tokio::process::Command;
use tokio::time::timeout;

use crate::exit::BadArguments;
use crate::supervise::{Process, Program};

/// How long a program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// Where a build is looked for in a directory: next to its services, or in a target directory.
const PLACES: [&str; 3] = ["autoact", "release/autoact", "debug/autoact"];

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Side {
    /// A `report.json`, or the directory that it is in.
    Report(PathBuf),
    /// An `autoact` program, whose services are next to it.
    Program(PathBuf),
    /// The gateway of a group that runs.
    Gateway(String),
}

impl Side {
    /// What an argument names.
    pub(super) fn find(given: &str) -> anyhow::Result<Side> {
        if given.starts_with("http://") || given.starts_with("https://") {
            return Ok(Side::Gateway(given.to_owned()));
        }
        let path = Path::new(given);
        if path.is_dir() {
            if path.join("report.json").is_file() {
                return Ok(Side::Report(path.to_owned()));
            }
            let program = PLACES.into_iter().map(|place| path.join(place)).find(|program| program.is_file());
            let none = || {
                BadArguments(format!(
                    "`{given}` has neither a `report.json` nor an `autoact` program; expected one of them there, in `release` or in `debug`"
                ))
            };
            return Ok(Side::Program(program.ok_or_else(none)?));
        }
        if path.is_file() && path.file_name().is_some_and(|name| name == "autoact") {
            return Ok(Side::Program(path.to_owned()));
        }
        // one that is missing, or none, is named by who reads it
        Ok(Side::Report(path.to_owned()))
    }

    /// The report, if this is one.
    pub(super) fn report(&self) -> anyhow::Result<Option<Report>> {
        let Side::Report(path) = self else { return Ok(None) };
        match Report::read(path) {
            Ok(report) => Ok(Some(report)),
            Err(LoadError::NotAReport { path, source }) => {
                let path = path.display();
                let why = format!(
                    "`{path}` is neither a report of `autoact load --json` ({source}) nor a build directory; fix: name a `report.json`, or \
                     a directory with an `autoact` program"
                );
                Err(BadArguments(why).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same, for a build; its program is named whole, so that it can be started from elsewhere.
    pub(super) async fn build(&self, env: &[String]) -> anyhow::Result<Build> {
        let env = env.to_vec();
        Ok(match self {
            Side::Gateway(address) => Build { what: address.clone(), env, ..Build::default() },
            Side::Program(path) | Side::Report(path) => {
                let modified = std::fs::metadata(path).and_then(|file| file.modified());
                Build {
                    what: path.display().to_string(),
                    version: version(path).await?,
                    built: modified.map(rfc3339).unwrap_or_default(),
                    env,
                }
            }
        })
    }
}

/// What a program says of its version.
async fn version(path: &Path) -> anyhow::Result<String> {
    let asked = Command::new(path).arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
    let said = timeout(VERSION_LIMIT, asked).await;
    let said = said.with_context(|| format!("`{}` does not say its version", path.display()))?;
    let said = said.with_context(|| format!("cannot run `{}`", path.display()))?;
    anyhow::ensure!(said.status.success(), "`{} --version` failed ({})", path.display(), said.status);
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// How a build is started.
#[derive(Debug, Clone)]
pub(super) struct Start<'a> {
    /// `a` or `b`
    pub(super) name: &'static str,
    pub(super) program: &'a Path,
    pub(super) base_port: u16,
    /// Further arguments of `autoact up`.
    pub(super) up: &'a [String],
    /// `NAME=VALUE` each.
    pub(super) env: &'a [String],
    /// Its working directory, in which it finds its model, corpus and tools; `None`: ours.
    pub(super) dir: Option<&'a Path>,
}

impl Start<'_> {
    /// Starts the group, with no more than the arguments that every release understands. Its files
    /// are in `scratch`.
    pub(super) fn start(&self, scratch: &Path) -> anyhow::Result<Process> {
        let absolute = |path: &Path| std::path::absolute(path).with_context(|| format!("`{}` has no place", path.display()));
        let state = absolute(&scratch.join(self.name))?;
        let mut args: Vec<String> = ["up", "--base-port", &self.base_port.to_string(), "--state-dir"].map(str::to_owned).into();
        args.push(state.display().to_string());
        args.extend_from_slice(self.up);
        let env = self.env.iter().filter_map(|pair| pair.split_once('='));
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let program =
            Program { name: format!("build-{}", self.name), path: absolute(self.program)?, args, env, dir: self.dir.map(Path::to_owned) };
        Process::start(&program, scratch)
    }
}

/// A variable for one of the builds.
pub(super) fn variable(text: &str) -> Result<String, String> {
    let name = text.split_once('=').map(|(name, _)| name).unwrap_or_default();
    if name.is_empty() { Err("expected `NAME=VALUE`".to_owned()) } else { Ok(text.to_owned()) }
}

/// Arguments for both builds, as a shell splits them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(pub(super) Vec<String>);

pub(super) fn words(text: &str) -> Result<Words, String> {
    let hint = "it has a quote that does not end; expected arguments as a shell reads them, such as `--model 'my model'`";
    shlex::split(text).map(Words).ok_or_else(|| hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_a_report_a_build_or_an_address() {
        let dir = tempfile::tempdir().unwrap();
        let given = |name: &str| Side::find(&dir.path().join(name).display().to_string());
        for folder in ["report", "target/release", "bin", "empty"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["report/report.json", "target/release/autoact", "bin/autoact", "other.json"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let path = |name: &str| dir.path().join(name);
        assert_eq!(given("report").unwrap(), Side::Report(path("report")));
        assert_eq!(given("other.json").unwrap(), Side::Report(path("other.json")));
        assert_eq!(given("target").unwrap(), Side::Program(path("target/release/autoact")));
        assert_eq!(given("bin").unwrap(), Side::Program(path("bin/autoact")));
        assert_eq!(given("bin/autoact").unwrap(), Side::Program(path("bin/autoact")));
        assert_eq!(Side::find("http://127.0.0.1:7400").unwrap(), Side::Gateway("http://127.0.0.1:7400".into()));
        let error = given("empty").unwrap_err();
        assert!(error.to_string().contains("neither"), "{error}");
        assert_eq!(crate::exit_code(&error), crate::exit::USAGE);
        assert_eq!(words("--a 'b c'"), Ok(Words(vec!["--a".into(), "b c".into()])));
        assert!(words("--a 'b").unwrap_err().contains("quote"));
        assert!(variable("A=b=c").is_ok() && variable("=b").is_err() && variable("A").is_err());
    }

    #[test]
    fn what_is_neither_a_report_nor_a_build_is_said_to_be_neither() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for bytes in [&b"\x7fELF\xff\xfe"[..], b"", b"{}", b"a text"] {
            std::fs::write(&path, bytes).unwrap();
            let error = Side::Report(path.clone()).report().unwrap_err();
            let said = error.to_string();
            assert!(said.contains("neither") && said.contains("`autoact load --json`") && said.contains("fix:"), "{said}");
            assert_eq!(crate::exit_code(&error), crate::exit::USAGE);
        }
        let missing = Side::Report(dir.path().join("missing")).report().unwrap_err();
        assert!(missing.to_string().contains("cannot read"), "{missing}");
        assert_eq!(Side::Program(path).report().unwrap(), None);
    }

    #[tokio::test]
    async fn a_program_that_is_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("autoact");
        std::fs::write(&path, "no program").unwrap();
        let error = Side::Program(path).build(&[]).await.unwrap_err();
        assert!(error.to_string().contains("cannot run"), "{error}");
    }
}
