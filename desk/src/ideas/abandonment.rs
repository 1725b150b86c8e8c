//! Gives an idea up, and says beforehand what ends with it.

use ropewalk_orchestrator::{Context, questions};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::{Build, StopCause};
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::payload::IdeaAbandoned;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{BuildId, Payload, Priority, QuestionId, Slug, Subject};
use ropewalk_store::{
    ChangeSet, CommitError, CommitFailure, Query, ReadError, Store, Versioned, retry_on_conflict,
};
use serde::Serialize;

use crate::length::{self, LengthError};
use crate::people::{PermissionError, Person};

/// Says why an idea was not abandoned.
#[derive(Debug, thiserror::Error)]
pub enum AbandonError {
    /// There is no such idea.
    #[error("no idea is called `{0}`")]
    Unknown(Slug),
    /// It was given up before.
    #[error("the idea `{0}` was abandoned already")]
    Already(Slug),
    /// The person may not do this.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// Everything of it is landed.
    #[error("the idea `{0}` is landed, and nothing of it is left to abandon")]
    Landed(Slug),
    /// Other builds would end with it than were shown.
    #[error("what ends with the idea `{0}` is no longer what was shown")]
    Changed(Slug),
    /// The reason is too long.
    #[error(transparent)]
    TooLong(#[from] LengthError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl CommitFailure for AbandonError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

/// What giving an idea up comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbandonmentPreview {
    /// The idea.
    pub idea: Slug,
    /// Whether something of it has landed, which stays.
    pub landed: bool,
    /// The builds that end.
    pub builds: Vec<BuildId>,
    /// The questions that nobody is asked any more.
    pub questions: Vec<QuestionId>,
}

impl AbandonmentPreview {
    /// Says what ends with the idea.
    pub fn in_words(&self) -> String {
        let stays = if self.landed {
            "; what landed stays"
        } else {
            ""
        };
        format!(
            "with `{}` end {} and {}{stays}",
            self.idea,
            counted(self.builds.len(), "build"),
            counted(self.questions.len(), "open question"),
        )
    }
}

/// Says what giving an idea up would come to, and changes nothing.
pub async fn preview_abandonment(
    store: &Store,
    slug: &Slug,
    by: &Person,
) -> Result<AbandonmentPreview, AbandonError> {
    by.demand(Right::Stop)?;
    let remains = Remains::load(store, slug).await?;
    Ok(AbandonmentPreview {
        idea: slug.clone(),
        landed: remains.landed,
        builds: remains.open,
        questions: remains.questions.iter().map(|asked| asked.id).collect(),
    })
}

/// What is there of an idea that can be given up.
struct Remains {
    idea: Versioned<Idea>,
    landed: bool,
    /// The builds that have neither landed nor ended for good.
    open: Vec<BuildId>,
    /// The open questions.
    questions: Vec<Versioned<Question>>,
    /// The specifications that are written, or wait for an approval.
    specs: Vec<Versioned<Specification>>,
}

impl Remains {
    async fn load(store: &Store, slug: &Slug) -> Result<Self, AbandonError> {
        let found = store.get::<Idea>(slug.as_str()).await?;
        let idea = found.ok_or_else(|| AbandonError::Unknown(slug.clone()))?;
        if idea.state == IdeaState::Abandoned {
            return Err(AbandonError::Already(slug.clone()));
        }
        let of_idea = || Query::new().equal("idea", slug.as_str());
        let builds = store.list::<Build>(of_idea()).await?;
        let landed = builds.iter().any(|build| build.merged.is_some());
        let open = builds.iter().filter(|build| {
            let ended = build.merged.is_some() || build.stop == Some(StopCause::Abandoned);
            !ended && build.continued_by.is_none()
        });
        let open: Vec<BuildId> = open.map(|build| build.id).collect();
        if landed && open.is_empty() {
            return Err(AbandonError::Landed(slug.clone()));
        }
        let asked = of_idea().equal("state", QuestionState::Pending.as_str());
        let on_their_way = [SpecState::Draft, SpecState::Generated].map(SpecState::as_str);
        let specs = of_idea().one_of("state", on_their_way);
        Ok(Self {
            specs: store.list(specs).await?,
            questions: store.list(asked).await?,
            idea,
            landed,
            open,
        })
    }
}

/// Gives an idea up: nothing about it is asked or planned any more, and the build agent ends what of it is not landed.
pub async fn abandon(
    context: &Context,
    slug: &Slug,
    by: &Person,
    reason: Option<String>,
) -> Result<(), AbandonError> {
    give_up(context, slug, (by, reason), None).await
}

/// Does the same as long as `builds`, which were shown to end with the idea, are those that do.
pub async fn abandon_as_shown(
    context: &Context,
    slug: &Slug,
    by: &Person,
    builds: &[BuildId],
) -> Result<(), AbandonError> {
    give_up(context, slug, (by, None), Some(builds)).await
}

async fn give_up(
    context: &Context,
    slug: &Slug,
    (by, reason): (&Person, Option<String>),
    shown: Option<&[BuildId]>,
) -> Result<(), AbandonError> {
    by.demand(Right::Stop)?;
    length::said("the reason", reason.as_deref())?;
    retry_on_conflict!(AbandonError, slug, {
        let Remains {
            idea,
            landed,
            open,
            questions: asked,
            specs,
        } = Remains::load(&context.store, slug).await?;
        if shown.is_some_and(|shown| shown != open.as_slice()) {
            return Err(AbandonError::Changed(slug.clone()));
        }
        let context = context.for_claim(idea.correlation_id, Priority::URGENT);
        let mut changes = ChangeSet::new();
        if !landed {
            let state = IdeaState::Abandoned;
            changes.update(
                &idea,
                &Idea {
                    state,
                    ..idea.record.clone()
                },
            );
        }
        let abandoned = format!("the idea was abandoned by {}", by.name);
        for question in &asked {
            questions::supersede(&mut changes, &context, question, &abandoned);
        }
        let why = reason.as_deref().map(|why| format!(": {why}"));
        for spec in &specs {
            let after = Specification {
                reason: Some(format!(
                    "the idea was abandoned{}",
                    why.as_deref().unwrap_or_default()
                )),
                updated_at: context.now(),
                ..spec.once_rejected()
            };
            changes.update(spec, &after);
        }
        changes.emit(context.event(
            Subject::idea(slug),
            Payload::IdeaAbandoned(IdeaAbandoned {
                idea_slug: slug.clone(),
                abandoned_by: by.name.clone(),
                reason: reason.clone(),
            }),
        ));
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}
