//! Verb `build land`: brings the branch of a finished build into another branch, and sends that on.

use clap::Args;
use ropewalk_builder::Shape;
use ropewalk_builder::land::{self, LandError, LandRequest, LandedBuild, LandingPreview, Way};
use ropewalk_desk::builds::landing::{self, Landing, LandingError};
use ropewalk_desk::views::review::{self, ObjectionView, UNREVIEWED};
use ropewalk_desk::views::trace::Trace;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::{BuildId, CommitId, Priority};
use ropewalk_store::{ReadError, Store};
use serde::Serialize;

use super::trace;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring;

/// What is made of the work.
#[derive(Debug, Clone, Copy, Args)]
struct ShapeArguments {
    /// Makes one commit of the work; `build.squash` makes it always so.
    #[arg(long)]
    squash: bool,
    /// Leaves the folder of the idea out; `build.without_ideas` leaves it out always.
    #[arg(long)]
    without_ideas: bool,
}

/// The build, and where it shall go.
#[derive(Debug, Args)]
pub struct Land {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// The branch to land in; the one that the build began from when absent.
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// Sends what was landed on as that branch: to a remote of the repository on this machine, or to a directory.
    #[arg(long, value_name = "REMOTE")]
    push: Option<String>,
    #[command(flatten)]
    shape: ShapeArguments,
    /// Lands nothing yet: a task of the build resolves the conflicts with the branch that it began from, and you are
    /// asked again.
    #[arg(long, conflicts_with_all = ["into", "push", "squash", "without_ideas"])]
    resolve: bool,
    /// Says what it would come to, and lands nothing.
    #[arg(long, conflicts_with_all = ["push", "resolve"])]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct ResolutionReceipt {
    build: BuildId,
    resolving: bool,
}

/// What it would come to, and what is known of the build.
#[derive(Debug, Serialize)]
struct Prospect {
    #[serde(flatten)]
    preview: LandingPreview,
    /// The branches of which it holds work that has not landed by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comes_along: Vec<String>,
    /// How far its requirements are shown.
    requirements: String,
    /// Whether the project has no gate, so that nothing was run but the own checks of the tasks; none where nobody has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_gate: Option<bool>,
    #[serde(flatten)]
    verdict: ReviewVerdict,
}

/// What is known of a build beside what the gates saw.
#[derive(Debug, Serialize)]
struct ReviewVerdict {
    /// Whether nobody has reviewed it as it stands.
    unreviewed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objections: Vec<ObjectionView>,
}

impl ReviewVerdict {
    async fn load(store: &Store, build: &Build) -> Result<Self, ReadError> {
        Ok(Self {
            unreviewed: review::is_unreviewed(store, build).await?,
            objections: review::objections(store, build).await?,
        })
    }

    /// Tells what speaks against landing `build`, a line each; nothing where nothing does.
    fn told(&self, build: BuildId) -> String {
        if self.unreviewed {
            return format!("but {UNREVIEWED}\n");
        }
        trace::objections(build, &self.objections)
    }
}

#[derive(Debug, Serialize)]
struct Receipt {
    build: BuildId,
    into: String,
    commit: CommitId,
    way: Way,
    pushed: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comes_along: Vec<String>,
    #[serde(flatten)]
    verdict: ReviewVerdict,
}

