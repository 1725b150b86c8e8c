//! What was built of an earlier revision: the next one goes on from there, so that is the tree it is planned on.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use ropewalk_desk::builds::landed_up_to;
use ropewalk_schemas::amendment::{carried, told_by_people, touched};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::specification::{Document, Revision};
use ropewalk_schemas::task::{Task, TaskBlock, TaskState};
use ropewalk_schemas::{CommitId, SpecId, TaskId};
use ropewalk_store::{Query, ReadError, Store, Versioned, revision_key};
use serde_json::{Value, json};

/// What a model is told of a build that has not ended.
const GOES_ON: &str = " It goes on while you plan, and more of it may land before your plan is approved. Then what runs of a \
                       task that you hand in word for word, with its requirements unchanged, goes on to its end; what runs of \
                       one that you change or leave out ends, and what it made so far is kept.";

/// So much is told of what was said of the work of a task.
const SUMMARY_LETTERS: usize = 1_000;

/// The build that the next revision goes on from.
#[derive(Debug, Clone)]
pub struct BaseBuild {
    build: Build,
    document: Document,
    tasks: Vec<Task>,
    /// What agents, and people of what they made by hand, said of the work that landed, in it or in a build before it.
    summaries: BTreeMap<TaskId, String>,
    /// What its tasks asked people and what these answered, oldest first.
    answers: Vec<(TaskId, String, String)>,
}

impl BaseBuild {
    /// Loads what the builds of the specification `spec` left; nothing where none was begun.
    pub(super) async fn load(store: &Store, spec: SpecId) -> Result<Option<Self>, ReadError> {
        let Some(build) = begun(store, spec).await? else {
            return Ok(None);
        };
        let key = revision_key(spec, build.revision);
        let Some(revision) = store.get::<Revision>(&key).await? else {
            return Ok(None);
        };
        let (build, tasks) = at_one_head(store, build).await?;
        Ok(Some(Self {
            document: revision.into_inner().document,
            summaries: summaries(store, &build).await?,
            answers: answers(store, &build).await?,
            build,
            tasks,
        }))
    }

    /// Returns the head that it left, with its branch, while no other branch holds it.
    pub(super) fn head(&self) -> Option<(CommitId, String)> {
        let head = self.build.head.clone()?;
        let merged = self.build.merged.is_some();
        (!merged).then(|| (head, self.build.branch.clone()))
    }

    /// Lists those of `tasks` whose work has landed and is asked for as before: nothing is done about them.
    pub fn kept(&self, document: &Document, tasks: &[TaskBlock]) -> BTreeSet<TaskId> {
        let touched = touched(&self.document, document);
        tasks
            .iter()
            .filter(|block| carried(block, &self.tasks, &touched).is_some())
            .map(|block| block.id.clone())
            .collect()
    }

    /// Returns when a task landed.
    pub(super) fn landed_at(&self, task: &TaskId) -> Option<DateTime<Utc>> {
        let landed = self.tasks.iter().find(|landed| landed.id == *task);
        landed.and_then(|landed| landed.completed_at)
    }

    /// Says for a prompt what stands, and what becomes of it.
    pub(super) fn told(&self) -> Value {
        let (revision, branch) = (self.build.revision, &self.build.branch);
        let mut place = if self.head().is_some() {
            format!(
                "You see the repository at the head of `{branch}`, its branch; what you plan goes on from there."
            )
        } else if self.build.merged.is_some() {
            format!("`{branch}`, its branch, is part of what you see.")
        } else {
            "Nothing of it has landed yet.".to_owned()
        };
        let state = if self.build.completed_at.is_some() {
            format!("The build is {}", self.build.state)
        } else if self.goes_on() {
            place.push_str(GOES_ON);
            format!("The build is {}", self.build.state)
        } else {
            "Nothing of the build goes on, since what is left of it failed".to_owned()
        };
        let tasks: Vec<String> = self.tasks.iter().map(|task| self.line(task)).collect();
        json!({ "revision": revision, "place": place, "state": state, "tasks": tasks, "said": self.said() })
    }

