//! A receiver of spans that others wrote: the PyPI program `oteltap`, which prints each span as a line of JSON.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::find;
use crate::server_error::ServerError;

/// How long it may take to start.
const START: Duration = Duration::from_mins(1);

/// How often another port is tried when somebody takes the free one first.
const PORTS_TRIED: u32 = 3;

/// A running receiver of OTLP over HTTP.
#[derive(Debug)]
pub struct SpanReceiver {
    process: Child,
    port: u16,
    said: PathBuf,
    _directory: TempDir,
}

/// A span as it was received.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedSpan(Value);

impl SpanReceiver {
    /// Starts it on a free port.
    pub fn start() -> Result<Self, ServerError> {
        let mut tried = 1;
        loop {
            match Self::start_once() {
                Err(ServerError::NotReady { .. }) if tried < PORTS_TRIED => tried += 1,
                outcome => return outcome,
            }
        }
    }

    fn start_once() -> Result<Self, ServerError> {
        let directory = TempDir::with_prefix("ropewalk-spans-").map_err(ServerError::Directory)?;
        let program = find(
            "oteltap",
            "ROPEWALK_OTELTAP",
            "venv/bin/oteltap",
            Vec::new(),
        )?;
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(ServerError::Directory)?
            .port();
        let said = directory.path().join("said");
        let out = File::create(&said).map_err(ServerError::Directory)?;
        let program = program.with_file_name("python");
        let process = Command::new(&program)
            .args(["-u", "-m", "oteltap", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(out)
            .spawn()
            .map_err(ServerError::Directory)?;
        let mut receiver = Self {
            process,
            port,
            said,
            _directory: directory,
        };
        let began = Instant::now();
        while !receiver.text().contains("Listening") {
            let ended = !matches!(receiver.process.try_wait(), Ok(None));
            if ended || began.elapsed() > START {
                return Err(ServerError::NotReady {
                    program,
                    problem: "does not listen",
                    output: receiver.text(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(receiver)
    }

    /// Its address, as `telemetry.endpoint` takes it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns what it has received so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let text = self.text();
        let lines = text.lines().filter(|line| line.starts_with('{'));
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .map(ReceivedSpan)
            .collect()
    }

    /// Returns every word of it.
    pub fn text(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Drop for SpanReceiver {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl ReceivedSpan {
    /// Returns its trace.
    pub fn trace(&self) -> &str {
        self.text("traceId")
    }

    /// Returns its id.
    pub fn id(&self) -> &str {
        self.text("spanId")
    }

    /// Returns what it is a part of; none for the first of a trace.
    pub fn parent(&self) -> Option<&str> {
        Some(self.text("parentSpanId")).filter(|parent| !parent.is_empty())
    }

    /// Returns what whoever asked keeps beside the trace.
    pub fn state(&self) -> &str {
        self.text("traceState")
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// Returns what an attribute says, a number as its digits.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let all = self.0["attributes"].as_array()?;
        let found = all.iter().find(|attribute| attribute["key"] == key)?;
        let value = found["value"].as_object()?;
        value.values().next()?.as_str()
    }

    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }
}
