//! Tells whoever runs `up` what waits for a person, what stands still and what ended, each with the command that goes on.

use ropewalk_bus::TailError;
use ropewalk_desk::views::question::awaited;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::{Build, BuildState, PauseReason, TaskCounts};
use ropewalk_schemas::payload::{BuildCompleted, BuildPaused, QuestionAsked};
use ropewalk_schemas::question::QuestionKind;
use ropewalk_schemas::{BuildId, Event, Payload};
use ropewalk_store::Store;

use crate::commands::question::{answer_command, commands_of};
use crate::commands::spec::hash::FEWEST_DIGITS;
use crate::ids::last_digits;
use crate::output::{Output, in_short};
use crate::wiring::Host;

/// So much of a question, or of a reason, is shown; the verbs show the whole.
const LETTERS: usize = 200;

/// Begins to tell, until the process stops.
pub(super) fn begin(host: &Host, output: &Output) {
    let services = &host.services;
    let tail = services.bus.tail().clone();
    let (output, store) = (output.clone(), services.store.clone());
    host.supervisor.spawn("notices", async move {
        while let Ok(mut events) = tail.listen().await {
            loop {
                match events.next().await {
                    Ok(stored) => {
                        let event = Event::try_from(stored.event.as_ref());
                        // What nobody can read changes nothing.
                        let told = match event.ok().map(|event| event.payload) {
                            Some(Payload::BuildPaused(paused)) => {
                                Some(pause(&paused, &store).await)
                            }
                            Some(Payload::BuildCompleted(ended)) => Some(end(&ended, &store).await),
                            other => other.as_ref().and_then(notice),
                        };
                        drop(told.map(|told| output.note(&told)));
                    }
                    Err(TailError::Missed(_)) => break,
                    Err(TailError::Stopping) => return,
                }
            }
        }
    });
}

/// Says what a person is to know of an event, and what to do about it.
fn notice(payload: &Payload) -> Option<String> {
    Some(match payload {
        Payload::QuestionAsked(asked) => question(asked),
        Payload::SpecGenerated(made) => {
            let (idea, id) = (&made.idea_slug, last_digits(made.spec_id));
            format!(
                "specification of `{idea}` is written, revision {}: `ropewalk spec show {id}`, then `ropewalk spec approve {id} --hash {}`",
                made.revision,
                &made.hash.as_str()[..FEWEST_DIGITS]
            )
        }
        _ => return None,
    })
}

fn question(asked: &QuestionAsked) -> String {
    let id = last_digits(asked.question_id);
    let text = in_short(&asked.text, LETTERS);
    let what = match asked.kind {
        QuestionKind::Blocking => "waits for your answer",
        _ => "asks",
    };
    let about = asked
        .idea_slug
        .as_ref()
        .map_or_else(String::new, |idea| format!("`{idea}` "));
    format!("{about}{what}: {text}: {}", commands_of(id))
}

async fn pause(paused: &BuildPaused, store: &Store) -> String {
    let id = last_digits(paused.build_id);
    let next = match paused.reason {
        PauseReason::Person => {
            let asked = questions_before(paused.build_id, store).await;
            asked.unwrap_or_else(|| format!("`ropewalk build resume {id}`"))
        }
        PauseReason::Quota | PauseReason::Outage => {
            format!("`ropewalk build show {id}` tells when it goes on")
        }
        PauseReason::Budget | PauseReason::Conflict => "`ropewalk question list`".to_owned(),
    };
    format!(
        "build of `{}` pauses: {}: {next}",
        paused.idea_slug,
        in_short(&paused.detail, LETTERS)
    )
}

/// Says how the questions are answered that a build stands still for, if it does so for any.
async fn questions_before(build: BuildId, store: &Store) -> Option<String> {
    let row = store.get::<Build>(&build.to_string()).await.ok()??;
    // Whoever wished for the pause ends it.
    if row.pause_requested {
        return None;
    }
    answer_command(&awaited(store, &row).await.ok()?)
}

/// Says how a build ended. One that succeeded asks what shall become of its branch: that is told as any question is, and is
/// the one thing to do next.
async fn end(ended: &BuildCompleted, store: &Store) -> String {
    let (idea, id) = (&ended.idea_slug, last_digits(ended.build_id));
    let TaskCounts {
        total, complete, ..
    } = ended.counts;
    let why = ended.reason.as_deref().map_or_else(String::new, |reason| {
        format!(": {}", in_short(reason, LETTERS))
    });
    let next = if ended.status != BuildState::Succeeded {
        format!(": `ropewalk build show {id}`")
    } else if questions_before(ended.build_id, store).await.is_some() {
        String::new()
    } else {
        format!(": `ropewalk build land {id}`")
    };
    format!(
        "build of `{idea}` {}, {complete} of {} complete{why}{next}",
        ended.status,
        counted(total, "task")
    )
}
