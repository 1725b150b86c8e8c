//! Runs a command and ends all that it started, bounded in time and output, with an environment by allow-list.

mod probe;

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use ropewalk_runtime::{Brake, secrets};
use tokio_util::sync::CancellationToken;

use crate::process::orphans::OWNER;
use crate::process::{
    self, CommandError, CommandStatus, Invocation, OutputListener, ProcessOutput, ProgramFile,
};
use crate::sandbox::egress::{Door, Egress, Refusal};
use crate::sandbox::{self, Denial, Group, Reach, Sandbox, Way, fails_anywhere};
use crate::{Environment, LocalClone};

/// The output kept per stream when the specification says nothing else.
pub const DEFAULT_OUTPUT_LIMIT_BYTES: usize = 1024 * 1024;
/// The time a command may take when the specification says nothing else.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(15);
/// What a shell exits with when it finds no such program.
const SHELL_NOT_FOUND: i32 = 127;
/// What a shell exits with when its command was killed.
const SHELL_KILLED: i32 = 137;

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program with its arguments, no shell between.
    Executable {
        /// The name, looked up on `PATH`, or a path.
        name: OsString,
        /// The arguments as the program gets them.
        arguments: Vec<OsString>,
    },
    /// A line for `sh -c`.
    Shell(String),
}

impl Program {
    /// Returns the name or the path of what is started, and its arguments.
    fn words(&self) -> (OsString, Vec<OsString>) {
        match self {
            Self::Executable { name, arguments } => (name.clone(), arguments.clone()),
            Self::Shell(line) => ("sh".into(), vec!["-c".into(), line.into()]),
        }
    }
}

/// A command, where and how it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// What to start.
    pub program: Program,
    /// The working directory, which must exist.
    pub directory: PathBuf,
    /// Variables added to the allowed ones.
    pub environment: Vec<(OsString, OsString)>,
    /// After this long it is stopped, with all that it started.
    pub timeout: Duration,
    /// How much of each stream is kept: its head and its tail.
    pub output_limit_bytes: usize,
    /// What the command reads; `None` reads as an empty file.
    pub stdin: Option<Vec<u8>>,
    /// What it may change and reach where commands are confined.
    pub reach: Reach,
}

impl CommandSpec {
    /// Describes a line for `sh -c` with the default bounds.
    pub fn shell(line: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self::new(Program::Shell(line.into()), directory.into())
    }

    /// Describes a program with arguments and the default bounds.
    pub fn executable<Argument: Into<OsString>>(
        name: impl Into<OsString>,
        arguments: impl IntoIterator<Item = Argument>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self::new(
            Program::Executable {
                name: name.into(),
                arguments,
            },
            directory.into(),
        )
    }

    fn new(program: Program, directory: PathBuf) -> Self {
        Self {
            program,
            directory,
            environment: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            output_limit_bytes: DEFAULT_OUTPUT_LIMIT_BYTES,
            stdin: None,
            reach: Reach::default(),
        }
    }

    fn is_line(&self) -> bool {
        matches!(self.program, Program::Shell(_))
    }

    /// Lets the command change what is in `directory`, where commands are confined.
    pub fn with_writable(mut self, directory: impl Into<PathBuf>) -> Self {
        self.reach.writable.push(directory.into());
        self
    }

    /// Lets the command reach the hosts of packages as well, where commands are confined.
    pub fn installing(mut self, packages: bool) -> Self {
        self.reach.packages = packages;
        self
    }

    /// Gives the command a directory for what it writes down on the way, which it finds by `TMPDIR`.
    pub fn with_scratch(mut self, directory: impl Into<PathBuf>) -> Self {
        self.reach.scratch = Some(directory.into());
        self
    }

    /// Adds a variable to the environment of the command.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the time after which the command is stopped.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// How it ended.
    pub status: CommandStatus,
    /// Its standard output: head and tail when it was long.
    pub stdout: String,
    /// Its standard error: head and tail when it was long.
    pub stderr: String,
    /// Says that something was left out of either stream.
    pub truncated: bool,
    /// How long it ran.
    pub duration: Duration,
    /// What the sandbox kept from a command that failed.
    pub denial: Option<Denial>,
    shell: bool,
}

