//! What earlier programs left when they were killed goes on with this one.
//!
//! `fixtures/earlier.tar.gz` is such a project, with tables as they were before the sixteenth change of them: of four tasks one
//! waits for an answer, one was being checked, two wait for these, and a revision was asked for when nothing ran any more.
//! It lacks `state/repository.json`, as the program advises where a project has moved.
//!
//! `fixtures/before_machine.tar.gz` is one of the program that had no machine for builds, choices without ids and three changes of
//! its tables: of eight tasks the first is complete, the second waits for a yes, the third used up its tries, the fourth was being
//! checked and the fifth worked on, the sixth waits for a file of the fifth, the seventh and the eighth for the third and the fourth.
//! What to try with the third was answered when nothing ran any more. Another idea waits for its person.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_config::Trigger;
use ropewalk_schemas::Event;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::attempt::{Attempt, AttemptState, Evidence};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::{Idea, Message, Session};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem};
use ropewalk_schemas::lease::{Lease, Ownership};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::review::Review;
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{EventFilter, Query, Record, Store};
use serde_json::Value;

use crate::picture::{REHEARSAL, check_at_rest, git, store};
use crate::project::Project;
use crate::running::{start, stop, until_ready};

const QUESTION: &str = "Is part one to be long or short?";
/// What every task writes into its file.
const PARTS: [&str; 4] = ["part 1", "part 2", "part 3", "part 4"];
/// The files of the program that had no machine for builds, in the order of their tasks; each says that its part is ready.
const FILES: [&str; 8] = [
    "parts/01.txt",
    "Jenkinsfile",
    "parts/03.txt",
    "parts/04.txt",
    "parts/05.txt",
    "parts/06.txt",
    "parts/07.txt",
    "parts/08.txt",
];
/// What somebody answered to that program, behind a label.
const ADVICE: &str = "say in the file that it is ready";

fn unpacked(fixture: &str) -> anyhow::Result<Project> {
    let directory = tempfile::tempdir()?;
    let archive = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/scenarios/fixtures")
        .join(fixture);
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(directory.path())
        .status()
        .context("`tar` does not run")?;
    ensure!(status.success(), "`tar` ended with {status}");
    Ok(Project::at(directory))
}

