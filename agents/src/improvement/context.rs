//! Loads what a review is made of.

mod changes;
mod sayings;
mod succession;

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_desk::builds::landed_up_to;
use ropewalk_knowledge::decide::{TaskOutcome, effect};
use ropewalk_knowledge::{Effect, teaches};
use ropewalk_schemas::amendment::told_by_people;
use ropewalk_schemas::attempt::{Attempt, Evidence, Failure, FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeState};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::specification::Revision;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, KnowledgeId, Slug, SpecId, TaskId};
use ropewalk_store::{Query, ReadError, Store, Versioned, revision_key, task_key};

use super::decide::{PlannedTask, TaskFacts};

pub(super) use changes::{BuildChanges, changed};
pub(super) use sayings::{Remark, moment};
pub(super) use succession::Successor;

/// How many earlier reviews are looked at.
const EARLIER: u32 = 10;
/// How many known lessons a model is shown.
const KNOWN: u32 = 40;
/// The most knowledge items that are searched for those of a build.
const SEARCHED: u32 = 5_000;

/// How many attempts are searched for a failure of the same kind.
const ATTEMPTS: u32 = 1_000;

/// A build with everything it left.
pub(super) struct ReviewedBuild {
    pub(super) build: Build,
    pub(super) tasks: Vec<Task>,
    pub(super) attempts: Vec<Attempt>,
    /// Those that landed in it, and in the builds before of whose work it keeps some, the newest of each task.
    pub(super) landed: BTreeMap<TaskId, Attempt>,
    pub(super) evidence: Vec<Evidence>,
    /// What people were asked about it.
    pub(super) questions: Vec<Question>,
    /// What people said to its tasks, the oldest first.
    pub(super) sayings: Vec<Remark>,
    pub(super) revision: Option<Revision>,
    pub(super) injections: Vec<Versioned<Injection>>,
    /// The lessons that this build recorded or saw again.
    pub(super) lessons: Vec<Versioned<KnowledgeItem>>,
    /// The lessons that its tasks carried.
    pub(super) carried: Vec<Versioned<KnowledgeItem>>,
    /// What the failures showed that taught the carried lessons.
    pub(super) learned_of: BTreeMap<KnowledgeId, Vec<String>>,
    /// The latest lessons of all.
    pub(super) known: Vec<KnowledgeItem>,
    pub(super) earlier: Vec<Review>,
    /// The reviews of earlier ends to which it came.
    pub(super) before: Vec<Review>,
    /// The newest of those, else the newest review of the build that it goes on from.
    pub(super) former: Option<Review>,
    /// The build that a later revision goes on with, where that ended this one.
    pub(super) successor: Option<Successor>,
}

impl ReviewedBuild {
    /// Returns whether there is a review of the end to which it came; one that went on after its review is reviewed again.
    pub(super) fn is_reviewed(&self) -> bool {
        reviews_the_end(&self.before, &self.build)
    }
}

/// Reads the reviews of a build: one of each end to which it came.
async fn reviews_of(store: &Store, build: BuildId) -> Result<Vec<Review>, ReadError> {
    let query = Query::new()
        .equal("kind", "build")
        .equal("build", build.to_string());
    Ok(records(store.list::<Review>(query).await?))
}

fn reviews_the_end(reviews: &[Review], build: &Build) -> bool {
    let ended = build.completed_at;
    let mut saw = reviews
        .iter()
        .map(|review| review.ended_at.unwrap_or(review.at));
    saw.any(|saw| ended.is_none_or(|ended| saw >= ended))
}