impl CommandOutput {
    /// What comes of a command whose program is not there.
    fn missing(spec: &CommandSpec) -> Self {
        Self {
            status: CommandStatus::Missing,
            stdout: String::new(),
            stderr: String::new(),
            truncated: false,
            duration: Duration::ZERO,
            denial: None,
            shell: spec.is_line(),
        }
    }

    /// Says that the command exited with code 0.
    pub fn succeeded(&self) -> bool {
        self.status == CommandStatus::Exited(0)
    }

    /// Says that the program was not found, by us or by the shell that ran the line.
    pub fn program_missing(&self) -> bool {
        match self.status {
            CommandStatus::Missing => true,
            CommandStatus::Exited(code) => self.shell && code == SHELL_NOT_FOUND,
            _ => false,
        }
    }
}

/// Runs commands with one inherited environment, confined where it has a sandbox.
#[derive(Debug, Clone)]
pub struct CommandRunner {
    environment: Environment,
    owner: Option<String>,
    sandbox: Option<Sandbox>,
    brake: Brake,
}

impl CommandRunner {
    /// Makes a runner whose children see `environment` and what their specification adds.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            owner: None,
            sandbox: None,
            brake: Brake::default(),
        }
    }

    /// Begins no command while `brake` is on.
    pub fn held_by(mut self, brake: Brake) -> Self {
        self.brake = brake;
        self
    }

    /// Confines each command by `sandbox`; none lets them do what the user may.
    pub fn confined(mut self, sandbox: Option<Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Names whose commands these are, so that [`crate::end_orphans`] finds them when this process was killed.
    pub fn owned_by(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Runs `spec` to its end, as soon as nothing holds it; then, when `cancel` fires or when the future is dropped, all that it started dies.
    pub async fn run(
        &self,
        spec: &CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<CommandOutput, CommandError> {
        self.run_heard(spec, cancel, None).await
    }

    /// As [`CommandRunner::run`], and lets `heard` hear what it writes as it comes, secrets among it.
    pub async fn run_heard(
        &self,
        spec: &CommandSpec,
        cancel: &CancellationToken,
        heard: Option<&OutputListener<'_>>,
    ) -> Result<CommandOutput, CommandError> {
        self.brake.pass(cancel).await;
        let door = self
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.door(&spec.reach));
        let door = door.transpose()?.flatten();
        self.run_by(door, spec, cancel, heard).await
    }

    /// Runs `spec`, which reaches hosts by `door`; where its program is not on the `PATH`, nothing is started.
    async fn run_by(
        &self,
        door: Option<Door>,
        spec: &CommandSpec,
        cancel: &CancellationToken,
        heard: Option<&OutputListener<'_>>,
    ) -> Result<CommandOutput, CommandError> {
        let ((name, arguments), variables) = (spec.program.words(), self.variables(spec));
        let Some(program) = ProgramFile::find(name, &variables) else {
            return Ok(CommandOutput::missing(spec));
        };
        let group = self.sandbox.as_ref().map(Sandbox::group);
        let group = group.transpose()?.flatten();
        let way = Way {
            door: door.as_ref().map(Door::socket),
            group: group.as_ref(),
        };
        let (program, arguments) = match &self.sandbox {
            Some(sandbox) => {
                let command = (program.name, arguments);
                let confined = sandbox.confine(command, &spec.directory, &spec.reach, way)?;
                (ProgramFile::at(confined.0), confined.1)
            }
            None => (program, arguments),
        };
        let invocation = Invocation {
            program,
            arguments,
            directory: &spec.directory,
            variables,
            timeout: spec.timeout,
            output_limit_bytes: spec.output_limit_bytes,
            stdin: spec.stdin.as_deref(),
            daemons: true,
            heard,
        };
        let running = process::run(invocation, cancel);
        let mut finished = tokio::select! {
            finished = running => finished?,
            never = beside(group.as_ref(), door.as_ref()) => match never {},
        };
        let stopped = end(group, &mut finished).await;
        let refusals = door.as_ref().map(Door::refusals).unwrap_or_default();
        Ok(self.output_of(spec, finished, refusals, stopped))
    }

    /// Puts what a command did together with what was refused to it or stopped it.
    fn output_of(
        &self,
        spec: &CommandSpec,
        finished: ProcessOutput,
        refusals: Vec<Refusal>,
        stopped: Option<String>,
    ) -> CommandOutput {
        let truncated = finished.stdout.truncated() || finished.stderr.truncated();
        let stdout = secrets::strike(&finished.stdout.text()).into_owned();
        let mut stderr = secrets::strike(&finished.stderr.text()).into_owned();
        let told = refusals.iter().map(ToString::to_string);
        tell(told.chain(stopped), &mut stderr);
        let failed = finished.status != CommandStatus::Exited(0);
        let may_be_denied = failed && !fails_anywhere(&stderr) && !fails_anywhere(&stdout);
        let sandbox = self.sandbox.as_ref().filter(|_| may_be_denied);
        let refused = refusals.into_iter().find(Refusal::is_denial);
        let refused = refused.map(Denial::Refused);
        let denied = |text: &str| sandbox?.denial(text, &spec.reach.writable);
        CommandOutput {
            status: finished.status,
            truncated,
            duration: finished.duration,
            denial: refused
                .filter(|_| may_be_denied)
                .or_else(|| denied(&stderr))
                .or_else(|| denied(&stdout)),
            stdout,
            stderr,
            shell: spec.is_line(),
        }
    }

    /// Returns where commands find the objects of `clone`.
    pub fn objects_of(&self, clone: &LocalClone) -> PathBuf {
        let shown = self.sandbox.as_ref().and_then(Sandbox::objects);
        shown.unwrap_or_else(|| clone.objects())
    }

    /// Returns what leads to the hosts that commands reach; `None` where they are not confined, or reach none.
    pub fn egress(&self) -> Option<&Egress> {
        self.sandbox.as_ref().and_then(Sandbox::egress)
    }

    /// Finds a program where commands would find it.
    pub fn locate(&self, program: &str) -> Option<PathBuf> {
        process::locate(Path::new(program), self.environment.variables())
    }

    /// Returns the whole environment of a command.
    fn variables(&self, spec: &CommandSpec) -> Vec<(OsString, OsString)> {
        let inherited = self.environment.variables().iter();
        let given = inherited.chain(&spec.environment).cloned();
        given
            .chain(self.scratch(spec).map(|place| ("TMPDIR".into(), place)))
            .chain(self.owner.iter().map(|owner| (OWNER.into(), owner.into())))
            .collect()
    }

    /// Returns the directory for scratch files, as the command sees it: one that is confined does not see that of the program.
    fn scratch(&self, spec: &CommandSpec) -> Option<OsString> {
        match (&self.sandbox, &spec.reach.scratch) {
            (Some(_), Some(_)) => Some(sandbox::SCRATCH.into()),
            (Some(_), None) => Some(sandbox::OWN_TMP.into()),
            (None, scratch) => scratch.as_ref().map(OsString::from),
        }
    }
}

/// Is what goes on beside a command: its group is watched, and who comes to its door is served.
async fn beside(group: Option<&Group>, door: Option<&Door>) -> Infallible {
    let watch = async {
        match group {
            Some(group) => group.watch().await,
            None => std::future::pending().await,
        }
    };
    let serve = async {
        match door {
            Some(door) => door.serve().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        never = watch => never,
        never = serve => never,
    }
}

/// Ends the group of a command; says what stopped it, where it met a bound of its group and did not succeed.
async fn end(group: Option<Group>, finished: &mut ProcessOutput) -> Option<String> {
    let group = group?;
    let failed = finished.status != CommandStatus::Exited(0);
    let met = group.exceeded().filter(|_| failed);
    group.end().await;
    if met.is_some() && finished.status == CommandStatus::Signalled(Signal::SIGKILL as i32) {
        finished.status = CommandStatus::Exited(SHELL_KILLED);
    }
    met.map(|reason| format!("the command was stopped: {reason}"))
}

/// Adds what a command met to what it said: not every program shows the answer of a proxy.
fn tell(lines: impl Iterator<Item = String>, stderr: &mut String) {
    for line in lines {
        if !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str("ropewalk: ");
        stderr.push_str(&line);
        stderr.push('\n');
    }
}
