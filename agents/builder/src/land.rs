//! Brings the branch of a finished build into another branch, on the word of a person.
//!
//! Whoever runs it, a verb or the build agent, the same holds: only what a gate has seen goes in, a branch or a
//! checkout that somebody else changed stays as it is, and a repetition after a crash finds what was done.

mod documents;
mod error;
mod order;
mod shaping;

use ropewalk_coordination::ownership;
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::attempt::{Evidence, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::BuildMerged;
use ropewalk_schemas::{BuildId, CommitId, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, ReadError, Versioned, retry_on_conflict};
use ropewalk_workspace::{CleanPool, CommitMessage, LocalClone, Merge, Publication, Side};
use tracing::info;

use super::SPARE_CHECKOUTS;
use super::context::{self, Plan, of_build};
use super::error::BuilderError;
use super::machine::build::{Input, apply_alone};
use super::{
    ask,
    options::{BuildOptions, Shape},
};
pub use error::LandError;
pub(crate) use error::can_resolve;
use ropewalk_gate::runner::{GateRunner, RunnerParts};
use ropewalk_gate::whole::{self, Whole};

/// How often a branch that moves meanwhile is merged into anew.
const TRIES: u32 = 5;

/// What a person wants landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandRequest {
    /// The build.
    pub build: BuildId,
    /// The branch to land in; none for the one that the build began from.
    pub into: Option<String>,
    /// Where that branch is sent afterwards: a remote of the repository, or a directory.
    pub push: Option<String>,
    /// What it makes of the work.
    pub shape: Shape,
    /// Who wants it.
    pub by: String,
}

/// What was landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedBuild {
    /// The build.
    pub build: BuildId,
    /// The branch that has it now.
    pub into: String,
    /// The head of that branch.
    pub commit: CommitId,
    /// How it came there.
    pub way: Way,
}

/// What landing a build would come to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LandingPreview {
    /// The build.
    pub build: BuildId,
    /// The branch to land in.
    pub into: String,
    /// The head of that branch now.
    pub onto: CommitId,
    /// How it would come there.
    pub way: Way,
    /// Whether a gate has to see it first, since none has seen it so.
    pub gate: bool,
    /// The folder of the idea, where its documents come along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<RepoPath>,
}

/// How work comes into a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The branch moved on to the build's head.
    FastForward,
    /// A merge commit joined both, and the gate saw it.
    Merge,
    /// One commit holds all of it.
    Squash,
    /// The branch had it already.
    Contained,
}

impl Way {
    /// Says after the name of the branch what would become of it.
    pub const fn before(self) -> &'static str {
        match self {
            Self::FastForward => "would move on to it",
            Self::Merge => "would be joined with it in a merge commit",
            Self::Squash => "would have all of it in one commit",
            Self::Contained => "has it already",
        }
    }
}

/// Lands builds.
pub struct Lander {
    gate: GateRunner,
    shape: Shape,
}

impl Lander {
    /// Makes a lander that needs no agent to run.
    pub fn new(
        clone: LocalClone,
        runner: ropewalk_workspace::CommandRunner,
        options: &BuildOptions,
    ) -> Self {
        Self {
            shape: options.landing,
            gate: GateRunner::new(RunnerParts {
                pool: CleanPool::for_gates(clone.clone(), options.loops + SPARE_CHECKOUTS),
                clone,
                runner,
                at_once: options.loops + 1,
                gate: options.gate.clone(),
                validation_timeout: options.validation_timeout,
                package_managers: options.package_managers.clone(),
            }),
        }
    }

