//! The board: every idea where it stands on its way, and what it waits for.

pub(super) mod find;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::people::Person;
use ropewalk_desk::questions;
use ropewalk_desk::views::build::BuildRow;
use ropewalk_desk::views::idea::board::{self, BoardCard};
use ropewalk_desk::views::idea::{IdeaFilter, IdeaRow, Whereabouts};
use ropewalk_desk::views::why;
use ropewalk_schemas::UnknownState;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::idea::{IdeaState, Phase};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::specification::{SpecState, Specification};
use serde::Deserialize;

use super::form::{FilterFields, filled, span};
use super::frame::{Frame, page};
use super::pager::{PageQuery, Pager};
use super::shown;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Parameters;

/// Where an idea stands on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Talk,
    Specification,
    Build,
    Landed,
    Abandoned,
}

/// A stage with the ideas in it.
struct Column {
    stage: Stage,
    title: &'static str,
    /// What brings an idea here, where none is.
    empty: &'static str,
    cards: Vec<Card>,
}

/// An idea with where it stands.
struct Card {
    row: IdeaRow,
    stage: Stage,
    /// Its state in one word.
    state: &'static str,
    /// What it waits for, or what happens.
    waits: String,
    /// Where to act on that.
    href: String,
    /// Whether it waits for whoever looks.
    is_yours: bool,
    /// Tasks that are complete, of how many.
    tasks: Option<(u64, u64)>,
}

#[derive(Template)]
#[template(path = "board.html")]
struct Board {
    frame: Frame,
    columns: Vec<Column>,
    abandoned: Vec<Card>,
    which: Which,
    /// How many there are on all pages.
    ideas: u64,
    pager: Pager,
}

#[derive(Template)]
#[template(path = "new.html")]
struct New {
    frame: Frame,
}

/// Which ideas are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Which {
    /// Only those that have come so far; all where it is empty.
    state: String,
    /// Only those whose name or title bears these words.
    words: String,
    /// Begun at this moment or later.
    since: String,
    /// Begun before this moment.
    until: String,
    page: Option<u32>,
}

impl Which {
    fn filter(&self) -> Result<IdeaFilter, Problem> {
        let state = filled(&self.state).map(str::parse).transpose();
        Ok(IdeaFilter {
            state: state.map_err(|error: UnknownState| {
                Problem::usage((error.to_string(), "choose one of the list"))
            })?,
            begun: span(&self.since, &self.until)?,
            words: filled(&self.words).map(str::to_owned),
        })
    }

    fn fields(&self) -> FilterFields<'_> {
        FilterFields::of([
            ("state", &self.state),
            ("words", &self.words),
            ("since", &self.since),
            ("until", &self.until),
        ])
    }

    /// Returns whether only some ideas are asked for.
    fn is_narrow(&self) -> bool {
        !self.fields().is_empty()
    }
}

/// Shows the board.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Parameters(which): Parameters<Which>,
    frame: Frame,
) -> Result<Response, Problem> {
    let (store, providers) = (&shared.services.store, &shared.builds_with);
    let wanted = PageQuery::at(which.page);
    let board = if which.is_narrow() {
        board::filtered(store, &which.filter()?, wanted.number(), providers).await?
    } else {
        board::show(store, wanted.number(), providers).await?
    };
    let cards = board.cards.into_iter();
    let cards = cards.map(|shown| card(shown, &frame.person));
    let mut columns = [
        (
            Stage::Talk,
            "Talked about",
            "Say what you have in mind with New idea.",
        ),
        (
            Stage::Specification,
            "Specified",
            "When an idea is clear, ask for its specification on its page.",
        ),
        (
            Stage::Build,
            "Built",
            "A build begins when a specification is approved.",
        ),
        (
            Stage::Landed,
            "Landed",
            "What is built lands when its last question is answered so.",
        ),
    ]
    .map(|(stage, title, empty)| Column {
        stage,
        title,
        empty,
        cards: Vec::new(),
    });
    let mut abandoned = Vec::new();
    for card in cards {
        match columns.iter_mut().find(|column| column.stage == card.stage) {
            Some(column) => column.cards.push(card),
            None => abandoned.push(card),
        }
    }
    page(&Board {
        frame,
        columns: columns.into(),
        abandoned,
        ideas: board.ideas,
        pager: wanted.pager(&which.fields().address("/"), board.pages),
        which,
    })
}