/// Loads a build with everything it left.
pub(super) async fn build(store: &Store, id: BuildId) -> Result<Option<ReviewedBuild>, ReadError> {
    let Some(build) = store.get::<Build>(&id.to_string()).await? else {
        return Ok(None);
    };
    let build = build.record;
    let of_build = || Query::new().equal("build", id.to_string());
    let tasks = records(store.list::<Task>(of_build().order_by("number")).await?);
    let attempts = records(store.list::<Attempt>(of_build()).await?);
    let landed = landed_up_to(store, &build).await?;
    let evidence = records(store.list::<Evidence>(of_build()).await?);
    let revision = store
        .get::<Revision>(&revision_key(build.spec, build.revision))
        .await?;
    let questions = records(store.list::<Question>(of_build()).await?);
    let spec = Query::new().equal("spec", build.spec.to_string());
    let mut injections = store.list::<Injection>(spec).await?;
    // What an earlier review found proved is weighed once.
    injections.retain(|row| row.build.is_none_or(|of| of == id) && row.helped.is_none());
    let items = items(store).await?;
    let is_carried = |item: &KnowledgeItem| injections.iter().any(|row| row.item == item.id);
    let carried: Vec<Versioned<KnowledgeItem>> = items
        .iter()
        .filter(|row| is_carried(row))
        .cloned()
        .collect();
    // What only a review supposed is no knowledge yet: another build that shows it is to say so.
    let known = items.iter().filter(|row| row.may_be_told());
    let known = known
        .take(KNOWN as usize)
        .map(|row| row.record.clone())
        .collect();
    let evidences: Vec<String> = attempts
        .iter()
        .map(|attempt| format!("attempt/{}", attempt.id))
        .collect();
    let lessons = items
        .into_iter()
        .filter(|row| row.is_usable() && is_of(row, &id.to_string(), &evidences))
        .collect();
    let before = reviews_of(store, id).await?;
    Ok(Some(ReviewedBuild {
        former: succession::former(store, &build, &before).await?,
        successor: Successor::load(store, &build).await?,
        learned_of: learned_of(store, &carried).await?,
        tasks,
        attempts,
        landed,
        evidence,
        sayings: sayings::load(store, &build, &questions).await?,
        questions,
        revision: revision.map(|row| row.record),
        injections,
        lessons,
        carried,
        known,
        earlier: earlier(store, &build).await?,
        before,
        build,
    }))
}

/// Loads what the failures showed that taught `items`.
async fn learned_of(
    store: &Store,
    items: &[Versioned<KnowledgeItem>],
) -> Result<BTreeMap<KnowledgeId, Vec<String>>, ReadError> {
    let mut errors: BTreeMap<KnowledgeId, Vec<String>> = BTreeMap::new();
    for item in items {
        for attempt in item
            .evidence
            .iter()
            .filter_map(|one| one.strip_prefix("attempt/"))
        {
            let attempt = store.get::<Attempt>(attempt).await?;
            let failures = attempt.iter().flat_map(|attempt| attempt.failures());
            // A file that was of another task, say, had no part in it.
            let failures = failures.filter(|failure| teaches(failure));
            let shown = failures.map(|failure| failure.error.clone());
            errors.entry(item.id).or_default().extend(shown);
        }
    }
    Ok(errors)
}

/// Loads the latest knowledge items, those out of use included.
async fn items(store: &Store) -> Result<Vec<Versioned<KnowledgeItem>>, ReadError> {
    let query = Query::new()
        .order_by("updated_at")
        .descending()
        .limit(SEARCHED);
    store.list::<KnowledgeItem>(query).await
}

fn is_of(item: &KnowledgeItem, execution: &str, evidence: &[String]) -> bool {
    item.executions.contains(execution) || item.evidence.iter().any(|one| evidence.contains(one))
}

async fn earlier(store: &Store, build: &Build) -> Result<Vec<Review>, ReadError> {
    let query = Query::new()
        .equal("kind", "build")
        .order_by("at")
        .descending()
        .limit(EARLIER);
    let mut reviews = records(store.list::<Review>(query).await?);
    // The newest of each build: one that went on has several.
    let mut seen = BTreeSet::new();
    reviews.retain(|review| review.build != Some(build.id) && seen.insert(review.build));
    Ok(reviews)
}

impl ReviewedBuild {
    /// Returns what the metrics need to know of a task.
    pub(super) fn facts(&self, task: &Task) -> TaskFacts {
        let failures = self.failed(&task.id).count();
        TaskFacts {
            state: task.state,
            failures: u32::try_from(failures).unwrap_or(u32::MAX),
            has_gotchas: !task.block.gotchas.is_empty() || self.carried_lessons(&task.id),
        }
    }

    /// Lists the failed tries at a task.
    pub(super) fn failed(&self, task: &TaskId) -> impl Iterator<Item = &Failure> {
        let ours = self.attempts.iter().filter(move |one| one.task == *task);
        let row = self.task(task);
        ours.flat_map(move |attempt| standing(row, attempt))
    }

