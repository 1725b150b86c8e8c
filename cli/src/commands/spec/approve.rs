//! Verb `spec approve`: approves one revision by its hash, exactly once.

use std::time::Duration;

use clap::Args;
use ropewalk_desk::specifications::{self, ApproveError, ApprovedRevision, approval_told};
use ropewalk_desk::views::specification;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::specification::{Price, Revision, SpecState, Specification};
use ropewalk_schemas::{BuildId, ContentHash, Priority, SpecId, clip};
use ropewalk_store::{Query, revision_key};
use serde::Serialize;

use super::hash::HashText;
use crate::app::App;
use crate::error::CliError;
use crate::ids::{IdText, last_digits};
use crate::wiring::OpenProject;

/// How long the beginning of the build is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// So much is said of what a file holds instead of what is approved.
const DEPARTURE_LETTERS: usize = 400;

/// The specification and the revision that was read.
#[derive(Debug, Args)]
pub struct Approve {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// The hash of the revision that was read, as `spec show` shows it, or at least its first 16 digits.
    #[arg(long)]
    hash: Option<HashText>,
    /// How urgent its build is: 1 (highest) to 10.
    #[arg(long, value_name = "N", default_value = "5", value_parser = crate::values::priority)]
    priority: Priority,
}

#[derive(Debug, Serialize)]
struct Receipt {
    spec: SpecId,
    revision: u32,
    hash: ContentHash,
    price: Option<Price>,
    build: Option<BuildId>,
    /// What the files in the folder of the idea say otherwise, which nobody approved.
    departures: Vec<String>,
}

impl Approve {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let spec = self.id.specification(&opened).await?.record;
        let hash = match self.hash {
            Some(hash) => hash.of(&spec).ok_or_else(|| not_newest(&hash, &spec))?,
            None => ask(app, &opened, &spec).await?,
        };
        let departures = departures(&opened, &spec).await?;
        let ApprovedRevision {
            spec,
            revision,
            hash,
            price,
        } = specifications::approve(
            &opened.context(),
            spec.id,
            &hash,
            opened.person()?,
            self.priority,
        )
        .await?;
        let build = if opened.poke_or_say(&app.output)? {
            build_of(&opened, spec, revision).await?
        } else {
            None
        };
        let done = Receipt {
            spec,
            revision,
            hash,
            price,
            build,
            departures,
        };
        app.output.show(&done, |done| {
            let began = done.build.map_or_else(String::new, |build| {
                let id = last_digits(build);
                format!("\nbuild {build} began: `ropewalk build show {id}` shows how it stands")
            });
            let mut told = format!(
                "approved revision {} of {}: {}{began}",
                done.revision,
                done.spec,
                Price::in_words(done.price.as_ref())
            );
            if let Some(departures) = departures_told(&done.departures, done.spec) {
                told = format!("{told}\n{departures}");
            }
            told
        })
    }
}

/// Says what the files in the folder of the idea hold that is not the newest revision.
async fn departures(opened: &OpenProject, spec: &Specification) -> Result<Vec<String>, CliError> {
    let key = revision_key(spec.id, spec.revision);
    let Some(revision) = opened.store.get::<Revision>(&key).await? else {
        return Ok(Vec::new());
    };
    let places = opened.project.places();
    let folder = places.idea_folder(&spec.user, &spec.idea);
    Ok(specifications::departures(&folder, &revision))
}

/// Says in one line that files say something else than what is approved, and what to do about it.
fn departures_told(departures: &[String], spec: SpecId) -> Option<String> {
    (!departures.is_empty()).then(|| {
        let departures = clip::line(&departures.join(", "), DEPARTURE_LETTERS);
        format!(
            "{departures}; approved is what `ropewalk spec show {spec}` shows: what should be otherwise is asked for with `ropewalk spec revise {spec} WORDS`"
        )
    })
}

/// Shows what an approval means and asks for it; without a person to ask, names what is missing.
async fn ask(
    app: &App,
    opened: &OpenProject,
    spec: &Specification,
) -> Result<ContentHash, CliError> {
    let (Some(newest), SpecState::Generated | SpecState::Approved) = (&spec.hash, spec.state)
    else {
        return Err(ApproveError::NotReady {
            spec: spec.id,
            state: spec.state,
        }
        .into());
    };
    // Whoever approves it is told who did.
    if spec.approval_of_newest().is_some() {
        return Ok(newest.clone());
    }
    let price = Price::in_words(spec.price.as_ref());
    if !app.can_ask() {
        let text = (
            format!("an approval names what it approves, whose price is: {price}"),
            format!(
                "read `ropewalk spec show {}`, then add `--hash` and the hash that it shows",
                spec.id
            ),
        );
        return Err(CliError::usage(text));
    }
    let shown = specification::show(&opened.store, spec.clone()).await?;
    let told = shown.content.as_ref().map(approval_told);
    app.output.note(&format!(
        "revision {} of `{}`\nhash   {newest}\nprice  {price}\n{}",
        spec.revision,
        spec.idea,
        told.unwrap_or_default()
    ))?;
    if let Some(departures) = departures_told(&departures(opened, spec).await?, spec.id) {
        app.output.note(&departures)?;
    }
    App::confirm("Approve exactly this revision and begin its build?")?;
    Ok(newest.clone())
}

/// Waits for the build of this very revision; an earlier one may have a build too.
async fn build_of(
    opened: &OpenProject,
    spec: SpecId,
    revision: u32,
) -> Result<Option<BuildId>, CliError> {
    opened
        .wait_for(PATIENCE, || async {
            let of_spec = Query::new().equal("spec", spec.to_string());
            Ok(opened
                .store
                .list::<Build>(of_spec)
                .await?
                .into_iter()
                .find(|build| build.revision == revision)
                .map(|build| build.id))
        })
        .await
}

fn not_newest(hash: &HashText, spec: &Specification) -> CliError {
    let text = format!(
        "`{hash}` is not how the hash of the newest revision of `{}` begins; read it again with `ropewalk spec show`",
        spec.id
    );
    CliError::refused("approval", text)
}
