//! The pages in a real browser: the whole way from an idea to its merge, and what goes wrong on the way.

mod shown;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Idea, Message};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::specification::Specification;
use ropewalk_store::Query;
use ropewalk_tests::program::Runner;
use ropewalk_tests::servers::node_modules;
use serde_json::{Value, json};

use crate::picture::{REHEARSAL, git, store};
use crate::project::{LINES, PATIENCE, Project, plan, rule};
use crate::running::{RunningProgram, start, until_ready};

/// Starts `up` there, waits until it takes requests, and returns it with the link that it shows.
pub(crate) async fn serve(
    project: &Project,
    address: &str,
) -> anyhow::Result<(RunningProgram, String)> {
    let log = project.runner.log();
    // What an earlier one said leads nowhere.
    std::fs::write(&log, "")?;
    let mut up = start(&project.runner, &["up", "--bind", address])?;
    until_ready(project.path(), &mut up).await?;
    let link = link(&log, &mut up).await?;
    Ok((up, link))
}

/// Waits until a program has said by which link somebody logs in, and returns it.
async fn link(log: &Path, up: &mut RunningProgram) -> anyhow::Result<String> {
    told(log, up, "/login?code=").await
}

/// Waits until a program has said where its pages are, in a word that has this part.
async fn told(log: &Path, up: &mut RunningProgram, part: &str) -> anyhow::Result<String> {
    let told = said(log, up, part).await?;
    let link = told.split_whitespace().find(|word| word.contains(part));
    Ok(link.context("a word")?.to_owned())
}

