//! What a model is told of the tools that it calls, one call a turn.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use async_trait::async_trait;
use ropewalk_engine::{
    AgentMode, Job, JobEvent, Observer, SearchError, SearchHit, SearchPort, Toolbox, Workbench,
    WorkbenchOptions, tools_of,
};
use ropewalk_schemas::{HostPattern, RepoPath};
use ropewalk_workspace::sandbox::egress::{Egress, Outside};
use ropewalk_workspace::{CommandRunner, Environment};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{ScriptedEngine, job, results, workbench};

/// A call, a part of what is told of it, and whether that is an error.
type Call = (&'static str, Value, &'static str, bool);

/// Notes what the cache said of itself when it answered in the place of a tool.
#[derive(Default)]
struct CacheLog(Mutex<Vec<String>>);

impl Observer for CacheLog {
    fn see(&self, event: JobEvent) {
        if let JobEvent::ToolEnded { metadata, .. } = event
            && let Some(said) = metadata["cache"].as_str()
        {
            let said = said.to_owned();
            let noted = self.0.lock();
            noted.unwrap_or_else(PoisonError::into_inner).push(said);
        }
    }
}

/// The rules of a model that makes each call in a turn of its own, and then is done.
fn script(calls: &[Call]) -> String {
    let rules = calls.iter().zip(1..).map(|((name, input, ..), turn)| {
        format!("- {{ turn: {turn}, reply: {{ tools: [{{ name: {name}, input: {input} }}] }} }}\n")
    });
    let last = "- reply: { text: Done. }\n".to_owned();
    rules
        .chain(std::iter::once(last))
        .collect::<Vec<_>>()
        .concat()
}

/// Puts files into the slot of `scripted`.
fn fill(scripted: &ScriptedEngine, files: &[(&str, &str)]) -> anyhow::Result<()> {
    for (name, content) in files {
        let file = scripted.directory.path().join("slot").join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(file, content)?;
    }
    Ok(())
}

