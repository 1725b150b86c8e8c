//! What people ask of a specification: make it, change it, approve it, put it away.

mod approval;
mod folder;
mod outline;
pub(crate) mod plan;

use std::fmt::Write as _;

use ropewalk_orchestrator::{Context, questions};
use ropewalk_runtime::terminal;
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::payload::{SpecRejected, SpecRequested, SpecRevisionRequested};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::specification::{
    Complexity, DryRunCount, Revision, SpecState, Specification,
};
use ropewalk_schemas::{ContentHash, Payload, Priority, Slug, SpecId, Subject, UserSlug};
use ropewalk_store::{
    ChangeSet, CommitError, CommitFailure, Query, ReadError, Store, Versioned, retry_on_conflict,
};

use crate::ideas::is_abandoned;
use crate::people::{PermissionError, Person};

pub use approval::{ApproveError, ApprovedRevision, add_approval, approve, approved_by};
pub use folder::departures;
pub use outline::{Outline, OutlineExtent, outline};
pub use plan::{IdeaPlan, PlanProgress, counting};

/// The most bytes of what is asked to be changed.
const FEEDBACK_BYTES: usize = 16 * 1024;

/// So many warnings are told beside what trying the checks of a plan showed, which is told whole.
const WARNINGS: usize = 12;

/// Tells whoever is to approve a revision how its checks went before any work, what was found in the plan and not mended, and
/// what a yes lets run.
pub fn approval_told(revision: &Revision) -> String {
    let mut lines = vec![dry_run_told(revision)];
    let found = revision.dry_run.map_or(0, DryRunCount::open);
    let shown = usize::try_from(found).map_or(usize::MAX, |found| found.saturating_add(WARNINGS));
    let warnings = revision.validation.iter().take(shown);
    lines.extend(warnings.map(|warning| format!("warning: {warning}")));
    match revision.validation.len().saturating_sub(shown) {
        0 => {}
        1 => lines.push("and 1 more warning".to_owned()),
        more => lines.push(format!("and {more} more warnings")),
    }
    lines.push(String::new());
    lines.push(checks_told(revision));
    lines.join("\n")
}

/// Says how the checks of a revision went before any work, or that nobody tried them.
pub fn dry_run_told(revision: &Revision) -> String {
    revision.dry_run.map_or_else(
        || "not dry-run: nobody has tried its checks".to_owned(),
        |dry_run| format!("dry-run: {}", dry_run.in_words()),
    )
}

/// Shows what a yes lets run, each line of it, in a block in which no surface reads marks; a plan whose checks would end the
/// block is not taken. Of a task that has landed already it is said.
fn checks_told(revision: &Revision) -> String {
    let mut text = "What a yes lets run as checks:\n```sh\n".to_owned();
    for task in &revision.tasks {
        let done = if revision.kept.contains(&task.id) {
            ", done already"
        } else {
            ""
        };
        // Writing to a String cannot fail.
        writeln!(text, "# {}{done}", task.id).ok();
        writeln!(text, "{}", terminal::visible(&task.validation.command)).ok();
    }
    text + "```"
}

/// Says why a request about a specification was refused.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is no such idea.
    #[error("no idea is called `{0}`")]
    UnknownIdea(Slug),
    /// The idea was given up.
    #[error("the idea `{0}` was abandoned")]
    Abandoned(Slug),
    /// There is no such specification.
    #[error("no specification has the id `{0}`")]
    UnknownSpecification(SpecId),
    /// The idea has a specification that is still on its way.
    #[error("the idea `{idea}` has the specification `{spec}` in state {state}")]
    OnItsWay {
        /// The idea.
        idea: Slug,
        /// Its specification.
        spec: SpecId,
        /// How far that has come.
        state: SpecState,
    },
    /// Everything of the idea is in the branch that people use.
    #[error("the idea `{idea}` has landed")]
    Landed {
        /// The idea.
        idea: Slug,
        /// Its specification.
        spec: SpecId,
    },
    /// The idea is built by a specification already: a change is a revision of that.
    #[error("the idea `{idea}` is built by specification `{}` already, {}", .plan.spec, .plan.progress)]
    Built {
        /// The idea.
        idea: Slug,
        /// That specification, and how far it has come.
        plan: IdeaPlan,
    },
    /// The specification is in a state in which this cannot be done.
    #[error("specification `{spec}` is {state}, so {what}")]
    State {
        /// The specification.
        spec: SpecId,
        /// Its state.
        state: SpecState,
        /// What cannot be done and why.
        what: &'static str,
        /// What can be done.
        next: Option<&'static str>,
    },
    /// The revision that is to be changed is being written.
    #[error("revision {revision} of specification `{spec}` is being written")]
    BeingWritten {
        /// The specification.
        spec: SpecId,
        /// The revision, from 1.
        revision: u32,
    },
    /// The person may not do this.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// There is a newer revision than the one that was shown.
    #[error(
        "specification `{spec}` has changed since it was shown: its newest is revision {revision}"
    )]
    Newer {
        /// The specification.
        spec: SpecId,
        /// The newest revision.
        revision: u32,
    },
    /// There is nothing in the text, or too much.
    #[error("the text is empty or longer than {FEEDBACK_BYTES} bytes")]
    Text,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl CommitFailure for RequestError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

