//! Waits for a specification that was asked for, whoever runs the agent that writes it, and shows it.

use ropewalk_desk::ideas::is_abandoned;
use ropewalk_desk::specifications::RequestError;
use ropewalk_desk::views::question::QuestionView;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{Slug, SpecId, Subject};
use ropewalk_store::Query;

use super::show;
use crate::app::App;
use crate::commands::question;
use crate::error::CliError;
use crate::ids::last_digits;
use crate::progress::Progress;
use crate::wiring::{Reach, Vigil};

/// Who writes it.
pub(super) const ROLE: &str = "specification";

/// A revision that was asked for.
pub(super) struct WantedRevision {
    /// The idea.
    pub(super) idea: Slug,
    /// The specification.
    pub(super) spec: SpecId,
    /// The revision, from 1.
    pub(super) number: u32,
}

/// How the writing of a specification ended.
enum End {
    /// It is no draft any more.
    Settled(Box<Specification>),
    /// It waits for an answer.
    Asks(Box<Question>),
}

/// Tells whoever writes that a revision was asked for, and shows what comes of it.
pub(super) async fn show_written(
    app: &App,
    reach: &Reach,
    wanted: &WantedRevision,
    title: &str,
) -> Result<(), CliError> {
    reach.wake()?;
    let progress = Progress::start(&app.output, title);
    let end = follow(reach, wanted, &progress).await;
    progress.finish();
    if matches!(end, Err(CliError::Cancelled)) {
        let idea = &wanted.idea;
        app.output.note(&format!(
            "what was asked for is kept: `ropewalk spec generate {idea}` waits for it again, and has it written where nobody is at it"
        ))?;
    }
    match end? {
        End::Settled(spec) => {
            if let Some(refusal) = refusal(&spec, wanted.number) {
                return Err(CliError::refused("rejected", refusal));
            }
            let next = approval(&spec);
            show::show(reach.store(), *spec, &app.output).await?;
            next.map_or(Ok(()), |next| app.output.note(&next))
        }
        End::Asks(question) => {
            let asked = QuestionView::from(*question);
            app.output
                .show(&asked, |asked| question::show::human(&asked.question))?;
            let id = last_digits(asked.question.id);
            Err(CliError::refused(
                "waits-for-answer",
                (
                    format!(
                        "revision {} is not there yet: it waits for an answer",
                        wanted.number
                    ),
                    format!("`ropewalk question answer {id} …` gives one"),
                ),
            ))
        }
    }
}

/// Says what is waited for, and what becomes of it where nobody waits.
fn meanwhile(reach: &Reach, idea: &Slug) -> String {
    let left = match reach {
        Reach::Hosted(_) => format!(
            "the model is asked from here: Ctrl-C ends that, and `ropewalk spec generate {idea}` goes on with it"
        ),
        Reach::Beside(..) => {
            "it may be left with Ctrl-C: the process that runs goes on with it, and `ropewalk spec list` shows how it stands".to_owned()
        }
    };
    format!("this waits for the model, perhaps for minutes; {left}")
}

/// Says that the revision `number` is not there to be approved, and why; nothing where it is, or a later one, or where somebody
/// has approved it already.
fn refusal(spec: &Specification, number: u32) -> Option<String> {
    if spec.state != SpecState::Rejected && spec.revision >= number {
        return None;
    }
    let what = if spec.next_revision() > number {
        "was put away"
    } else {
        "was not made"
    };
    let why = spec.reason.as_deref().unwrap_or("nobody says why");
    let stands = if spec.state == SpecState::Approved {
        format!("; revision {} stays as it was approved", spec.revision)
    } else {
        String::new()
    };
    Some(format!("revision {number} {what}: {why}{stands}"))
}

async fn follow(
    reach: &Reach,
    wanted: &WantedRevision,
    progress: &Progress,
) -> Result<End, CliError> {
    let id = wanted.spec;
    let subject = Subject::specification(id);
    // Of a draft, the newest event is what was asked for.
    let asked = reach.newest("spec.*", &subject).await?;
    let mut vigil = Vigil::over(ROLE, subject, asked - 1)?;
    let mut is_told = false;
    loop {
        // Before its state: what is generated asks for approval in the same commit, and that is no question of a draft.
        let question = open_question(reach, id).await?;
        let spec = reach.store().get::<Specification>(&id.to_string()).await?;
        let spec = spec.ok_or_else(|| CliError::unknown("specification", id, "spec list"))?;
        // It was put away with its idea, and that is what there is to know.
        if is_abandoned(reach.store(), &spec.idea).await? {
            return Err(RequestError::Abandoned(spec.idea.clone()).into());
        }
        if spec.state != SpecState::Draft {
            return Ok(End::Settled(Box::new(spec.record)));
        }
        if let Some(question) = question {
            return Ok(End::Asks(Box::new(question)));
        }
        if !is_told {
            progress.say(&meanwhile(reach, &wanted.idea));
            is_told = true;
        }
        let news = vigil
            .look(reach, "the specification was not written")
            .await?;
        if let Some(news) = news {
            progress.say(&news);
        }
        reach.pause().await?;
    }
}

async fn open_question(reach: &Reach, spec: SpecId) -> Result<Option<Question>, CliError> {
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let about = About::Specification { spec };
    let questions = reach.store().list::<Question>(open).await?;
    Ok(questions
        .into_iter()
        .map(|row| row.record)
        .find(|question| question.about == about))
}

/// Says how a specification that was made is approved; nothing once it is.
fn approval(spec: &Specification) -> Option<String> {
    let id = last_digits(spec.id);
    let decision = show::decision(spec, &id)?;
    let changed = if spec.revision > 1 {
        format!(", `ropewalk spec diff {id}` what changed")
    } else {
        String::new()
    };
    Some(format!(
        "`ropewalk spec show {id}` shows it again{changed}; {decision}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_refused_is_told_from_what_somebody_approved_meanwhile() {
        // The state, the newest revision that was not put away, the one that was, and the approved one.
        let cases = [
            (("generated", 2, None, None), None),
            (("generated", 3, None, Some(1)), None),
            (("approved", 2, None, Some(2)), None),
            (
                ("approved", 1, None, Some(1)),
                Some("revision 2 was not made: too vague; revision 1 stays as it was approved"),
            ),
            (
                ("approved", 1, Some(2), Some(1)),
                Some("revision 2 was put away: too vague; revision 1 stays as it was approved"),
            ),
            (
                ("rejected", 2, None, None),
                Some("revision 2 was put away: too vague"),
            ),
            (
                ("rejected", 1, None, None),
                Some("revision 2 was not made: too vague"),
            ),
        ];
        for ((state, revision, put_away, approved), expected) in cases {
            let approval = approved.map(|revision| {
                json!({
                    "revision": revision, "hash": "1".repeat(64), "by": "ada", "at": "2026-03-01T08:00:00Z",
                })
            });
            let spec = json!({
                "id": "00000000-0000-7000-8000-000000000001", "idea": "walks", "user": "ada", "state": state,
                "revision": revision, "put_away": put_away, "complexity": "simple", "approval": approval,
                "reason": "too vague", "requested_by": "ada",
                "correlation_id": "00000000-0000-7000-8000-000000000002",
                "created_at": "2026-03-01T08:00:00Z", "updated_at": "2026-03-01T08:00:00Z",
            });
            let spec: Specification = serde_json::from_value(spec).unwrap();
            assert_eq!(refusal(&spec, 2).as_deref(), expected, "{spec:?}");
        }
    }
}