impl Land {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let person = opened.person()?;
        person.demand(Right::Land)?;
        let build = self.id.build(&opened).await?;
        // What was landed may be sent on, or landed elsewhere, too.
        if let Err(refused @ LandingError::Unfinished { .. }) = landing::admits(&build) {
            return Err(refused.into());
        }
        let context = opened
            .context()
            .for_claim(build.correlation_id, Priority::URGENT);
        if self.resolve {
            landing::land(&context, &build, Landing::Resolve, person).await?;
            opened.poke()?;
            let resolving = ResolutionReceipt {
                build: build.id,
                resolving: true,
            };
            return app.output.show(&resolving, |resolving| {
                let build = resolving.build;
                format!("a task of build {build} resolves the conflicts as soon as `ropewalk up` runs; it asks again when that is checked")
            });
        }
        let request = LandRequest {
            build: build.id,
            into: self.into,
            push: self.push.clone(),
            shape: Shape {
                squash: self.shape.squash,
                without_ideas: self.shape.without_ideas,
            },
            by: person.name.to_string(),
        };
        let comes_along = landing::comes_along(&opened.store, &build).await?;
        if self.dry_run {
            let shape = Shape::configured(&opened.project.config().build).with(request.shape);
            let git = wiring::git(&app.environment).await?;
            let clone = wiring::open_clone(&opened.project, git).await?;
            let request = LandRequest { shape, ..request };
            let preview = land::preview(&clone, &context, &request).await;
            let trace = Trace::load(&opened.store, &build).await?;
            let prospect = Prospect {
                preview: explained(preview, app)?,
                comes_along,
                requirements: Fulfilment::summed_up(&trace.fulfilments(), trace.tasks()),
                without_gate: trace.lacks_gate(),
                verdict: ReviewVerdict::load(&opened.store, &build).await?,
            };
            return app.output.show(&prospect, previewed);
        }
        let verdict = ReviewVerdict::load(&opened.store, &build).await?;
        let worker =
            wiring::lander(&opened.project, &app.environment, opened.brake().await?).await?;
        let landed = worker.land(&context, &request).await;
        // Others may wait for the files that the build owned, also when what was landed could not be sent on; whoever
        // starts next finds that too.
        opened.poke()?;
        let LandedBuild {
            build,
            into,
            commit,
            way,
        } = explained(landed, app)?;
        let done = Receipt {
            build,
            into,
            commit,
            way,
            pushed: self.push,
            comes_along,
            verdict,
        };
        app.output.show(&done, human)
    }
}

/// Shows both sides of what could not be joined.
fn explained<T>(landed: Result<T, LandError>, app: &App) -> Result<T, CliError> {
    landed.map_err(|refusal| {
        let shown = refusal
            .sides()
            .map_or(Ok(()), |sides| app.output.note(&sides));
        shown.err().unwrap_or_else(|| refusal.into())
    })
}

fn previewed(prospect: &Prospect) -> String {
    let preview = &prospect.preview;
    let how = preview.way.before();
    let gate = if preview.gate {
        ", once a gate has seen that"
    } else {
        ""
    };
    let objections = prospect.verdict.told(preview.build);
    let documents = preview.documents.as_ref().map_or_else(String::new, |folder| {
        format!("the documents of the idea come along in `{folder}`; `--without-ideas` leaves them out\n")
    });
    let without_gate = if prospect.without_gate == Some(true) {
        format!("gate: {}\n", landing::NO_GATE)
    } else {
        String::new()
    };
    format!(
        "build {}: {} {how}{gate}; nothing was landed\nrequirements: {}\n{without_gate}{}{documents}{objections}",
        preview.build,
        preview.into,
        prospect.requirements,
        along("comes", &prospect.comes_along)
    )
}

/// Says whose work comes along.
fn along(comes: &str, branches: &[String]) -> String {
    if branches.is_empty() {
        return String::new();
    }
    let branches = branches.join("`, `");
    format!("what it holds of `{branches}`, which has not landed by itself, {comes} along\n")
}

fn human(done: &Receipt) -> String {
    let how = match done.way {
        Way::FastForward => "moved on to it",
        Way::Merge => "joined with it in a merge commit that passed the gate",
        Way::Squash => "has all of it in one commit",
        Way::Contained => "has it",
    };
    let pushed = done
        .pushed
        .as_ref()
        .map_or_else(String::new, |remote| format!(", and sent to {remote}"));
    format!(
        "landed build {}: {} {how}, at {}{pushed}\n{}{}",
        done.build,
        done.into,
        done.commit.short(),
        along("came", &done.comes_along),
        done.verdict.told(done.build)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_work_comes_along_is_said_in_a_line_where_there_is_some() {
        let both = ["build/walks".to_owned(), "build/bees".to_owned()];
        assert_eq!(along("comes", &[]), "");
        assert_eq!(
            along("comes", &both),
            "what it holds of `build/walks`, `build/bees`, which has not landed by itself, comes along\n"
        );
    }
}
