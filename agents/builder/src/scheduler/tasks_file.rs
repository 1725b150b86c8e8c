//! Lets the tasks.md in the idea folder, and the one that travels with the code, follow what SQL says about its tasks.

use std::collections::BTreeMap;
use std::fmt::Display;

use chrono::{DateTime, Utc};
use ropewalk_desk::builds::{attempts_up_to, landed_up_to};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::document::DocumentError;
use ropewalk_schemas::document::tasks_md::{self, Journal, Progress, TasksDocument};
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, CommitId, RepoPath, TaskId};
use ropewalk_store::{ChangeSet, Query, ReadError, Versioned, retry_on_conflict};
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, FileLock, GitError};
use tracing::warn;

use crate::SharedState;
use crate::context::Plan;
use crate::error::BuilderError;

/// Writes states and times into tasks.md; a folder without one, or with one that cannot be read, is left alone.
pub(crate) async fn write(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
) -> Result<(), BuilderError> {
    // Two that write at once could leave what is older.
    let _alone = FileLock::wait(&shared.state.join("tasks.lock")).await?;
    let Some(plan) = Plan::load(&context.store, build).await? else {
        return Ok(());
    };
    let path = shared
        .idea_folder(&plan.build)
        .join("build")
        .join("tasks.md");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(BuilderError::of_file(&path, source)),
    };
    let story = Story::load(context, &plan).await?;
    let Some(updated) = updated(&text, &plan, &story, &path.display()) else {
        return Ok(());
    };
    // A reader sees the old file or the new one, never half of it.
    let fresh = path.with_extension("md.new");
    std::fs::write(&fresh, updated).map_err(|source| BuilderError::of_file(&fresh, source))?;
    std::fs::rename(&fresh, &path).map_err(|source| BuilderError::of_file(&path, source))
}

