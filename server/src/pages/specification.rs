//! A specification: what is to be built, what that is expected to cost, and what is decided about it.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use ropewalk_desk::specifications::{self, dry_run_told};
use ropewalk_desk::views::specification::{self, RevisionDifference, SpecificationView};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::specification::{
    Complexity, FilePlan, Price, Revision, SpecState, Specification,
};
use ropewalk_schemas::{ContentHash, Priority};
use serde::Deserialize;

use super::form::{Fields, unreadable};
use super::frame::{Frame, go, page};
use super::graph::{Graph, Node, TASKS};
use super::refusal::Onward;
use super::{idea, markdown, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Parameters, Path};

/// Which revisions are compared.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RevisionPair {
    from: Option<u32>,
    to: Option<u32>,
}

#[derive(Template)]
#[template(path = "specification.html")]
struct SpecificationPage {
    frame: Frame,
    view: SpecificationView,
    /// What is to be reached, as markup.
    objective: String,
    graph: Option<Graph>,
    price: String,
    may_approve: Option<String>,
}

impl SpecificationPage {
    fn title(&self) -> String {
        let content = self.view.content.as_ref();
        content.map_or_else(
            || format!("Specification of {}", self.view.specification.idea),
            |content| content.document.title.clone(),
        )
    }

    fn state(&self) -> SpecState {
        self.view.specification.state
    }

    /// Returns whether another revision can be asked for.
    fn can_revise(&self) -> bool {
        self.view.content.is_some() && self.state() != SpecState::Draft
    }

    /// Lists the files that the plan names, by what is to become of them, where there are any.
    fn files(&self) -> Vec<(&'static str, &'static str, &[FilePlan])> {
        let Some(content) = &self.view.content else {
            return Vec::new();
        };
        let document = &content.document;
        let all = [
            ("created", "Files to create", &document.new_files),
            ("changed", "Files to change", &document.modified_files),
            ("avoided", "Files to leave alone", &document.avoid_files),
        ];
        let all = all.map(|(id, title, files)| (id, title, files.as_slice()));
        all.into_iter()
            .filter(|(_, _, files)| !files.is_empty())
            .collect()
    }

    /// Lists what else the plan says, where it says anything.
    fn further(&self) -> Vec<(&'static str, &'static str, &[String])> {
        let Some(content) = &self.view.content else {
            return Vec::new();
        };
        let document = &content.document;
        let all = [
            ("data", "Data", &document.data),
            ("dependencies", "What it depends on", &document.dependencies),
            ("whole", "How the whole is validated", &document.validation),
            ("read", "What was read for it", &document.context_read),
            (
                "missing",
                "What was not there to read",
                &document.missing_inputs,
            ),
        ];
        let all = all.map(|(id, title, lines)| (id, title, lines.as_slice()));
        all.into_iter()
            .filter(|(_, _, lines)| !lines.is_empty())
            .collect()
    }

    fn can_reject(&self) -> bool {
        matches!(self.state(), SpecState::Draft | SpecState::Generated)
    }
}

#[derive(Template)]
#[template(path = "difference.html")]
struct ComparisonPage {
    frame: Frame,
    difference: RevisionDifference,
    lines: Vec<(&'static str, String)>,
}

/// Shows a specification with its newest revision.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let found = found(&shared, &id).await?;
    let view = specification::show(&shared.services.store, found).await?;
    let objective = view.content.as_ref();
    let tasks = view.content.iter().flat_map(|content| &content.tasks);
    let nodes: Vec<Node> = tasks
        .map(|task| Node {
            id: task.id.to_string(),
            text: shown::comes_to(task),
            tone: "calm",
            href: format!("#task-{}", task.id),
            needs: task.depends_on.iter().map(ToString::to_string).collect(),
        })
        .collect();
    page(&SpecificationPage {
        objective: objective.map_or_else(String::new, |content| {
            markdown::html(&content.document.objective)
        }),
        graph: Graph::of(TASKS, nodes),
        price: Price::in_words(view.specification.price.as_ref()),
        may_approve: frame.refusal(Right::Approve),
        frame,
        view,
    })
}

