//! A nats-server with a configuration of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use ropewalk_tests::servers::nats_server_program;
use tempfile::TempDir;

/// A server on a free port, gone with this value.
pub(crate) struct ConfiguredServer {
    child: Child,
    address: String,
    port: u16,
    _directory: TempDir,
}

impl ConfiguredServer {
    /// Starts a server with these lines of configuration; `STORE` stands for its own directory.
    pub(crate) fn start(configuration: &str) -> Result<Self> {
        Self::run(
            Command::new(nats_server_program()?),
            "127.0.0.1",
            configuration,
        )
    }

    /// Starts a server at `address` in a network of its own, which this file stands for.
    pub(crate) fn start_in(network: &str, address: &str, configuration: &str) -> Result<Self> {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={network}"))
            .arg(nats_server_program()?);
        Self::run(command, address, configuration)
    }

    fn run(mut command: Command, address: &str, configuration: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("nats.conf");
        let store = format!("\"{}\"", directory.path().display());
        std::fs::write(&file, configuration.replace("STORE", &store))?;
        let mut child = command
            .args(["--addr", address, "--port", "-1", "--config"])
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stderr.take().context("no output")?);
        let mut server = Self {
            child,
            address: address.to_owned(),
            port: 0,
            _directory: directory,
        };
        let mut said = Vec::new();
        let mut lines = output.lines();
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, port)) = line.split_once("client connections on ") {
                let (_, port) = port.split_once(':').context("no port")?;
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
        format!("nats://{}:{}", self.address, self.port)
    }
}

impl Drop for ConfiguredServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
