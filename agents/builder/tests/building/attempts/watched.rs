//! What an attempt does is seen while it happens, kept for later, and told again from the journal where that is lost.

use ropewalk_bus::LiveEvents;
use ropewalk_desk::views::transcript::Transcripts;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::job_event::{JobEvent, Passage};

use super::mending::{one_wrong_line, plan};
use crate::world::house::{House, OpenHouse, PATIENCE};

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

async fn transcript(house: &House, open: &OpenHouse, build: &Build) -> Vec<Passage> {
    let mut transcripts = Transcripts::of(build.clone(), &house.state());
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
    let house = House::new(&one_wrong_line());
    let open = house.open().await;
    let live = open.services.bus.live().subscribe();
    let spec = open.approve(plan()).await;
    let live = heard(live).await;
    open.ended(spec).await;
    let build = open.build(spec).await.unwrap();
    let kept = transcript(&house, &open, &build).await;
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
    let house = House::new(&one_wrong_line());
    let open = house.open().await;
    let spec = open.approve(plan()).await;
    open.ended(spec).await;
    let build = open.build(spec).await.unwrap();
    std::fs::remove_dir_all(house.state().join("transcripts")).unwrap();
    let again = transcript(&house, &open, &build).await;
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
