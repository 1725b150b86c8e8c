//! A nats-server with a configuration of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use ropewalk_tests::servers::nats_server_program;
use tempfile::TempDir;

/// A server on a free port, gone with this value.
pub(crate) struct ConfiguredServer {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl ConfiguredServer {
    /// Starts a server with these lines of configuration; `STORE` stands for its own directory.
    pub(crate) fn start(configuration: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("nats.conf");
        let store = format!("\"{}\"", directory.path().display());
        std::fs::write(&file, configuration.replace("STORE", &store))?;
        let mut child = Command::new(nats_server_program()?)
            .args(["--addr", "127.0.0.1", "--port", "-1", "--config"])
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stderr.take().context("no output")?);
        let mut server = Self {
            child,
            port: 0,
            _directory: directory,
        };
        let mut said = Vec::new();
        let mut lines = output.lines();
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, port)) = line.split_once("client connections on 127.0.0.1:") {
                server.port = port.trim().parse()?;
                // Somebody has to read on, or the server would stop at a full pipe.
                std::thread::spawn(move || lines.count());
                return Ok(server);
            }
            said.push(line);
        }
        bail!("nats-server did not start: {said:?}")
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for ConfiguredServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
