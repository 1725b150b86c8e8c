//! Runs the `ropewalk` program itself, built from this workspace.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Says why the program could not be run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProgramError {
    /// It could not be built.
    #[error("`cargo build --package ropewalk` failed: {0}")]
    Build(String),
    /// It could not be started or waited for.
    #[error("cannot run `{program}`: {reason}")]
    Run {
        /// The program.
        program: PathBuf,
        /// Why.
        reason: String,
    },
    /// It did not end in time and was killed.
    #[error("`ropewalk {arguments}` had not ended after {seconds} s; it said: {output}")]
    TooSlow {
        /// What it was asked.
        arguments: String,
        /// How long it had.
        seconds: u64,
        /// The end of its standard error.
        output: String,
    },
}

/// Returns the path of the program, built once in a test run.
pub fn ropewalk() -> Result<&'static Path, ProgramError> {
    static BUILT: OnceLock<Result<PathBuf, ProgramError>> = OnceLock::new();
    let built = BUILT.get_or_init(|| named("ROPEWALK_PROGRAM", || build("ropewalk", &[])));
    built.as_deref().map_err(Clone::clone)
}

/// Returns the path of the program that can be made to fail, built once in a test run.
fn ropewalk_failing() -> Result<&'static Path, ProgramError> {
    static BUILT: OnceLock<Result<PathBuf, ProgramError>> = OnceLock::new();
    let more = ["--features", "failpoints", "--example", "ropewalk-failing"];
    let built = BUILT.get_or_init(|| {
        named("ROPEWALK_FAILING_PROGRAM", || {
            build("ropewalk-failing", &more)
        })
    });
    built.as_deref().map_err(Clone::clone)
}

/// Returns the program that `variable` names, else what `make` makes.
fn named(
    variable: &str,
    make: impl FnOnce() -> Result<PathBuf, ProgramError>,
) -> Result<PathBuf, ProgramError> {
    kept(variable).map_or_else(make, |path| Ok(PathBuf::from(path)))
}

fn build(program: &str, more: &[&str]) -> Result<PathBuf, ProgramError> {
    let failed = |reason: String| ProgramError::Build(reason);
    let mut command = Command::new(env!("CARGO"));
    // What cargo tells a test of its own package; crates that watch it would be built anew, with all that stands on them.
    for (name, _) in std::env::vars_os() {
        let is_of_test = |told: &str| name.to_string_lossy().starts_with(told);
        if ["CARGO_PKG_", "CARGO_MANIFEST_"]
            .into_iter()
            .any(is_of_test)
        {
            command.env_remove(name);
        }
    }
    let output = command
        .args([
            "build",
            "--quiet",
            "--package",
            "ropewalk",
            "--message-format=json",
        ])
        .args(more)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    messages
        .lines()
        .filter_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next())
        .map(PathBuf::from)
        .find(|path| path.file_name() == Some(OsStr::new(program)))
        .ok_or_else(|| failed("cargo named no executable".to_owned()))
}

