//! One server process: started in a group of its own, ready when it says so, killed on drop.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::server_error::ServerError;

/// Long enough for a cold interpreter on two busy cores.
const START_LIMIT: Duration = Duration::from_mins(1);

/// What is wrong with a server that goes instead of listening, as where somebody has its port.
const ENDED: &str = "ended before it was ready";

/// How often a server is started on a port that somebody has for a moment.
const STARTS: u32 = 5;

/// How long that moment is waited for.
const BETWEEN_STARTS: Duration = Duration::from_secs(1);

/// What to run, and how to learn from what it prints that it is ready.
#[derive(Debug)]
pub(crate) struct ServerCommand {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) ready: ReadySignal,
    pub(crate) account: Account,
    /// Data that goes with a test run that cannot clean up itself.
    pub(crate) left_over: Option<PathBuf>,
}

/// How a server says that it is ready.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadySignal {
    /// By a line in which this text stands right before the port that it chose.
    PortAfter(&'static str),
    /// By a line that holds this text; the port was chosen for it.
    Says(&'static str, u16),
}

/// As whom a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account {
    /// As the user of the test.
    Own,
    /// As the user of the test, who is called by this number there.
    Called(u32),
}

impl Account {
    /// Begins a command that runs `program` so.
    ///
    /// Another number needs no other user: in a user namespace the files are still those of the test, which another
    /// user could not reach in a clone below a directory that only its owner may enter.
    pub(crate) fn command(self, program: &Path) -> Command {
        match self {
            Self::Own => Command::new(program),
            Self::Called(number) => {
                let mut command = Command::new("unshare");
                command
                    .args(["--user", "--map-user", &number.to_string()])
                    .args(["--map-group", &number.to_string(), "--"])
                    .arg(program);
                command
            }
        }
    }
}

/// A running server; dropping it kills its whole process group.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    guard: Child,
    port: u16,
}

