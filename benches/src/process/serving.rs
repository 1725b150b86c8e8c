//! What the whole program holds while it waits: `up` with its pages, its API and a bot.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use ropewalk_config::{Config, Environment};
use ropewalk_runtime::http::{self, ClientOptions};
use ropewalk_tests::repository;
use ropewalk_tests::servers::TelegramServer;

use super::{SETTLE, status_bytes};
use crate::disk;
use crate::figure::{Figure, Goal};

/// The variable with the token of the bot.
const TOKEN: &str = "BENCH_TELEGRAM_TOKEN";
/// How long the bot may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// What the bot does once it is there.
const BEGINS_WITH: &str = "setmycommands";

/// The program, killed when dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}

/// Measures the memory of `up`.
pub(super) async fn idle() -> Result<Figure> {
    let directory = disk::directory()?;
    let server = TelegramServer::start()?;
    lay(directory.path(), &server)?;
    let up = start(directory.path())?;
    until_bot(&server).await?;
    tokio::time::sleep(SETTLE).await;
    let mebibytes = status_bytes(up.0.id(), "VmRSS:")? / 1_048_576.0;
    let name = "idle memory, `up` with pages, API and bot";
    Ok(Figure::cost(name, "MiB", mebibytes).goal(Goal::Value(30.0)))
}

/// Lays a project whose models are scripted, and a home that names the bot.
fn lay(directory: &Path, server: &TelegramServer) -> Result<()> {
    repository::begin(&directory.join("repo"), &[("a.txt", "a\n")])?;
    fs::write(directory.join("ropewalk.toml"), repository::SCRIPTED)?;
    fs::write(directory.join("script.yaml"), "[]\n")?;
    let home = directory.join("home/.config/ropewalk");
    fs::create_dir_all(&home)?;
    let bot = format!(
        "[telegram]\ntoken_variable = \"{TOKEN}\"\napi_url = \"{}\"\n",
        server.url()
    );
    fs::write(home.join("config.toml"), bot)?;
    let environment = Environment::from_pairs([("HOME", directory.join("home"))]);
    let loaded = Config::load_whoever_wrote_it(directory, &environment, &[])?;
    let request = loaded.trust.context("nothing to trust")?;
    Ok(request.trust(&environment, "now")?)
}

/// Starts the program that was built beside this one, and waits until it serves.
fn start(directory: &Path) -> Result<Program> {
    let program = std::env::current_exe()?.with_file_name("ropewalk");
    ensure!(
        program.exists(),
        "no `{}`: build `ropewalk` with the same profile first",
        program.display()
    );
    let mut child = Command::new(program)
        .arg("up")
        .current_dir(directory)
        .env("HOME", directory.join("home"))
        // Where a panic was shown with its names, the table of those is held for ever.
        .env_remove("RUST_BACKTRACE")
        .env(TOKEN, "123456:TEST-of-a-benchmark")
        .env("ROPEWALK_SERVER__ADDRESS", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let said = child.stderr.take().context("a child without an output")?;
    let up = Program(child);
    let mut told = String::new();
    for line in BufReader::new(said).lines() {
        let line = line?;
        if line.contains("pages and API:") {
            return Ok(up);
        }
        told.push_str(&line);
    }
    anyhow::bail!("`up` ended: {told}")
}

/// Waits until the bot has told Telegram of itself.
async fn until_bot(server: &TelegramServer) -> Result<()> {
    let client = http::client(ClientOptions::default())?;
    let begun = Instant::now();
    loop {
        let asked = client.get(format!("{}__said", server.url())).send();
        let said = asked.await?.text().await?.to_lowercase();
        if said.contains(BEGINS_WITH) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "no bot came: {said}");
        tokio::time::sleep(SETTLE / 10).await;
    }
}
