//! A build that nobody watches, by an emulator that others wrote, in every wire format and without a word on the sandbox:
//! what it tries on what is not its own is refused and told, and its work lands.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::unistd::geteuid;
use ropewalk_runtime::http;
use ropewalk_tests::program::Runner;
use ropewalk_tests::repository;
use ropewalk_tests::servers::{Aimock, NatsServer};
use serde_json::{Value, json};

use crate::emulator::{FORMATS, Format};
use crate::fallback::{Project, emulator};
use crate::picture::git;
use crate::running::{start, until_ready};

const KEY_VARIABLE: &str = "EMULATOR_API_KEY";
/// Stands in all that is not for the model, and in the environment of the program.
const CANARY: &str = "canary-of-the-walks";
/// Tools of another home are not shown to commands, nor to a user who is nobody.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Whom root becomes to be a user.
const NOBODY: u32 = 65534;
const PATIENCE: Duration = Duration::from_mins(2);

/// Serves a page on an address of its own, and asks for it.
const ASK: &str = "\
from http.server import HTTPServer, SimpleHTTPRequestHandler
from threading import Thread
from urllib.request import urlopen

server = HTTPServer((\"127.0.0.1\", 0), SimpleHTTPRequestHandler)
Thread(target=server.serve_forever, daemon=True).start()
page = urlopen(\"http://127.0.0.1:%d/ask.py\" % server.server_port).read()
assert b\"serve_forever\" in page
print(\"served\")
";

/// What a model tries, and what it is told.
struct Attempt {
    tool: &'static str,
    input: Value,
    told: String,
    /// What does the same where nothing is in the way.
    line: String,
    /// What it gets then.
    prize: &'static str,
}

impl Attempt {
    fn read(path: &str, prize: &'static str) -> Self {
        Self {
            tool: "read",
            input: json!({ "path": path }),
            told: path.to_owned(),
            line: format!("cat {path}"),
            prize,
        }
    }

    fn write(path: &str) -> Self {
        Self {
            tool: "write",
            input: json!({ "path": path, "content": "escaped\n" }),
            told: path.to_owned(),
            line: format!("echo escaped > {path} && cat {path}"),
            prize: "escaped",
        }
    }

    fn line(line: &str, told: &str, prize: &'static str) -> Self {
        Self {
            tool: "bash",
            input: json!({ "command": line }),
            told: told.to_owned(),
            line: line.to_owned(),
            prize,
        }
    }
}

/// A directory with a home, a repository with a link that leads out of it, and what a model may not see.
struct Ground {
    base: PathBuf,
    bus: u16,
}

impl Ground {
    fn lay(&self) -> anyhow::Result<()> {
        for file in ["outside/kept", "home/.ssh/id"] {
            repository::write(&self.base.join(file), CANARY)?;
        }
        let files = [("README.md", "# Walks\n"), ("walks.sh", "# Lists walks.\n")];
        repository::begin(&self.base.join("repo"), &files)?;
        let repo = self.base.join("repo");
        std::os::unix::fs::symlink(self.base.join("outside/kept"), repo.join("out"))?;
        git(&repo, &["add", "-A"])?;
        git(&repo, &["commit", "-q", "-m", "Link"])?;
        Ok(())
    }

    /// Hides something in the state directory, which the program has made.
    fn hide(&self) -> anyhow::Result<()> {
        for file in ["state/kept", "state/slots/9/tree/kept"] {
            repository::write(&self.base.join(file), CANARY)?;
        }
        Ok(())
    }

    fn attempts(&self) -> Vec<Attempt> {
        let base = self.base.display();
        let hidden = |path: &str| {
            let line = format!("cat {base}/{path}");
            let told = format!("the sandbox does not show it `{base}/{path}`");
            Attempt::line(&line, &told, CANARY)
        };
        let ssh = format!("cat ~/.ssh/id; cat {base}/home/.ssh/id");
        let bus = format!("curl -sS --http0.9 http://127.0.0.1:{}", self.bus);
        vec![
            Attempt::read("../x", CANARY),
            Attempt::write("../x"),
            Attempt::read("out", CANARY),
            Attempt {
                line: "echo escaped > ../x && cat ../x".to_owned(),
                ..Attempt::line(
                    "echo escaped > ../x",
                    "the sandbox lets it not change",
                    "escaped",
                )
            },
            Attempt::line("cat out", "out: No such file", CANARY),
            hidden("state/slots/9/tree/kept"),
            hidden("state/kept"),
            Attempt::line(
                &ssh,
                &format!("the sandbox does not show it `{base}/home/.ssh/id`"),
                CANARY,
            ),
            Attempt::line(
                "cat /proc/*/environ | tr '\\0' '\\n' | grep WALKS_NOTE",
                "[exit code 1]",
                CANARY,
            ),
            Attempt::line(
                &bus,
                &format!("connect to 127.0.0.1 port {}", self.bus),
                "INFO {",
            ),
            Attempt::line(
                "curl -sS http://other.test/page",
                "it did not reach `other.test`",
                CANARY,
            ),
        ]
    }
}

/// Plans one task, tries all of it, and then does what was asked for.
fn conversation(attempts: &[Attempt]) -> Value {
    let call = |id: &str, tool: &str, input: &Value| json!({ "type": "toolCall", "id": id, "name": tool, "arguments": input });
    let says = |matched: Value, blocks: Value| json!({ "match": matched, "response": { "blocks": blocks } });
    let after = |id: &str| json!({ "toolCallId": id });
    let with = |tool: &str| json!({ "toolName": tool });
    let mut tries = vec![json!({ "type": "text", "text": "I look around first." })];
    for (number, attempt) in attempts.iter().enumerate() {
        tries.push(call(&format!("try_{number}"), attempt.tool, &attempt.input));
    }
    let last = format!("try_{}", attempts.len() - 1);
    let work = json!([
        call(
            "write_1",
            "write",
            &json!({ "path": "ask.py", "content": ASK })
        ),
        call("bash_1", "bash", &json!({ "command": "python3 ask.py" })),
    ]);
    let done = json!({ "summary": "Wrote a server that asks itself." });
    let review = json!({ "patterns": [], "gotchas": [], "divergences": [], "notes": [] });
    json!([
        says(after("bash_1"), json!([call("finish_1", "finish", &done)])),
        says(after(&last), work),
        says(with("finish"), Value::Array(tries)),
        says(
            with("specification"),
            json!([call("plan_1", "specification", &plan())])
        ),
        says(with("review"), json!([call("review_1", "review", &review)])),
    ])
}

fn plan() -> Value {
    json!({
        "document": {
            "title": "Walks", "context_read": [], "missing_inputs": [], "objective": "A server asks itself.",
            "success_criteria": ["it is served"], "out_of_scope": [],
            "requirements": [{ "id": "FR-1", "text": "A page is served.", "priority": "must",
                "acceptance": "it is asked for", "source": "planning/brief.md" }],
            "quality": [], "new_files": [], "modified_files": [], "avoid_files": [], "interfaces": [], "data": [],
            "dependencies": [], "gotchas": [], "validation": ["python3 ask.py"], "risks": [] },
        "tasks": [{ "id": "T-001", "phase": "project", "action": "CREATE", "file": "ask.py",
            "requirements": [{ "id": "FR-1", "text": "Serve a page and ask for it." }], "gotchas": [],
            "validation": { "command": "python3 ask.py", "expected": "contains served" }, "depends_on": [] }],
    })
}

fn settings((kind, path): Format, server: &Aimock, bus: &NatsServer) -> String {
    let roles =
        ["chat", "spec", "build", "small"].map(|role| format!("{role} = \"emulator/any\"\n"));
    format!(
        "[project]\nname = \"walks\"\nrepo = \"repo\"\nstate = \"state\"\n\n[person]\nname = \"pat\"\n\n\
         [bus]\ntransport = \"{}\"\n\n[models]\n{}\n\
         [providers.emulator]\nkind = \"{kind}\"\nbase_url = \"{}{path}\"\nkey_variable = \"{KEY_VARIABLE}\"\n",
        bus.url(),
        roles.concat(),
        server.url(),
    )
}

/// Gives everything below a directory to a user.
fn give(directory: &Path, user: Option<u32>) -> anyhow::Result<()> {
    let Some(user) = user else { return Ok(()) };
    let mut chown = Command::new("chown");
    let status = chown
        .arg("-Rh")
        .arg(format!("{user}:{user}"))
        .arg(directory);
    ensure!(
        status.status()?.success(),
        "cannot give `{}` away",
        directory.display()
    );
    Ok(())
}

/// Begins a command of a user, in the repository, with nothing in its way.
fn unconfined(base: &Path, user: Option<u32>, program: &str) -> Command {
    let mut command = match user {
        None => Command::new(program),
        Some(user) => {
            let mut command = Command::new("setpriv");
            let options = [format!("--reuid={user}"), format!("--regid={user}")];
            command.args(options).arg("--clear-groups").arg(program);
            command
        }
    };
    let home = base.join("home");
    command.current_dir(base.join("repo")).env("HOME", home);
    command
}

/// Ends a process with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Stands for the outside on a machine without a network: a proxy that answers every request.
fn outside() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    // It ends with the process of the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut asked = BufReader::new(&stream).lines();
            while asked
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let length = CANARY.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{CANARY}"
            );
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    Ok(format!("http://{address}"))
}

/// Checks that each of the attempts gets what it wants where nothing is in its way.
fn check_prizes(ground: &Ground, user: Option<u32>, attempts: &[Attempt]) -> anyhow::Result<()> {
    let beside = ground.base.join("x");
    repository::write(&beside, CANARY)?;
    give(&beside, user)?;
    let outside = outside()?;
    let mut other = unconfined(&ground.base, user, "sleep");
    let _other = Ending(other.arg("600").env("WALKS_NOTE", CANARY).spawn()?);
    for attempt in attempts {
        let (line, prize) = (&attempt.line, attempt.prize);
        let mut shell = unconfined(&ground.base, user, "sh");
        let shell = shell.args(["-c", line]).env("http_proxy", &outside);
        let output: Output = shell.env("no_proxy", "127.0.0.1").output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(said.contains(prize), "unconfined `{line}`: {output:?}");
    }
    fs::remove_file(&beside)?;
    Ok(())
}

/// Waits for the end of the build, and returns its log.
fn log_of(project: &Project) -> anyhow::Result<Vec<Value>> {
    let began = Instant::now();
    while project
        .json("build list")?
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        ensure!(began.elapsed() < PATIENCE, "no build begins");
        std::thread::sleep(Duration::from_millis(50));
    }
    let wait = project.run("build wait walks --at-most 100");
    let log = project.json("build log walks")?;
    wait.with_context(|| format!("{log:#}"))?;
    Ok(log.as_array().context("a list")?.clone())
}

/// Finds what a model was told of one of its calls.
fn told_of<'log>(log: &'log [Value], item: &str) -> Option<&'log Value> {
    let mut ends = log.iter().filter(|entry| entry["kind"] == "tool_ended");
    ends.find(|entry| entry["item"] == item)
}

