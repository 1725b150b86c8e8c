//! Runs a `nats-server` of our own: on the loopback interface, its streams in the state directory, started again when it ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ropewalk_runtime::{Backoff, Supervisor};
use ropewalk_schemas::advice::{Advice, Words};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tracing::{debug, info, warn};

/// The program, found on the PATH.
const PROGRAM: &str = "nats-server";
/// How the line begins that names the port.
const READY: &str = "Listening for client connections on 127.0.0.1:";
/// How long the server may take to listen.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long it may take to end when asked to.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Says why no server could be run.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// It is not installed.
    #[error("`nats-server` is not on the PATH")]
    Missing,
    /// It could not be started.
    #[error("cannot start `nats-server`: {0}")]
    Start(#[source] io::Error),
    /// It started and did not listen.
    #[error("`nats-server` did not get ready; it said: {said}")]
    NotReady {
        /// The last lines that it printed.
        said: String,
    },
    /// Its directory cannot be used.
    #[error("cannot use the directory `{path}`: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Advice for SuperviseError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Missing => Some(
                "install version 2.10.23 or newer, or use `--bus embedded` or `--bus nats://HOST:PORT`".to_owned(),
            ),
            _ => None,
        }
    }
}

/// A server that runs as long as the supervisor's tasks do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisedServer {
    url: String,
}

impl SupervisedServer {
    /// Starts the `nats-server` of the PATH on a free loopback port, and keeps it running.
    pub async fn start(
        state_directory: &Path,
        supervisor: &Supervisor,
    ) -> Result<Self, SuperviseError> {
        Self::start_program(Path::new(PROGRAM), state_directory, supervisor).await
    }

    /// Starts a program of that name that lies elsewhere.
    pub async fn start_program(
        program: &Path,
        state_directory: &Path,
        supervisor: &Supervisor,
    ) -> Result<Self, SuperviseError> {
        let directory = state_directory.join("nats");
        fs::create_dir_all(&directory).map_err(|source| SuperviseError::Directory {
            path: directory.clone(),
            source,
        })?;
        let plan = Plan {
            program: program.to_owned(),
            directory,
        };
        plan.end_leftover();
        let (server, port) = plan.start("-1").await?;
        info!(bus.port = port, "nats-server listens on port {port}");
        supervisor.spawn(
            "bus.nats-server",
            keep(plan, server, port, supervisor.clone()),
        );
        Ok(Self {
            url: format!("nats://127.0.0.1:{port}"),
        })
    }

    /// Returns the address for clients; it stays the same when the server is started again.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Which program runs where.
struct Plan {
    program: PathBuf,
    directory: PathBuf,
}

/// A running server and what it prints.
struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Plan {
    fn pid_file(&self) -> PathBuf {
        self.directory.join("nats-server.pid")
    }

    /// Starts the server and waits until it listens.
    async fn start(&self, port: &str) -> Result<(Server, u16), SuperviseError> {
        let mut child = Command::new(&self.program)
            .args(["--addr", "127.0.0.1", "--port", port, "--jetstream"])
            .arg("--store_dir")
            .arg(&self.directory)
            .arg("--pid")
            .arg(self.pid_file())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C goes to us; the server goes last.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => SuperviseError::Missing,
                _ => SuperviseError::Start(error),
            })?;
        let Some(stderr) = child.stderr.take() else {
            return Err(SuperviseError::Start(io::ErrorKind::BrokenPipe.into()));
        };
        let mut server = Server {
            child,
            lines: BufReader::new(stderr).lines(),
        };
        let mut said = Vec::new();
        let ready = async {
            while let Ok(Some(line)) = server.lines.next_line().await {
                if let Some(port) = port_of(&line) {
                    return Some(port);
                }
                said.push(line);
            }
            None
        };
        match tokio::time::timeout(START_LIMIT, ready).await {
            Ok(Some(port)) => Ok((server, port)),
            Ok(None) | Err(_) => Err(SuperviseError::NotReady {
                said: said.split_off(said.len().saturating_sub(3)).join(" / "),
            }),
        }
    }

    /// Ends the server of a process that was killed: two must never write one directory.
    fn end_leftover(&self) {
        let Ok(pid) = fs::read_to_string(self.pid_file()) else {
            return;
        };
        let pid = pid.trim();
        if !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()) && self.is_ours(pid) {
            warn!("ending the nats-server `{pid}` that an earlier process left behind");
            signal(pid, Signal::SIGKILL);
        }
        drop(fs::remove_file(self.pid_file()));
    }

    /// Returns whether the process of that number serves our directory.
    fn is_ours(&self, pid: &str) -> bool {
        let directory = self.directory.as_os_str().as_encoded_bytes();
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
            line.split(|byte| *byte == 0)
                .any(|argument| argument == directory)
        })
    }
}

fn port_of(line: &str) -> Option<u16> {
    let (_, port) = line.split_once(READY)?;
    port.trim().parse().ok()
}

/// Starts the server again, after a back-off, whenever it ends; ends it after everything else.
async fn keep(plan: Plan, server: Server, port: u16, supervisor: Supervisor) {
    const BACKOFF: Backoff = Backoff {
        base: Duration::from_millis(200),
        cap: Duration::from_secs(10),
    };
    let stop = supervisor.shutdown().soft().clone();
    let mut server = Some(server);
    let mut failed = 0;
    while !stop.is_cancelled() {
        if let Some(mut running) = server.take() {
            tokio::select! {
                () = stop.cancelled() => {
                    end(&mut running).await;
                    drop(fs::remove_file(plan.pid_file()));
                    return;
                }
                () = read_to_the_end(&mut running) => warn!("nats-server ended, starting it again"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(BACKOFF.full_jitter(failed, 1.0)) => {}
        }
        match plan.start(&port.to_string()).await {
            Ok((again, _)) => {
                failed = 0;
                server = Some(again);
            }
            Err(error) => {
                failed += 1;
                warn!("{}", Words::of(&error));
            }
        }
    }
}

/// Passes on what the server says, until it ends.
async fn read_to_the_end(server: &mut Server) {
    while let Ok(Some(line)) = server.lines.next_line().await {
        debug!("nats-server: {line}");
    }
    if let Err(error) = server.child.wait().await {
        warn!("cannot wait for nats-server: {error}");
    }
}

/// Asks the server to end, and kills it when it does not.
async fn end(server: &mut Server) {
    if let Some(pid) = server.child.id() {
        signal(&pid.to_string(), Signal::SIGTERM);
        let ended = tokio::time::timeout(STOP_LIMIT, server.child.wait()).await;
        if matches!(ended, Ok(Ok(_))) {
            return;
        }
    }
    if let Err(error) = server.child.kill().await {
        warn!("cannot end nats-server: {error}");
    }
}

fn signal(pid: &str, signal: Signal) {
    let Ok(number) = pid.parse() else { return };
    if let Err(error) = kill(Pid::from_raw(number), signal) {
        warn!("cannot end the nats-server `{pid}`: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_line_that_names_it() {
        let line =
            "[7] 2026/11/21 10:00:00.1 [INF] Listening for client connections on 127.0.0.1:4223";
        assert_eq!(port_of(line), Some(4223));
        assert_eq!(port_of("[INF] Server is ready"), None);
    }

    #[test]
    fn only_a_process_that_serves_our_directory_is_a_leftover() {
        let plan = Plan {
            program: PathBuf::from(PROGRAM),
            directory: PathBuf::from("/nowhere/nats"),
        };
        assert!(!plan.is_ours(&std::process::id().to_string()));
    }
}
