//! NATS, PostgreSQL, Telegram and the two model emulators, each on a free port of the loopback interface.

mod postgres;
mod spans;

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::process::{Account, ReadySignal, ServerCommand, ServerProcess};

pub use crate::server_error::ServerError;
pub use postgres::PostgresServer;
pub use spans::{ReceivedSpan, SpanReceiver};

/// A real nats-server with JetStream, its data in a temporary directory.
#[derive(Debug)]
pub struct NatsServer {
    // Dropped first: the server must not outlive its data.
    process: ServerProcess,
    store: PathBuf,
    _directory: Option<TempDir>,
}

impl NatsServer {
    /// Starts a server with an empty store on a free port.
    pub fn start() -> Result<Self, ServerError> {
        let store = TempDir::with_prefix("ropewalk-nats-").map_err(ServerError::Directory)?;
        let server = Self::start_in(store.path())?;
        Ok(Self {
            _directory: Some(store),
            ..server
        })
    }

    /// Starts a server with its store in `directory`, which outlives it.
    pub fn start_in(directory: &Path) -> Result<Self, ServerError> {
        Ok(Self {
            // -1 lets the server choose, so that no other test can take the port in between.
            process: Self::run(directory, "-1")?,
            store: directory.to_owned(),
            _directory: None,
        })
    }

    /// The address for clients, `nats://127.0.0.1:PORT`; it survives a restart.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port())
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.process.port()
    }

    /// The directory that holds its streams.
    pub fn store_directory(&self) -> &Path {
        &self.store
    }

    /// Kills it with SIGKILL, as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops it in the middle of whatever it does, until [`NatsServer::resume`]; answers whether it runs at all.
    pub fn pause(&mut self) -> bool {
        self.process.signal(Signal::SIGSTOP)
    }

    /// Lets a paused server go on.
    pub fn resume(&mut self) -> bool {
        self.process.signal(Signal::SIGCONT)
    }

    /// Starts it again on the same port and store, killing it first when it still runs.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.kill();
        let port = self.port().to_string();
        self.process = ServerProcess::start_again(|| Self::run(&self.store, &port))?;
        Ok(())
    }

    fn run(store: &Path, port: &str) -> Result<ServerProcess, ServerError> {
        ServerProcess::start(&ServerCommand {
            program: nats_server_program()?,
            arguments: [
                "--addr",
                "127.0.0.1",
                "--port",
                port,
                "--jetstream",
                "--store_dir",
            ]
            .into_iter()
            .map(str::to_owned)
            .chain([store.display().to_string()])
            .collect(),
            ready: ReadySignal::PortAfter("Listening for client connections on 127.0.0.1:"),
            account: Account::Own,
            left_over: None,
        })
    }
}

/// The npm emulator `aimock`: scripted answers in the wire formats of several providers.
#[derive(Debug)]
pub struct Aimock {
    process: ServerProcess,
}

impl Aimock {
    /// Starts it on a fixture file; a request that matches no fixture is an error.
    pub fn start(fixtures: &Path) -> Result<Self, ServerError> {
        let process = ServerProcess::start(&ServerCommand {
            program: aimock_program()?,
            arguments: [
                "--port",
                "0",
                "--host",
                "127.0.0.1",
                "--strict",
                "--fixtures",
            ]
            .into_iter()
            .map(str::to_owned)
            .chain([fixtures.display().to_string()])
            .collect(),
            ready: ReadySignal::PortAfter("listening on http://127.0.0.1:"),
            account: Account::Own,
            left_over: None,
        })?;
        Ok(Self { process })
    }

    /// The address of both wire formats, without a path: `/v1/messages` and
    /// `/v1/chat/completions` lie below it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.process.port())
    }
}

/// The PyPI emulator `llmock`: it injects faults and judges how the client met them.
#[derive(Debug)]
pub struct Llmock {
    process: ServerProcess,
}

impl Llmock {
    /// Starts it without faults; `POST /_llmock/scenario` queues them.
    pub fn start() -> Result<Self, ServerError> {
        let process = ServerProcess::start(&ServerCommand {
            program: llmock_program()?,
            arguments: ["serve", "--host", "127.0.0.1", "--port", "0"]
                .map(str::to_owned)
                .to_vec(),
            ready: ReadySignal::PortAfter("Uvicorn running on http://127.0.0.1:"),
            account: Account::Own,
            left_over: None,
        })?;
        Ok(Self { process })
    }

    /// Its address, without a path: `/anthropic`, `/v1` (OpenAI) and `/_llmock` (control) lie
    /// below it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.process.port())
    }
}

/// The PyPI emulator of the Bot API of Telegram, which answers 429 or nothing on demand.
#[derive(Debug)]
pub struct TelegramServer {
    process: ServerProcess,
    _journal: TempDir,
}

impl TelegramServer {
    /// Starts it without faults; `POST /__fault` brings some, `GET /__said` tells what a bot did.
    pub fn start() -> Result<Self, ServerError> {
        let journal = TempDir::with_prefix("ropewalk-telegram-").map_err(ServerError::Directory)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/telegram_emulator.py");
        let process = ServerProcess::start(&ServerCommand {
            program: telegram_python()?,
            arguments: vec![
                script.display().to_string(),
                journal.path().join("journal.jsonl").display().to_string(),
            ],
            ready: ReadySignal::PortAfter("listening on http://127.0.0.1:"),
            account: Account::Own,
            left_over: None,
        })?;
        Ok(Self {
            process,
            _journal: journal,
        })
    }