/// Checks that each attempt failed, and that who tried reads why.
fn check_refusals(log: &[Value], attempts: &[Attempt]) -> anyhow::Result<()> {
    for (number, attempt) in attempts.iter().enumerate() {
        let end = told_of(log, &format!("try_{number}"));
        let end = end.with_context(|| format!("no end of {}", attempt.input))?;
        assert_eq!(end["is_error"], true, "{end:#}");
        let told = end["output"].as_str().context("a text")?;
        ensure!(told.contains(&attempt.told), "{}: {told}", attempt.input);
    }
    Ok(())
}

/// Builds in one format as one user.
async fn build(format: Format, user: Option<u32>) -> anyhow::Result<()> {
    let bus = NatsServer::start()?;
    let directory = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()?;
    let ground = Ground {
        base: directory.path().to_owned(),
        bus: bus.port(),
    };
    ground.lay()?;
    let attempts = ground.attempts();
    let fixtures = tempfile::tempdir()?;
    let server = emulator(fixtures.path(), "one.json", &conversation(&attempts))?;
    let base = &ground.base;
    fs::write(base.join("ropewalk.toml"), settings(format, &server, &bus))?;
    give(base, user)?;
    let runner = Runner::new(base)
        .with_variable("PATH", PATH)
        .with_variable(KEY_VARIABLE, "any")
        .with_variable("WALKS_NOTE", CANARY);
    let runner = match user {
        Some(user) => runner.as_user(user),
        None => runner,
    };
    let project = Project::at(directory, runner);
    project.begin("walks")?;
    ground.hide()?;
    give(base, user)?;
    check_prizes(&ground, user, &attempts)?;
    project.specify("walks")?;
    let mut up = start(&project.runner, &["up"])?;
    until_ready(base, &mut up).await?;
    let log = log_of(&project)?;
    drop(up);

    check_refusals(&log, &attempts)?;
    let told = told_of(&log, "bash_1").context("a test that was run")?["output"].as_str();
    ensure!(
        told.is_some_and(|told| told.starts_with("served\n")),
        "{told:?}"
    );
    let repo = base.join("repo");
    let landed = ["-c", "safe.directory=*", "show", "build/walks:ask.py"];
    assert_eq!(git(&repo, &landed)?, ASK.trim_end());
    ensure!(
        !base.join("state/slots/1/x").exists(),
        "it wrote beside its slot"
    );
    // Nor did it leave this machine.
    let client = http::client(http::ClientOptions::default())?;
    let heard = client.get(format!("{}/__aimock/journal", server.url()));
    let heard = heard.send().await?.text().await?;
    ensure!(heard.contains("it did not reach `other.test`"), "{heard}");
    for told in [heard, Value::Array(log).to_string()] {
        ensure!(!told.contains(CANARY), "{told}");
        ensure!(!told.contains("INFO {"), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn in_every_format_a_build_that_tries_to_get_out_is_refused_and_lands_its_work()
-> anyhow::Result<()> {
    for format in FORMATS {
        let done = build(format, None).await;
        done.with_context(|| format!("{format:?}"))?;
    }
    Ok(())
}

/// The same as a user who may nothing; who is no root is one anyway.
#[tokio::test]
async fn a_user_who_is_nobody_builds_in_every_format_behind_the_same_walls() -> anyhow::Result<()> {
    let user = geteuid().is_root().then_some(NOBODY);
    for format in FORMATS {
        let done = build(format, user).await;
        done.with_context(|| format!("{format:?}"))?;
    }
    Ok(())
}
