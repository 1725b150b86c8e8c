//! Verb `spec generate`: has the specification of an idea, or of a text, made, and waits for it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ropewalk_desk::specifications;
use ropewalk_schemas::specification::{Complexity, SpecState, Specification};
use ropewalk_schemas::{Slug, SpecId};
use ropewalk_store::Query;

use super::given;
use super::writing::{self, WantedRevision};
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::wiring::{Crew, Reach};

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
        reach.require(writing::ROLE).await?;
        if self.given {
            given::taken(reach, &self.slug).await?;
        }
        let (spec, number) = self.request(reach).await?;
        let title = format!("writing the specification of `{}`", self.slug);
        let wanted = WantedRevision {
            idea: self.slug,
            spec,
            number,
        };
        writing::show_written(app, reach, &wanted, &title).await
    }

    /// Asks for a specification, or returns the one that is being written already; an idea that was given just now may have
    /// come to one by itself. Returns the number of the revision, too.
    async fn request(&self, reach: &Reach) -> Result<(SpecId, u32), CliError> {
        let of_idea = Query::new().equal("idea", self.slug.as_str());
        let of_idea = if self.given {
            of_idea
        } else {
            of_idea.equal("state", SpecState::Draft.as_str())
        };
        if let Some(draft) = reach.store().list::<Specification>(of_idea).await?.pop() {
            let number = if draft.state == SpecState::Draft {
                draft.next_revision()
            } else {
                draft.revision.max(1)
            };
            return Ok((draft.id, number));
        }
        let (context, user) = (reach.context()?, &reach.person()?.name);
        let complexity = self.complexity.into();
        let spec = specifications::request(&context, &self.slug, user, complexity).await?;
        Ok((spec, 1))
    }
}