    /// Lands a build, records it, and pushes if that is wanted.
    pub async fn land(
        &self,
        context: &Context,
        request: &LandRequest,
    ) -> Result<LandedBuild, LandError> {
        let known = context::build(&context.store, request.build).await?;
        let known = known.ok_or(LandError::Unknown(request.build))?;
        let request = &LandRequest {
            shape: self.shape.with(request.shape),
            ..request.clone()
        };
        if let Some(remote) = &request.push {
            let into = request.into.as_ref().unwrap_or(&known.target);
            let named = self.gate.clone.names_a_place(remote, into).await;
            named.map_err(LandError::NoPlace)?;
        }
        let landed = match (&known.merged, &request.push) {
            (Some(commit), Some(_)) => self.earlier(&known, commit, request).await?,
            (Some(commit), None) => {
                return Err(LandError::Already {
                    build: known.id,
                    commit: commit.clone(),
                });
            }
            (None, _) => land(&self.gate, context, request).await?,
        };
        if let Some(remote) = &request.push {
            let pushed = self
                .gate
                .clone
                .push_to(remote, &landed.into, &landed.commit);
            pushed.await.map_err(|source| LandError::NotPushed {
                into: landed.into.clone(),
                source,
            })?;
        }
        Ok(landed)
    }

    /// Finds what is sent on of an earlier landing: what it made, and not what came on the branch since; a branch that
    /// lost it is refused.
    async fn earlier(
        &self,
        build: &Build,
        landed: &CommitId,
        request: &LandRequest,
    ) -> Result<LandedBuild, LandError> {
        let clone = &self.gate.clone;
        let into = request.into.clone().unwrap_or_else(|| build.target.clone());
        clone.fetch().await?;
        let tip = clone.user_branch(&into).await?;
        let tip = tip.ok_or_else(|| LandError::NoBranch(into.clone()))?;
        if !clone.is_ancestor(landed, &tip).await? {
            return Err(LandError::Elsewhere {
                build: build.id,
                commit: landed.clone(),
                into,
            });
        }
        Ok(LandedBuild {
            build: build.id,
            into,
            commit: landed.clone(),
            way: Way::Contained,
        })
    }
}

/// Says what landing a build would come to as things stand, or why it would be refused; moves, records and sends nothing,
/// and has no gate look.
pub async fn preview(
    clone: &LocalClone,
    context: &Context,
    request: &LandRequest,
) -> Result<LandingPreview, LandError> {
    let plan = finished(context, request).await?;
    if let Some(commit) = &plan.build.merged {
        return Err(LandError::Already {
            build: plan.build.id,
            commit: commit.clone(),
        });
    }
    let wanted = (request.into.as_deref(), request.shape);
    let approach = approach(clone, context, &plan, wanted).await?;
    if approach.way != Way::Contained {
        let may = clone.may_advance(&approach.into, &approach.commit, &approach.tip);
        may.await?;
    }
    Ok(LandingPreview {
        build: plan.build.id,
        into: approach.into,
        onto: approach.tip,
        way: approach.way,
        gate: approach.unseen,
        documents: approach.documents,
    })
}

/// Says which documents of others lie where those of a build's idea would go, so that whoever is asked about its branch knows;
/// what else speaks against landing it is said once somebody wants it.
pub(crate) async fn documents_in_the_way(
    clone: &LocalClone,
    context: &Context,
    plan: &Plan,
    shape: Shape,
) -> Option<LandError> {
    let refused = approach(clone, context, plan, (None, shape)).await.err();
    refused.filter(|error| matches!(error, LandError::Documents { .. }))
}

