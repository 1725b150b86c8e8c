//! Tells whoever runs `up` what waits for a person, what stands still and what ended, each with the command that goes on.

use std::collections::BTreeSet;

use ropewalk_bus::{Tail, TailError, TailEvents};
use ropewalk_desk::views::question::{QuestionView, awaited, list};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::{Build, BuildState, PauseReason, TaskCounts};
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::payload::{BuildCompleted, BuildPaused, SpecGenerated};
use ropewalk_schemas::question::QuestionKind;
use ropewalk_schemas::{BuildId, Event, Payload, QuestionId, Slug};
use ropewalk_store::{Query, ReadError, Store, StoredEvent};

use crate::commands::question::{answer_command, commands_of};
use crate::commands::spec::hash::FEWEST_DIGITS;
use crate::ids::last_digits;
use crate::output::{Output, in_short};
use crate::wiring::{BELL, Host};

/// So much of a question, or of a reason, is shown; the verbs show the whole.
const LETTERS: usize = 200;
/// So many of the questions that are open already are shown, the most urgent first; the others are counted.
const OPEN: usize = 20;

/// Tells of the questions that are open already, and begins to tell what happens, until the process stops. Where the bell of the
/// terminal `rings`, it tells each new question by itself, and each that it has not told yet; where nobody can hear it, it
/// tells nothing.
pub(super) async fn begin(host: &Host, output: &Output, rings: bool) {
    let services = &host.services;
    let tail = services.bus.tail().clone();
    let mut teller = Teller {
        output: output.clone(),
        store: services.store.clone(),
        rings,
        told: BTreeSet::new(),
    };
    // First, so that nothing is asked between what is open and what comes.
    let Ok(events) = tail.listen().await else {
        return;
    };
    teller.tell_open().await;
    host.supervisor
        .spawn("notices", async move { teller.follow(tail, events).await });
}

/// Writes what happens as lines for a person.
struct Teller {
    output: Output,
    store: Store,
    rings: bool,
    /// The questions that this told; none where the bell rings, but at the start.
    told: BTreeSet<QuestionId>,
}

impl Teller {
    async fn follow(mut self, tail: Tail, mut events: TailEvents) {
        loop {
            match events.next().await {
                Ok(stored) => self.tell(&stored).await,
                Err(TailError::Missed(_)) => {
                    let Ok(again) = tail.listen().await else {
                        return;
                    };
                    events = again;
                    // The bell misses nothing.
                    if !self.rings {
                        self.tell_open().await;
                    }
                }
                Err(TailError::Stopping) => return,
            }
        }
    }

    /// Tells of the open questions that were not told yet, and that the bell is not about to tell; a store that cannot be read
    /// is told of elsewhere.
    async fn tell_open(&mut self) {
        let (Ok(all), Ok(belled)) = (
            list(&self.store, None, false).await,
            self.left_to_bell().await,
        ) else {
            return;
        };
        // What was answered is not asked again.
        let is_open = |id: &QuestionId| all.iter().any(|view| view.question.id == *id);
        self.told.retain(is_open);
        let known = |id: QuestionId| self.told.contains(&id) || belled.contains(&id);
        let open: Vec<&QuestionView> = all.iter().filter(|view| !known(view.question.id)).collect();
        for QuestionView { question, .. } in open.iter().take(OPEN) {
            let (id, kind, idea) = (question.id, question.kind, question.idea.as_ref());
            self.note(&asked((id, kind), &question.text, idea));
        }
        if open.len() > OPEN {
            let others = counted(open.len() - OPEN, "other question");
            self.note(&format!("{others} open: `ropewalk question list`"));
        }
        self.told.extend(open.iter().map(|view| view.question.id));
    }

    /// Returns the questions that the bell has yet to tell.
    async fn left_to_bell(&self) -> Result<BTreeSet<QuestionId>, ReadError> {
        if !self.rings {
            return Ok(BTreeSet::new());
        }
        let open = Query::new().equal("port", BELL).equal("open", true);
        let open = self.store.list::<Notice>(open).await?;
        let waiting = open
            .iter()
            .filter(|notice| matches!(notice.state, NoticeState::Waiting | NoticeState::Sending));
        Ok(waiting.filter_map(|notice| notice.question).collect())
    }

    /// Says what a person is to know of an event, and what to do about it.
    async fn tell(&mut self, stored: &StoredEvent) {
        // What nobody can read changes nothing.
        let Ok(event) = Event::try_from(stored.event.as_ref()) else {
            return;
        };
        let told = match event.payload {
            Payload::QuestionAsked(new) => {
                let is_new = !self.rings && self.told.insert(new.question_id);
                let question = (new.question_id, new.kind);
                is_new.then(|| asked(question, &new.text, new.idea_slug.as_ref()))
            }
            Payload::SpecGenerated(made) => Some(written(&made)),
            Payload::BuildPaused(paused) => Some(pause(&paused, &self.store).await),
            Payload::BuildCompleted(ended) => Some(end(&ended, &self.store).await),
            _ => None,
        };
        if let Some(told) = told {
            self.note(&told);
        }
    }

    /// A line that nobody can read changes nothing.
    fn note(&self, line: &str) {
        drop(self.output.note(line));
    }
}

fn written(made: &SpecGenerated) -> String {
    let (idea, id) = (&made.idea_slug, last_digits(made.spec_id));
    format!(
        "specification of `{idea}` is written, revision {}: `ropewalk spec show {id}`, then `ropewalk spec approve {id} --hash {}`",
        made.revision,
        &made.hash.as_str()[..FEWEST_DIGITS]
    )
}

fn asked((id, kind): (QuestionId, QuestionKind), text: &str, idea: Option<&Slug>) -> String {
    let text = in_short(text, LETTERS);
    let what = match kind {
        QuestionKind::Blocking => "waits for your answer",
        _ => "asks",
    };
    let about = idea.map_or_else(String::new, |idea| format!("`{idea}` "));
    format!("{about}{what}: {text}: {}", commands_of(last_digits(id)))
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