/// Asks for the specification of an idea.
pub async fn request(
    context: &Context,
    idea: &Slug,
    by: &UserSlug,
    complexity: Complexity,
) -> Result<SpecId, RequestError> {
    retry_on_conflict!(RequestError, idea, {
        let mut changes = ChangeSet::new();
        let spec = add_request(&mut changes, context, idea, by, complexity).await?;
        context.store.commit(changes).await?;
        Ok(Some(spec))
    })
}

/// Adds to `changes` that the specification of an idea is asked for.
pub async fn add_request(
    changes: &mut ChangeSet,
    context: &Context,
    idea: &Slug,
    by: &UserSlug,
    complexity: Complexity,
) -> Result<SpecId, RequestError> {
    let found = context.store.get::<Idea>(idea.as_str()).await?;
    let found = found.ok_or_else(|| RequestError::UnknownIdea(idea.clone()))?;
    if found.state == IdeaState::Abandoned {
        return Err(RequestError::Abandoned(idea.clone()));
    }
    let earlier = context
        .store
        .list::<Specification>(Query::new().equal("idea", idea.as_str()))
        .await?;
    let plan = plan::of_idea(&context.store, idea).await?;
    // Beside the one by which it is built no other is approved: whoever asks is sent to that.
    let is_on_its_way = |spec: &&Versioned<Specification>| {
        matches!(spec.state, SpecState::Draft | SpecState::Generated)
            && plan.is_none_or(|plan| plan.spec == spec.id)
    };
    if let Some(spec) = earlier.iter().find(is_on_its_way) {
        return Err(RequestError::OnItsWay {
            idea: idea.clone(),
            spec: spec.id,
            state: spec.state,
        });
    }
    if let Some(plan) = plan {
        let idea = idea.clone();
        return Err(match plan.progress {
            PlanProgress::Landed => RequestError::Landed {
                idea,
                spec: plan.spec,
            },
            PlanProgress::Approved | PlanProgress::Built { .. } => {
                RequestError::Built { idea, plan }
            }
        });
    }
    // Two requests at once would both find nothing on its way: the idea is what they both hold.
    changes.update(&found, &found.record);
    let now = context.now();
    let spec = Specification {
        id: SpecId(context.ids.next()),
        idea: idea.clone(),
        user: found.user.clone(),
        state: SpecState::Draft,
        revision: 0,
        put_away: None,
        hash: None,
        complexity,
        approval: None,
        price: None,
        feedback: Vec::new(),
        fulfilled: 0,
        reason: None,
        requested_by: by.clone(),
        correlation_id: found.correlation_id,
        created_at: now,
        updated_at: now,
    };
    changes.insert(&spec);
    changes.emit(
        context
            .for_claim(found.correlation_id, Priority::URGENT)
            .event(
                Subject::specification(spec.id),
                Payload::SpecRequested(SpecRequested {
                    spec_id: spec.id,
                    idea_slug: idea.clone(),
                    user_slug: found.user.clone(),
                    requested_by: by.clone(),
                    complexity,
                }),
            ),
    );
    Ok(spec.id)
}