/// Returns how many changes the tables have seen, without this program, which would change them.
fn changes_of_tables(project: &Project) -> anyhow::Result<String> {
    const ASKS: &str = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT MAX(version) FROM _sqlx_migrations').fetchone()[0])";
    let database = project.path().join("state/ropewalk.db");
    let output = Command::new("python3")
        .args(["-c", ASKS])
        .arg(database)
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Answers an open question that is meant, once it is there.
async fn answer(
    project: &Project,
    is_meant: impl Fn(&Question) -> bool,
    words: &str,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let store = store(project.path()).await?;
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let asked = loop {
        let questions = store.list::<Question>(open.clone()).await?;
        if let Some(asked) = questions.iter().find(|asked| is_meant(asked)) {
            break asked.id.to_string();
        }
        ensure!(began.elapsed() < REHEARSAL, "{questions:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    store.close().await?;
    project.verb(&["question", "answer", &asked, words], "")?;
    Ok(())
}

fn is_asked(question: &Question, by: Trigger) -> bool {
    Trigger::parse(&question.trigger) == Some(by)
}

/// Waits until the build has ended and the revision is there, with nothing left to be handled.
async fn ended(project: &Project, revision: u32) -> anyhow::Result<Value> {
    let began = Instant::now();
    let store = store(project.path()).await?;
    loop {
        let builds = store.list::<Build>(Query::new()).await?;
        let specifications = store.list::<Specification>(Query::new()).await?;
        let has_ended = builds
            .iter()
            .all(|build| build.state == BuildState::Succeeded);
        let is_revised = specifications.iter().any(|one| one.revision == revision);
        if has_ended && is_revised && store.open_deliveries(None, 0, 1).await?.is_empty() {
            store.close().await?;
            return project.verb(&["build", "show", &builds[0].id.to_string()], "");
        }
        ensure!(began.elapsed() < REHEARSAL, "{builds:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn check_tasks(build: &Value, count: usize) -> anyhow::Result<()> {
    let states = build["tasks"].as_array().context("tasks")?.iter();
    let states: Vec<&Value> = states.map(|task| &task["state"]).collect();
    assert_eq!(states, vec!["complete"; count]);
    Ok(())
}

#[tokio::test]
async fn what_an_earlier_program_left_goes_on_to_its_end() -> anyhow::Result<()> {
    let project = unpacked("earlier.tar.gz")?;
    assert_eq!(changes_of_tables(&project)?, "15", "before this program");
    let mut up = start(&project.runner, &["up", "--bind", "127.0.0.1:0"])?;
    until_ready(project.path(), &mut up).await?;
    answer(&project, |asked| asked.text.ends_with(QUESTION), "Short").await?;
    let build = ended(&project, 2).await?;
    stop(&mut up).await?;

    check_tasks(&build, PARTS.len())?;
    for (number, part) in (1..).zip(PARTS) {
        let file = format!("build/habits:parts/{number:02}.txt");
        let landed = git(&project.repository(), &["show", &file])?;
        assert_eq!(landed.trim(), format!("{part} is ready"));
    }
    let store = store(project.path()).await?;
    let attempts = store.list::<Attempt>(Query::new()).await?;
    let cut_off = attempts
        .iter()
        .filter(|one| one.task.as_ref() == "T-002" && one.state == AttemptState::Interrupted);
    assert_eq!(cut_off.count(), 1, "what was being checked: {attempts:?}");
    assert_eq!(store.count::<Build>(Query::new()).await?, 1);
    check_at_rest(&store).await?;
    Ok(store.close().await?)
}

#[tokio::test]
async fn what_the_program_before_the_machine_left_goes_on_to_its_end() -> anyhow::Result<()> {
    let project = unpacked("before_machine.tar.gz")?;
    assert_eq!(changes_of_tables(&project)?, "3", "before this program");
    let mut up = start(&project.runner, &["up", "--bind", "127.0.0.1:0"])?;
    until_ready(project.path(), &mut up).await?;
    let is_vague = |asked: &Question| is_asked(asked, Trigger::ProblemStatementVague);
    answer(&project, is_vague, "Bills in a drawer are paid late.").await?;
    // A yes binds to what was shown, and that question showed nothing: the work is shown before it lands.
    for is_shown in [false, true] {
        let is_protected = |asked: &Question| {
            is_asked(asked, Trigger::ProtectedFiles) && asked.content.is_some() == is_shown
        };
        answer(&project, is_protected, "allow").await?;
    }
    let build = ended(&project, 1).await?;
    stop(&mut up).await?;

    check_tasks(&build, FILES.len())?;
    for (number, file) in (1..).zip(FILES) {
        let landed = git(
            &project.repository(),
            &["show", &format!("build/habits:{file}")],
        )?;
        assert!(
            landed.ends_with(&format!("part {number} is ready")),
            "{landed}"
        );
    }
    // What was learned is found by another form of its words.
    let found = project.verb(&["knowledge", "search", "counting"], "")?;
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    let store = store(project.path()).await?;
    check_attempts(&store).await?;
    let replies = store.list::<Message>(Query::new()).await?;
    let replies = replies.iter().filter(|said| said.text == "Reply 2.");
    assert_eq!(replies.count(), 2, "one in each idea");
    check_that_all_is_read(&store).await?;
    check_at_rest(&store).await?;
    Ok(store.close().await?)
}

/// Checks that each attempt went on where it was, with the tries, the words and the replies of before.
async fn check_attempts(store: &Store) -> anyhow::Result<()> {
    use AttemptState::{Failed, Interrupted, Landed};
    let mut attempts = store.list::<Attempt>(Query::new()).await?;
    attempts.sort_by_key(|one| one.started_at);
    let expected: [(&str, &[AttemptState], u64); 5] = [
        ("T-001", &[Landed], 2),
        // The model makes it again, and what is shown then lands as it is.
        ("T-002", &[Failed, Failed, Landed], 6),
        ("T-003", &[Failed, Failed, Failed, Landed], 5),
        // Each reply is paid once.
        ("T-004", &[Interrupted, Landed], 2),
        ("T-005", &[Interrupted, Landed], 2),
    ];
    for (task, ends, calls) in expected {
        let of_task = attempts.iter().filter(|one| one.task.as_ref() == task);
        let states: Vec<AttemptState> = of_task.map(|one| one.state).collect();
        assert_eq!(states, ends, "{task}");
        let of_task = Query::new().equal("task", task);
        assert_eq!(store.count::<ModelCall>(of_task).await?, calls, "{task}");
    }
    let tasks = store
        .list::<Task>(Query::new().equal("task", "T-003"))
        .await?;
    let [task] = tasks.as_slice() else {
        anyhow::bail!("{tasks:?}");
    };
    assert_eq!(task.state, TaskState::Complete);
    assert_eq!(task.guidance, [ADVICE]);
    Ok(())
}

/// Reads each row and each event; what was over when the program was killed is still as it wrote it.
async fn check_that_all_is_read(store: &Store) -> anyhow::Result<()> {
    async fn read<R: Record>(store: &Store) -> anyhow::Result<()> {
        let rows = store.list::<R>(Query::new()).await?;
        ensure!(!rows.is_empty(), "no row in `{}`", R::TABLE.name);
        Ok(())
    }
    for stored in store.events(&EventFilter::default()).await? {
        Event::try_from(&*stored.event)?;
    }
    read::<Idea>(store).await?;
    read::<Session>(store).await?;
    read::<Specification>(store).await?;
    read::<Revision>(store).await?;
    read::<Build>(store).await?;
    read::<Evidence>(store).await?;
    read::<Lease>(store).await?;
    read::<Ownership>(store).await?;
    read::<Question>(store).await?;
    read::<KnowledgeItem>(store).await?;
    read::<Injection>(store).await?;
    read::<Review>(store).await?;
    read::<Component>(store).await?;
    read::<ModelCall>(store).await?;
    read::<Timer>(store).await
}