    /// Says of a task how far it is, and of one that landed what was said of it: by its agent, or of what a person made by hand.
    fn line(&self, task: &Task) -> String {
        let said = self.summaries.get(&task.id);
        let said = said.filter(|_| task.state == TaskState::Complete);
        let said = said.map_or_else(String::new, |words| format!("; said of it: {words}"));
        let title = task.block.in_words();
        format!("`{}` {}: {title}{said}", task.id, task.state)
    }

    /// Says whether more of it may land without a word of a person about what failed.
    fn goes_on(&self) -> bool {
        let ended = |task: &Task| match task.state {
            TaskState::Complete | TaskState::Failed | TaskState::Skipped | TaskState::Blocked => {
                true
            }
            TaskState::Pending
            | TaskState::Ready
            | TaskState::Claimed
            | TaskState::Working
            | TaskState::Validating
            | TaskState::Landing
            | TaskState::Waiting => false,
        };
        let mut failed = self.tasks.iter().map(|task| task.state);
        !self.tasks.iter().all(ended) || !failed.any(|state| state == TaskState::Failed)
    }

    /// Lists what people said to its tasks.
    fn said(&self) -> Vec<String> {
        let advice = told_by_people(&self.tasks).into_iter();
        let advice = advice.map(|(tasks, words)| {
            let were = if tasks.len() == 1 { "was" } else { "were" };
            let tasks: Vec<String> = tasks.iter().map(|task| format!("`{task}`")).collect();
            format!("{} {were} told: {words}", tasks.join(", "))
        });
        let answers = self.answers.iter();
        let answers = answers.map(|(task, question, answer)| {
            format!("`{task}` asked: {question} The answer: {answer}")
        });
        advice.chain(answers).collect()
    }
}

/// Reads what was said of the work that landed, by its task; of work that was done again after that, nothing from before.
async fn summaries(store: &Store, build: &Build) -> Result<BTreeMap<TaskId, String>, ReadError> {
    let landed = landed_up_to(store, build).await?.into_iter();
    let said = landed.filter_map(|(task, attempt)| {
        let summary = clip::line(attempt.summary.as_deref()?, SUMMARY_LETTERS);
        (!summary.is_empty()).then_some((task, summary))
    });
    Ok(said.collect())
}

/// Reads what the tasks of `build` asked, where people answered with more than what is to become of the task.
async fn answers(store: &Store, build: &Build) -> Result<Vec<(TaskId, String, String)>, ReadError> {
    let asked = Query::new()
        .equal("build", build.id.to_string())
        .order_by("asked_at");
    let asked = store.list::<Question>(asked).await?;
    let asked = asked.iter().filter(|question| !question.consequential);
    let answers = asked.filter_map(|question| match &question.about {
        About::Task { task, .. } => Some((
            task.clone(),
            question.text.clone(),
            question.answer_in_full()?,
        )),
        _ => None,
    });
    Ok(answers.collect())
}

/// Finds the newest build of `spec`; one that waits for those before it has nothing of its own yet, so that they count.
async fn begun(store: &Store, spec: SpecId) -> Result<Option<Versioned<Build>>, ReadError> {
    let builds = Query::new()
        .equal("spec", spec.to_string())
        .order_by("created_at")
        .descending();
    let builds = store.list::<Build>(builds).await?;
    let waits = |build: &Build| build.head.is_none() && build.continues.is_some();
    Ok(builds.into_iter().find(|build| !waits(build)))
}

/// Reads a build with its tasks as they are at one head: a task that lands in between would be missed in the tree.
async fn at_one_head(
    store: &Store,
    build: Versioned<Build>,
) -> Result<(Build, Vec<Task>), ReadError> {
    let mut build = build.into_inner();
    loop {
        let tasks = Query::new()
            .equal("build", build.id.to_string())
            .order_by("number");
        let tasks = store.list::<Task>(tasks).await?;
        let again = store.get::<Build>(&build.id.to_string()).await?;
        match again.map(Versioned::into_inner) {
            Some(again) if again.head != build.head => build = again,
            _ => {
                return Ok((
                    build,
                    tasks.into_iter().map(Versioned::into_inner).collect(),
                ));
            }
        }
    }
}
