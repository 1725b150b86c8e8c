//! A conversation and a specification in every wire format, with an emulator that others wrote in place of the script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, ensure};
use ropewalk_runtime::http;
use ropewalk_schemas::document::{spec_md, tasks_md};
use ropewalk_schemas::idea::{Author, Message};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::specification::{Revision, SpecState, Specification};
use ropewalk_store::{Query, Store};
use ropewalk_tests::program::Runner;
use ropewalk_tests::repository;
use ropewalk_tests::servers::Aimock;
use serde_json::Value;

use crate::picture::{at, store};
use crate::running::{start, until_ready};

const PATIENCE: Duration = Duration::from_mins(2);
const KEY_VARIABLE: &str = "EMULATOR_API_KEY";
/// The most tokens of one reply.
const LONGEST: u64 = 7_000;

const LINES: &str = "\
I keep a few daily habits and lose my streaks.
It is for people who live in a terminal.
That is all.
";

/// A wire format with the path below the emulator's address.
pub(crate) type Format = (&'static str, &'static str);
pub(crate) const FORMATS: [Format; 4] = [
    ("anthropic", ""),
    ("openai", "/v1"),
    ("responses", "/v1"),
    ("gemini", "/v1beta"),
];

/// An idea in a project whose models are an emulator.
struct Project {
    directory: tempfile::TempDir,
    runner: Runner,
    server: Aimock,
}

impl Project {
    fn new((kind, path): Format, key: &str) -> anyhow::Result<Self> {
        let server = Aimock::start(&fixtures())?;
        let directory = tempfile::tempdir()?;
        let files = [("habits.sh", "# Keeps habits.\n")];
        repository::begin(&directory.path().join("repo"), &files)?;
        let settings = settings(kind, &format!("{}{path}", server.url()));
        fs::write(directory.path().join("ropewalk.toml"), settings)?;
        let project = Self {
            runner: Runner::new(directory.path()).with_variable(KEY_VARIABLE, key),
            directory,
            server,
        };
        let output = project.run(&["idea", "new", "Habit tracker", "--slug", "habits"], "")?;
        ensure!(output.status.success(), "{}", errors(&output));
        Ok(project)
    }

    fn run(&self, arguments: &[&str], input: &str) -> anyhow::Result<Output> {
        Ok(self.runner.run_with_input(arguments, input, PATIENCE)?)
    }

    /// Says lines, all of which are answered; returns what was written to standard output.
    fn say(&self, lines: &str) -> anyhow::Result<String> {
        let output = self.run(&["idea", "chat", "habits"], lines)?;
        ensure!(output.status.success(), "{}", errors(&output));
        Ok(String::from_utf8(output.stdout)?)
    }

    async fn store(&self) -> anyhow::Result<Store> {
        store(self.directory.path()).await
    }

    fn folder(&self) -> PathBuf {
        self.directory.path().join("state/users/pat/ideas/habits")
    }

    /// Returns what `author` said, in order, as it is stored.
    async fn said(&self, author: Author) -> anyhow::Result<Vec<String>> {
        let store = self.store().await?;
        let messages = store.list::<Message>(Query::new().order_by("at")).await?;
        store.close().await?;
        let said = messages
            .into_iter()
            .filter(|message| message.author == author);
        Ok(said.map(|message| message.record.text).collect())
    }
}

fn settings(kind: &str, base_url: &str) -> String {
    format!(
        r#"
[project]
name = "habits"
repo = "repo"
state = "state"

[person]
name = "pat"

[models]
chat = "emulator/any"
spec = "emulator/any"
build = "emulator/any"
small = "emulator/any"
max_output_tokens = {LONGEST}

[providers.emulator]
kind = "{kind}"
base_url = "{base_url}"
key_variable = "{KEY_VARIABLE}"
"#
    )
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/fixtures/emulator.json")
}

