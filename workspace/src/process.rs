//! Drives one child from its start to the end of all that it started.

mod capture;
pub(crate) mod orphans;
pub(crate) mod shell;
mod tree;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ropewalk_schemas::advice::Advice;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use capture::Capture;
use orphans::DIRECTORY;
use tree::{Mark, ProcessTree};

/// How long a group may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long the pipes are read after the group is dead; only what is none of its processes can hold them.
const DRAIN: Duration = Duration::from_millis(500);
/// A stream that is this many times longer than what is kept of it will never end.
const FLOOD_FACTOR: u64 = 64;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal from elsewhere ended it.
    Signalled(i32),
    /// It was stopped because its time was over.
    TimedOut,
    /// It was stopped because the caller asked for it.
    Cancelled,
    /// It was stopped because it wrote without end.
    Flooded,
    /// There is no such program, so nothing ran.
    Missing,
}

/// Says why a command could not be run at all; one that ran and failed is a [`CommandOutput`](crate::CommandOutput).
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The working directory is not there.
    #[error("`{}` is not a directory", .0.display())]
    Directory(PathBuf),
    /// The system refused to start or to watch the program.
    #[error("could not run `{program}`")]
    Spawn {
        /// The program as named.
        program: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl Advice for CommandError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Directory(_) => Some("the command needs one to run in".to_owned()),
            Self::Spawn { .. } => None,
        }
    }
}

/// A program that is there.
#[derive(Debug)]
pub(crate) struct ProgramFile {
    /// What it is called by.
    pub(crate) name: OsString,
    /// Where it lies.
    place: OsString,
}

impl ProgramFile {
    /// Takes a path as it is.
    pub(crate) fn at(place: OsString) -> Self {
        Self {
            name: place.clone(),
            place,
        }
    }

    /// Finds what to start: a path as it is, a bare name on the `PATH` among `variables`; none where it is not on the
    /// `PATH`.
    ///
    /// The system would, in places of its own where there is no `PATH`, and where that is empty in the directory of the child,
    /// which is a checkout. With a whole path the standard library starts a child without copying this process first, which
    /// takes longer the more memory it has.
    pub(crate) fn find(name: OsString, variables: &[(OsString, OsString)]) -> Option<Self> {
        let path = Path::new(&name);
        if path.components().count() > 1 {
            return Some(Self::at(name));
        }
        let place = locate(path, variables)?.into_os_string();
        Some(Self { name, place })
    }
}

/// A child to start.
pub(crate) struct Invocation<'a> {
    pub(crate) program: ProgramFile,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: &'a Path,
    /// The whole environment of the child.
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) timeout: Duration,
    pub(crate) output_limit_bytes: usize,
    pub(crate) stdin: Option<&'a [u8]>,
    /// Says that what it starts may leave its process group, which is looked for at its end.
    pub(crate) daemons: bool,
    /// Hears both streams as they come.
    pub(crate) heard: Option<&'a OutputListener<'a>>,
}

/// Hears the bytes that a command writes; it is not to wait.
pub type OutputListener<'a> = dyn Fn(&[u8]) + Send + Sync + 'a;

/// A child that ended.
#[derive(Debug)]
pub(crate) struct ProcessOutput {
    pub(crate) status: CommandStatus,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) duration: Duration,
}