    /// Returns what a lesson did for the task that carried it; none where it was left out, or nothing is proved.
    pub(super) fn effect(&self, usage: &Injection) -> Option<Effect> {
        let is_told = !usage.held_out && self.told(&usage.task, usage.item);
        let task = self.task(&usage.task).filter(|_| is_told)?;
        let learned_of = self
            .learned_of
            .get(&usage.item)
            .map_or(&[][..], Vec::as_slice);
        let learned_of: Vec<&str> = learned_of.iter().map(String::as_str).collect();
        let failures = self.failed(&task.id).map(|failure| failure.error.as_str());
        let failures: Vec<&str> = failures.collect();
        let fared = TaskOutcome {
            passed_first: self.facts(task).passed_first(),
            failures: &failures,
        };
        effect(&learned_of, fared)
    }

    /// Says whether a task was told a lesson: a later revision may have left it out.
    fn told(&self, task: &TaskId, lesson: KnowledgeId) -> bool {
        let mut ours = self.attempts.iter().filter(|one| one.task == *task);
        ours.any(|attempt| attempt.gotchas.contains(&lesson))
    }

    fn carried_lessons(&self, task: &TaskId) -> bool {
        self.attempts
            .iter()
            .any(|attempt| attempt.task == *task && !attempt.gotchas.is_empty())
    }

    /// Returns the plan as the divergences are told from it.
    pub(super) fn plan(&self) -> Vec<PlannedTask> {
        self.tasks.iter().map(|task| self.planned(task)).collect()
    }

    fn planned(&self, task: &Task) -> PlannedTask {
        let block = &task.block;
        let lines: Vec<&str> = block
            .requirements
            .iter()
            .map(|line| line.text.as_str())
            .collect();
        let attempts = self
            .attempts
            .iter()
            .filter(|attempt| attempt.task == task.id);
        PlannedTask {
            task: task.id.clone(),
            action: block.action,
            files: block.files().map(ToString::to_string).collect(),
            text: lines.join("; "),
            state: task.state,
            reason: task.reason.clone().unwrap_or_default(),
            skipped_by: task.skipped_by.clone(),
            elsewhere: self.is_kept(task) || self.is_passed_on(task) || self.is_left_alone(task),
            granted: attempts
                .flat_map(|attempt| attempt.granted.iter().map(ToString::to_string))
                .collect(),
        }
    }

    /// Returns whether a later revision ended the build before the task was done: it goes on with it, or asks for it no more.
    fn is_passed_on(&self, task: &Task) -> bool {
        self.successor.is_some() && task.state != TaskState::Complete
    }

    /// Returns whether a person ended the build before the task was begun: nobody misses what was not wanted any more.
    fn is_left_alone(&self, task: &Task) -> bool {
        let by_person = matches!(
            self.build.stop,
            Some(StopCause::Person | StopCause::Abandoned)
        );
        by_person && !self.is_begun(task)
    }

    /// Returns whether the build was stopped before any task of it was begun, and nobody said anything of its tasks: there is nothing to
    /// learn from.
    pub(super) fn is_unbegun(&self) -> bool {
        let is_unbegun = |task: &Task| self.is_kept(task) || !self.is_begun(task);
        self.build.state == BuildState::Stopped
            && self.tasks.iter().all(is_unbegun)
            && told_by_people(&self.tasks).is_empty()
    }

    /// Returns whether somebody tried a task, or decided about it.
    fn is_begun(&self, task: &Task) -> bool {
        use TaskState::{Complete, Failed, Skipped};
        let tried = self.attempts.iter().any(|tried| tried.task == task.id);
        tried || task.state.is_active() || matches!(task.state, Complete | Failed | Skipped)
    }

    /// Returns whether a task came with the build before as it had landed there: nobody tried it in this one.
    pub(super) fn is_kept(&self, task: &Task) -> bool {
        let tried = self.attempts.iter().any(|tried| tried.task == task.id);
        self.build.continues.is_some() && task.state == TaskState::Complete && !tried
    }

    /// Says in one line how the gate of the whole build ended.
    pub(super) fn whole_check(&self) -> Option<String> {
        let whole = self
            .evidence
            .iter()
            .filter(|evidence| evidence.task.is_none());
        let last = whole.max_by_key(|evidence| evidence.at)?;
        Some(match last.verdict {
            Verdict::Passed => format!("the whole-build check passed at {}", last.commit.short()),
            Verdict::Failed => {
                format!("the whole-build check failed: {}", last.findings.join("; "))
            }
            Verdict::Held => format!(
                "the whole-build check could not run: {}",
                last.findings.join("; ")
            ),
        })
    }

