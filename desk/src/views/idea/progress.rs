//! How far an idea has come beyond its conversation, for whoever talks about it.

use ropewalk_orchestrator::questions;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::clip;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, QuestionId, Slug, SpecId};
use ropewalk_store::{Query, ReadError, Store};
use serde::Serialize;

use crate::specifications;
use crate::views::{records, why};

/// So much is told of what others wrote: of a reason, of a question.
const LETTERS: usize = 400;
/// So many open questions are told, those that were asked first.
const QUESTIONS: usize = 8;

/// What there is of an idea beside what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdeaProgress {
    /// The specification that counts.
    pub specification: Option<SpecificationProgress>,
    /// Its newest build.
    pub build: Option<BuildProgress>,
    /// What is asked about the idea and open.
    pub questions: Vec<OpenQuestion>,
}

/// How far a specification has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecificationProgress {
    /// The specification.
    pub id: SpecId,
    /// Its state.
    pub state: SpecState,
    /// All of it in a line.
    pub told: String,
}

/// How far a build has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BuildProgress {
    /// The build.
    pub id: BuildId,
    /// Its state.
    pub state: BuildState,
    /// Whether it moves again on the word of a person alone.
    pub rests: bool,
    /// Whether it has landed.
    pub landed: bool,
    /// All of it in a line.
    pub told: String,
}

/// A question that nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenQuestion {
    /// The question.
    pub id: QuestionId,
    /// What is asked, in a line.
    pub text: String,
    /// What can be chosen: the id of each, with its label.
    pub choices: Vec<String>,
    /// Whether words answer it.
    pub takes_words: bool,
}

impl IdeaProgress {
    /// Returns whether nothing was written, built or asked yet.
    pub fn is_empty(&self) -> bool {
        self.specification.is_none() && self.build.is_none() && self.questions.is_empty()
    }
}

/// Loads how far an idea has come.
pub async fn of(store: &Store, idea: &Slug) -> Result<IdeaProgress, ReadError> {
    let of_idea = || Query::new().equal("idea", idea.as_str());
    let spec = specifications::counting(store, idea).await?;
    let newest = of_idea().order_by("created_at").descending();
    let builds: Vec<Build> = records(store.list(newest).await?);
    let of_spec = |build: &&Build| spec.as_ref().is_none_or(|spec| build.spec == spec.id);
    let build = match builds.iter().find(of_spec) {
        Some(build) => Some(progress_of(store, build).await?),
        None => None,
    };
    let open = of_idea()
        .equal("state", QuestionState::Pending.as_str())
        .order_by("asked_at");
    let open: Vec<Question> = records(store.list(open).await?);
    Ok(IdeaProgress {
        specification: spec.as_ref().map(SpecificationProgress::from),
        build,
        questions: open
            .iter()
            .take(QUESTIONS)
            .map(OpenQuestion::from)
            .collect(),
    })
}

impl From<&Specification> for SpecificationProgress {
    fn from(spec: &Specification) -> Self {
        let (number, next) = (spec.revision, spec.next_revision());
        let stands = spec.approval.as_ref().map_or_else(String::new, |approval| {
            format!(", and revision {} stands approved", approval.revision)
        });
        let reason = spec.reason.as_deref().map(|why| clip::line(why, LETTERS));
        let reason = reason.map_or_else(String::new, |why| format!(": {why}"));
        let told = match (spec.state, &spec.approval) {
            (SpecState::Draft, _) => format!("revision {next} is being written{stands}"),
            (SpecState::Generated, _) => {
                format!("revision {number} is written and waits for an approval{stands}")
            }
            (SpecState::Approved, Some(approval)) => {
                format!("revision {number} is approved, by {}", approval.by)
            }
            (SpecState::Approved, None) => format!("revision {number} is approved"),
            (SpecState::Rejected, _) if number == 0 => format!("none was made{reason}"),
            (SpecState::Rejected, _) => format!("revision {number} was put away{reason}"),
        };
        Self {
            id: spec.id,
            state: spec.state,
            told,
        }
    }
}

async fn progress_of(store: &Store, build: &Build) -> Result<BuildProgress, ReadError> {
    let of_build = || Query::new().equal("build", build.id.to_string());
    let complete = of_build().equal("state", TaskState::Complete.as_str());
    let (all, complete) = futures::try_join!(
        store.count::<Task>(of_build()),
        store.count::<Task>(complete)
    )?;
    let Build {
        revision,
        state,
        branch,
        target,
        ..
    } = build;
    let landed = match &build.merged {
        Some(commit) => format!("it has landed in `{target}` as {}", commit.short()),
        None => format!("it has not landed in `{target}`"),
    };
    let reason = why::build(build, None).filter(|_| build.merged.is_none());
    let reason = reason.map(|why| clip::line(&why, LETTERS));
    let reason = reason.map_or_else(String::new, |why| format!(" ({why})"));
    Ok(BuildProgress {
        id: build.id,
        state: *state,
        rests: build.rests(),
        landed: build.merged.is_some(),
        told: format!(
            "that of revision {revision} is {state}{reason}, {complete} of {all} tasks complete on `{branch}`; {landed}"
        ),
    })
}

impl From<&Question> for OpenQuestion {
    fn from(question: &Question) -> Self {
        let choices = question.choices.iter();
        Self {
            id: question.id,
            text: clip::line(&question.text, LETTERS),
            choices: choices
                .map(|choice| format!("{}: {}", choice.id, choice.label))
                .collect(),
            takes_words: questions::takes_words(question),
        }
    }
}