/// Runs `invocation` until it ends or has to be stopped; nothing that it started survives.
pub(crate) async fn run(
    invocation: Invocation<'_>,
    cancel: &CancellationToken,
) -> Result<ProcessOutput, CommandError> {
    let started = Instant::now();
    let mut stdout = Capture::new(invocation.output_limit_bytes);
    let mut stderr = Capture::new(invocation.output_limit_bytes);
    if !invocation.directory.is_dir() {
        return Err(CommandError::Directory(invocation.directory.to_owned()));
    }
    let status = if cancel.is_cancelled() {
        CommandStatus::Cancelled
    } else {
        let mark = invocation.daemons.then(Mark::fresh);
        match command(&invocation, mark.as_ref()).spawn() {
            Ok(child) => {
                let tree = ProcessTree::led_by(&child, mark, invocation.directory);
                watch(
                    (child, tree),
                    &invocation,
                    cancel,
                    started,
                    [&mut stdout, &mut stderr],
                )
                .await
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(CommandStatus::Missing),
            Err(error) => Err(error),
        }
        .map_err(|source| CommandError::Spawn {
            program: invocation.program.name.to_string_lossy().into_owned(),
            source,
        })?
    };
    Ok(ProcessOutput {
        status,
        stdout,
        stderr,
        duration: started.elapsed(),
    })
}

/// Looks a bare name up in the absolute directories of the `PATH` among `variables`.
pub(crate) fn locate(program: &Path, variables: &[(OsString, OsString)]) -> Option<PathBuf> {
    let path = variables.iter().rev().find(|(name, _)| name == "PATH");
    let (1, Some((_, path))) = (program.components().count(), path) else {
        return None;
    };
    let runs = |place: &PathBuf| {
        let metadata = place.metadata();
        metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(runs)
}

fn command(invocation: &Invocation<'_>, mark: Option<&Mark>) -> Command {
    let mut command = Command::new(&invocation.program.place);
    command
        // What a shell complains about begins with the name that it was called by.
        .arg0(&invocation.program.name)
        .args(&invocation.arguments)
        .current_dir(invocation.directory)
        .env_clear()
        .envs(
            invocation
                .variables
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .env(DIRECTORY, invocation.directory)
        .envs(mark.map(Mark::variable))
        .stdin(if invocation.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Says that a stream was longer than anything that ends.
struct Flood;

async fn watch(
    (mut child, tree): (Child, Option<ProcessTree>),
    invocation: &Invocation<'_>,
    cancel: &CancellationToken,
    started: Instant,
    [stdout, stderr]: [&mut Capture; 2],
) -> std::io::Result<CommandStatus> {
    let flood = invocation.output_limit_bytes as u64 * FLOOD_FACTOR;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let streams = async {
        tokio::try_join!(
            feed(input, invocation.stdin),
            read(output, stdout, flood, invocation.heard),
            read(errors, stderr, flood, invocation.heard),
        )
    };
    tokio::pin!(streams);
    let mut streaming = true;
    let stopped = loop {
        tokio::select! {
            status = child.wait() => {
                let status = exit(status?);
                end(tree).await;
                if streaming {
                    timeout(DRAIN, streams).await.ok();
                }
                return Ok(status);
            }
            ended = &mut streams, if streaming => {
                streaming = false;
                if ended.is_err() {
                    break CommandStatus::Flooded;
                }
            }
            () = cancel.cancelled() => break CommandStatus::Cancelled,
            () = sleep_until(started + invocation.timeout) => break CommandStatus::TimedOut,
        }
    };
    if let Some(tree) = &tree
        && stopped != CommandStatus::Flooded
    {
        tree.terminate();
        let grace = timeout(GRACE, child.wait());
        tokio::pin!(grace);
        // Reading goes on: a child that flushes its last words would block on a full pipe.
        loop {
            tokio::select! {
                _ = &mut grace => break,
                _ = &mut streams, if streaming => streaming = false,
            }
        }
    }
    end(tree).await;
    child.wait().await?;
    if streaming {
        timeout(DRAIN, streams).await.ok();
    }
    Ok(stopped)
}

async fn end(tree: Option<ProcessTree>) {
    if let Some(tree) = tree {
        tree.end().await;
    }
}

async fn feed(stdin: Option<ChildStdin>, bytes: Option<&[u8]>) -> Result<(), Flood> {
    if let (Some(mut stdin), Some(bytes)) = (stdin, bytes) {
        // A child that does not read all of its input is no error of ours.
        stdin.write_all(bytes).await.ok();
    }
    Ok(())
}

async fn read(
    stream: Option<impl AsyncRead + Unpin>,
    capture: &mut Capture,
    flood: u64,
    heard: Option<&OutputListener<'_>>,
) -> Result<(), Flood> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => {
                capture.push(&buffer[..count]);
                if let Some(heard) = heard {
                    heard(&buffer[..count]);
                }
            }
        }
        if capture.total() > flood {
            return Err(Flood);
        }
    }
}

fn exit(status: ExitStatus) -> CommandStatus {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandStatus::Exited(code),
        (None, Some(signal)) => CommandStatus::Signalled(signal),
        (None, None) => CommandStatus::Exited(-1),
    }
}
