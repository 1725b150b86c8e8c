//! What an attempt does is seen while it happens, kept for later, and told again from the journal where that is lost.

use ropewalk_bus::LiveEvents;
use ropewalk_desk::views::transcript::{StepWords, Transcripts};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::job_event::{JobEvent, Passage};
use serde_json::json;

use super::mending::{one_wrong_line, plan};
use crate::world::project::{OpenProject, PATIENCE, Project, task, writes};

/// Tells what happened in one word each, leaving out what has its own tests.
fn told(passages: &[Passage]) -> Vec<String> {
    let word = |passage: &Passage| match &passage.event {
        JobEvent::ToolStarted { name, .. } => Some(format!("calls {name}")),
        JobEvent::FileChanged { path, .. } => Some(format!("changed {path}")),
        JobEvent::ResultTaken { .. } => Some("handed in".to_owned()),
        JobEvent::Judged { passed, .. } => Some(format!("judged {passed}")),
        _ => None,
    };
    passages.iter().filter_map(word).collect()
}

async fn transcript(project: &Project, open: &OpenProject, build: &Build) -> Vec<Passage> {
    let mut transcripts = Transcripts::of(build.clone(), &project.state());
    let passages = transcripts.next(&open.services.store).await.unwrap();
    let again = transcripts.next(&open.services.store).await.unwrap();
    assert_eq!(again, [], "what was shown is not shown again");
    passages
}

/// Waits for the end of the work, and returns every step that was heard.
async fn heard(mut live: LiveEvents) -> Vec<Passage> {
    let mut steps = Vec::new();
    loop {
        let event = tokio::time::timeout(PATIENCE, live.next()).await.unwrap();
        let event = event.unwrap();
        if event.event_type != "task.step" {
            continue;
        }
        let step: Passage = serde_json::from_value(event.data).unwrap();
        let is_last = matches!(step.event, JobEvent::Judged { passed: true, .. });
        steps.push(step);
        if is_last {
            return steps;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_tools_differences_and_verdicts_are_seen_live_and_afterwards() {
    let project = Project::new(&one_wrong_line());
    let open = project.open().await;
    let live = open.services.bus.live().subscribe();
    let spec = open.approve(plan()).await;
    let live = heard(live).await;
    open.ended(spec).await;
    let build = open.build(spec).await.unwrap();
    let kept = transcript(&project, &open, &build).await;
    let expected = [
        "calls write",
        "changed T-1.txt",
        "handed in",
        "judged false",
        "calls edit",
        "changed T-1.txt",
        "handed in",
        "judged true",
    ];
    assert_eq!(told(&live), expected);
    assert_eq!(told(&kept), expected);
    let difference = kept.iter().rev().find_map(|passage| match &passage.event {
        JobEvent::FileChanged { difference, .. } => Some(difference.as_str()),
        _ => None,
    });
    let difference = difference.unwrap();
    assert!(
        difference.contains("-line 99: assert that it is wrong\n+line 99 is right\n"),
        "{difference}"
    );
    let calls = kept.iter().filter(|passage| {
        matches!(&passage.event, JobEvent::MessageEnded { usage, .. } if usage.model == "scripted")
    });
    assert_eq!(calls.count(), 4, "each call with what it cost");
    let first = &live.first().unwrap().event;
    assert!(matches!(first, JobEvent::TurnStarted { turn: 1, .. }));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transcript_that_is_lost_is_told_again_from_the_journal() {
    let project = Project::new(&one_wrong_line());
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.ended(spec).await;
    let build = open.build(spec).await.unwrap();
    std::fs::remove_dir_all(project.state().join("transcripts")).unwrap();
    let again = transcript(&project, &open, &build).await;
    let expected = [
        "calls write",
        "calls finish",
        "judged false",
        "calls edit",
        "calls finish",
        "judged true",
    ];
    assert_eq!(told(&again), expected);
    open.close().await;
}

/// Returns the words of the last verdict.
fn verdict(passages: &[Passage]) -> Option<String> {
    let mut verdicts = passages
        .iter()
        .rev()
        .filter(|passage| matches!(passage.event, JobEvent::Judged { .. }));
    let told = StepWords::new(&verdicts.next()?.event)?;
    Some(told.line)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_a_person_has_to_allow_is_told_to_wait_and_is_one_try() {
    let files = [
        ("tests/check.sh", "grep -q good a.txt\n"),
        ("a.txt", "bad\n"),
    ];
    let project = Project::new(&writes("T-1", "tests/check.sh", "true\n", None)).with_files(&files);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
            "validation": { "command": "sh tests/check.sh", "expected": "exit 0" },
        }]))
        .await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(task(&tasks, "T-1").attempts, 1);
    let waits = "waits for your answer: it changes files that judge its work";
    let kept = transcript(&project, &open, &build).await;
    assert_eq!(verdict(&kept).as_deref(), Some(waits));
    std::fs::remove_dir_all(project.state().join("transcripts")).unwrap();
    let again = transcript(&project, &open, &build).await;
    assert_eq!(verdict(&again).as_deref(), Some(waits));
    open.answer("T-1", "allow").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let allowed = task(&tasks, "T-1");
    assert_eq!((allowed.attempts, allowed.failures.len()), (1, 0));
    assert_eq!(open.attempts(build.id, "T-1").await.len(), 2);
    open.close().await;
}