/// Brings the head of a build into a branch, and writes that down with what the gate saw, whatever changes meanwhile.
pub(crate) async fn land(
    gate: &GateRunner,
    context: &Context,
    request: &LandRequest,
) -> Result<LandedBuild, LandError> {
    let (landed, evidence) = bring(gate, context, request).await?;
    failpoint!("build.land.between");
    let recorded = retry_on_conflict!(BuilderError, request.build, {
        if let Some(build) = context::build(&context.store, request.build).await? {
            let changes = record(context, &build, &landed, evidence.as_ref(), &request.by).await?;
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    });
    recorded.map_err(AgentError::from)?;
    Ok(landed)
}

/// Brings the head of a build into a branch; refuses as long as nothing has moved.
async fn bring(
    gate: &GateRunner,
    context: &Context,
    request: &LandRequest,
) -> Result<(LandedBuild, Option<Evidence>), LandError> {
    let plan = finished(context, request).await?;
    let wanted = (request.into.as_deref(), request.shape);
    for _ in 0..TRIES {
        let Approach {
            into,
            tip,
            commit,
            way,
            unseen,
            ..
        } = approach(&gate.clone, context, &plan, wanted).await?;
        let evidence = if unseen {
            Some(check(gate, context, &plan, (&into, &commit)).await?)
        } else {
            None
        };
        let publication = match way {
            Way::Contained => Publication::AlreadyThere,
            Way::FastForward | Way::Merge | Way::Squash => {
                gate.clone.advance(&into, &commit, &tip).await?
            }
        };
        if let Publication::MovedByOther { .. } = publication {
            continue;
        }
        let build = &plan.build;
        info!(build.id = %build.id, "landed `{}` in `{into}`", build.branch);
        let landed = LandedBuild {
            build: build.id,
            into,
            commit,
            way,
        };
        return Ok((landed, evidence));
    }
    let into = request.into.clone();
    Err(LandError::Moving(
        into.unwrap_or_else(|| plan.build.target.clone()),
    ))
}

/// Loads a build whose branch can be landed.
async fn finished(context: &Context, request: &LandRequest) -> Result<Plan, LandError> {
    let plan = Plan::load(&context.store, request.build).await?;
    let plan = plan.ok_or(LandError::Unknown(request.build))?;
    let build = &plan.build;
    if build.state != BuildState::Succeeded || build.head.is_none() {
        return Err(LandError::Unfinished {
            build: build.id,
            state: build.state,
        });
    }
    Ok(plan)
}

/// What a branch is to have, before it moves.
struct Approach {
    into: String,
    /// The head of the branch now.
    tip: CommitId,
    commit: CommitId,
    way: Way,
    /// Whether no gate has seen it.
    unseen: bool,
    /// The folder of the idea, where documents of it come along.
    documents: Option<RepoPath>,
}

/// Finds out what a branch is to have as it stands now; nothing moves.
async fn approach(
    clone: &LocalClone,
    context: &Context,
    plan: &Plan,
    (into, shape): (Option<&str>, Shape),
) -> Result<Approach, LandError> {
    let build = &plan.build;
    let head = build.head.as_ref().ok_or(LandError::Unfinished {
        build: build.id,
        state: build.state,
    })?;
    let into = into.map_or_else(|| build.target.clone(), str::to_owned);
    if into == build.branch {
        return Err(LandError::Itself(into));
    }
    clone.fetch().await?;
    let tip = clone.user_branch(&into).await?;
    let tip = tip.ok_or_else(|| LandError::NoBranch(into.clone()))?;
    if let Some(first) = order::forerunner(clone, context, build, &tip).await? {
        return Err(LandError::Follows {
            branch: build.branch.clone(),
            build: first.id,
            first: first.branch.clone(),
        });
    }
    let joint = Joint {
        head,
        into: &into,
        tip: &tip,
        shape,
    };
    let (commit, way) = join(clone, context, plan, joint).await?;
    // Whoever comes again after a crash finds a branch that has it all, though not the commits that led there.
    let (way, unseen) = match way {
        Way::Contained | Way::FastForward => (way, false),
        Way::Merge | Way::Squash if commit == tip => (Way::Contained, false),
        Way::Merge | Way::Squash => {
            let trees = (clone.tree_of(&commit).await?, clone.tree_of(head).await?);
            (way, trees.0 != trees.1)
        }
    };
    let documents = match way {
        Way::Contained => None,
        _ => documents::brought(clone, context, build, (&into, &tip, &commit)).await?,
    };
    Ok(Approach {
        into,
        tip,
        commit,
        way,
        unseen,
        documents,
    })
}

/// A build's head and the branch that it goes into.
#[derive(Clone, Copy)]
struct Joint<'a> {
    head: &'a CommitId,
    into: &'a str,
    tip: &'a CommitId,
    shape: Shape,
}