/// Shows where an idea is begun.
pub(super) async fn new(frame: Frame) -> Result<Response, Problem> {
    page(&New { frame })
}

fn card(card: BoardCard, person: &Person) -> Card {
    let BoardCard {
        idea: row,
        specification,
        build,
        waits_for,
        is_unhandled,
    } = card;
    let (spec, built) = (specification.as_ref(), build.as_ref());
    let idea = format!("/ideas/{}", row.slug);
    let (stage, waits, href) = match (row.standing, built, spec) {
        (Whereabouts::Abandoned, _, _) => (Stage::Abandoned, String::new(), idea),
        (Whereabouts::Landed, built, _) => {
            let href = built.map(|built| format!("/builds/{}", built.build.id));
            (Stage::Landed, String::new(), href.unwrap_or(idea))
        }
        (Whereabouts::Built(_), Some(built), spec) => building(built, spec),
        (Whereabouts::Specified(_), _, Some(spec)) => specified(spec, &idea),
        (standing, _, _) => {
            let is_captured = standing == Whereabouts::Discussed(IdeaState::Captured);
            let waits = match row.phase {
                _ if is_captured => "its brief is written; ask for its specification",
                Some(Phase::Complete) => "its brief is written; ask for its specification",
                Some(_) => "goes on when you say more, or that this is all",
                None => "has not begun",
            };
            (Stage::Talk, waits.to_owned(), idea)
        }
    };
    let is_offered = spec.is_some_and(|spec| spec.state == SpecState::Generated);
    let is_open = !matches!(stage, Stage::Landed | Stage::Abandoned);
    let is_asked = waits_for
        .iter()
        .any(|question| questions::waits_for(question, person));
    let may_approve = person.demand(Right::Approve).is_ok();
    let is_yours = is_asked || (is_offered && is_open && may_approve);
    let (waits, href) = if is_unhandled && row.state != IdeaState::Abandoned {
        let waits = "something could not be handled; its page says what".to_owned();
        (waits, format!("/ideas/{}", row.slug))
    } else if row.waits_for_answer {
        let href = format!("/questions?idea={}", row.slug);
        let whose = if is_asked { "your" } else { "an" };
        (format!("waits for {whose} answer"), href)
    } else {
        (waits, href)
    };
    Card {
        tasks: built
            .filter(|_| stage == Stage::Build)
            .map(|built| (built.tasks_complete, built.tasks_total)),
        state: row.standing.as_str(),
        row,
        stage,
        waits,
        href,
        is_yours,
    }
}

type BoardStatus = (Stage, String, String);

fn specified(spec: &Specification, idea: &str) -> BoardStatus {
    let href = format!("/specifications/{}", spec.id);
    let waits = match spec.state {
        SpecState::Draft => "its specification is being written",
        SpecState::Generated => "waits for an approval",
        SpecState::Approved => {
            return (Stage::Build, "its build begins".to_owned(), href);
        }
        SpecState::Rejected => {
            let waits = "its specification was rejected; ask for another".to_owned();
            return (Stage::Talk, waits, idea.to_owned());
        }
    };
    (Stage::Specification, waits.to_owned(), href)
}

fn building(row: &BuildRow, spec: Option<&Specification>) -> BoardStatus {
    let build = &row.build;
    let waits = why::build(build, row.outage.as_ref()).unwrap_or_else(|| {
        let told = match build.state {
            BuildState::Queued | BuildState::Priming => "begins",
            BuildState::Running => "its tasks are worked on",
            BuildState::Verifying => "the whole of it is checked",
            BuildState::Succeeded => "is built; lands when somebody says so",
            BuildState::Paused => "stands still",
            BuildState::Failed | BuildState::Stopped => "can be resumed",
        };
        told.to_owned()
    });
    let further = spec.and_then(|spec| match spec.state {
        SpecState::Draft => Some("; another revision is being written"),
        SpecState::Generated => Some("; another revision waits for an approval"),
        SpecState::Approved | SpecState::Rejected => None,
    });
    let href = format!("/builds/{}", build.id);
    let waits = waits + further.unwrap_or_default();
    (Stage::Build, waits, href)
}
