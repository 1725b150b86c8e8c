//! What it takes to do a build again that ran: its plan as it was before anything happened, and what people answered.

mod joined;
mod retries;

use std::collections::BTreeSet;

use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::{self, AnswerError, AnswerInput};
use ropewalk_schemas::attempt::{Attempt, Evidence};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::payload::{SpecApproved, TaskRetry};
use ropewalk_schemas::question::{About, Answer, ChoiceWords, Content, Question, QuestionState};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Query, ReadError, Store, revision_key};

use crate::views::records;
use joined::JoinedBuild;

/// Where the repeated answers come from.
const CHANNEL: &str = "replay";

/// Says why a build cannot be done again.
#[derive(Debug, thiserror::Error)]
pub enum AgainError {
    /// It goes on.
    #[error("build `{build}` is {state}")]
    Open {
        /// The build.
        build: BuildId,
        /// Its state.
        state: BuildState,
    },
    /// It never began.
    #[error("build `{0}` has no base: it ended before it began; there is nothing to replay")]
    Groundless(BuildId),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The new store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A build to be done again.
pub struct Again {
    build: Build,
    /// What it goes on from, the newest first.
    forerunners: Vec<Forerunner>,
    /// The builds whose work it joined, in that order.
    joined: Vec<JoinedBuild>,
    tasks: Vec<Task>,
    /// What was asked and is closed, in the order in which it was asked.
    closed: Vec<Question>,
    /// The rounds that people asked for, oldest first.
    retries: Vec<TaskRetry>,
}

impl Again {
    /// Takes a build that has ended from its store.
    pub async fn of(store: &Store, build: Build) -> Result<Self, AgainError> {
        use BuildState::{Failed, Paused, Stopped, Succeeded};
        let id = build.id;
        if !matches!(build.state, Succeeded | Failed | Stopped | Paused) {
            let state = build.state;
            return Err(AgainError::Open { build: id, state });
        }
        if build.base.is_none() || build.head.is_none() {
            return Err(AgainError::Groundless(id));
        }
        let mut forerunners = Vec::new();
        for before in super::forerunners(store, &build).await? {
            forerunners.push(Forerunner::of(store, before.into_inner(), &build).await?);
        }
        let of_build = Query::new().equal("build", id.to_string());
        let mut tasks = records(store.list::<Task>(of_build).await?);
        tasks.sort_by_key(|task| task.number);
        let joined = joined::of(store, &build, &tasks).await?;
        let asked = records(store.list::<Question>(Query::new()).await?);
        let is_closed = |question: &Question| {
            question.state != QuestionState::Pending && is_about(&question.about, id)
        };
        let mut closed: Vec<Question> = asked.into_iter().filter(is_closed).collect();
        closed.sort_by_key(|question| question.asked_at);
        let retries = retries::of(store, id).await?;
        Ok(Self {
            build,
            forerunners,
            joined,
            tasks,
            closed,
            retries,
        })
    }

    /// Returns the build whose branch this one goes on from; none where it began on its base.
    pub fn ground(&self) -> Option<&Build> {
        let before = self.forerunners.last().map(|before| &before.build);
        before.filter(|before| before.head.is_some() && before.branch == self.build.branch)
    }

    /// Returns the builds whose work it joined, as they were then, so that it can be brought along.
    pub fn joined(&self) -> impl Iterator<Item = &Build> {
        let ground = self.ground().map(|ground| ground.id);
        let joined = self.joined.iter().map(JoinedBuild::build);
        joined.filter(move |joined| Some(joined.id) != ground)
    }

    /// Returns the attempts of builds before whose work was kept, so that it can be brought along.
    pub fn kept(&mut self) -> impl Iterator<Item = &mut Attempt> {
        let attempts = self
            .forerunners
            .iter_mut()
            .flat_map(|before| &mut before.attempts);
        attempts.filter(|attempt| attempt.preserve_ref.is_some() || attempt.candidate.is_some())
    }