/// Waits until a program has said a line that has this part.
async fn said(log: &Path, program: &mut RunningProgram, part: &str) -> anyhow::Result<String> {
    let began = Instant::now();
    loop {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        if let Some((lines, _)) = said.rsplit_once('\n')
            && let Some(line) = lines.lines().find(|line| line.contains(part))
        {
            return Ok(line.to_owned());
        }
        ensure!(program.0.try_wait()?.is_none(), "it ended: {said}");
        ensure!(began.elapsed() < WATCHED, "no `{part}`: {said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A walk that a browser is led on.
pub(crate) struct Walk {
    child: Child,
}

impl Walk {
    pub(crate) fn begin(script: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/fixtures");
        let child = Command::new("node")
            .arg(fixtures.join(script))
            .args(arguments)
            .env("NODE_PATH", node_modules()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("`node` does not run")?;
        Ok(Self { child })
    }

    /// Waits until the walk asks for something, which has to be `wanted`.
    pub(crate) fn asks(&mut self, wanted: &str) -> anyhow::Result<()> {
        let output = self.child.stdout.as_mut().context("no output")?;
        let mut line = String::new();
        BufReader::with_capacity(1, output).read_line(&mut line)?;
        if line.trim() != wanted {
            let complaint = std::io::read_to_string(self.child.stderr.take().context("read")?)?;
            bail!("it asks `{}`, not `{wanted}`: {complaint}", line.trim());
        }
        Ok(())
    }

    pub(crate) fn answer(&mut self, text: &str) -> anyhow::Result<()> {
        let input = self.child.stdin.as_mut().context("no input")?;
        Ok(writeln!(input, "{text}")?)
    }

    /// Waits for its end, which has to be a good one.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let walked = self.child.wait_with_output()?;
        let told = String::from_utf8_lossy(&walked.stderr).into_owned();
        ensure!(walked.status.success(), "{told}");
        Ok(())
    }
}

/// Talks about an idea and lets its specification be written, and returns the id of that.
pub(crate) fn specified(project: &Project) -> anyhow::Result<String> {
    let opening = "I want to build a habit tracking app";
    project.verb(&["idea", "new", opening, "--slug", "habits"], "")?;
    project
        .runner
        .run_with_input(&["idea", "chat", "habits"], LINES, PATIENCE)?;
    let made = project.verb(&["spec", "generate", "habits"], "")?;
    Ok(made["id"].as_str().context("an id")?.to_owned())
}

#[tokio::test]
async fn every_tab_sees_each_event_once_and_in_order_through_reloads_and_a_killed_program()
-> anyhow::Result<()> {
    let project = Project::new()?;
    let spec = specified(&project)?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    let address = link.split('/').nth(2).context("an address")?.to_owned();
    let mut walk = Walk::begin("tabs.cjs", &[&link, &spec])?;
    walk.asks("kill")?;
    drop(up);
    walk.answer("it is dead")?;
    walk.asks("start")?;
    let (up, link) = serve(&project, &address).await?;
    walk.answer(&link)?;
    walk.asks("kill and forget")?;
    drop(up);
    let port = address.rsplit(':').next().context("a port")?;
    let logins = project.path().join(format!("state/logins-{port}.json"));
    std::fs::remove_file(&logins).with_context(|| logins.display().to_string())?;
    walk.answer("it is dead")?;
    walk.asks("start")?;
    let (up, link) = serve(&project, &address).await?;
    walk.answer(&link)?;
    walk.end()?;
    drop(up);
    let store = store(project.path()).await?;
    assert_eq!(store.count::<Build>(Query::new()).await?, 1);
    Ok(())
}

#[tokio::test]
async fn what_somebody_does_on_a_page_outlives_what_happens_elsewhere() -> anyhow::Result<()> {
    let project = Project::new()?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    Walk::begin("writing.cjs", &[&link])?.end()?;
    drop(up);
    Ok(())
}

#[tokio::test]
async fn what_is_refused_is_said_in_words_on_a_page_and_changes_nothing() -> anyhow::Result<()> {
    let project = Project::new()?;
    let spec = specified(&project)?;
    let settings = project.path().join("home/.config/ropewalk");
    std::fs::create_dir_all(&settings)?;
    let id = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(id)?.map_or_else(|| id.to_string(), |user| user.name);
    let hash = ContentHash::of(TOKEN_OF_BOB.as_bytes());
    let people = format!(
        "[people.pat]\nuser = \"{user}\"\nrights = [\"approve\", \"stop\"]\n\
         [people.bob]\ntoken_sha256 = \"{hash}\"\n"
    );
    std::fs::write(settings.join("config.toml"), people)?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    Walk::begin("refusals.cjs", &[&link, &spec, TOKEN_OF_BOB])?.end()?;
    drop(up);
    let store = store(project.path()).await?;
    let specification = store.list::<Specification>(Query::new()).await?.remove(0);
    assert_eq!(
        (specification.revision, specification.approval.is_none()),
        (2, true)
    );
    assert_eq!(store.count::<Build>(Query::new()).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_second_device_logs_in_with_a_token_where_it_was_led_and_begins_an_idea()
-> anyhow::Result<()> {
    let project = Project::new()?;
    let settings = project.path().join("home/.config/ropewalk");
    std::fs::create_dir_all(&settings)?;
    let hash = ContentHash::of(TOKEN_OF_BOB.as_bytes());
    let people = format!("[people.bob]\ntoken_sha256 = \"{hash}\"\n");
    std::fs::write(settings.join("config.toml"), people)?;
    let mut up = start(&project.runner, &["up", "--bind", "127.0.0.1:0"])?;
    until_ready(project.path(), &mut up).await?;
    let pages = told(&project.runner.log(), &mut up, "http://127.0.0.1:").await?;
    Walk::begin("token.cjs", &[&pages, TOKEN_OF_BOB])?.end()?;
    drop(up);
    let store = store(project.path()).await?;
    let ideas = store.list::<Idea>(Query::new()).await?;
    let begun: Vec<_> = ideas
        .iter()
        .map(|idea| (idea.slug.as_str(), idea.user.as_str()))
        .collect();
    assert_eq!(begun, [("habits", "bob")]);
    Ok(())
}

#[tokio::test]
async fn a_file_is_sent_along_with_words_from_a_page() -> anyhow::Result<()> {
    let project = Project::new()?;
    project.verb(
        &[
            "idea",
            "new",
            "A program that counts the days on which I kept a habit.",
            "--slug",
            "habits",
        ],
        "",
    )?;
    let map = project.path().join("map.txt");
    std::fs::write(&map, "left, then right\n")?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    let files = [map, PICTURE.into()].map(|path: PathBuf| path.display().to_string());
    Walk::begin("files.cjs", &[&link, "habits", &files[0], &files[1]])?.end()?;
    drop(up);
    let store = store(project.path()).await?;
    let messages = store.list::<Message>(Query::new()).await?;
    let mut sent: Vec<_> = messages
        .iter()
        .flat_map(|one| one.attachments.iter().map(move |file| (one, file)))
        .collect();
    sent.sort_by_key(|(message, _)| message.at);
    let told: Vec<_> = sent
        .iter()
        .map(|(_, file)| (file.path.as_str(), file.size_bytes))
        .collect();
    assert_eq!(
        told,
        [
            ("attachments/first.txt", 5),
            ("attachments/map.txt", 17),
            ("attachments/red.png", std::fs::metadata(PICTURE)?.len())
        ]
    );
    for ((message, _), words) in
        sent.iter()
            .zip(["The way is on the map.", "And this is it.", "It looks so."])
    {
        ensure!(message.text.contains(words), "{message:?}");
    }
    Ok(())
}

/// Returns a project whose model answers by these rules before the others.
pub(crate) fn answering(rules: Vec<Value>) -> anyhow::Result<Project> {
    let project = Project::new()?;
    answer_first(&project, rules)?;
    Ok(project)
}

/// Lets the model of a project answer by these rules before its others.
pub(crate) fn answer_first(project: &Project, mut rules: Vec<Value>) -> anyhow::Result<()> {
    let script = project.path().join("script.yaml");
    let others: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&script)?)?;
    rules.extend(others);
    Ok(std::fs::write(script, Value::Array(rules).to_string())?)
}

#[tokio::test]
async fn comments_on_lines_become_one_revision_that_the_amended_build_does() -> anyhow::Result<()> {
    // What is asked for on a line of the third file is done in the third task, and nowhere else.
    let mut amended = plan("");
    let louder = "Write part 3 louder.";
    amended["tasks"][2]["action"] = json!("UPDATE");
    amended["tasks"][2]["requirements"][0]["text"] = json!(louder);
    amended["tasks"][2]["validation"]["command"] = json!("grep LOUD parts/03.txt");
    let revised = json!({ "agent": "specification", "contains": "`parts/03.txt`, line 1" });
    let turn =
        |turn: u32| json!({ "agent": "build", "task": "T-003", "contains": louder, "turn": turn });
    let file = json!({ "path": "parts/03.txt", "content": "part 3 is ready, LOUD\n" });
    let project = answering(vec![
        rule(&revised, "specification", &amended),
        rule(&turn(1), "read", &json!({ "path": "parts/03.txt" })),
        rule(&turn(2), "write", &file),
        rule(&turn(3), "finish", &json!({ "summary": "It is louder." })),
    ])?;
    let spec = specified(&project)?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    Walk::begin("comments.cjs", &[&link, &spec])?.end()?;
    drop(up);
    let store = store(project.path()).await?;
    let specification = store.list::<Specification>(Query::new()).await?.remove(0);
    let [first, second] = specification.feedback.as_slice() else {
        bail!("not two requests: {:?}", specification.feedback);
    };
    ensure!(
        first.starts_with("Comments on lines of revision 1:"),
        "{first}"
    );
    ensure!(
        first.contains("`spec.md`, line 1 (") && first.contains("Another title"),
        "{first}"
    );
    ensure!(
        second.contains("`parts/03.txt`, line 1 (`part 3 is ready`): Say it louder"),
        "{second}"
    );
    ensure!(
        second.contains("`parts/04.txt`, line 1 (`part 4 is ready`): This one is good"),
        "{second}"
    );
    let shown = git(
        &project.repository(),
        &["show", "build/habits:parts/03.txt"],
    )?;
    assert_eq!(shown.trim(), "part 3 is ready, LOUD");
    assert_eq!(store.count::<Build>(Query::new()).await?, 2);
    Ok(())
}

#[tokio::test]
async fn a_rehearsal_can_be_watched_in_a_browser() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let runner = Runner::new(directory.path());
    let folder = directory.path().join("rehearsal").display().to_string();
    let mut rehearsal = start(&runner, &["rehearse", "--watch", "--dir", &folder])?;
    let link = link(&runner.log(), &mut rehearsal).await?;
    Walk::begin("watch.cjs", &[&link])?.end()?;
    let said = said(&runner.log(), &mut rehearsal, "stay until Ctrl-C").await?;
    ensure!(said.contains("the rehearsal succeeded"), "{said}");
    kill(rehearsal.pid()?, Signal::SIGINT)?;
    ensure!(rehearsal.0.wait()?.code() == INTERRUPTED);
    assert_paced(&directory.path().join("rehearsal")).await
}

/// Asserts that no answer of the model came before the time that the script of a rehearsal gives each of them, and that this
/// is long enough to look.
async fn assert_paced(rehearsal: &Path) -> anyhow::Result<()> {
    let script = std::fs::read_to_string(rehearsal.join("model.yaml"))?;
    let (_, delay) = script.split_once("delay_ms: ").context("no delay")?;
    let pace: u64 = delay.lines().next().context("a delay")?.parse()?;
    ensure!(pace >= 1_000, "nobody follows answers after {pace} ms");
    let store = store(rehearsal).await?;
    let calls = store.list::<ModelCall>(Query::new()).await?;
    let of_builds = calls.iter().filter(|call| call.build.is_some());
    ensure!(of_builds.count() > 1, "no loop worked: {calls:?}");
    for call in &calls {
        let took = call.duration_ms.context("a duration")?;
        ensure!(took >= pace, "{took} ms: {call:?}");
    }
    Ok(store.close().await?)
}

/// A rehearsal that is watched goes slowly, and beside other tests that use the machine slower still.
const WATCHED: Duration = REHEARSAL.saturating_mul(2);

/// What Ctrl-C ends with.
const INTERRUPTED: Option<i32> = Some(2);

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpora/image/red.png");
const TOKEN_OF_BOB: &str = "the-token-that-only-bob-has";

/// What a browser, a terminal or a model could obey, and letters that hide what they say. `browser.cjs` has it too.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script> <img src=x onerror=alert(2)> ![p](http://evil.example/p.png) \
    [j](javascript:alert(3)) </document> \u{202e}\u{1b}[31m";