/// Commits what became of the tasks to the tasks.md that travels with the code; returns the head that has it, and none
/// where the build went on meanwhile.
pub(crate) async fn commit(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
) -> Result<Option<CommitId>, BuilderError> {
    retry_on_conflict!(BuilderError, id, {
        let Some(plan) = Plan::load(&context.store, id).await? else {
            return Ok(Some(None));
        };
        let build = &plan.build;
        let (BuildState::Verifying, Some(head)) = (build.state, &build.head) else {
            return Ok(Some(None));
        };
        let story = Story::load(context, &plan).await?;
        let Some(change) = change_at(shared, &plan, &story, head).await? else {
            return Ok(Some(Some(head.clone())));
        };
        let message = CommitMessage::new(format!("ideas: note what became of {}", build.idea))
            .with_body("The list of its tasks says which are complete, and when they were.")
            .with_trailer("Ropewalk-Execution", id.to_string());
        let tree = match shared.clone.create_tree(head, &[change]).await {
            Ok(tree) => tree,
            Err(error @ GitError::SecretHeld(_)) => {
                warn!("the list of tasks stays as it is: {}", Words::of(&error));
                return Ok(Some(Some(head.clone())));
            }
            Err(error) => return Err(error.into()),
        };
        let commit = NewCommit {
            tree: &tree,
            parents: std::slice::from_ref(head),
            message: &message,
            // The same time at every try, so that a repetition makes the same commit.
            when: last_landing(&plan),
        };
        let commit = shared.clone.create_commit(commit).await?;
        let after = Build {
            head: Some(commit.clone()),
            ..build.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(build, &after);
        context.store.commit(changes).await?;
        Ok(Some(Some(commit)))
    })
}

/// Returns what has to change in the tasks.md of `head`; none where there is none, or it is true already.
async fn change_at(
    shared: &SharedState,
    plan: &Plan,
    story: &Story,
    head: &CommitId,
) -> Result<Option<FileChange>, BuilderError> {
    let name = format!("{}/build/tasks.md", RepoPath::of_idea(&plan.build.idea));
    let Ok(path) = RepoPath::parse(&name) else {
        return Ok(None);
    };
    let found = shared.clone.read_file(head, &name).await?;
    let text = found.and_then(|content| String::from_utf8(content).ok());
    let updated = text.and_then(|text| updated(&text, plan, story, &name));
    Ok(updated.map(|text| FileChange::Write {
        path,
        content: text.into_bytes(),
    }))
}

fn last_landing(plan: &Plan) -> DateTime<Utc> {
    let landings = plan.tasks.iter().filter_map(|task| task.completed_at);
    landings.max().unwrap_or(plan.build.created_at)
}

/// What became of the tasks in words: what their agents said of it, and what was learned.
struct Story {
    /// When each task was first worked on, in the build that tried it last.
    began: BTreeMap<TaskId, DateTime<Utc>>,
    log: Vec<String>,
    discoveries: Vec<String>,
}

impl Story {
    async fn load(context: &Context, plan: &Plan) -> Result<Self, ReadError> {
        // What an amended build keeps was done in one before.
        let tried = attempts_up_to(&context.store, &plan.build).await?;
        let attempts = context.store.list::<Attempt>(tried).await?;
        let landed = landed_up_to(&context.store, &plan.build).await?;
        let said = |task: &Task| {
            let summary = landed.get(&task.id)?.summary.as_deref()?.trim();
            let at = task.completed_at?.format("%Y-%m-%d %H:%M");
            (!summary.is_empty()).then(|| format!("{at} {}: {summary}", task.id))
        };
        let evidence: Vec<String> = attempts
            .iter()
            .map(|attempt| format!("attempt/{}", attempt.id))
            .collect();
        let gotchas = Query::new().equal("kind", "gotcha");
        let mut gotchas = context.store.list::<KnowledgeItem>(gotchas).await?;
        // By when they were recorded, so that a repetition tells the same.
        gotchas.sort_by_key(|item| item.id);
        let learned = gotchas
            .iter()
            .filter(|item| item.evidence.iter().any(|one| evidence.contains(one)));
        Ok(Self {
            began: began(&attempts),
            log: plan.tasks.iter().filter_map(|task| said(task)).collect(),
            discoveries: learned.map(|item| item.content.clone()).collect(),
        })
    }

    /// Adds what `document` does not hold yet.
    fn tell(&self, document: &mut TasksDocument) -> Result<(), DocumentError> {
        for (journal, items) in [
            (Journal::ExecutionLog, &self.log),
            (Journal::Discoveries, &self.discoveries),
        ] {
            let known = document.journal(journal);
            for item in items.iter().filter(|item| !known.contains(item)) {
                document.append(journal, item)?;
            }
        }
        Ok(())
    }
}

/// Finds when each task was first worked on, in the build that tried it last: a later revision may ask for it anew. The attempts come
/// the oldest first.
fn began(attempts: &[Versioned<Attempt>]) -> BTreeMap<TaskId, DateTime<Utc>> {
    let mut found: BTreeMap<TaskId, (BuildId, DateTime<Utc>)> = BTreeMap::new();
    for attempt in attempts {
        let tried = (attempt.build, attempt.started_at);
        let first = found.entry(attempt.task.clone()).or_insert(tried);
        if first.0 == attempt.build {
            first.1 = first.1.min(attempt.started_at);
        } else {
            *first = tried;
        }
    }
    let times = found.into_iter();
    times.map(|(task, (_, at))| (task, at)).collect()
}

/// Writes the states and times of the tasks into a tasks.md, and their story; none where nothing changes, or where it cannot
/// be read.
fn updated(text: &str, plan: &Plan, story: &Story, name: &impl Display) -> Option<String> {
    let mut document = match tasks_md::parse(text) {
        Ok(document) => document,
        Err(error) => {
            warn!("`{name}` is left as it is: {error}");
            return None;
        }
    };
    // A task that joins branches came after the plan.
    for task in plan.tasks.iter().filter(|task| task.joins.is_none()) {
        let progress = Progress {
            status: task.state,
            assigned_to: task.assigned_to.clone(),
            started_at: started_at(task, story),
            completed_at: task.completed_at,
        };
        if let Err(error) = document.set_status(&task.id, &progress) {
            warn!("`{name}` does not hold task `{}`: {error}", task.id);
        }
    }
    if let Err(error) = story.tell(&mut document) {
        warn!("`{name}` does not tell what its tasks came to: {error}");
    }
    let updated = document.to_string();
    (updated != text).then_some(updated)
}

/// Says when the work on a task began. One that waits for another try has not begun that, and one that was kept was claimed in a
/// build before.
fn started_at(task: &Task, story: &Story) -> Option<DateTime<Utc>> {
    let began = story.began.get(&task.id).copied();
    match task.claimed_at {
        Some(claimed) => began.or(Some(claimed)),
        None => began.filter(|_| task.state == TaskState::Complete),
    }
}