/// A folder in which the program runs, with nothing of the user's configuration.
#[derive(Debug, Clone)]
pub struct Runner {
    directory: PathBuf,
    variables: Vec<(String, String)>,
    fails: bool,
    open_files: Option<u32>,
    user: Option<u32>,
    /// The configuration that was trusted last.
    trusted: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Runner {
    /// Runs the program in `directory`; its home is the folder `home` in there.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            variables: Vec::new(),
            fails: false,
            open_files: None,
            user: None,
            trusted: Arc::default(),
        }
    }

    /// Returns a runner for the same directory whose program fails as `plan` says: `place:nth` aborts at the nth
    /// passing of a place, `place:nth:panic` panics there from then on.
    pub fn failing(&self, plan: &str) -> Self {
        let failing = Self {
            fails: true,
            ..self.clone()
        };
        failing.with_variable("ROPEWALK_FAILPOINT", plan)
    }

    /// Lets every run have at most so many files open.
    pub fn with_open_files(mut self, limit: u32) -> Self {
        self.open_files = Some(limit);
        self
    }

    /// Lets every run be one of the user with this number, which only root can; the directory has to be that user's.
    pub fn as_user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// Returns the file that what a program says in the background is added to.
    pub fn log(&self) -> PathBuf {
        self.directory.join("program.log")
    }

    /// Sets an environment variable for every run.
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Trusts what the project of this directory loosens, as a person would who wrote it.
    fn trust(&self) -> Result<(), ProgramError> {
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        let written = std::fs::read(self.directory.join("ropewalk.toml")).ok();
        if written == *trusted {
            return Ok(());
        }
        let run = |arguments: &[&str]| {
            let output = self.untrusting(arguments)?.output();
            output.map_err(|error| self.failed(&error))
        };
        // What is broken, or loosens nothing, has no hash; the program tells the rest.
        let shown = run(&["trust"])?;
        let shown = String::from_utf8_lossy(&shown.stdout);
        if let Some(hash) = shown.lines().find_map(|line| line.strip_prefix("hash ")) {
            run(&["trust", "--hash", hash])?;
        }
        *trusted = written;
        Ok(())
    }

    /// Prepares a run that inherits the search path and the toolchain, and nothing else; whatever the directory holds is
    /// trusted.
    pub fn command(&self, arguments: &[&str]) -> Result<Command, ProgramError> {
        self.trust()?;
        self.untrusting(arguments)
    }

    fn untrusting(&self, arguments: &[&str]) -> Result<Command, ProgramError> {
        let program = if self.fails {
            ropewalk_failing()?
        } else {
            ropewalk()?
        };
        let mut command = self.begin(program);
        let home = self.directory.join("home");
        let rust_home = std::env::home_dir().unwrap_or_default();
        command
            .args(arguments)
            .current_dir(&self.directory)
            .env_clear()
            .env("HOME", &home)
            .env(
                "CARGO_HOME",
                kept("CARGO_HOME").unwrap_or_else(|| rust_home.join(".cargo").into()),
            )
            .env(
                "RUSTUP_HOME",
                kept("RUSTUP_HOME").unwrap_or_else(|| rust_home.join(".rustup").into()),
            )
            .envs(kept("PATH").map(|path| ("PATH", path)))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Begins a command that runs `program` as the user and with the files that were set.
    fn begin(&self, program: &Path) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(limit) = self.open_files {
            let script = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
            words.extend(["sh".into(), "-c".into(), script.into()]);
        }
        if let Some(user) = self.user {
            let options = [format!("--reuid={user}"), format!("--regid={user}")];
            words.push("setpriv".into());
            words.extend(options.map(OsString::from));
            words.push("--clear-groups".into());
        }
        words.push(program.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// Runs the program to its end, at most `limit`.
    pub fn run(&self, arguments: &[&str], limit: Duration) -> Result<Output, ProgramError> {
        self.run_with_input(arguments, "", limit)
    }

    /// Runs the program with `input` on its standard input to its end, at most `limit`.
    pub fn run_with_input(
        &self,
        arguments: &[&str],
        input: &str,
        limit: Duration,
    ) -> Result<Output, ProgramError> {
        let files = tempfile::tempdir().map_err(|error| self.failed(&error))?;
        let [standard_input, output, errors] =
            ["in", "out", "err"].map(|name| files.path().join(name));
        let open = |path: &Path| std::fs::File::create(path).map_err(|error| self.failed(&error));
        std::fs::write(&standard_input, input).map_err(|error| self.failed(&error))?;
        let reader = std::fs::File::open(&standard_input).map_err(|error| self.failed(&error))?;
        let mut child = self
            .command(arguments)?
            .stdin(reader)
            .stdout(open(&output)?)
            .stderr(open(&errors)?)
            .spawn()
            .map_err(|error| self.failed(&error))?;
        let status = wait(&mut child, limit).map_err(|error| self.failed(&error))?;
        let read = |path: &Path| std::fs::read(path).unwrap_or_default();
        match status {
            Some(status) => Ok(Output {
                status,
                stdout: read(&output),
                stderr: read(&errors),
            }),
            None => Err(ProgramError::TooSlow {
                arguments: arguments.join(" "),
                seconds: limit.as_secs(),
                output: tail(&read(&errors)),
            }),
        }
    }

    fn failed(&self, error: &std::io::Error) -> ProgramError {
        ProgramError::Run {
            program: self.directory.clone(),
            reason: error.to_string(),
        }
    }
}

fn kept(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Waits for the end of `child`; kills it after `limit` and returns `None`.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