/// Runs a job to its end and checks what it was told of each call; returns how often the cache answered, and how.
async fn check(
    scripted: &ScriptedEngine,
    job: &Job,
    calls: &[Call],
) -> anyhow::Result<Vec<String>> {
    let log = CacheLog::default();
    let cancel = CancellationToken::new();
    let outcome = scripted.engine().run(job, &cancel, &log).await?;
    assert_eq!(outcome.text, "Done.");
    let requests = scripted.requests();
    assert_eq!(requests.len(), calls.len() + 1);
    for ((name, input, part, is_error), request) in calls.iter().zip(&requests[1..]) {
        let told = request.messages.last().map(results).unwrap_or_default();
        let [(text, failed)] = told.as_slice() else {
            anyhow::bail!("{name} {input}: {told:?}");
        };
        ensure!(text.contains(part), "{name} {input}: {text}");
        assert_eq!(failed, is_error, "{name} {input}: {text}");
    }
    Ok(log.0.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Lets a model make calls in a slot with `files`, of which it may write `src/lib.rs`.
async fn check_in(files: &[(&str, &str)], calls: &[Call]) -> anyhow::Result<Vec<String>> {
    let scripted = ScriptedEngine::new(&script(calls)).await?;
    let bench = workbench(&scripted)?;
    fill(&scripted, files)?;
    check(
        &scripted,
        &job(tools_of(AgentMode::Implement, &bench)?),
        calls,
    )
    .await
}

#[tokio::test]
async fn each_tool_does_what_a_model_asks_of_it_and_tells_it() -> anyhow::Result<()> {
    let files = [
        ("a.txt", "one\ntwo\nthree\n"),
        ("b/c.rs", "fn c() {\n    1\n}\n"),
        (".gitignore", "gone\n"),
        ("gone", "two\n"),
    ];
    let twice = "x\nx\n";
    let lib =
        |old: &str, new: &str| json!({ "path": "src/lib.rs", "old_text": old, "new_text": new });
    let path = |path: &str| json!({ "path": path });
    let calls = [
        (
            "read",
            json!({ "path": "a.txt", "offset": 2, "limit": 1 }),
            "     2\ttwo\n",
            false,
        ),
        (
            "write",
            json!({ "path": "src/lib.rs", "content": twice }),
            "wrote `src/lib.rs`, 2 lines",
            false,
        ),
        (
            "edit",
            lib("x", "y"),
            "2 times in `src/lib.rs`, in lines 1, 2;",
            true,
        ),
        (
            "edit",
            lib("x\nx", "é\n\"2\""),
            "edited `src/lib.rs`: lines 1 to 2 (+2 -2 lines)",
            false,
        ),
        (
            "bash",
            json!({ "command": "cat src/lib.rs; exit 3" }),
            "é\n\"2\"\n[exit code 3]",
            true,
        ),
        (
            "glob",
            json!({ "pattern": "**/*.rs", "path": "b" }),
            "b/c.rs",
            false,
        ),
        (
            "grep",
            json!({ "pattern": "t[wh]" }),
            "a.txt:2:two\na.txt:3:three",
            false,
        ),
        ("ls", json!({}), "a.txt\nb/\ngone\nsrc/", false),
        ("code_outline", path("b/c.rs"), "1-3  fn c()\n", false),
        ("code_outline", path("a.txt"), "use `read` or `grep`", true),
        (
            "write",
            json!({ "path": "a.txt", "content": "" }),
            "`a.txt` is not one of the files",
            true,
        ),
    ];
    check_in(&files, &calls).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_model_has_not_read_as_it_is_it_does_not_change() -> anyhow::Result<()> {
    let write = |content: &str| json!({ "path": "src/lib.rs", "content": content });
    let edit = json!({ "path": "src/lib.rs", "old_text": "old", "new_text": "new" });
    let read = json!({ "path": "src/lib.rs" });
    let other = json!({ "command": "sleep 0.01; echo older > src/lib.rs" });
    let calls = [
        ("write", write("new"), "read it first", true),
        ("edit", edit.clone(), "read it first", true),
        ("read", read.clone(), "     1\told\n", false),
        ("bash", other, "[exit code 0]", false),
        ("edit", edit.clone(), "re-read it first", true),
        ("read", read, "     1\tolder\n", false),
        ("edit", edit, "edited `src/lib.rs`: line 1", false),
        (
            "write",
            write("newest"),
            "wrote `src/lib.rs`, 1 lines",
            false,
        ),
    ];
    check_in(&[("src/lib.rs", "old\n")], &calls).await?;
    Ok(())
}

#[tokio::test]
async fn a_model_is_told_again_what_it_looked_at_until_that_changes() -> anyhow::Result<()> {
    let (read, other) = (json!({ "path": "src/lib.rs" }), json!({ "path": "b.txt" }));
    let spelled = json!({ "limit": 9, "path": "b.txt" });
    let otherwise = json!({ "path": "b.txt", "limit": 9 });
    let write = json!({ "path": "src/lib.rs", "content": "two\n" });
    let calls = [
        ("read", read.clone(), "one", false),
        ("read", other.clone(), "b", false),
        ("read", read.clone(), "one", false),
        ("write", write, "wrote", false),
        ("read", read, "two", false),
        ("read", other, "b", false),
        ("read", spelled, "b", false),
        ("read", otherwise, "b", false),
        ("read", json!({ "path": "late" }), "there is no file", true),
        (
            "bash",
            json!({ "command": "echo here > late" }),
            "[exit code 0]",
            false,
        ),
        ("read", json!({ "path": "late" }), "here", false),
    ];
    let said = check_in(&[("src/lib.rs", "one\n"), ("b.txt", "b\n")], &calls).await?;
    // The third, the sixth, and the eighth, whose arguments come in another order.
    let [first, _, last] = said.as_slice() else {
        anyhow::bail!("{said:?}");
    };
    ensure!(
        first.contains("1 of 3 calls answered by them, 33.3 %"),
        "{first}"
    );
    ensure!(
        last.contains("3 of 7 calls answered by them, 42.9 %"),
        "{last}"
    );
    Ok(())
}

#[tokio::test]
async fn a_call_that_does_not_fit_is_told_why_and_another_spelling_of_a_name_is_understood()
-> anyhow::Result<()> {
    let calls = [
        (
            "read",
            json!({ "path": 7 }),
            "the arguments of `read` do not fit: `path`",
            true,
        ),
        (
            "fly",
            json!({}),
            "there is no tool `fly` in the mode `implement`; the tools are: bash, ",
            true,
        ),
        ("functions__Read", json!({ "path": "a.txt" }), "one", false),
    ];
    check_in(&[("a.txt", "one\n")], &calls).await?;
    Ok(())
}

#[tokio::test]
async fn of_a_flood_a_model_is_told_both_ends_and_a_file_has_all() -> anyhow::Result<()> {
    let calls = [("bash", json!({ "command": "seq 20000" }), "\n[cut: ", false)];
    let scripted = ScriptedEngine::new(&script(&calls)).await?;
    let tools = tools_of(AgentMode::Implement, &workbench(&scripted)?)?;
    check(&scripted, &job(tools), &calls).await?;
    let told = scripted.last_results();
    ensure!(told[0].0.starts_with("1\n2\n") && told[0].0.contains("\n20000"));
    ensure!(told[0].0.len() < 17 * 1024, "{}", told[0].0.len());
    let mut spilled = std::fs::read_dir(scripted.directory.path().join("spill"))?;
    let file = spilled.next().transpose()?.map(|file| file.path());
    let all = std::fs::read_to_string(file.unwrap_or_default())?;
    assert_eq!(all.lines().count(), 20_000);
    Ok(())
}

#[tokio::test]
async fn a_tool_of_another_mode_is_not_there_for_whoever_calls_it() -> anyhow::Result<()> {
    for mode in [AgentMode::Explore, AgentMode::Plan, AgentMode::Review] {
        let told = format!("` in the mode `{mode}`; the tools are: code_outline, ");
        let told: &'static str = told.leak();
        let write = json!({ "path": "src/lib.rs", "content": "" });
        let calls = [
            ("write", write, told, true),
            ("bash", json!({ "command": "touch made" }), told, true),
            ("open", json!({ "path": "a.txt" }), told, true),
            ("github_write", json!({}), told, true),
            ("spawn_agent", json!({}), told, true),
            ("read", json!({ "path": "a.txt" }), "one", false),
        ];
        let scripted = ScriptedEngine::new(&script(&calls)).await?;
        let bench = workbench(&scripted)?;
        fill(&scripted, &[("a.txt", "one\n")])?;
        check(&scripted, &job(tools_of(mode, &bench)?), &calls).await?;
        ensure!(!scripted.directory.path().join("slot/made").exists());
    }
    Ok(())
}

#[tokio::test]
async fn of_two_models_that_change_one_file_the_second_reads_it_again() -> anyhow::Result<()> {
    let signs = tempfile::tempdir()?;
    let (seen, changed) = (signs.path().join("seen"), signs.path().join("changed"));
    let call = |name: &str, input: Value| json!([{ "name": name, "input": input }]);
    let read = call("read", json!({ "path": "src/lib.rs" }));
    let edit = |old: &str, new: &str| {
        call(
            "edit",
            json!({ "path": "src/lib.rs", "old_text": old, "new_text": new }),
        )
    };
    let sign = |file: &Path| {
        call(
            "bash",
            json!({ "command": format!("touch {}", file.display()) }),
        )
    };
    let one = [
        (read.clone(), None),
        (sign(&seen), None),
        (edit("0", "1"), Some(&changed)),
        (read.clone(), None),
        (edit("2", "1 after 2"), None),
    ];
    let two = [
        (read, Some(&seen)),
        (edit("0", "2"), None),
        (sign(&changed), None),
    ];
    // Who has read it first changes it last.
    let turns = [("T-001", one.as_slice()), ("T-002", two.as_slice())];
    let mut rules = String::new();
    for (task, turns) in &turns {
        for ((tools, until), turn) in turns.iter().zip(1..) {
            let until = until.map(|file| format!(", until: {}", file.display()));
            let until = until.unwrap_or_default();
            writeln!(
                rules,
                "- {{ task: {task}, turn: {turn}, reply: {{ tools: {tools}{until} }} }}"
            )?;
        }
    }
    let scripted = ScriptedEngine::new(&(rules + "- reply: { text: Done. }\n")).await?;
    fill(&scripted, &[("src/lib.rs", "0\n")])?;
    let of_task = |task: &str| -> anyhow::Result<Job> {
        let mut one = job(tools_of(AgentMode::Implement, &workbench(&scripted)?)?);
        task.clone_into(&mut one.script.task);
        one.journal_key = format!("attempt/{task}");
        Ok(one)
    };
    let (one, two) = (of_task("T-001")?, of_task("T-002")?);
    let both = async { tokio::join!(scripted.run(&one), scripted.run(&two)) };
    // Where one of them fails, the other one waits for a sign that never comes.
    let (one, two) = tokio::time::timeout(Duration::from_mins(1), both).await?;
    assert_eq!((one?.turns, two?.turns), (6, 4));
    let requests = scripted.requests();
    let refused = requests.iter().flat_map(|request| &request.messages);
    let refused = refused.flat_map(results).filter(|(_, is_error)| *is_error);
    let refused: Vec<String> = refused.map(|(text, _)| text).collect();
    ensure!(
        !refused.is_empty() && refused.iter().all(|text| text.contains("re-read it first")),
        "{refused:?}"
    );
    let file = scripted.directory.path().join("slot/src/lib.rs");
    assert_eq!(std::fs::read_to_string(file)?, "1 after 2\n");
    Ok(())
}

/// Leads every name to this machine, which counts as outside.
#[derive(Debug)]
struct Here;

#[async_trait]
impl Outside for Here {
    async fn find(&self, _: &str, port: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
        Ok(vec![([127, 0, 0, 1], port).into()])
    }

    fn holds(&self, _: std::net::IpAddr) -> bool {
        true
    }
}

#[async_trait]
impl SearchPort for Here {
    async fn search(&self, query: &str) -> Result<Vec<SearchHit>, SearchError> {
        Ok(vec![SearchHit {
            title: format!("All of {query}"),
            url: "https://docs.test/a"
                .parse()
                .map_err(|_| SearchError("no address".to_owned()))?,
            excerpt: "words of strangers".to_owned(),
        }])
    }
}

#[tokio::test]
async fn a_model_reads_a_page_that_is_listed_and_searches_the_web() -> anyhow::Result<()> {
    let server = MockServer::start().await;
    let page = ResponseTemplate::new(200).set_body_raw("<p>The <b>words</b></p>", "text/html");
    let page = Mock::given(path("/page")).respond_with(page);
    page.mount(&server).await;
    let host = format!("docs.test:{}", server.address().port());
    let listed = json!({ "url": format!("http://{host}/page") });
    let calls = [
        ("web_fetch", listed, "/page, not to be trusted]\n", false),
        (
            "web_fetch",
            json!({ "url": "http://other.test/" }),
            "other.test",
            true,
        ),
        (
            "web_search",
            json!({ "query": "walks" }),
            "1. All of walks\n   https://docs.test/a",
            false,
        ),
    ];
    let scripted = ScriptedEngine::new(&script(&calls)).await?;
    let directory = scripted.directory.path();
    let root = directory.join("slot");
    std::fs::create_dir_all(&root)?;
    let bench = Workbench::open(WorkbenchOptions {
        writable: vec![RepoPath::parse("src/lib.rs")?],
        runner: CommandRunner::new(Environment::from_pairs([("PATH", "/usr/bin:/bin")])),
        egress: Some(Egress {
            hosts: vec![HostPattern::parse(&host)?],
            outside: Arc::new(Here),
            ..Egress::none()
        }),
        search: Some(Arc::new(Here)),
        ..WorkbenchOptions::looking(root, directory.join("spill"))
    })?;
    let tools: Toolbox = tools_of(AgentMode::Implement, &bench)?;
    check(&scripted, &job(tools), &calls).await?;
    let read = scripted.requests()[1].messages.last().map(results);
    ensure!(read.is_some_and(|told| told[0].0.contains("words") && !told[0].0.contains("<b>")));
    Ok(())
}
