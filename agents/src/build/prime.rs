//! Lays the ground of a build: base, branch, the idea folder as its first commit.

use std::path::{Path, PathBuf};

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::BuildStarted;
use ropewalk_schemas::{BuildId, CommitId, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, Versioned};
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, GitError};
use tracing::{info, warn};

use super::Shop;
use super::attempt::committed;
use super::context::{self, CONFLICTS, Plan, builds_in, of_build};
use super::settle::{self, enter};
use super::trouble::Trouble;
use super::{publish, settle::settle, verdicts};

/// A longer file of an idea folder does not travel with the code.
const LONGEST_FILE_BYTES: u64 = 1024 * 1024;
/// More files of an idea folder do not travel with the code.
const MOST_FILES: usize = 1_000;

/// Lays the ground of a build and lets it run.
pub(crate) async fn prime(shop: &Shop, context: &Context, id: BuildId) -> Result<(), Trouble> {
    for _ in 0..CONFLICTS {
        let Some(build) = context::build(&context.store, id).await? else {
            return Ok(());
        };
        let context = of_build(context, &build);
        let done = match build.state {
            BuildState::Queued => {
                let mut priming = build.record.clone();
                enter(&mut priming, BuildState::Priming);
                let mut changes = ChangeSet::new();
                changes.update(&build, &priming);
                committed(&context, changes).await?;
                false
            }
            BuildState::Priming | BuildState::Running if build.head.is_none() => {
                match lay(shop, &context, &build).await {
                    Ok(ground) => begin(shop, &context, &build, ground).await?,
                    Err(trouble) if is_lasting(&trouble) => {
                        give_up(&context, id, trouble.to_string()).await?
                    }
                    Err(trouble) => return Err(trouble),
                }
            }
            _ => true,
        };
        if done {
            settle(shop, &context, id).await?;
            publish::publish(shop, &context, id).await?;
            shop.signals.ring_loops();
            return Ok(());
        }
    }
    Err(Trouble::Contended(format!("build/{id}")))
}

/// What a build begins with.
struct Ground {
    branch: String,
    target: String,
    base: CommitId,
    head: CommitId,
    /// Where the branch is already, when it goes on from an earlier build.
    published: Option<CommitId>,
}

async fn lay(shop: &Shop, context: &Context, build: &Build) -> Result<Ground, Trouble> {
    let user = shop.clone.fetch().await?;
    if let Some(ground) = go_on(shop, context, build).await? {
        return Ok(ground);
    }
    let branch = free_branch(shop, context, build).await?;
    let base = user.commit;
    // Read now, so that a build whose gate cannot be known does not begin.
    shop.house.gate_at(Some(&base)).await?;
    let files = idea_files(&idea_folder(shop, build), build)?;
    let head = if files.is_empty() {
        warn!(build.id = %build.id, "there is no folder of idea `{}` to travel with its code", build.idea);
        base.clone()
    } else {
        commit_files(shop, build, &base, &files).await?
    };
    Ok(Ground {
        branch,
        target: user.branch.unwrap_or_else(|| build.target.clone()),
        base,
        head,
        published: None,
    })
}

/// Goes on from the build of an earlier revision, unless that was merged and so is where every build begins.
async fn go_on(shop: &Shop, context: &Context, build: &Build) -> Result<Option<Ground>, Trouble> {
    let Some(before) = build.continues else {
        return Ok(None);
    };
    let before = context::build(&context.store, before).await?;
    let Some(before) = before.filter(|before| before.merged.is_none()) else {
        return Ok(None);
    };
    let (Some(base), Some(head)) = (before.base.clone(), before.head.clone()) else {
        return Ok(None);
    };
    shop.house.gate_at(Some(&base)).await?;
    let files = idea_files(&idea_folder(shop, build), build)?;
    let head = if files.is_empty() {
        head
    } else {
        commit_files(shop, build, &head, &files).await?
    };
    Ok(Some(Ground {
        branch: before.branch.clone(),
        target: before.target.clone(),
        base,
        head,
        published: before.published.clone(),
    }))
}

/// Returns the folder of the build's idea in the state directory.
pub(crate) fn idea_folder(shop: &Shop, build: &Build) -> PathBuf {
    shop.state
        .join("users")
        .join(build.user.as_str())
        .join("ideas")
        .join(build.idea.as_str())
}

