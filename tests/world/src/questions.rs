//! Questions as agents put them, for tests of whoever takes the answers.

use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::payload::QuestionAsked;
use ropewalk_schemas::question::{
    About, Choice, ChoiceWords, Question, QuestionKind, QuestionState,
};
use ropewalk_schemas::{ChoiceId, ComponentName, Event, InvalidId, Payload, Priority, Subject};
use ropewalk_store::ChangeSet;

/// Who asks.
const AGENT: &str = "build";

/// Adds a question that holds work up, and that it was asked: `left` and `right` are its choices, `other` takes words.
pub fn put(changes: &mut ChangeSet, text: &str) -> Result<Question, InvalidId> {
    let question = question(text)?;
    let asked = Event {
        id: Ids::system(Clock::system()).next().into(),
        source: question.agent.clone(),
        subject: Subject::question(question.id),
        time: question.asked_at,
        correlation_id: question.correlation_id,
        causation_id: None,
        hop: 0,
        traceparent: None,
        priority: Priority::DEFAULT,
        payload: Payload::QuestionAsked(QuestionAsked {
            question_id: question.id,
            kind: question.kind,
            text: question.text.clone(),
            idea_slug: None,
            about: About::Nothing,
        }),
    };
    changes.insert(&question);
    changes.emit(asked);
    Ok(question)
}

/// Says that no label of a question tells what its choice does: these worlds read every template so.
pub fn means_nothing(question: &Question) -> bool {
    let mut labels = question.choices.iter().map(|choice| &choice.label);
    !question.choices.is_empty() && labels.all(|label| label.starts_with("qx "))
}

fn question(text: &str) -> Result<Question, InvalidId> {
    let ids = Ids::system(Clock::system());
    let choice = |id: &str, label: &str| {
        ChoiceId::parse(id).map(|id| Choice {
            words: match id.as_str() {
                "other" => ChoiceWords::Required,
                _ => ChoiceWords::None,
            },
            ..Choice::new(id, label)
        })
    };
    Ok(Question {
        id: ids.next().into(),
        kind: QuestionKind::Blocking,
        trigger: "missing_context".to_owned(),
        agent: ComponentName::parse(AGENT)?,
        text: text.to_owned(),
        context: String::new(),
        choices: vec![
            choice("left", "Left")?,
            choice("right", "Right")?,
            choice("other", "Other")?,
        ],
        free_text: true,
        default: None,
        consequential: false,
        content: None,
        about: About::Nothing,
        topic: None,
        idea: None,
        state: QuestionState::Pending,
        answer: None,
        late: Vec::new(),
        closed_because: None,
        reused_from: None,
        correlation_id: ids.next().into(),
        asked_at: Clock::system().now(),
        due_at: None,
        reminded_at: None,
    })
}
