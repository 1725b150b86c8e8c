//! A PostgreSQL server with an empty cluster, which never runs as root.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use tempfile::TempDir;

use super::{ServerError, find};
use crate::process::{Account, ReadySignal, ServerCommand, ServerProcess};

/// The number of `nobody`, by which root is called where the server runs: PostgreSQL refuses to be root.
const NOBODY: u32 = 65_534;

/// How often another port is tried when somebody takes the free one first.
const PORTS_TRIED: u32 = 3;

/// How long a server may take to end when it is told to end at once.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Settings that make a server for tests light: it survives its own kill, but not a power loss.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "shared_buffers=32MB",
    // Many tests share it at once, each with a dozen at most; how many is up to who runs them, and room costs little.
    "max_connections=1000",
    "log_min_messages=log",
    "logging_collector=off",
];

static SHARED: OnceLock<Result<PostgresServer, String>> = OnceLock::new();

/// A real PostgreSQL server, its data in a temporary directory; `ropewalk` may do everything without a password.
#[derive(Debug)]
pub struct PostgresServer {
    // Dropped first: the server must not outlive its data.
    process: ServerProcess,
    directory: TempDir,
    program: PathBuf,
    account: Account,
}

impl PostgresServer {
    /// Starts a server with one empty database on a free port.
    pub fn start() -> Result<Self, ServerError> {
        Self::start_program(postgres_program()?)
    }

    fn start_program(program: PathBuf) -> Result<Self, ServerError> {
        let account = if geteuid().is_root() {
            Account::Called(NOBODY)
        } else {
            Account::Own
        };
        let directory = make_cluster(&program, account)?;
        let mut tried = 1;
        let process = loop {
            match run(&program, directory.path(), account, free_port()?) {
                Err(ServerError::NotReady { .. }) if tried < PORTS_TRIED => tried += 1,
                outcome => break outcome?,
            }
        };
        Ok(Self {
            process,
            directory,
            program,
            account,
        })
    }

    /// Returns the one server of this test program; a test that stops its server starts one of its own.
    pub fn shared() -> Result<&'static Self, String> {
        SHARED
            .get_or_init(|| Self::start().map_err(|error| error.to_string()))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// The address for clients, `postgres://ropewalk@127.0.0.1:PORT/postgres`; it survives a restart.
    pub fn url(&self) -> String {
        format!("postgres://ropewalk@127.0.0.1:{}/postgres", self.port())
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.process.port()
    }

    /// Ends it at once, as a crash would: what was not committed is lost, and the next start recovers the rest.
    pub fn kill(&mut self) {
        // It takes its own processes along, which a kill of the first one would leave to themselves for a while.
        self.process.ask_to_end(Signal::SIGQUIT, END_LIMIT);
        self.process.kill();
    }

    /// Starts it again on the same port and data, ending it first when it still runs.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.kill();
        let port = self.port();
        let directory = self.directory.path();
        self.process =
            ServerProcess::start_again(|| run(&self.program, directory, self.account, port))?;
        Ok(())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Finds postgres: `ROPEWALK_POSTGRES`, else what `./check` installed, else the PATH and where Debian keeps it.
pub(super) fn postgres_program() -> Result<PathBuf, ServerError> {
    let mut elsewhere: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| {
            std::env::split_paths(&path)
                .map(|each| each.join("postgres"))
                .collect()
        })
        .unwrap_or_default();
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| {
            entries
                .filter_map(|entry| Some(entry.ok()?.path().join("bin/postgres")))
                .collect()
        })
        .unwrap_or_default();
    versions.sort_unstable();
    elsewhere.extend(versions.into_iter().rev());
    let program = find(
        "postgres",
        "ROPEWALK_POSTGRES",
        "postgresql/bin/postgres",
        elsewhere,
    )?;
    // What a link names lies beside the programs that belong to it.
    Ok(program.canonicalize().unwrap_or(program))
}

/// Makes an empty cluster of databases.
fn make_cluster(postgres: &Path, account: Account) -> Result<TempDir, ServerError> {
    let directory = TempDir::with_prefix("ropewalk-postgres-").map_err(ServerError::Directory)?;
    let program = postgres.with_file_name("initdb");
    let mut command = account.command(&program);
    command
        .args(["--auth", "trust", "--username", "ropewalk"])
        .args(["--encoding", "UTF8", "--locale", "C", "--no-sync"])
        .arg("--pgdata")
        .arg(data(directory.path()));
    let output = command.output().map_err(|source| ServerError::Start {
        program: program.clone(),
        source,
    })?;
    if output.status.success() {
        return Ok(directory);
    }
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed.push_str(&String::from_utf8_lossy(&output.stderr));
    Err(ServerError::Unmade {
        program,
        output: printed,
    })
}

fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn free_port() -> Result<u16, ServerError> {
    let chosen = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    chosen
        .map(|address| address.port())
        .map_err(|source: io::Error| ServerError::Start {
            program: PathBuf::from("postgres"),
            source,
        })
}

fn run(
    program: &Path,
    directory: &Path,
    account: Account,
    port: u16,
) -> Result<ServerProcess, ServerError> {
    let mut arguments = vec![
        "-D".to_owned(),
        data(directory).display().to_string(),
        "-p".to_owned(),
        port.to_string(),
    ];
    for setting in SETTINGS {
        arguments.extend(["-c".to_owned(), (*setting).to_owned()]);
    }
    ServerProcess::start(&ServerCommand {
        program: program.to_owned(),
        arguments,
        ready: ReadySignal::Says("database system is ready to accept connections", port),
        account,
        left_over: Some(directory.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// Whether the server says that it has no TLS, which it answers before anything else.
    fn answers(server: &PostgresServer) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", server.port())) else {
            return false;
        };
        let asked = stream.write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
        let mut answer = [0];
        asked.is_ok() && stream.read_exact(&mut answer).is_ok() && answer == *b"N"
    }

    #[test]
    fn postgres_runs_where_only_the_owner_may_enter() {
        // A temporary directory is closed to everybody else.
        let closed = tempfile::tempdir().unwrap();
        let programs = closed.path().join("bin");
        let installed = postgres_program().unwrap();
        std::os::unix::fs::symlink(installed.parent().unwrap(), &programs).unwrap();
        let program = programs.join("postgres");
        let server = PostgresServer::start_program(program).unwrap();
        assert!(answers(&server));
    }

    #[test]
    fn postgres_comes_back_on_its_port_with_its_data_after_a_kill() {
        let mut server = PostgresServer::start().unwrap();
        assert!(answers(&server));
        let url = server.url();
        server.kill();
        assert!(!answers(&server));
        server.restart().unwrap();
        assert!(answers(&server));
        assert_eq!(server.url(), url);
        let directory = server.directory.path().to_owned();
        assert!(data(&directory).join("PG_VERSION").is_file());
        drop(server);
        assert!(!directory.exists());
    }
}
