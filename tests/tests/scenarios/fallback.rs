//! A provider that dies in the middle of a build: another one, in another wire format, ends it (V41). Both are emulators
//! that others wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::Query;
use ropewalk_tests::program::Runner;
use ropewalk_tests::repository;
use ropewalk_tests::servers::Aimock;
use serde_json::{Value, json};

use crate::picture::{at, git, store};
use crate::running::{start, stop, until_events, until_ready};

const PATIENCE: Duration = Duration::from_mins(2);

/// Plans one task.
const SCRIPT: &str = r#"
- agent: "specification"
  reply: { tools: [{ name: "specification", input: {
    document: {
      title: "Walks", context_read: [], missing_inputs: [], objective: "Keep a list of walks.",
      success_criteria: ["the file is there"], out_of_scope: [],
      requirements: [{ id: "FR-1", text: "Walks are listed.", priority: "must", acceptance: "the file is there", source: "planning/brief.md" }],
      quality: [], new_files: [], modified_files: [], avoid_files: [], interfaces: [], data: [],
      dependencies: [], gotchas: [], validation: ["test -f a.txt"], risks: [] },
    tasks: [
      { id: "T-001", phase: "project", action: "CREATE", file: "a.txt", more_files: [], requirements: [{ id: "FR-1", text: "a" }], gotchas: [], validation: { command: "test -s a.txt", expected: "exit 0" }, depends_on: [] } ] } }] }
"#;

/// A project whose planner is a script, and two providers that build.
pub(crate) struct Project {
    directory: tempfile::TempDir,
    pub(crate) runner: Runner,
}