    /// Lists the tasks in the order in which they landed.
    pub fn order(&self) -> Vec<TaskId> {
        let mut landed: Vec<&Task> = self
            .tasks
            .iter()
            .filter(|task| task.completed_at.is_some())
            .collect();
        landed.sort_by_key(|task| task.completed_at);
        landed.into_iter().map(|task| task.id.clone()).collect()
    }

    /// Writes the plan into another store, as nothing had happened to it yet.
    pub async fn lay(&self, from: &Store, into: &Store) -> Result<(), AgainError> {
        let build = &self.build;
        let mut changes = ChangeSet::new();
        if let Some(idea) = from.get::<Idea>(build.idea.as_str()).await? {
            changes.insert(&idea.record);
        }
        let spec = build.spec.to_string();
        if let Some(spec) = from.get::<Specification>(&spec).await? {
            changes.insert(&spec.record);
        }
        let before = self.forerunners.iter().map(|before| &before.build);
        let revisions: BTreeSet<u32> = before.chain([build]).map(|one| one.revision).collect();
        for number in revisions {
            let key = revision_key(build.spec, number);
            if let Some(revision) = from.get::<Revision>(&key).await? {
                changes.insert(&revision.record);
            }
        }
        for before in &self.forerunners {
            before.lay(&mut changes);
        }
        let known: BTreeSet<BuildId> = self
            .forerunners
            .iter()
            .map(|before| before.build.id)
            .collect();
        joined::lay(&self.joined, &known, build, &mut changes);
        let lessons = records(from.list::<KnowledgeItem>(Query::new()).await?);
        let known = |lesson: &&KnowledgeItem| lesson.created_at <= build.created_at;
        for lesson in lessons.iter().filter(known) {
            changes.insert(lesson);
        }
        changes.insert(&queued(build));
        for task in planned(&self.tasks) {
            changes.insert(&task);
        }
        // They allow what was called after them, so that they may stand there from the beginning.
        let allows = |one: &&Question| matches!(one.content, Some(Content::Call { .. }));
        let allowed = self.closed.iter().filter(allows);
        for allowed in allowed.filter(|one| answer_of(one).is_some()) {
            changes.insert(allowed);
        }
        into.commit(changes).await?;
        Ok(())
    }

    /// Answers the open questions of the build as they were answered before; returns one that nobody answered then.
    pub async fn answer(&self, context: &Context) -> Result<Option<Question>, AnswerError> {
        let mut unanswered = None;
        for (question, answer) in self.open(&context.store).await? {
            let Some(answer) = answer else {
                unanswered = Some(question);
                continue;
            };
            let given = given(&question, answer);
            questions::answer(context, question.id, given, &answer.by, CHANNEL).await?;
        }
        Ok(unanswered)
    }

    /// Asks for the rounds of tasks that people asked for in place of an answer. Says whether one was asked for now or a
    /// moment ago, or more of them were asked for then than by now.
    pub async fn retry(&self, context: &Context) -> Result<bool, AnswerError> {
        let mut is_under_way = false;
        for (question, answer) in self.open(&context.store).await? {
            if answer.is_none() {
                is_under_way |= retries::repeat(context, &self.retries, &question).await?;
            }
        }
        Ok(is_under_way || retries::are_left(&context.store, &self.retries).await?)
    }