async fn commit_files(
    shop: &Shop,
    build: &Build,
    base: &CommitId,
    files: &[FileChange],
) -> Result<CommitId, Trouble> {
    let tree = shop.clone.create_tree(base, files).await?;
    if tree == shop.clone.tree_of(base).await? {
        return Ok(base.clone());
    }
    let message = CommitMessage::new(format!("ideas: add {}", build.idea))
        .with_body("The idea and its specification travel with the code that is built from them.")
        .with_trailer("Ropewalk-Execution", build.id.to_string());
    let commit = NewCommit {
        tree: &tree,
        parents: std::slice::from_ref(base),
        message: &message,
        // The same time at every try, so that a repetition makes the same commit.
        when: build.created_at,
    };
    Ok(shop.clone.create_commit(commit).await?)
}

/// Returns a branch that neither another build nor the user's repository has.
async fn free_branch(shop: &Shop, context: &Context, build: &Build) -> Result<String, Trouble> {
    let others: Vec<String> = builds_in(&context.store, BuildState::ALL)
        .await?
        .into_iter()
        .filter(|other| other.id != build.id)
        .map(|other| other.branch.clone())
        .collect();
    let mut number = 1_u32;
    loop {
        let branch = match number {
            1 => format!("build/{}", build.idea),
            _ => format!("build/{}-{number}", build.idea),
        };
        let taken = others.contains(&branch) || shop.clone.user_branch(&branch).await?.is_some();
        if !taken {
            return Ok(branch);
        }
        number += 1;
    }
}

/// Reads the idea folder; links, long files and what is no text path stay where they are.
fn idea_files(folder: &Path, build: &Build) -> Result<Vec<FileChange>, Trouble> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(unusable(&directory, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| unusable(&directory, source))?;
            let kind = entry
                .file_type()
                .map_err(|source| unusable(&entry.path(), source))?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    let mut files = Vec::new();
    for path in found.into_iter().take(MOST_FILES) {
        let size = path
            .metadata()
            .map_err(|source| unusable(&path, source))?
            .len();
        let inside = path.strip_prefix(folder).ok().and_then(Path::to_str);
        let name = inside.map(|inside| format!("ideas/{}/{inside}", build.idea));
        let Some(Ok(name)) = name.map(|name| RepoPath::parse(&name)) else {
            continue;
        };
        if size <= LONGEST_FILE_BYTES {
            let content = std::fs::read(&path).map_err(|source| unusable(&path, source))?;
            files.push(FileChange::Write {
                path: name,
                content,
            });
        }
    }
    Ok(files)
}

fn unusable(path: &Path, source: std::io::Error) -> Trouble {
    Trouble::File {
        path: path.display().to_string(),
        source,
    }
}

async fn begin(
    shop: &Shop,
    context: &Context,
    build: &Versioned<Build>,
    ground: Ground,
) -> Result<bool, Trouble> {
    let Some(plan) = Plan::load(&context.store, build.id).await? else {
        return Ok(true);
    };
    let mut running = build.record.clone();
    if running.state == BuildState::Priming {
        enter(&mut running, BuildState::Running);
    }
    running.reason = None;
    running.branch = ground.branch;
    running.target = ground.target;
    running.base = Some(ground.base);
    running.head = Some(ground.head);
    running.published = ground.published;
    running.started_at = Some(context.now());
    let mut changes = ChangeSet::new();
    let started = context.event(
        Subject::build(build.id),
        Payload::BuildStarted(BuildStarted {
            build_id: build.id,
            spec_id: build.spec,
            idea_slug: build.idea.clone(),
            task_count: u32::try_from(plan.tasks.len()).unwrap_or(u32::MAX),
            branch: running.branch.clone(),
        }),
    );
    running.cause = Some(started.id);
    verdicts::ask_level(shop, context, &mut changes, &running).await?;
    changes.update(build, &running);
    changes.emit(started);
    info!(build.id = %build.id, "build `{}` of `{}` runs on `{}`", build.id, build.idea, running.branch);
    committed(context, changes).await
}

/// Trying again does not help against a repository that is not one, nor against a gate that cannot be read.
fn is_lasting(trouble: &Trouble) -> bool {
    matches!(
        trouble,
        Trouble::BaseGate(_)
            | Trouble::Git(
                GitError::NoCommit(_) | GitError::NotARepository(_) | GitError::DamagedClone { .. }
            )
    )
}

async fn give_up(context: &Context, id: BuildId, reason: String) -> Result<bool, Trouble> {
    let Some(plan) = Plan::load(&context.store, id).await? else {
        return Ok(true);
    };
    let mut failed = plan.build.record.clone();
    let mut changes = ChangeSet::new();
    settle::fail(context, &mut changes, &mut failed, &plan.records(), reason).await?;
    changes.update(&plan.build, &failed);
    committed(context, changes).await
}
