//! The inbox: what waits for people, with what each answer means.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use ropewalk_config::Trigger;
use ropewalk_desk::builds::landing;
use ropewalk_desk::questions;
use ropewalk_desk::views;
use ropewalk_orchestrator::questions::{AnswerInput, default_of, role};
use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::{About, Choice, ChoiceWords, Content, Question, QuestionState};
use ropewalk_store::{ReadError, Store};
use serde::Deserialize;

use super::form::Fields;
use super::frame::{Frame, go, page};
use super::{idea, markdown, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Parameters, Path};

/// Where answers of pages come from.
const CHANNEL: &str = "page";

/// Which questions are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Which {
    /// Closed ones too.
    all: bool,
    /// Only those about this idea.
    idea: Option<String>,
}

#[derive(Template)]
#[template(path = "questions.html")]
struct Inbox {
    frame: Frame,
    idea: Option<String>,
    all: bool,
    open: Vec<QuestionView>,
    closed: Vec<QuestionView>,
}

#[derive(Template)]
#[template(path = "question.html")]
struct One {
    frame: Frame,
    asked: QuestionView,
}

/// A question as it is shown.
struct QuestionView {
    question: Question,
    /// What is asked, and why.
    text: String,
    context: String,
    choices: Vec<OfferedChoice>,
    /// The page of what it is about, and how that is called.
    about: Option<(String, String)>,
    /// The page that shows what landing the build comes to, while it asks for that.
    landing: Option<String>,
    /// What a yes holds for.
    bound: Option<String>,
    /// Who is asked first, and whether this person is one of those.
    role: Role,
    is_mine: bool,
}

/// A choice, and why this person may not take it, if so.
struct OfferedChoice {
    choice: Choice,
    refusal: Option<String>,
}

impl OfferedChoice {
    fn takes_words(&self) -> bool {
        self.choice.words != ChoiceWords::None && self.refusal.is_none()
    }

    fn needs_words(&self) -> bool {
        self.choice.words == ChoiceWords::Required
    }
}

impl QuestionView {
    /// Says in a few words why it is asked.
    fn heading(&self) -> String {
        match Trigger::parse(&self.question.trigger) {
            Some(trigger) => trigger.in_words().to_owned(),
            // Models name what they ask about themselves.
            None => self.question.trigger.replace('_', " "),
        }
    }

    async fn load(store: &Store, question: Question, frame: &Frame) -> Result<Self, ReadError> {
        let landing = landing_page(store, &question).await?;
        let offered = question.choices.iter().map(|choice| OfferedChoice {
            refusal: questions::needed(&question, &choice.id)
                .and_then(|right| frame.refusal(right)),
            choice: choice.clone(),
        });
        let role = role(&question);
        Ok(Self {
            landing,
            role,
            is_mine: frame.person.roles.contains(&role),
            text: markdown::html(&question.text),
            context: markdown::html(&question.context),
            choices: offered.collect(),
            about: about(&question),
            bound: bound(&question),
            question,
        })
    }

    fn is_open(&self) -> bool {
        self.question.state == QuestionState::Pending
    }

    /// Returns the choice that is taken when nobody answers, and when.
    fn default(&self) -> Option<(ChoiceId, &DateTime<Utc>)> {
        let question = &self.question;
        let taken = default_of(question).zip(question.due_at.as_ref());
        taken.filter(|_| self.is_open())
    }

    /// Returns when it goes away, where nothing is taken then.
    fn end(&self) -> Option<&DateTime<Utc>> {
        let due = self.question.due_at.as_ref();
        due.filter(|_| self.is_open() && self.default().is_none())
    }
}

/// Shows what waits for people: what this person is asked first, the most urgent of that before the rest.
pub(super) async fn list(
    State(shared): State<ServerState>,
    frame: Frame,
    Parameters(which): Parameters<Which>,
) -> Result<Response, Problem> {
    let name = which.idea.as_deref().map(idea::named).transpose()?;
    let store = &shared.services.store;
    let found = views::question::list(store, name.as_ref(), which.all).await?;
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for found in found {
        let asked = QuestionView::load(store, found.question, &frame).await?;
        let of_its_kind = if asked.is_open() {
            &mut open
        } else {
            &mut closed
        };
        of_its_kind.push(asked);
    }
    open.sort_by_key(|asked| !asked.is_mine);
    closed.sort_by_key(|asked| std::cmp::Reverse(asked.question.asked_at));
    page(&Inbox {
        idea: which.idea,
        all: which.all,
        frame,
        open,
        closed,
    })
}

/// Shows a question.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let question = found(&shared, &id).await?;
    let asked = QuestionView::load(&shared.services.store, question, &frame).await?;
    page(&One { frame, asked })
}

/// Answers a question.
pub(super) async fn answer(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let question = found(&shared, &id).await?;
    let words = fields.filled("text");
    let choice = fields.filled("choice");
    let choice = choice.as_deref().map(ChoiceId::parse).transpose();
    let choice =
        choice.map_err(|error| Problem::usage((error.to_string(), "press one of the buttons")))?;
    let given = match &choice {
        Some(choice) => AnswerInput::Picked(choice, words.as_deref()),
        None => AnswerInput::Words(words.as_deref().unwrap_or_default()),
    };
    questions::answer(&shared.context(), question.id, given, &person, CHANNEL).await?;
    Ok(go(&format!("/questions/{id}")))
}

async fn found(shared: &ServerState, id: &str) -> Result<Question, Problem> {
    shown::find::<Question>(shared, id, "question", "the inbox shows what is open").await
}

fn about(question: &Question) -> Option<(String, String)> {
    let of_idea = || {
        let idea = question.idea.as_ref()?;
        Some((format!("/ideas/{idea}"), format!("the idea {idea}")))
    };
    match &question.about {
        About::Session { .. } | About::Knowledge { .. } | About::Nothing => of_idea(),
        About::Specification { spec } => {
            let path = format!("/specifications/{spec}");
            Some((path, "the specification".to_owned()))
        }
        About::Build { build } => Some((format!("/builds/{build}"), "the build".to_owned())),
        About::Task { build, task } => {
            let path = format!("/builds/{build}/tasks/{task}");
            Some((path, format!("task {task}")))
        }
    }
}

/// Returns the page that shows what landing comes to, where an open question asks for that and the build can be landed.
async fn landing_page(store: &Store, question: &Question) -> Result<Option<String>, ReadError> {
    let About::Build { build } = &question.about else {
        return Ok(None);
    };
    let trigger = Trigger::parse(&question.trigger);
    let asks = matches!(
        trigger,
        Some(Trigger::BuildFinished | Trigger::LandingRefused)
    );
    if !asks || question.state != QuestionState::Pending {
        return Ok(None);
    }
    let build = store.get::<Build>(&build.to_string()).await?;
    let build = build.filter(|build| landing::admits(build).is_ok());
    Ok(build.map(|build| format!("/builds/{}/landing", build.id)))
}

/// Says what a yes holds for, and for nothing else. A kept commit is seen on the machine of the server, as its terminal says.
fn bound(question: &Question) -> Option<String> {
    Some(match question.content.as_ref()? {
        Content::Revision { revision, hash } => {
            format!("a yes holds for revision {revision} with hash {hash}")
        }
        Content::Call { tool, subject, .. } => {
            format!("a yes holds for this alone, or for its rule in this build: {tool} {subject}")
        }
        Content::Files { candidate, changes } => {
            let files: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
            let commit = candidate.short();
            format!(
                "a yes holds for {} as commit {commit} has it; `ropewalk question show {}` tells how all of that commit is seen",
                files.join(", "),
                question.id
            )
        }
    })
}