    /// Lists what is open about the build, with what a person answered then.
    async fn open(&self, store: &Store) -> Result<Vec<(Question, Option<&Answer>)>, ReadError> {
        let mut asked = records(store.list::<Question>(Query::new()).await?);
        asked.retain(|one| is_about(&one.about, self.build.id));
        let (open, closed): (Vec<Question>, Vec<Question>) = asked
            .into_iter()
            .partition(|one| one.state == QuestionState::Pending);
        let open = open.into_iter().map(|question| {
            let done = closed.iter().filter(|one| is_same(one, &question)).count();
            let mut before = self.closed.iter().filter(|one| is_same(one, &question));
            let answer = before.nth(done).and_then(answer_of);
            (question, answer)
        });
        Ok(open.collect())
    }
}

/// Returns what was given for an answer: a choice with its words where it takes some, or words alone.
fn given<'a>(question: &Question, answer: &'a Answer) -> AnswerInput<'a> {
    let Some(picked) = &answer.choice else {
        return AnswerInput::Words(&answer.text);
    };
    let mut choices = question.choices.iter();
    let chosen = choices.find(|choice| choice.id == *picked);
    let has_words = chosen.is_some_and(|choice| match choice.words {
        ChoiceWords::None => false,
        ChoiceWords::Optional => answer.says_why,
        ChoiceWords::Required => true,
    });
    AnswerInput::Picked(picked, has_words.then_some(answer.text.as_str()))
}

/// Returns what a person answered; none where nobody did.
fn answer_of(question: &Question) -> Option<&Answer> {
    let answer = question.answer.as_ref();
    answer.filter(|_| question.state == QuestionState::Answered)
}

/// A build that another one goes on from, as it ended.
struct Forerunner {
    build: Build,
    tasks: Vec<Task>,
    attempts: Vec<Attempt>,
    evidence: Vec<Evidence>,
    /// What people were asked about it and answered: who goes on with a task of it is told that.
    answered: Vec<Question>,
}

impl Forerunner {
    /// Takes it from its store, as it was when `next` went on from it.
    async fn of(store: &Store, build: Build, next: &Build) -> Result<Self, ReadError> {
        let of_build = || Query::new().equal("build", build.id.to_string());
        let tasks = records(store.list::<Task>(of_build()).await?);
        let attempts = records(store.list::<Attempt>(of_build()).await?);
        let evidence = records(store.list::<Evidence>(of_build()).await?);
        let mut answered = records(store.list::<Question>(of_build()).await?);
        answered.retain(|question| answer_of(question).is_some());
        // Who goes on from what was merged goes on where every build begins.
        let merged = build.merged.clone().filter(|_| build.branch != next.branch);
        Ok(Self {
            build: Build {
                published: build.head.clone(),
                question: None,
                merged,
                ..build
            },
            tasks,
            attempts,
            evidence,
            answered,
        })
    }

    fn lay(&self, changes: &mut ChangeSet) {
        changes.insert(&self.build);
        for task in &self.tasks {
            changes.insert(task);
        }
        for attempt in &self.attempts {
            changes.insert(attempt);
        }
        for seen in &self.evidence {
            changes.insert(seen);
        }
        for question in &self.answered {
            changes.insert(question);
        }
    }
}

/// Returns the tasks as the plan had them: one that joins branches came later, and nothing waited for it before.
fn planned(tasks: &[Task]) -> Vec<Task> {
    let (joining, planned): (Vec<&Task>, Vec<&Task>) =
        tasks.iter().partition(|task| task.joins.is_some());
    let planned = planned.into_iter().map(|task| {
        let mut block = task.block.clone();
        block
            .depends_on
            .retain(|needed| joining.iter().all(|task| task.id != *needed));
        Task::planned(task.build, task.number, block)
    });
    planned.collect()
}

/// Returns the build as its approval made it.
fn queued(build: &Build) -> Build {
    let approval = SpecApproved {
        spec_id: build.spec,
        idea_slug: build.idea.clone(),
        user_slug: build.user.clone(),
        revision: build.revision,
        hash: build.hash.clone(),
        approved_by: build.user.clone(),
        priority: build.priority,
        price: build.quote.clone(),
    };
    Build {
        continues: build.continues,
        ..Build::queued(build.id, &approval, build.correlation_id, build.created_at)
    }
}

fn is_about(about: &About, id: BuildId) -> bool {
    matches!(about, About::Build { build } | About::Task { build, .. } if *build == id)
}

fn is_same(one: &Question, other: &Question) -> bool {
    one.trigger == other.trigger && one.about == other.about && one.topic == other.topic
}