/// Asks for changes to the newest revision; what was asked about that revision no longer matters.
pub async fn revise(
    context: &Context,
    spec: SpecId,
    by: &UserSlug,
    feedback: &str,
) -> Result<(), RequestError> {
    revise_shown(context, spec, None, by, feedback).await
}

/// Asks for changes to the newest revision, which has to be the one with the hash `shown`, if any is given.
pub async fn revise_shown(
    context: &Context,
    spec: SpecId,
    shown: Option<&ContentHash>,
    by: &UserSlug,
    feedback: &str,
) -> Result<(), RequestError> {
    retry_on_conflict!(RequestError, spec, {
        let (found, context) = opened(context, spec).await?;
        check_newest(&found, shown)?;
        let mut changes = ChangeSet::new();
        let reason = add_revision(&mut changes, &context, &found, by, feedback).await?;
        close(changes, &context, &found, &reason).await?;
        Ok(Some(()))
    })
}

/// Adds to `changes` that another revision is asked for, also while the last one is built; returns why what was asked about the last one is closed.
pub async fn add_revision(
    changes: &mut ChangeSet,
    context: &Context,
    found: &Versioned<Specification>,
    by: &UserSlug,
    feedback: &str,
) -> Result<String, RequestError> {
    let feedback = checked(feedback)?;
    if is_abandoned(&context.store, &found.idea).await? {
        return Err(RequestError::Abandoned(found.idea.clone()));
    }
    let refused = |what, next| RequestError::State {
        spec: found.id,
        state: found.state,
        what,
        next: Some(next),
    };
    if found.state == SpecState::Draft {
        return Err(RequestError::BeingWritten {
            spec: found.id,
            revision: found.next_revision(),
        });
    }
    if found.revision == 0 {
        return Err(refused(
            "there is no revision to change",
            "ask for a specification with `ropewalk spec generate`",
        ));
    }
    if let Some(plan) = plan::in_place_of(&context.store, found).await? {
        let idea = found.idea.clone();
        return Err(RequestError::Built { idea, plan });
    }
    let mut after = found.record.clone();
    after.state = SpecState::Draft;
    after.feedback.push(feedback.to_owned());
    after.reason = None;
    after.updated_at = context.now();
    changes.update(found, &after);
    changes.emit(context.event(
        Subject::specification(found.id),
        Payload::SpecRevisionRequested(SpecRevisionRequested {
            spec_id: found.id,
            idea_slug: found.idea.clone(),
            requested_by: by.clone(),
            feedback: feedback.to_owned(),
        }),
    ));
    let revision = found.next_revision();
    Ok(format!("revision {revision} was asked for by {by}"))
}

/// Puts a specification away, for somebody who may decide about it and need not say why; returns how it stands, which is approved
/// where a revision was approved before: only what came since is put away.
pub async fn reject(
    context: &Context,
    spec: SpecId,
    by: &Person,
    reason: Option<&str>,
) -> Result<SpecState, RequestError> {
    reject_shown(context, spec, None, by, reason).await
}

/// Puts a specification away, whose newest revision has to be the one with the hash `shown`, if any is given.
pub async fn reject_shown(
    context: &Context,
    spec: SpecId,
    shown: Option<&ContentHash>,
    by: &Person,
    reason: Option<&str>,
) -> Result<SpecState, RequestError> {
    by.demand(Right::Approve)?;
    let reason = reason.map(checked).transpose()?;
    retry_on_conflict!(RequestError, spec, {
        let (found, context) = opened(context, spec).await?;
        check_newest(&found, shown)?;
        let rejected = found.once_rejected().with_all_fulfilled();
        let state = found
            .state
            .to(rejected.state)
            .map_err(|_| RequestError::State {
                spec,
                state: found.state,
                what: "it cannot be rejected any more",
                next: None,
            })?;
        let after = Specification {
            reason: reason.map(str::to_owned),
            updated_at: context.now(),
            ..rejected
        };
        let mut changes = ChangeSet::new();
        changes.update(&found, &after);
        changes.emit(context.event(
            Subject::specification(spec),
            Payload::SpecRejected(SpecRejected {
                spec_id: spec,
                idea_slug: found.idea.clone(),
                rejected_by: by.name.to_string(),
                reason: reason.unwrap_or_default().to_owned(),
            }),
        ));
        let reason = format!("the specification was rejected by {}", by.name);
        close(changes, &context, &found, &reason).await?;
        Ok(Some(state))
    })
}