impl ServerProcess {
    /// Starts the server and returns once it has named the port it listens on.
    pub(crate) fn start(command: &ServerCommand) -> Result<Self, ServerError> {
        let mut server = command.account.command(&command.program);
        server
            .args(&command.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = server.spawn().map_err(|source| ServerError::Start {
            program: command.program.clone(),
            source,
        })?;
        let (lines, printed) = mpsc::channel();
        forward_lines(child.stdout.take(), lines.clone());
        forward_lines(child.stderr.take(), lines);
        let guard = match spawn_guard(child.id(), command.left_over.as_deref()) {
            Ok(guard) => guard,
            Err(source) => {
                child.kill().ok();
                child.wait().ok();
                return Err(ServerError::Start {
                    program: PathBuf::from("sh"),
                    source,
                });
            }
        };
        let mut process = Self {
            child,
            guard,
            port: 0,
        };
        process.port = wait_until_ready(&command.program, command.ready, &printed)?;
        Ok(process)
    }

    /// Starts a server again on the port that it had, which was free meanwhile: whoever asked for any may have been given it.
    pub(crate) fn start_again(
        start: impl Fn() -> Result<Self, ServerError>,
    ) -> Result<Self, ServerError> {
        let mut tried = 1;
        loop {
            match start() {
                Err(ServerError::NotReady { problem, .. })
                    if problem == ENDED && tried < STARTS =>
                {
                    tried += 1;
                }
                outcome => return outcome,
            }
            thread::sleep(BETWEEN_STARTS);
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sends a signal to the server's first process; answers whether it still runs.
    pub(crate) fn signal(&mut self, signal: Signal) -> bool {
        let Ok(number) = i32::try_from(self.child.id()) else {
            return false;
        };
        // Only while it runs is its number its own.
        self.is_running() && kill(Pid::from_raw(number), signal).is_ok()
    }

    /// Asks the server's first process to end and waits for it, but no longer than `limit`.
    pub(crate) fn ask_to_end(&mut self, signal: Signal, limit: Duration) {
        let deadline = Instant::now() + limit;
        self.signal(signal);
        while self.is_running() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the server and everything it started, at once and without a last word.
    pub(crate) fn kill(&mut self) {
        // While the guard lives the group exists, so that its number cannot mean another one.
        if matches!(self.guard.try_wait(), Ok(None))
            && let Ok(group) = i32::try_from(self.child.id())
        {
            killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
        }
        self.child.kill().ok();
        self.child.wait().ok();
        self.guard.wait().ok();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Joins a shell to the group that kills it when this test process is gone. An interrupted test
/// run never drops anything, but the pipe to the shell closes with it in any case.
fn spawn_guard(group: u32, left_over: Option<&Path>) -> std::io::Result<Child> {
    // Data can be removed for good only once nobody writes it any more.
    let script = "read -r _; [ -z \"$1\" ] || { kill -QUIT \"$2\"; \
        for _ in 1 2 3 4 5 6 7 8; do rm -rf -- \"$1\" && break; sleep 0.2; done; }; kill -KILL 0";
    Command::new("sh")
        .args(["-c", script, "guard"])
        .arg(left_over.unwrap_or(Path::new("")))
        .arg(group.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(i32::try_from(group).map_err(std::io::Error::other)?)
        .spawn()
}

/// Reads to the end even when nobody listens any more: a full pipe would stop the server.
fn forward_lines(stream: Option<impl Read + Send + 'static>, lines: Sender<String>) {
    let Some(stream) = stream else { return };
    thread::spawn(move || {
        let mut wanted = true;
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            wanted = wanted
                && lines
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_ok();
        }
    });
}

fn wait_until_ready(
    program: &Path,
    ready: ReadySignal,
    printed: &mpsc::Receiver<String>,
) -> Result<u16, ServerError> {
    let deadline = Instant::now() + START_LIMIT;
    let mut output = String::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let problem = match printed.recv_timeout(left) {
            Ok(line) => {
                let port = match ready {
                    ReadySignal::PortAfter(before_port) => port_after(before_port, &line),
                    ReadySignal::Says(text, port) => line.contains(text).then_some(port),
                };
                if let Some(port) = port {
                    return Ok(port);
                }
                output.push_str(&line);
                output.push('\n');
                continue;
            }
            Err(RecvTimeoutError::Timeout) => "did not get ready in time",
            Err(RecvTimeoutError::Disconnected) => ENDED,
        };
        return Err(ServerError::NotReady {
            program: program.to_owned(),
            problem,
            output,
        });
    }
}

fn port_after(before_port: &str, line: &str) -> Option<u16> {
    let (_, rest) = line.split_once(before_port)?;
    let digits = rest
        .split(|character: char| !character.is_ascii_digit())
        .next()?;
    digits.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn the_port_is_read_from_the_line_that_names_it() {
        let cases = [
            ("at http://127.0.0.1:4222", Some(4222)),
            (
                "at http://127.0.0.1:4222 (Press CTRL+C to quit)",
                Some(4222),
            ),
            ("at http://127.0.0.1:0 for now", None),
            ("at http://127.0.0.1:70000", None),
            ("elsewhere:4222", None),
        ];
        for (line, expected) in cases {
            assert_eq!(port_after("127.0.0.1:", line), expected, "{line}");
        }
    }

    fn shell(script: &str) -> ServerCommand {
        ServerCommand {
            program: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            ready: ReadySignal::PortAfter("port "),
            account: Account::Own,
            left_over: None,
        }
    }

    #[test]
    fn a_server_that_ends_early_is_reported_with_what_it_said() {
        let error = ServerProcess::start(&shell("echo cannot bind >&2; exit 1")).unwrap_err();
        assert!(error.to_string().contains("cannot bind"), "{error}");
        assert!(error.to_string().contains(ENDED), "{error}");
    }

    #[test]
    fn a_server_whose_port_somebody_has_for_a_moment_is_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let first = directory.path().join("first");
        let script = format!(
            "mkdir {} && {{ echo taken >&2; exit 1; }}; echo port 1; sleep 600",
            first.display()
        );
        let server = ServerProcess::start_again(|| ServerProcess::start(&shell(&script))).unwrap();
        assert!(first.is_dir());
        assert_eq!(server.port(), 1);
    }

    #[test]
    fn dropping_a_server_kills_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let pid_file = directory.path().join("pid");
        let script = format!(
            "sleep 600 & echo $! > {}; echo port 1; wait",
            pid_file.display()
        );
        let server = ServerProcess::start(&shell(&script)).unwrap();
        let grandchild = std::fs::read_to_string(&pid_file).unwrap();
        let grandchild = Pid::from_raw(grandchild.trim().parse().unwrap());
        assert!(is_running(grandchild));
        drop(server);
        // Who collects it is the system's first process, in its own time.
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_running(grandchild) && Instant::now() < deadline {
            thread::yield_now();
        }
        assert!(!is_running(grandchild));
    }

    #[test]
    fn a_test_run_that_is_gone_takes_its_servers_with_it() {
        let mut server = ServerProcess::start(&shell("echo port 1; sleep 600")).unwrap();
        drop(server.guard.stdin.take());
        let status = server.child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    }

    /// A zombie counts as ended: it only waits for its parent.
    fn is_running(process: Pid) -> bool {
        std::fs::read_to_string(format!("/proc/{process}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    }
}
