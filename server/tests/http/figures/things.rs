//! The pages of single things: their figures are those of the rows too.

use ropewalk_desk::health::Finding;
use ropewalk_schemas::attempt::{Attempt, Evidence};
use ropewalk_schemas::idea::Session;
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::question::{Content, Question, QuestionState};
use ropewalk_schemas::specification::{Price, Revision, Specification};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, ContentHash};
use ropewalk_store::{ChangeSet, DeliveryFilter, Query, Record};
use serde_json::{Value, json};

use super::reading::{Expectation, assert_pages};
use super::{all, call, dollars, row, scales, used};
use crate::troubles::dead_letter;
use crate::world::{ServerWorld, findings};

/// Changes what is written of the only row of its sort.
pub(super) async fn change<R: Record>(world: &ServerWorld, change: impl FnOnce(&mut Value)) {
    let store = &world.services.store;
    let rows = store.list::<R>(Query::new()).await.unwrap();
    let mut written = serde_json::to_value(&rows[0].record).unwrap();
    change(&mut written);
    let after: R = serde_json::from_value(written).unwrap();
    let mut changes = ChangeSet::new();
    changes.update(&rows[0], &after);
    store.commit(changes).await.unwrap();
}

/// Stores a talk with its confidences, a specification with its price, and a task with its attempts; returns the build.
async fn fill(world: &ServerWorld) -> BuildId {
    dead_letter(world).await;
    change::<Session>(world, |session| {
        session["signals"] = json!({ "confidence": 0.37, "artifacts": [
            { "kind": "problem", "summary": "Where?", "content": "Nobody knows.", "confidence": 0.64 },
            { "kind": "target-user", "summary": "Who?", "content": "Walkers.", "confidence": 0.82 },
        ] });
    })
    .await;
    let (spec, now) = (world.specification().await, world.services.clock.now());
    change::<Specification>(world, |spec| {
        spec["revision"] = json!(7);
        spec["price"] = json!({
            "tokens_low": 21_000, "tokens_high": 43_000, "micro_usd_low": 1_250_000,
            "micro_usd_high": 2_750_000, "basis": "from 9 builds",
        });
    })
    .await;
    let build = world.built().await;
    world.task(build, "T-001", TaskState::Working).await;
    change::<Task>(world, |task| task["attempts"] = json!(12)).await;
    let ids = &world.services.ids;
    let attempt = ids.next();
    let tried = json!({
        "id": attempt, "build": build, "task": "T-001", "number": 1, "loop_name": "loop", "state": "failed",
        "token": 1, "base": "5".repeat(40), "tokens": 4_321, "started_at": now,
    });
    let seen = json!({
        "build": build, "task": "T-001", "attempt": attempt, "commit": "6".repeat(40), "tree": "7".repeat(40),
        "verdict": "failed", "at": now, "checks": [{
            "name": "validation", "command": "true", "exit_code": 101, "duration_ms": 65_000,
            "output": "walk 7 <b>fails</b>",
            "tests": { "passed": 17, "failed": 2, "ignored": 5 },
        }],
    });
    let lesson = json!({
        "id": ids.next(), "kind": "gotcha", "content": "Mind the gap.", "confidence": 0.83,
        "executions": ["a", "b", "c", "d"], "ideas": ["walks"], "discovered_by": "build", "state": "confirmed",
        "injections": 3, "created_at": now, "updated_at": now,
    });
    let mut changes = ChangeSet::new();
    for (task, helped) in [("T-001", true), ("T-002", true), ("T-003", false)] {
        let usage: Injection = serde_json::from_value(json!({
            "item": lesson["id"], "build": build, "spec": spec, "task": task, "held_out": false, "helped": helped,
            "at": now,
        }))
        .unwrap();
        changes.insert(&usage);
    }
    let revision: Revision = serde_json::from_value(json!({
        "spec": spec, "number": 7, "hash": ContentHash::of(b"new"), "at": now,
        "document": { "title": "Walks", "objective": "Walk." },
    }))
    .unwrap();
    let tried: Attempt = serde_json::from_value(tried).unwrap();
    let seen: Evidence = serde_json::from_value(seen).unwrap();
    let lesson: KnowledgeItem = serde_json::from_value(lesson).unwrap();
    changes
        .insert(&revision)
        .insert(&tried)
        .insert(&seen)
        .insert(&lesson);
    let mut other = call(build, "other", "2026-03-03", (999, 880_000));
    other.idea = ropewalk_schemas::Slug::parse("rivers").ok();
    changes
        .insert(&call(build, "one", "2026-03-01", (1_234, 1_560_000)))
        .insert(&other);
    world.services.store.commit(changes).await.unwrap();
    build
}