    /// Returns how a task ended, by its id.
    pub(super) fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id)
    }
}

/// Lists what failed in an attempt, oldest first; what a person allowed afterwards, and the row of the task no longer holds, did
/// not.
fn standing<'a>(task: Option<&'a Task>, attempt: &'a Attempt) -> impl Iterator<Item = &'a Failure> {
    attempt.failures().filter(move |failure| {
        let is_known = |task: &Task| {
            let mut known = task.earlier_failures.iter().chain(&task.failures);
            known.any(|known| known.attempt == failure.attempt)
        };
        failure.class != FailureClass::Tampered || task.is_none_or(is_known)
    })
}

/// A task that failed for good or passed at last, with its failed attempts.
pub(super) struct FailedTask {
    pub(super) task: Task,
    pub(super) failed: Vec<Attempt>,
    /// The lessons that speak of one of those attempts.
    pub(super) lessons: Vec<Versioned<KnowledgeItem>>,
    /// Whether another task failed in the same way.
    pub(super) seen_before: bool,
}

/// Loads a task with its failed attempts; `None` when it never failed.
pub(super) async fn failed_task(
    store: &Store,
    build: BuildId,
    task: &TaskId,
) -> Result<Option<FailedTask>, ReadError> {
    let Some(task) = store.get::<Task>(&task_key(build, task)).await? else {
        return Ok(None);
    };
    // Keys grow with time, so these are the latest.
    let query = Query::new().descending().limit(ATTEMPTS);
    let mut all = records(store.list::<Attempt>(query).await?);
    all.retain(|attempt| attempt.failures().next().is_some());
    let is_ours = |attempt: &Attempt| attempt.build == build && attempt.task == task.id;
    let (mut failed, others): (Vec<Attempt>, Vec<Attempt>) = all.into_iter().partition(is_ours);
    failed.sort_by_key(|attempt| attempt.number);
    failed.retain(|attempt| standing(Some(&task), attempt).next().is_some());
    let ours = failed
        .iter()
        .flat_map(|attempt| standing(Some(&task), attempt));
    let Some(failure) = ours.last() else {
        return Ok(None);
    };
    let seen_before = others
        .iter()
        .flat_map(Attempt::failures)
        .any(|other| other.fingerprint == failure.fingerprint);
    let evidence: Vec<String> = failed
        .iter()
        .map(|attempt| format!("attempt/{}", attempt.id))
        .collect();
    let mut lessons = items(store).await?;
    lessons.retain(|row| row.evidence.iter().any(|one| evidence.contains(one)));
    Ok(Some(FailedTask {
        task: task.record,
        failed,
        lessons,
        seen_before,
    }))
}

impl FailedTask {
    /// Lists what failed, oldest first.
    pub(super) fn failures(&self) -> impl DoubleEndedIterator<Item = &Failure> {
        let ours = |attempt| standing(Some(&self.task), attempt);
        let all: Vec<&Failure> = self.failed.iter().flat_map(ours).collect();
        all.into_iter()
    }

    /// Returns whether the task passed after its failures.
    pub(super) fn self_corrected(&self) -> bool {
        self.task.state == TaskState::Complete
    }

    /// Lists its lessons that no review has confirmed yet.
    pub(super) fn candidates(&self) -> impl Iterator<Item = &Versioned<KnowledgeItem>> {
        self.lessons
            .iter()
            .filter(|row| row.state == KnowledgeState::Candidate)
    }
}

/// Returns the reviews of a kind about an idea and, if given, a specification.
pub(super) async fn reviews(
    store: &Store,
    kind: ReviewKind,
    idea: &Slug,
    spec: Option<SpecId>,
) -> Result<Vec<Review>, ReadError> {
    let query = Query::new().equal("idea", idea.as_str());
    let mut reviews = records(store.list::<Review>(query).await?);
    reviews.retain(|review| review.kind == kind && (spec.is_none() || review.spec == spec));
    Ok(reviews)
}

/// Counts values by name.
pub(super) fn named<const N: usize>(values: [(&str, f64); N]) -> BTreeMap<String, f64> {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn records<R>(rows: Vec<Versioned<R>>) -> Vec<R> {
    rows.into_iter().map(|row| row.record).collect()
}
