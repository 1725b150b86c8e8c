//! One idea over HTTP, from the first message to the review, with an emulator that others wrote in the place of the model:
//! what every role is told, and what comes of a failed gate and of a question.

mod cache;
mod coverage;
mod marks;
mod model;
mod prefix;
mod prompts;
mod recorder;
mod truth;
mod turns;
mod whole;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_store::{Query, Versioned};
use ropewalk_tests::program::Runner;
use ropewalk_tests::repository;
use ropewalk_tests::servers::Aimock;
use serde_json::Value;

use recorder::Recorder;

use crate::picture::{REHEARSAL, git, store};
use crate::running::{start, stop, until_ready};

const PATIENCE: Duration = Duration::from_mins(2);

/// A role, told by the tool that its model hands its work in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Ideation,
    Specification,
    Build,
    Review,
}

impl Role {
    pub(super) const ALL: [Self; 4] = [
        Self::Ideation,
        Self::Specification,
        Self::Build,
        Self::Review,
    ];

    /// The role that the program asks a model in.
    const fn asked_as(self) -> &'static str {
        match self {
            Self::Ideation => "chat",
            Self::Specification => "spec",
            Self::Build => "build",
            Self::Review => "small",
        }
    }

    const fn submits(self) -> &'static str {
        match self {
            Self::Ideation => "reply",
            Self::Specification => "specification",
            Self::Build => "finish",
            Self::Review => "review",
        }
    }
}

/// What a provider was asked, in the words of the Messages API.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) role: Role,
    pub(super) body: Value,
    /// What of it the provider had read before, in tokens.
    pub(super) read_before: usize,
}

impl Request {
    /// Reads one; none where it is no request of a role.
    fn of(body: Value, read_before: usize) -> Option<Self> {
        let role = Role::ALL.into_iter().find(|role| {
            let tools = body["tools"].as_array();
            tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == role.submits()))
        })?;
        Some(Self {
            role,
            body,
            read_before,
        })
    }

    pub(super) fn system(&self) -> String {
        texts(&self.body["system"]).join("\n")
    }

    pub(super) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    pub(super) fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["name"].as_str()).collect()
    }

    /// The words of a message, without calls and their results.
    pub(super) fn said(message: &Value) -> String {
        texts(&message["content"]).join("\n\n")
    }

    /// The results of calls that a message brings.
    pub(super) fn results(message: &Value) -> String {
        let blocks = message["content"].as_array().into_iter().flatten();
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let results: Vec<&str> = results.flat_map(|block| texts(&block["content"])).collect();
        results.join("\n\n")
    }
}

fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => Vec::new(),
    }
}

/// What came of the idea.
pub(super) struct IdeaChronicle {
    /// Everything that the provider was asked, in order.
    pub(super) requests: Vec<Request>,
    /// What the program wrote down of each call, in order.
    pub(super) calls: Vec<ModelCall>,
    /// What was waited for while the question was open.
    pub(super) waits: Value,
    /// The tasks when the build had ended.
    pub(super) build: Value,
    /// The commits of the branch, oldest first: subject and body.
    pub(super) commits: Vec<(String, String)>,
}

impl IdeaChronicle {
    pub(super) fn of(&self, role: Role) -> Vec<&Request> {
        let of_role = self.requests.iter().filter(|one| one.role == role);
        of_role.collect()
    }
}

/// Lives through the idea, once for all tests that look at it.
pub(super) fn told() -> anyhow::Result<&'static IdeaChronicle> {
    static TOLD: OnceLock<Result<IdeaChronicle, String>> = OnceLock::new();
    let told = TOLD.get_or_init(|| {
        let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
        runtime
            .block_on(live())
            .map_err(|error| format!("{error:#}"))
    });
    told.as_ref().map_err(|error| anyhow::anyhow!("{error}"))
}