/// Shows what differs between two revisions.
pub(super) async fn compare(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    frame: Frame,
    Parameters(between): Parameters<RevisionPair>,
) -> Result<Response, Problem> {
    let found = found(&shared, &id).await?;
    let store = &shared.services.store;
    let difference = specification::compare(store, &found, between.from, between.to).await?;
    let lines = difference.difference.lines();
    page(&ComparisonPage {
        lines: lines
            .map(|line| (shown::line(line), line.to_owned()))
            .collect(),
        frame,
        difference,
    })
}

/// Asks for the specification of an idea.
pub(super) async fn generate(
    State(shared): State<ServerState>,
    Path(slug): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let name = idea::named(&slug)?;
    let complexity = Complexity::parse(fields.text("complexity")).unwrap_or(Complexity::Medium);
    let context = shared.context();
    let spec = specifications::request(&context, &name, &person.name, complexity).await?;
    Ok(go(&format!("/specifications/{spec}")))
}

/// Approves exactly the revision that was shown.
pub(super) async fn approve(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let found = found(&shared, &id).await?;
    let hash = hash(fields.text("hash"))?;
    let priority = match fields.text("priority").parse() {
        Ok(number) => Priority::new(number).map_err(|error| unreadable(&error))?,
        Err(_) => Priority::DEFAULT,
    };
    let context = shared.context();
    let approved = specifications::approve(&context, found.id, &hash, &person, priority).await;
    decided(&shared, &id, Some(&hash), approved.map(drop)).await
}

/// Asks for another revision.
pub(super) async fn revise(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let spec = found(&shared, &id).await?.id;
    let (shown_hash, text) = (shown_in(&fields)?, fields.text("text"));
    let context = shared.context();
    let revised =
        specifications::revise_shown(&context, spec, shown_hash.as_ref(), &person.name, text);
    decided(&shared, &id, shown_hash.as_ref(), revised.await).await
}

/// Puts a specification away.
pub(super) async fn reject(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let spec = found(&shared, &id).await?.id;
    let (shown_hash, text) = (shown_in(&fields)?, fields.text("text"));
    let context = shared.context();
    let rejected =
        specifications::reject_shown(&context, spec, shown_hash.as_ref(), &person, Some(text));
    let rejected = rejected.await.map(drop);
    decided(&shared, &id, shown_hash.as_ref(), rejected).await
}

/// Says as a sentence how the checks went before anybody approved them.
fn sentence(revision: &Revision) -> String {
    let told = dry_run_told(revision);
    let mut letters = told.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Goes on after a decision. Where it was refused for whoever had read an older revision, the refusal leads to what has
/// changed since.
async fn decided<E: Into<Problem>>(
    shared: &ServerState,
    id: &str,
    read: Option<&ContentHash>,
    outcome: Result<(), E>,
) -> Result<Response, Problem> {
    let Err(refused) = outcome else {
        return Ok(go(&format!("/specifications/{id}")));
    };
    let mut response = refused.into().into_response();
    let newest = found(shared, id).await?;
    let number = match read {
        Some(hash) => specification::number_of(&shared.services.store, &newest, hash).await?,
        None => None,
    };
    if let Some(number) = number.filter(|number| *number < newest.revision) {
        let to = newest.revision;
        response.extensions_mut().insert(Onward {
            href: format!("/specifications/{id}/difference?from={number}&to={to}"),
            called: format!("What changed from revision {number} to {to}"),
        });
    }
    Ok(response)
}

/// Returns the hash of the revision that a form was shown with, if there was one.
fn shown_in(fields: &Fields) -> Result<Option<ContentHash>, Problem> {
    fields.filled("hash").map(|text| hash(&text)).transpose()
}

fn hash(text: &str) -> Result<ContentHash, Problem> {
    ContentHash::parse(text).map_err(|error| unreadable(&error))
}

async fn found(shared: &ServerState, id: &str) -> Result<Specification, Problem> {
    let list = "the page of its idea shows them";
    shown::find::<Specification>(shared, id, "specification", list).await
}