/// Refuses what somebody decides who was shown another revision than the newest.
fn check_newest(found: &Specification, shown: Option<&ContentHash>) -> Result<(), RequestError> {
    if shown.is_some() && found.hash.as_ref() != shown {
        Err(RequestError::Newer {
            spec: found.id,
            revision: found.revision,
        })
    } else {
        Ok(())
    }
}

/// Loads a specification that a person decides about, with a context in which its last revision is the cause.
async fn opened(
    context: &Context,
    spec: SpecId,
) -> Result<(Versioned<Specification>, Context), RequestError> {
    let found = context
        .store
        .get::<Specification>(&spec.to_string())
        .await?;
    let found = found.ok_or(RequestError::UnknownSpecification(spec))?;
    let context = context
        .for_claim(found.correlation_id, Priority::URGENT)
        .because_of_newest(Subject::specification(spec), "spec.generated")
        .await?;
    Ok((found, context))
}

/// Commits what a person decided, and closes what was asked about it for `reason`; somebody else may have been faster.
async fn close(
    mut changes: ChangeSet,
    context: &Context,
    found: &Specification,
    reason: &str,
) -> Result<(), RequestError> {
    close_questions(&mut changes, context, found, reason).await?;
    context.store.commit(changes).await?;
    Ok(())
}

/// Adds to `changes` that the open questions about a specification no longer matter.
pub async fn close_questions(
    changes: &mut ChangeSet,
    context: &Context,
    spec: &Specification,
    reason: &str,
) -> Result<(), ReadError> {
    for question in questions_about(&context.store, spec).await? {
        if question.state == QuestionState::Pending {
            questions::supersede(changes, context, &question, reason);
        }
    }
    Ok(())
}

/// Lists the questions about a specification, oldest first.
pub async fn questions_about(
    store: &Store,
    spec: &Specification,
) -> Result<Vec<Versioned<Question>>, ReadError> {
    let about = About::Specification { spec: spec.id };
    let asked = Query::new()
        .equal("idea", spec.idea.as_str())
        .order_by("asked_at");
    let mut questions = store.list::<Question>(asked).await?;
    questions.retain(|question| question.about == about);
    Ok(questions)
}

fn checked(text: &str) -> Result<&str, RequestError> {
    let text = text.trim();
    if text.is_empty() || text.len() > FEEDBACK_BYTES {
        Err(RequestError::Text)
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::specification::Document;
    use serde_json::json;

    use super::*;

    /// Tells of a plan of 20 tasks, so many of whose checks show nothing, with so many lines of findings.
    fn told(open: Option<u32>, findings: usize) -> String {
        let findings: Vec<String> = (1..=findings)
            .map(|one| format!("finding {one}."))
            .collect();
        let dry_run = open.map(|open| json!({ "tasks": 20, "failed": 20 - open, "passed": 0 }));
        let revision = json!({
            "spec": "00000000-0000-7000-8000-000000000001", "number": 1, "hash": ContentHash::of(b"one"), "validation": findings,
            "document": Document::default(), "at": "2026-03-01T08:00:00Z", "dry_run": dry_run,
            "tasks": [{
                "id": "T-001", "phase": "api", "action": "CREATE", "file": "a.rs",
                "validation": { "command": "cargo test a", "expected": "exit 0" },
            }],
        });
        approval_told(&serde_json::from_value(revision).unwrap())
    }

    #[test]
    fn who_approves_reads_how_the_checks_went_and_each_that_shows_nothing() {
        let all = told(Some(15), 30);
        assert!(all.starts_with("dry-run: of 20 checks: 5 failed"), "{all}");
        for number in 1..=15 + WARNINGS {
            let line = format!("\nwarning: finding {number}.\n");
            assert!(all.contains(&line), "{line} {all}");
        }
        let rest = "\nand 3 more warnings\n\nWhat a yes lets run as checks:\n```sh\n# T-001\ncargo test a\n```";
        assert!(all.ends_with(rest), "{all}");
        let untried = told(None, 0);
        assert!(untried.starts_with("not dry-run: "), "{untried}");
        assert!(!untried.contains("warning"), "{untried}");
    }
}