async fn live() -> anyhow::Result<IdeaChronicle> {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    repository::begin(&path.join("repo"), &model::FILES)?;
    let fixtures = path.join("model.json");
    fs::write(&fixtures, model::fixtures().to_string())?;
    let server = Aimock::start(&fixtures)?;
    let target = server.url();
    let recorder = Recorder::start(target.trim_start_matches("http://"))?;
    fs::write(path.join("ropewalk.toml"), settings(&recorder.url))?;
    let runner = Runner::new(path).with_variable(model::KEY, "any");
    let verb = |arguments: &[&str], input: &str| verb(&runner, arguments, input);
    let wish = ["knowledge", "add", "--kind", "preference", model::WISH];
    verb(&wish, "")?;
    let of_docs = ["--file", model::DOCS, model::WISH_OF_DOCS];
    verb(&[&wish[..4], &of_docs].concat(), "")?;
    let opening = [
        "idea", "new", "Streaks", "--slug", "streaks", "--kind", "feature",
    ];
    verb(&[&opening[..], &["--text", model::OPENING]].concat(), "")?;
    for words in [model::AGREED, model::LINE] {
        let chat = runner.run_with_input(&["idea", "chat", "streaks"], words, PATIENCE)?;
        let complaint = String::from_utf8_lossy(&chat.stderr);
        ensure!(chat.status.success(), "{complaint}");
    }
    let generate = ["spec", "generate", "streaks", "--complexity", "simple"];
    let spec = verb(&generate, "")?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a text");
    let (id, hash) = (text(&spec["id"])?, text(&spec["hash"])?);
    verb(&["spec", "approve", &id, "--hash", &hash], "")?;
    let mut up = start(&runner, &["up"])?;
    until_ready(path, &mut up).await?;
    let (question, waits) = question(&runner).await?;
    verb(&["question", "answer", &question, model::ANSWER], "")?;
    reviewed(path).await?;
    let builds = verb(&["build", "list"], "")?;
    let id = text(&builds[0]["id"])?;
    let build = verb(&["build", "show", &id], "")?;
    stop(&mut up).await?;
    Ok(IdeaChronicle {
        requests: recorder
            .bodies()
            .into_iter()
            .filter_map(|(body, hit)| Request::of(body, hit.tokens()))
            .collect(),
        calls: calls(path).await?,
        waits,
        build,
        commits: commits(&path.join("repo"))?,
    })
}

fn verb(runner: &Runner, arguments: &[&str], input: &str) -> anyhow::Result<Value> {
    let arguments = [arguments, &["--json"]].concat();
    let output = runner.run_with_input(&arguments, input, PATIENCE)?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {complaint}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Waits for the question of the model, and looks at what is waited for then.
async fn question(runner: &Runner) -> anyhow::Result<(String, Value)> {
    let began = Instant::now();
    loop {
        let open = verb(runner, &["question", "list"], "")?;
        let mut open = open.as_array().into_iter().flatten();
        let asked = open.find(|question| {
            let text = question["text"].as_str();
            text.is_some_and(|text| text.ends_with(model::QUESTION))
        });
        if let Some(id) = asked.and_then(|question| question["id"].as_str()) {
            return Ok((id.to_owned(), verb(runner, &["wait", "list"], "")?));
        }
        ensure!(began.elapsed() < REHEARSAL, "nobody asked");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn reviewed(directory: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let store = store(directory).await?;
    loop {
        let reviews = store.list::<Review>(Query::new()).await?;
        if reviews
            .iter()
            .any(|review| review.kind == ReviewKind::Build)
        {
            return Ok(store.close().await?);
        }
        ensure!(began.elapsed() < REHEARSAL, "the build was not reviewed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn calls(directory: &Path) -> anyhow::Result<Vec<ModelCall>> {
    let store = store(directory).await?;
    let calls = store.list::<ModelCall>(Query::new().order_by("at")).await?;
    store.close().await?;
    Ok(calls.into_iter().map(Versioned::into_inner).collect())
}

fn commits(repository: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let range = "main..build/streaks";
    let log = git(
        repository,
        &["log", "--reverse", "--format=%s%x00%b%x01", range],
    )?;
    let commits = log
        .split('\u{1}')
        .filter_map(|one| one.trim().split_once('\0'));
    Ok(commits
        .map(|(subject, body)| (subject.to_owned(), body.to_owned()))
        .collect())
}

fn settings(base_url: &str) -> String {
    format!(
        r#"sandbox = "off"

[project]
name = "streaks"
repo = "repo"
state = "state"

[person]
name = "pat"

[models]
chat = "emulator/any"
spec = "emulator/any"
build = "emulator/any"
small = "emulator/any"

[build]
loops = 1

[budget]
task_tokens = 5000000

[providers.emulator]
kind = "anthropic"
base_url = "{base_url}"
key_variable = "{}"
"#,
        model::KEY
    )
}
