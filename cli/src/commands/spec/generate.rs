//! Verb `spec generate`: has the specification of an idea, or of a text, made, and waits for it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ropewalk_desk::ideas::is_abandoned;
use ropewalk_desk::specifications::{self, RequestError};
use ropewalk_desk::views::question::QuestionView;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::specification::{Complexity, SpecState, Specification};
use ropewalk_schemas::{Slug, SpecId, Subject};
use ropewalk_store::Query;

use super::hash::FEWEST_DIGITS;
use super::{given, show};
use crate::app::App;
use crate::commands::question;
use crate::error::CliError;
use crate::ids::{IdeaText, last_digits};
use crate::progress::Progress;
use crate::wiring::{Crew, Reach, Vigil};

/// Who writes it.
pub(super) const ROLE: &str = "specification";

/// How much to plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// At most 8 tasks.
    Simple,
    /// At most 15 tasks.
    Medium,
    /// At most 30 tasks.
    Complex,
}

impl From<Size> for Complexity {
    fn from(size: Size) -> Self {
        match size {
            Size::Simple => Self::Simple,
            Size::Medium => Self::Medium,
            Size::Complex => Self::Complex,
        }
    }
}

/// The idea and the size of the plan.
#[derive(Debug, Args)]
pub struct Generate {
    /// The idea, as `idea list` shows it, or how it begins; with `--from` the name of a new one, of `a-z 0-9 -`. Other words
    /// are written so: `My walks` is `my-walks`.
    #[arg(required_unless_present = "from")]
    idea: Option<IdeaText>,
    /// A file with the whole idea, `-` for standard input: nothing is asked about it.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// How much to plan.
    #[arg(long, value_enum, default_value = "medium")]
    complexity: Size,
}

impl Generate {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let (crew, idea) = match (&self.from, self.idea) {
            (Some(from), name) => {
                let name = name.map(Slug::from);
                (Crew::Text, given::begin(app, from, name).await?.into())
            }
            (None, Some(idea)) => (Crew::Specification, idea),
            (None, None) => {
                return Err(CliError::refused(
                    "usage",
                    "name an idea, or give a text with `--from FILE`",
                ));
            }
        };
        let (reach, slug) = Reach::open(app, crew, &idea).await?;
        let wanted = GenerationRequest {
            slug,
            given: self.from.is_some(),
            complexity: self.complexity,
        };
        let made = wanted.make(app, &reach).await;
        let closed = reach.close().await;
        made.and(closed)
    }
}

/// A specification that is to be made.
struct GenerationRequest {
    slug: Slug,
    /// Whether it is of a text that was given just now.
    given: bool,
    complexity: Size,
}

impl GenerationRequest {
    async fn make(self, app: &App, reach: &Reach) -> Result<(), CliError> {
        reach.require(ROLE).await?;
        if self.given {
            given::taken(reach, &self.slug).await?;
        }
        let spec = self.request(reach).await?;
        reach.wake()?;
        let title = format!("writing the specification of `{}`", self.slug);
        let progress = Progress::start(&app.output, &title);
        let end = follow(reach, spec, &progress).await?;
        progress.finish();
        match end {
            End::Made(spec) if spec.state == SpecState::Generated => {
                let next = approval(&spec);
                show::show(reach.store(), *spec, &app.output).await?;
                next.map_or(Ok(()), |next| app.output.note(&next))
            }
            End::Made(spec) => {
                let reason = spec
                    .reason
                    .unwrap_or_else(|| "it gives no reason".to_owned());
                Err(CliError::refused(
                    "rejected",
                    format!("no specification was made: {reason}"),
                ))
            }
            End::Asks(question) => {
                let asked = QuestionView::from(*question);
                app.output
                    .show(&asked, |asked| question::show::human(&asked.question))?;
                let id = last_digits(asked.question.id);
                Err(CliError::refused(
                    "waits-for-answer",
                    (
                        "there is no specification yet: it waits for an answer",
                        format!("`ropewalk question answer {id} …` gives one"),
                    ),
                ))
            }
        }
    }

    /// Asks for a specification, or returns the one that is being written already; an idea that was given just now may have
    /// come to one by itself.
    async fn request(&self, reach: &Reach) -> Result<SpecId, CliError> {
        let of_idea = Query::new().equal("idea", self.slug.as_str());
        let of_idea = if self.given {
            of_idea
        } else {
            of_idea.equal("state", SpecState::Draft.as_str())
        };
        if let Some(draft) = reach.store().list::<Specification>(of_idea).await?.pop() {
            return Ok(draft.id);
        }
        let (context, user) = (reach.context()?, &reach.person()?.name);
        let complexity = self.complexity.into();
        Ok(specifications::request(&context, &self.slug, user, complexity).await?)
    }
}

/// How the writing of a specification ended.
enum End {
    /// It is generated, or refused.
    Made(Box<Specification>),
    /// It waits for an answer.
    Asks(Box<Question>),
}

async fn follow(reach: &Reach, id: SpecId, progress: &Progress) -> Result<End, CliError> {
    let subject = Subject::specification(id);
    // Of a draft, the newest event is what was asked for.
    let asked = reach.newest("spec.*", &subject).await?;
    let mut vigil = Vigil::over(ROLE, subject, asked - 1)?;
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
            return Ok(End::Made(Box::new(spec.record)));
        }
        if let Some(question) = question {
            return Ok(End::Asks(Box::new(question)));
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

/// Says how a specification that was made is approved.
fn approval(spec: &Specification) -> Option<String> {
    let (id, hash) = (last_digits(spec.id), spec.hash.as_ref()?.to_string());
    let hash = hash.get(..FEWEST_DIGITS).unwrap_or(&hash);
    Some(format!(
        "`ropewalk spec show {id}` shows it again; go on with `ropewalk spec approve {id} --hash {hash}`, or change it with `ropewalk spec revise {id} …`"
    ))
}