/// Returns the words with which the emulator answers a line that holds `words`.
fn answer_to(words: &str) -> anyhow::Result<String> {
    let script: Value = serde_json::from_str(&fs::read_to_string(fixtures())?)?;
    let found = at(&script, "/fixtures")?.as_array().and_then(|fixtures| {
        fixtures
            .iter()
            .filter(|fixture| fixture["match"]["userMessage"] == words)
            .find_map(|fixture| fixture["response"]["blocks"][0]["text"].as_str())
    });
    Ok(found
        .with_context(|| format!("no answer to `{words}`"))?
        .to_owned())
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the one line in which the program says why it failed.
fn complaint(output: &Output) -> anyhow::Result<String> {
    let errors = errors(output);
    let lines: Vec<&str> = errors
        .lines()
        .filter(|line| line.starts_with("ropewalk: "))
        .collect();
    ensure!(lines.len() == 1, "{errors}");
    Ok(lines[0].to_owned())
}

#[tokio::test]
async fn three_lines_get_three_streamed_and_stored_replies_in_every_format() -> anyhow::Result<()> {
    for format in FORMATS {
        let project = Project::new(format, "any")?;
        let shown = project.say(LINES)?;
        let wanted = ["lose my streaks", "It is for people", "That is all"]
            .map(answer_to)
            .into_iter()
            .collect::<anyhow::Result<Vec<String>>>()?;
        let stored = project.said(Author::Agent).await?;
        // The first words of the agent answer the title, without a model.
        assert_eq!(stored[1..], wanted, "{format:?}");
        let places: Option<Vec<usize>> = wanted.iter().map(|reply| shown.find(reply)).collect();
        let places =
            places.with_context(|| format!("{format:?}: a reply is missing in {shown}"))?;
        assert!(places.is_sorted(), "{format:?}: {shown}");
        for reply in &wanted {
            assert_eq!(shown.matches(reply).count(), 1, "{format:?}: {shown}");
        }
        let spoken: Vec<String> = LINES.lines().map(str::to_owned).collect();
        assert_eq!(project.said(Author::Person).await?[1..], spoken);
        check_usage(&project).await?;
        for file in ["README.md", "target-users.md", "planning/brief.md"] {
            ensure!(project.folder().join(file).is_file(), "no `{file}`");
        }
    }
    Ok(())
}

/// Checks that each answer is in the journal once, with the tokens that the emulator counted.
async fn check_usage(project: &Project) -> anyhow::Result<()> {
    let store = project.store().await?;
    let calls = store.list::<ModelCall>(Query::new()).await?;
    store.close().await?;
    let tokens: Vec<(u64, u64)> = calls
        .iter()
        .map(|call| (call.input_tokens, call.output_tokens))
        .collect();
    assert_eq!(tokens, [(900, 120); 3]);
    Ok(())
}

/// The emulator cuts the first reply after a few words and then drops the connection: what shows them anyway has
/// not waited for the end of the reply.
#[tokio::test]
async fn words_are_shown_before_their_reply_is_whole() -> anyhow::Result<()> {
    for (format, is_beside) in FORMATS
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let project = Project::new(format, "any")?;
        let mut up = None;
        if is_beside {
            let up = up.insert(start(&project.runner, &["up"])?);
            until_ready(project.directory.path(), up).await?;
        }
        let shown = project.say("Then the line goes dead.\n")?;
        let whole = answer_to("line goes dead")?;
        let first = shown.find("These first words");
        let first = first.with_context(|| format!("{format:?}: {shown}"))?;
        let line = shown.lines().position(|line| line == whole);
        let line =
            line.with_context(|| format!("{format:?}: not on a line of its own: {shown}"))?;
        assert!(shown.find(&whole) > Some(first) && line > 0, "{shown}");
        let stored = project.said(Author::Agent).await?;
        assert_eq!(stored[1..], [whole], "{format:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_overloaded_provider_is_asked_again() -> anyhow::Result<()> {
    for format in FORMATS {
        let project = Project::new(format, "any")?;
        let shown = project.say("You look very busy.\n")?;
        let reply = answer_to("very busy")?;
        ensure!(shown.contains(&reply), "{format:?}: {shown}");
        assert_eq!(project.said(Author::Agent).await?[1..], [reply]);
    }
    Ok(())
}

/// The first plan of the emulator names a task that is not there; it is sent back, and the second is taken.
#[tokio::test]
async fn a_specification_is_checked_repaired_and_written_in_every_format() -> anyhow::Result<()> {
    for format in FORMATS {
        let project = Project::new(format, "any")?;
        project.say(LINES)?;
        let verb = ["spec", "generate", "habits", "--complexity", "simple"];
        let output = project.run(&[&verb[..], &["--json"]].concat(), "")?;
        ensure!(output.status.success(), "{format:?}: {}", errors(&output));
        let made: Value = serde_json::from_slice(&output.stdout)?;
        let store = project.store().await?;
        let specs = store.list::<Specification>(Query::new()).await?;
        assert_eq!(specs.len(), 1);
        let spec = &specs[0];
        assert_eq!((spec.state, spec.revision), (SpecState::Generated, 1));
        assert_eq!(at(&made, "/id")?, &spec.id.to_string());
        let hash = spec.hash.clone().context("a hash")?;
        assert_eq!(at(&made, "/hash")?, hash.as_str());
        let revisions = store.list::<Revision>(Query::new()).await?;
        assert_eq!(revisions.len(), 1);
        assert_eq!(
            (&revisions[0].hash, revisions[0].validation.as_slice()),
            (&hash, &[] as &[String])
        );
        let calls = store.list::<ModelCall>(Query::new()).await?;
        let of_spec = calls.iter().filter(|call| call.role == "spec");
        assert_eq!(of_spec.count(), 2, "{format:?}");
        store.close().await?;
        check_documents(&project.folder(), &revisions[0])?;
        check_bounds(&project).await?;
    }
    Ok(())
}

/// Checks that no request allowed a longer reply than the configuration does.
async fn check_bounds(project: &Project) -> anyhow::Result<()> {
    let client = http::client(http::ClientOptions::default())?;
    let url = format!("{}/__aimock/journal", project.server.url());
    let journal: Value = client.get(url).send().await?.json().await?;
    let requests = journal.as_array().context("a list of requests")?;
    assert_eq!(requests.len(), 3 + 2);
    for request in requests {
        assert_eq!(at(request, "/body/max_tokens")?, LONGEST);
    }
    Ok(())
}

/// Checks that the files say what the store says.
fn check_documents(folder: &Path, revision: &Revision) -> anyhow::Result<()> {
    let read = |name: &str| fs::read_to_string(folder.join("build").join(name));
    let (header, document) = spec_md::parse(&read("spec.md")?)?;
    assert_eq!(header.hash.as_ref(), Some(&revision.hash));
    assert_eq!(document, revision.document);
    let tasks = tasks_md::parse(&read("tasks.md")?)?;
    let written: Vec<_> = tasks.entries().iter().map(|entry| &entry.block).collect();
    assert_eq!(written, revision.tasks.iter().collect::<Vec<_>>());
    assert_eq!(written.len(), 5);
    Ok(())
}

#[tokio::test]
async fn a_missing_key_stops_a_conversation_before_it_begins() -> anyhow::Result<()> {
    for format in FORMATS {
        let project = Project::new(format, "")?;
        for verb in [["idea", "chat", "habits"], ["spec", "generate", "habits"]] {
            let output = project.run(&verb, LINES)?;
            assert_eq!(output.status.code(), Some(4), "{verb:?}");
            let line = complaint(&output)?;
            ensure!(line.contains(KEY_VARIABLE), "{line}");
        }
        assert_eq!(project.said(Author::Person).await?, ["Habit tracker"]);
        let store = project.store().await?;
        assert!(store.list::<Specification>(Query::new()).await?.is_empty());
        store.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_refused_key_is_told_in_one_line_and_the_message_waits() -> anyhow::Result<()> {
    for format in FORMATS {
        let key = "any-key-0d4c";
        let project = Project::new(format, key)?;
        let output = project.run(&["idea", "chat", "habits"], "Please refuse this key.\n")?;
        assert_eq!(output.status.code(), Some(1), "{format:?}");
        let line = complaint(&output)?;
        for named in [KEY_VARIABLE, "`ropewalk up` goes on with it"] {
            ensure!(line.contains(named), "{line}");
        }
        ensure!(!errors(&output).contains(key), "the key is shown");
        let said = project.said(Author::Person).await?;
        assert_eq!(said[1..], ["Please refuse this key."]);
        assert_eq!(project.said(Author::Agent).await?.len(), 1);
    }
    Ok(())
}