    /// Its address, as `telegram.api_url` takes it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.process.port())
    }
}

/// Finds the Python beside lo-bot-api-emulator: `ROPEWALK_TELEGRAM_EMULATOR`, else what `./check` installed.
fn telegram_python() -> Result<PathBuf, ServerError> {
    let emulator = find(
        "lo-bot-api-emulator",
        "ROPEWALK_TELEGRAM_EMULATOR",
        "venv/bin/lo-bot-api-emulator",
        Vec::new(),
    )?;
    Ok(emulator.with_file_name("python"))
}

/// Finds nats-server: `ROPEWALK_NATS_SERVER`, else what `./check` installed, else the PATH.
pub fn nats_server_program() -> Result<PathBuf, ServerError> {
    let on_path = std::env::var_os("PATH")
        .map(|path| {
            std::env::split_paths(&path)
                .map(|each| each.join("nats-server"))
                .collect()
        })
        .unwrap_or_default();
    find(
        "nats-server",
        "ROPEWALK_NATS_SERVER",
        "venv/bin/nats-server",
        on_path,
    )
}

/// Finds aimock: `ROPEWALK_AIMOCK`, else what `./check` installed. Its program is called llmock.
pub fn aimock_program() -> Result<PathBuf, ServerError> {
    find(
        "aimock",
        "ROPEWALK_AIMOCK",
        "npm/node_modules/.bin/llmock",
        Vec::new(),
    )
}

/// Returns where `./check` installed what pages are tested with.
pub fn node_modules() -> Result<PathBuf, ServerError> {
    let marker = find(
        "playwright-core",
        "ROPEWALK_PLAYWRIGHT",
        "npm/node_modules/playwright-core/package.json",
        Vec::new(),
    )?;
    let found = marker.parent().and_then(Path::parent);
    Ok(found.map_or_else(PathBuf::new, Path::to_owned))
}

/// Finds llmock: `ROPEWALK_LLMOCK`, else what `./check` installed.
pub fn llmock_program() -> Result<PathBuf, ServerError> {
    find("llmock", "ROPEWALK_LLMOCK", "venv/bin/llmock", Vec::new())
}

/// Finds schemathesis: `ROPEWALK_SCHEMATHESIS`, else what `./check` installed; `python` and `openapi-python-client` stand
/// beside it.
pub fn schemathesis_program() -> Result<PathBuf, ServerError> {
    find(
        "schemathesis",
        "ROPEWALK_SCHEMATHESIS",
        "api/bin/schemathesis",
        Vec::new(),
    )
}

fn find(
    name: &'static str,
    variable: &'static str,
    below_tools: &str,
    elsewhere: Vec<PathBuf>,
) -> Result<PathBuf, ServerError> {
    let named = std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools");
    let candidates = match named {
        // Whoever names a program wants that one or an error.
        Some(program) => vec![program],
        None => [tools.join(below_tools)]
            .into_iter()
            .chain(elsewhere)
            .collect(),
    };
    candidates
        .into_iter()
        .find(|program| program.is_file())
        .ok_or(ServerError::Missing { name, variable })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// The first bytes of the answer to a request, or of the greeting when there is none.
    fn exchange(url: &str, request: &str) -> String {
        let (_, address) = url.split_once("://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut buffer = [0; 256];
        let length = stream.read(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn nats_comes_back_on_its_port_with_its_store_after_a_kill() {
        let mut server = NatsServer::start().unwrap();
        let url = server.url();
        assert!(exchange(&url, "").starts_with("INFO "));
        server.kill();
        assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
        server.restart().unwrap();
        assert_eq!(server.url(), url);
        let greeting = exchange(&url, "");
        assert!(greeting.starts_with("INFO "), "{greeting}");
        assert!(server.store_directory().join("jetstream").is_dir());
    }

    #[test]
    fn two_nats_servers_run_side_by_side() {
        let (one, other) = (NatsServer::start().unwrap(), NatsServer::start().unwrap());
        assert_ne!(one.port(), other.port());
    }

    #[test]
    fn aimock_answers() {
        let directory = tempfile::tempdir().unwrap();
        let fixtures = directory.path().join("fixtures.json");
        let script = r#"{"fixtures":[{"match":{"userMessage":"hi"},"response":{"content":"ho"}}]}"#;
        std::fs::write(&fixtures, script).unwrap();
        let server = Aimock::start(&fixtures).unwrap();
        let answer = exchange(&server.url(), "GET /__aimock/journal HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[test]
    fn llmock_answers() {
        let server = Llmock::start().unwrap();
        let answer = exchange(&server.url(), "GET /_llmock/requests HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[test]
    fn a_missing_program_names_the_cure() {
        let error = find("ghost", "ROPEWALK_GHOST", "nowhere/ghost", Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`ghost` is not installed: run ./check, or name its program in `ROPEWALK_GHOST`"
        );
    }
}