impl Project {
    pub(crate) fn new(first: &Aimock, second: &Aimock) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        repository::begin(&directory.path().join("repo"), &[])?;
        fs::write(directory.path().join("script.yaml"), SCRIPT)?;
        let settings = settings(&first.url(), &second.url());
        fs::write(directory.path().join("ropewalk.toml"), settings)?;
        let runner = Runner::new(directory.path())
            .with_variable("ANTHROPIC_API_KEY", "any")
            .with_variable("OPENAI_API_KEY", "any");
        Ok(Self::at(directory, runner))
    }

    /// Takes a directory with a repository and its configuration.
    pub(crate) fn at(directory: tempfile::TempDir, runner: Runner) -> Self {
        Self { directory, runner }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn run(&self, line: &str) -> anyhow::Result<Output> {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = self.runner.run(&arguments, PATIENCE)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{line}`: {errors}");
        Ok(output)
    }

    pub(crate) fn json(&self, line: &str) -> anyhow::Result<Value> {
        let output = self.run(&format!("{line} --json"))?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Begins an idea, with the documents that a conversation would come to.
    pub(crate) fn begin(&self, slug: &str) -> anyhow::Result<()> {
        self.run(&format!("idea new Walks --slug {slug}"))?;
        let planning = format!("state/users/pat/ideas/{slug}/planning");
        let folder = self.directory.path().join(planning);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("../README.md"), "# Walks\n\nWalks are lost.\n")?;
        fs::write(
            folder.join("brief.md"),
            "# Brief\n\nKeep a list of walks.\n",
        )?;
        Ok(())
    }

    /// Approves a specification of one task.
    pub(crate) fn approve(&self) -> anyhow::Result<()> {
        self.begin("walks")?;
        self.specify("walks")
    }

    /// Approves a specification of the idea that has begun.
    pub(crate) fn specify(&self, slug: &str) -> anyhow::Result<()> {
        let spec = self.json(&format!("spec generate {slug} --complexity simple"))?;
        let text = |name: &str| spec[name].as_str().context("a text");
        let (id, hash) = (text("id")?, text("hash")?);
        self.run(&format!("spec approve {id} --hash {hash}"))?;
        Ok(())
    }

    /// Waits until a reply of a model that builds is in the journal.
    async fn until_answered(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let store = store(self.directory.path()).await?;
            let calls = Query::new().equal("role", "build");
            let answered = !store.list::<ModelCall>(calls).await?.is_empty();
            store.close().await?;
            if answered {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "no model is asked");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn settings(first: &str, second: &str) -> String {
    format!(
        r#"
[project]
name = "walks"
repo = "repo"
state = "state"

[person]
name = "pat"

[models]
chat = "script/any"
spec = "script/any"
build = "anthropic/claude-sonnet-4-5"
small = "script/any"

[models.fallbacks]
build = ["openai-responses/gpt-5"]

[providers.script]
kind = "scripted"
script = "script.yaml"

[providers.anthropic]
base_url = "{first}"

[providers.openai-responses]
base_url = "{second}/v1"
"#
    )
}

/// Starts an emulator that answers so.
pub(crate) fn emulator(directory: &Path, name: &str, fixtures: &Value) -> anyhow::Result<Aimock> {
    let file: PathBuf = directory.join(name);
    fs::write(&file, json!({ "fixtures": fixtures }).to_string())?;
    Ok(Aimock::start(&file)?)
}

fn calls(tool: &str, arguments: &Value) -> Value {
    json!({
        "blocks": [{ "type": "toolCall", "id": "call_1", "name": tool, "arguments": arguments }],
        "usage": { "input_tokens": 900, "output_tokens": 120, "prompt_tokens": 900,
                   "completion_tokens": 120, "total_tokens": 1020 },
    })
}

/// Builds once: the first provider writes the file, hangs at the next turn and dies; the other one hands the work in.
pub(crate) async fn taken_over() -> anyhow::Result<Project> {
    let fixtures = tempfile::tempdir()?;
    let file = json!({ "path": "a.txt", "content": "a walk\n" });
    let begins = json!([
        { "match": { "toolName": "write", "hasToolResult": false }, "response": calls("write", &file) },
        { "match": { "toolName": "write" }, "response": { "content": "never heard" }, "latency": 600_000 },
    ]);
    let ends = json!([
        { "match": { "toolName": "finish" },
          "response": calls("finish", &json!({ "summary": "Wrote the list." })) },
    ]);
    let first = emulator(fixtures.path(), "first.json", &begins)?;
    let second = emulator(fixtures.path(), "second.json", &ends)?;
    let project = Project::new(&first, &second)?;
    project.approve()?;
    let mut up = start(&project.runner, &["up"])?;
    until_ready(project.directory.path(), &mut up).await?;
    project.until_answered().await?;
    drop(first);
    until_events(project.directory.path(), &mut up, "build.completed", 1).await?;
    stop(&mut up).await?;
    Ok(project)
}

#[tokio::test]
async fn who_takes_over_ends_a_build_over_http_and_usage_names_both() -> anyhow::Result<()> {
    let project = taken_over().await?;
    let builds = project.json("build list")?;
    assert_eq!(at(&builds, "/0/state")?, "succeeded", "{builds}");
    let build = at(&builds, "/0/id")?.as_str().context("an id")?;
    let repository = project.directory.path().join("repo");
    assert_eq!(git(&repository, &["show", "build/walks:a.txt"])?, "a walk");
    let used = project.json(&format!("usage --build {build}"))?;
    let rows = used.as_array().context("a list")?.iter();
    let told: Vec<Value> = rows
        .map(|row| {
            json!([
                row["key"],
                row["calls"],
                row["input_tokens"],
                row["micro_usd"]
            ])
        })
        .collect();
    let expected = [
        json!(["anthropic/claude-sonnet-4-5", 1, 900, 4_500]),
        json!(["openai-responses/gpt-5", 1, 900, 2_325]),
    ];
    assert_eq!(told, expected);
    let log = project.json(&format!("build log {build}"))?;
    let entries = log.as_array().context("a list")?;
    let changes: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["kind"] == "fell_back")
        .map(|entry| &entry["to"])
        .collect();
    assert_eq!(changes, ["openai-responses/gpt-5"]);
    Ok(())
}