/// Returns a share as people read it.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Works out from the rows what the page of the idea has to tell.
fn of_idea(session: &Session, spec: &Specification) -> Vec<String> {
    let whole = percent(session.signals.confidence);
    let mut told = vec![
        format!(
            "<meter min=\"0\" max=\"100\" value=\"{0}\">{whole}</meter> {whole}",
            whole.trim_end_matches(" %")
        ),
        format!("Specification, revision {}", spec.revision),
    ];
    let pieces = session.signals.artifacts.iter();
    told.extend(
        pieces.map(|piece| format!("<span class=\"faint\">{}</span>", percent(piece.confidence))),
    );
    told
}

fn money(micro: Option<u64>) -> String {
    let cents = micro.unwrap() / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// Works out from the rows what the page of the specification has to tell.
fn of_specification(spec: &Specification, price: &Price, calls: &[&ModelCall]) -> Vec<String> {
    let (low, high) = (money(price.micro_usd_low), money(price.micro_usd_high));
    let revision = spec.revision;
    let (read, written) = used(calls);
    vec![
        format!(
            "used {} so far: {} call, {read} tokens in, {written} out",
            dollars(calls),
            calls.len()
        ),
        format!("<span>revision {revision}</span>"),
        format!("what changed since revision {}", revision - 1),
        format!("A yes holds for revision {revision} with hash"),
        format!("Approve revision {revision}"),
        format!(
            "{} to {} tokens, {low} to {high} ({})",
            price.tokens_low, price.tokens_high, price.basis
        ),
    ]
}

/// Works out from the rows what the page of the task has to tell.
fn of_task(task: &Task, attempts: &[Attempt], evidence: &[Evidence]) -> Vec<String> {
    let mut told = vec![format!(
        "{} tries in {} attempt:",
        task.attempts,
        attempts.len()
    )];
    for (number, attempt) in attempts.iter().enumerate() {
        told.push(format!("Attempt {}", number + 1));
        told.push(format!("{} tokens", attempt.tokens));
    }
    told.push(format!("expects {}", task.block.validation.expected));
    let commits = evidence.iter().map(|seen| seen.commit.short());
    told.extend(commits.map(|commit| format!("The gate on <code class=\"id\">{commit}</code>")));
    for run in evidence.iter().flat_map(|seen| &seen.checks) {
        let tests = run.tests.as_ref().unwrap();
        let (minutes, seconds) = (run.duration_ms / 60_000, run.duration_ms / 1_000 % 60);
        told.push(format!(
            "exit {}, {minutes} min {seconds} s, {} passed, {} failed, {} ignored",
            run.exit_code.unwrap(),
            tests.passed,
            tests.failed,
            tests.ignored
        ));
        let output = run.output.replace('<', "&#60;").replace('>', "&#62;");
        told.push(format!("$ {}\n{output}</pre>", run.command));
    }
    told
}

/// Works out from the rows what the page of the lesson has to tell.
fn of_lesson(item: &KnowledgeItem, uses: &[Injection]) -> Vec<String> {
    let came = |helped| uses.iter().filter(|one| one.helped == Some(helped)).count();
    let drawn = format!(
        "{} uses: {} passed with it, where one had failed without; {} its mistake was made all the same",
        uses.len(),
        came(true),
        came(false)
    );
    let (confidence, seen) = (item.confidence, item.executions.len());
    // For who has it read, who points at it, and in words.
    let mut told = vec![drawn; 3];
    told.push(format!(
        "confidence {confidence:.2}, seen in {seen} executions"
    ));
    told
}

/// Works out from the rows what each page has to tell.
async fn expected(world: &ServerWorld, build: BuildId) -> Vec<Expectation> {
    let (session, spec) = (
        all::<Session>(world).await,
        all::<Specification>(world).await,
    );
    let (task, lesson) = (all::<Task>(world).await, all::<KnowledgeItem>(world).await);
    let (attempts, evidence) = (all::<Attempt>(world).await, all::<Evidence>(world).await);
    let uses = all::<Injection>(world).await;
    let every = DeliveryFilter::default();
    let deliveries = world.services.store.deliveries(&every).await.unwrap();
    let delivery = &deliveries[0];
    let (position, tries) = (delivery.key.sequence, delivery.attempts);
    let calls = all::<ModelCall>(world).await;
    let of_walks = |call: &&ModelCall| {
        call.idea
            .as_ref()
            .is_some_and(|idea| idea.as_str() == "walks")
    };
    let walks: Vec<_> = calls.iter().filter(of_walks).collect();
    let (read, written) = used(&walks);
    let whole = format!(
        "<strong>{}</strong> <span>{} tokens in {} model call",
        dollars(&walks),
        read + written,
        walks.len()
    );
    // All are of one idea, one build, one model and one day.
    let mut usage = vec![row(&walks); 4];
    usage.push(whole);
    let (spec, price) = (&spec[0], spec[0].price.as_ref().unwrap());
    usage.extend(scales(&walks));
    // The bars of its only day: in the picture of money and in that of tokens.
    let day = format!(
        "2026-03-01: {}, {} tokens in 1 call",
        dollars(&walks),
        read + written
    );
    usage.extend(std::iter::repeat_n(day, 4));
    vec![
        Expectation::at("/ideas/walks", of_idea(&session[0], spec)),
        Expectation::at(
            format!("/specifications/{}", spec.id),
            of_specification(spec, price, &walks),
        ),
        Expectation::at(
            format!("/builds/{build}/tasks/T-001"),
            of_task(&task[0], &attempts, &evidence),
        ),
        Expectation::at(
            format!("/knowledge/{}", lesson[0].id),
            of_lesson(&lesson[0], &uses),
        ),
        Expectation::at(
            format!("/events/{position}"),
            vec![
                format!("</a> / {position}</p>"),
                format!("<td data-of=\"Tries\">{tries}</td>"),
            ],
        ),
        Expectation::at(
            format!("/dead-letters/{position}/{}", delivery.key.subscriber),
            vec![
                format!("<h1>Dead letter {position}/"),
                format!("tried {tries} time"),
            ],
        ),
        Expectation::at("/usage?idea=walks", usage),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_on_the_page_of_a_thing_is_that_of_the_store_and_another_one_is_found() {
    let world = ServerWorld::new().await;
    let build = fill(&world).await;
    assert_pages(&world, expected(&world, build).await).await;
    world.stop().await;
}

/// Stores a question that is open until `due`, and one that was answered in words with figures in them; each tells a number
/// of its own.
async fn ask(world: &ServerWorld) {
    let now = world.services.clock.now();
    let open = world.asked("build_finished", ["merge", "leave"]).await;
    let closed = world.asked("budget_exceeded", ["half", "stop"]).await;
    let store = &world.services.store;
    let mut changes = ChangeSet::new();
    for (id, more) in [
        (
            open,
            json!({
                "text": "Which of 21 ways?", "context": "There are 34 of them.", "consequential": false,
                "default": "leave", "due_at": now, "agent": "pm",
                "content": { "kind": "revision", "revision": 7, "hash": ContentHash::of(b"seven") },
            }),
        ),
        (
            closed,
            json!({
                "text": "Spend 55 more?", "state": "answered",
                "answer": { "choice": "half", "text": "half of 89", "by": "ada", "channel": "page", "at": now },
                "late": [{ "text": "all 144", "by": "bob", "channel": "api", "at": now }],
            }),
        ),
    ] {
        let found = store.get::<Question>(&id.to_string()).await.unwrap();
        let found = found.unwrap();
        let mut written = serde_json::to_value(&found.record).unwrap();
        let whole = written.as_object_mut().unwrap();
        whole.extend(more.as_object().unwrap().clone());
        changes.update(&found, &serde_json::from_value(written).unwrap());
    }
    store.commit(changes).await.unwrap();
}

/// Works out from its row what the page of a question has to tell.
fn of_question(question: &Question) -> Vec<String> {
    let mut told = vec![question.text.clone()];
    if !question.context.is_empty() {
        told.push(question.context.clone());
    }
    if let Some(Content::Revision { revision, hash }) = &question.content {
        told.push(format!(
            "a yes holds for revision {revision} with hash {hash}"
        ));
    }
    if let Some(answer) = &question.answer {
        told.push(format!("<strong>{}</strong>", answer.text));
    }
    let late = question.late.iter();
    told.extend(late.map(|late| format!("too late: {} (by {} over", late.text, late.by)));
    told
}

/// Works out from the rows what the inbox has to tell, with what is closed too.
fn of_inbox(questions: &[Question]) -> Vec<String> {
    let mut told = Vec::new();
    for question in questions {
        if question.state == QuestionState::Pending {
            told.extend(of_question(question));
        } else {
            let answer = question.answer.as_ref().unwrap();
            told.push(question.text.clone());
            told.push(format!("</span> {} <span", answer.text));
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_of_what_is_asked_is_that_of_the_store_and_another_one_is_found() {
    let world = ServerWorld::new().await;
    ask(&world).await;
    let questions = all::<Question>(&world).await;
    let mut pages = vec![Expectation::at("/questions?all=true", of_inbox(&questions))];
    pages.extend(questions.iter().map(|question| {
        Expectation::at(format!("/questions/{}", question.id), of_question(question))
    }));
    assert_pages(&world, pages).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_of_what_a_run_needs_is_one_that_was_found_and_another_one_is_found() {
    let world = ServerWorld::new().await;
    // No row holds these: they are found while the page is made.
    let has_figure = |finding: &Finding| {
        finding
            .detail
            .contains(|letter: char| letter.is_ascii_digit())
    };
    let told = findings().into_iter().filter(has_figure).map(|finding| {
        let (verdict, seen) = (finding.verdict.as_str(), finding.detail);
        format!("{verdict}</span></td><td data-of=\"Seen\">{seen}</td>")
    });
    assert_pages(&world, vec![Expectation::at("/health", told.collect())]).await;
    world.stop().await;
}
