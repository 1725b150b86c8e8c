//! What runs, waits, is held and is wrong; what could not be handled.

pub(super) mod health;
mod picture;

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::views::dead_letter::{self, DeadLetterRow};
use ropewalk_desk::views::wait::{self, PlanWaits, QuestionWait, WaitRow};
use ropewalk_desk::views::{agent, alert, lock};
use ropewalk_desk::{alerts, halt};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::About;
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, Slug};

use super::form::Fields;
use super::frame::{Frame, go, page};
use super::graph::Graph;
use super::shown;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Asker;

/// How many dead letters are shown.
const LETTERS: u32 = 50;

#[derive(Template)]
#[template(path = "running.html")]
struct RunningPage {
    frame: Frame,
    alerts: Vec<Alert>,
    waits: Vec<WaitView>,
    graph: Option<Graph>,
    /// How many tasks of which builds wait for others of their plan.
    planned: Vec<PlanWaits>,
    locks: Vec<Lease>,
    parts: Vec<PartView>,
    letters: Vec<DeadLetterRow>,
    may_stop: Option<String>,
}

/// A part in words.
struct PartView {
    part: Component,
    state: &'static str,
    work: String,
}

/// Somebody who waits, with the pages of both sides.
struct WaitView {
    row: WaitRow,
    waiter: String,
    waiter_href: Option<String>,
    resource: String,
    resource_href: Option<String>,
    holder: String,
    holder_href: Option<String>,
}

impl WaitView {
    /// Names what is waited for, with its page: whoever holds it, else itself.
    fn awaited(&self) -> (&str, Option<&str>) {
        if self.holder.is_empty() {
            (&self.resource, self.resource_href.as_deref())
        } else {
            (&self.holder, self.holder_href.as_deref())
        }
    }
}

/// Shows all of it.
pub(super) async fn show(
    State(shared): State<ServerState>,
    frame: Frame,
) -> Result<Response, Problem> {
    let store = &shared.services.store;
    let now = shared.services.clock.now();
    let parts = async {
        let mut parts = Vec::new();
        for part in agent::list(store, false).await? {
            parts.push(PartView {
                state: agent::state(&part, shared.silent_after, now),
                work: agent::work(&part, store).await?,
                part,
            });
        }
        Ok(parts)
    };
    // One by one they would add up to what everybody waits for.
    let (parts, (waits, planned), locks, owned, alerts, letters) = futures::try_join!(
        Box::pin(parts),
        Box::pin(wait::held(store)),
        lock::list(store, false),
        Box::pin(lock::owned(store)),
        alert::list(store, false),
        dead_letter::list(store, LETTERS),
    )?;
    let ideas = wait::ideas_of(store, &waits, &locks).await?;
    let waits: Vec<WaitView> = waits.into_iter().map(|row| waiting(row, &ideas)).collect();
    page(&RunningPage {
        alerts,
        graph: picture::of(&waits, &locks, &owned, &ideas),
        waits,
        planned,
        locks,
        parts,
        letters,
        may_stop: frame.refusal(Right::Stop),
        frame,
    })
}

/// Records that an alert was seen.
pub(super) async fn acknowledge(
    State(shared): State<ServerState>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    alerts::acknowledge(&shared.context(), fields.text("cause"), &person).await?;
    Ok(go("/running"))
}

/// Stops everything.
pub(super) async fn stop(
    State(shared): State<ServerState>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    halt::stop(&shared.context(), &person, fields.filled("reason")).await?;
    Ok(go("/running"))
}

/// Lets everything go on.
pub(super) async fn lift(
    State(shared): State<ServerState>,
    Asker(person): Asker,
) -> Result<Response, Problem> {
    halt::lift(&shared.context(), &person).await?;
    Ok(go("/running"))
}

fn waiting(row: WaitRow, ideas: &BTreeMap<BuildId, Slug>) -> WaitView {
    let (waiter, waiter_href, resource, holder) = match &row {
        WaitRow::Party(Wait {
            waiter,
            resource,
            holder,
            ..
        }) => {
            let told = |party| wait::party_in_words(party, ideas);
            let waiter_href = Some(of_party(waiter));
            (told(waiter), waiter_href, resource, holder.as_ref())
        }
        WaitRow::Other(asking) => (
            about(asking),
            of_asking(&asking.waiter),
            &asking.resource,
            None,
        ),
    };
    WaitView {
        resource: wait::resource_in_words(resource),
        resource_href: match resource {
            Resource::Person { question } => Some(format!("/questions/{question}")),
            _ => None,
        },
        holder: holder.map_or_else(String::new, |party| wait::party_in_words(party, ideas)),
        holder_href: holder.map(of_party),
        waiter,
        waiter_href,
        row,
    }
}

/// Says in a word what else waits.
fn about(asking: &QuestionWait) -> String {
    let told = match asking.waiter {
        About::Session { .. } => "a conversation",
        About::Specification { .. } => "a specification",
        About::Knowledge { .. } => "something learned",
        About::Build { .. } | About::Task { .. } | About::Nothing => return asking.name(),
    };
    told.to_owned()
}

fn of_party(party: &Party) -> String {
    match party {
        Party::Task { build, task } => format!("/builds/{build}/tasks/{task}"),
        Party::Build { build } => format!("/builds/{build}"),
    }
}

fn of_asking(waiter: &About) -> Option<String> {
    match waiter {
        About::Specification { spec } => Some(format!("/specifications/{spec}")),
        About::Build { build } => Some(format!("/builds/{build}")),
        About::Task { build, task } => Some(format!("/builds/{build}/tasks/{task}")),
        About::Knowledge { item } => Some(format!("/knowledge/{item}")),
        About::Session { .. } | About::Nothing => None,
    }
}