/// Makes the commit that the branch is to have.
async fn join(
    clone: &LocalClone,
    context: &Context,
    plan: &Plan,
    joint: Joint<'_>,
) -> Result<(CommitId, Way), LandError> {
    let Joint {
        head,
        into,
        tip,
        shape,
    } = joint;
    let build = &plan.build;
    let branch = &build.branch;
    let message = CommitMessage::new(format!("Merge branch '{branch}' into {into}"))
        .with_trailer("Ropewalk-Execution", build.id.to_string());
    let notes = context::notes(build, Side::Head);
    let merge = clone
        .merge(head, tip, &notes, &message, context.now())
        .await?;
    let as_it_is = shape == Shape::default();
    let joined = match merge {
        Merge::Contained => return Ok((tip.clone(), Way::Contained)),
        Merge::FastForward if as_it_is => return Ok((head.clone(), Way::FastForward)),
        Merge::FastForward => head.clone(),
        Merge::Conflict(files) => {
            return Err(LandError::Conflict {
                build: (*into == *build.target).then_some(build.id),
                branch: branch.clone(),
                into: into.to_owned(),
                files,
            });
        }
        Merge::Merged(commit) => commit,
    };
    if as_it_is {
        return Ok((joined, Way::Merge));
    }
    shaping::shape(clone, context, plan, (&joined, message), joint).await
}

/// Has a gate look at the commit that a branch is to have.
async fn check(
    gate: &GateRunner,
    context: &Context,
    plan: &Plan,
    (into, commit): (&str, &CommitId),
) -> Result<Evidence, LandError> {
    let build = &plan.build;
    let tasks = plan.records();
    let whole = Whole {
        build,
        tasks: &tasks,
        commit,
        level: build.level,
        now: context.now(),
    };
    let evidence = whole::check_to_the_end(gate, &whole)
        .await
        .map_err(|error| AgentError::transient(Words::of(&error)))?;
    if evidence.verdict != Verdict::Passed {
        return Err(LandError::Gate {
            branch: build.branch.clone(),
            into: into.to_owned(),
            findings: evidence.findings.join("; "),
        });
    }
    Ok(evidence)
}

/// Says what a landing changes: the build is merged, owns nothing any more, and nothing is asked about it or its tasks.
async fn record(
    context: &Context,
    build: &Versioned<Build>,
    landed: &LandedBuild,
    evidence: Option<&Evidence>,
    by: &str,
) -> Result<ChangeSet, BuilderError> {
    let context = of_build(context, build);
    let mut changes = ChangeSet::new();
    if build.merged.is_some() {
        return Ok(changes);
    }
    let input = Input::Land {
        commit: landed.commit.clone(),
        told: format!("landed in {} by {by}", landed.into),
    };
    let after = apply_alone(build, input, context.now())?;
    changes.update(build, &after);
    if let Some(evidence) = evidence {
        changes.put(evidence);
    }
    disown(&context, &mut changes, build.id).await?;
    let why = format!("the branch was landed in `{}` by {by}", landed.into);
    ask::supersede_all(&context, &mut changes, build.id, &why).await?;
    changes.emit(context.event(
        Subject::build(build.id),
        Payload::BuildMerged(BuildMerged {
            build_id: build.id,
            idea_slug: build.idea.clone(),
            into: landed.into.clone(),
            commit_id: landed.commit.clone(),
            merged_by: by.to_owned(),
        }),
    ));
    Ok(changes)
}

/// Ends the ownership of everything that a build owns.
pub(crate) async fn disown(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
) -> Result<(), ReadError> {
    let owned = ownership::owned_by(&context.store, build).await?;
    ownership::end(changes, &owned);
    Ok(())
}
