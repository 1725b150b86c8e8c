//! Claims a task: its locks, its files, its attempt and its new state in one transaction, or nothing.

pub(crate) mod obstacles;
pub(crate) mod waiting;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ropewalk_coordination::locks::{self, LockRequest};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Attempt, AttemptState, RefusedTry};
use ropewalk_schemas::build::{Build, BuildState, Predecessor};
use ropewalk_schemas::lease::Holder;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::{ChangeRequest, ChangeRequestState, Task};
use ropewalk_schemas::{AttemptId, BuildId, CommitId, RepoPath};
use ropewalk_store::{ChangeSet, CommitError, Versioned, retry_on_conflict};

use super::SharedState;
use super::context::{Plan, attempts_at, builds_in, of_build};
use super::decide::failure;
use super::decide::order::{claimable, locked_files, may_begin};
use super::decide::step::stop_reason;
use super::effects::{Scene, party};
use super::error::BuilderError;
use super::machine::task::{Input, apply_alone};
use super::outages;
use obstacles::{Obstacles, change_request, conflict, is_asked};
use waiting::WaitOutcome;

/// A claimed task.
pub(crate) struct Claim {
    pub(crate) build: Build,
    pub(crate) task: Task,
    pub(crate) attempt: Attempt,
    /// The commit it works from.
    pub(crate) base: CommitId,
    /// The locked files with their tokens.
    pub(crate) locks: BTreeMap<RepoPath, i64>,
    /// What of other builds it has to build on.
    pub(crate) after: Vec<Predecessor>,
    /// The try as the script and the journal count it: interrupted attempts are run again under their own number.
    pub(crate) round: u32,
    /// What the gate refused in this round already; a conversation that is taken up again comes by it once more.
    pub(crate) refused: Vec<RefusedTry>,
    /// The first try of its conversation: what failed from there on was met in it.
    pub(crate) since: u32,
    /// How long the task rested before it, where the attempt before could not go on.
    pub(crate) rested: Option<TimeDelta>,
}

/// Claims the most fitting task that is free; none when there is nothing to do.
pub(crate) async fn next(
    shared: &SharedState,
    context: &Context,
) -> Result<Option<Claim>, BuilderError> {
    let claimed = retry_on_conflict!(BuilderError, "the tasks", {
        Ok(match look(shared, context).await? {
            Look::Claimed(claim) => Some(Some(*claim)),
            Look::Nothing => Some(None),
            // What was seen has changed meanwhile; nobody would call again for what is there now.
            Look::Overtaken => None,
        })
    });
    match claimed {
        Err(BuilderError::Commit(CommitError::Contended(_))) => Ok(None),
        claimed => claimed,
    }
}

/// What came of one look at the tasks.
enum Look {
    Claimed(Box<Claim>),
    /// Nothing is free.
    Nothing,
    /// Something was free, and somebody else changed what the claim rests on.
    Overtaken,
}

async fn look(shared: &SharedState, context: &Context) -> Result<Look, BuilderError> {
    let mut found = Look::Nothing;
    if outages::of_builds(shared, context).await?.is_some() {
        shared.isolation.let_no_task_wait();
        return Ok(found);
    }
    let turn = shared.isolation.turn(shared, context).await?;
    for build in builds_in(&context.store, &[BuildState::Running]).await? {
        if build.pause_requested || build.exhausted.is_some() || build.head.is_none() {
            continue;
        }
        let Some(plan) = Plan::load(&context.store, build.id).await? else {
            continue;
        };
        let tasks = plan.records();
        // The scheduler will stop this build; until then nothing new begins.
        if stop_reason(&plan.build, &tasks, &shared.options.stop, context.now()).is_some() {
            shared.signals.wake_scheduler();
            continue;
        }
        for task in claimable(&tasks, context.source(), context.now()) {
            let Some(task) = plan.tasks.iter().find(|row| row.id == task.id) else {
                continue;
            };
            if !turn.admits(task) || !may_begin(&shared.options.order, &tasks, &task.id) {
                continue;
            }
            match attempt(shared, context, &plan.build, task).await? {
                Look::Nothing => {}
                Look::Overtaken => found = Look::Overtaken,
                claimed @ Look::Claimed(_) => {
                    turn.claimed(task);
                    return Ok(claimed);
                }
            }
        }
    }
    Ok(found)
}

async fn attempt(
    shared: &SharedState,
    context: &Context,
    build: &Versioned<Build>,
    task: &Versioned<Task>,
) -> Result<Look, BuilderError> {
    let Some(base) = build.head.clone() else {
        return Ok(Look::Nothing);
    };
    if build.state != BuildState::Running || build.pause_requested || build.exhausted.is_some() {
        return Ok(Look::Nothing);
    }
    let context = of_build(context, build);
    let request = lock_request(shared, &context, task);
    let obstacles = Obstacles::of(&context, request.clone()).await?;
    if !obstacles.is_empty() {
        return wait(shared, &context, task, &obstacles).await;
    }
    let round = round(&context, task).await?;
    let (changes, claimed, attempt, after) = claim(
        shared,
        &context,
        build,
        task,
        (&request, &obstacles),
        (base.clone(), &round),
    )
    .await?;
    match context.store.commit(changes).await {
        Ok(committed) => {
            let token = committed.token.unwrap_or_default();
            let files = request.files.into_iter();
            let number = attempt.number;
            Ok(Look::Claimed(Box::new(Claim {
                build: build.record.clone(),
                task: claimed,
                attempt: Attempt { token, ..attempt },
                base,
                locks: files.map(|file| (file, token)).collect(),
                after,
                round: round.number,
                refused: round.refused,
                since: round.since.unwrap_or(number),
                rested: round.rested,
            })))
        }
        // Somebody was faster; the next look sees what is left.
        Err(CommitError::Conflict { .. } | CommitError::Held { .. }) => Ok(Look::Overtaken),
        Err(error) => Err(error.into()),
    }
}

/// Asks for the files of a task, for an attempt that begins now.
pub(crate) fn lock_request(shared: &SharedState, context: &Context, task: &Task) -> LockRequest {
    LockRequest {
        holder: Holder {
            build: task.build,
            task: task.id.clone(),
            attempt: AttemptId(context.ids.next()),
            loop_name: context.source().clone(),
        },
        files: locked_files(task),
        ttl: shared.options.lease,
        reason: format!("task {} of {}", task.id, task.build),
        since: task.wants_files_since.unwrap_or_else(|| context.now()),
    }
}

/// Lets the task wait, visibly, for whoever holds what it needs.
async fn wait(
    shared: &SharedState,
    context: &Context,
    task: &Versioned<Task>,
    obstacles: &Obstacles,
) -> Result<Look, BuilderError> {
    let mut changes = ChangeSet::new();
    let mut waiting = apply_alone(task, obstacles.obstruction(), context.now())?;
    for (file, owner) in obstacles.owners() {
        contest(context, &mut changes, &mut waiting, file, owner);
    }
    changes.update(task, &waiting);
    obstacles.require(&mut changes);
    let waiter = party(task);
    let came = waiting::wait(shared, context, &waiter, changes, &obstacles.waits()).await?;
    Ok(match came {
        WaitOutcome::Contended => Look::Overtaken,
        WaitOutcome::Written | WaitOutcome::Freed | WaitOutcome::GaveWay(_) => Look::Nothing,
    })
}

/// Files a change request with the owner and lets PM know that two builds want one file; once for each owner.
fn contest(
    context: &Context,
    changes: &mut ChangeSet,
    task: &mut Task,
    file: &RepoPath,
    owner: BuildId,
) {
    if is_asked(task, file, owner) {
        return;
    }
    task.change_requests.push(ChangeRequest {
        file: file.clone(),
        owner,
        state: ChangeRequestState::Requested,
        reason: None,
        requested_at: context.now(),
        decided_at: None,
        commit: None,
    });
    let request = change_request(task.build, &task.id, owner, file);
    let change = format!("task `{}` changes it", task.id);
    request.file(changes, &change, &|subject, payload| {
        context.event(subject, payload)
    });
    changes.emit(conflict(context, task, file, owner));
}

/// Names the conversation of a round about a task, as the journal does.
pub(crate) fn conversation(task: &Task, round: u32) -> String {
    format!("attempt/{}/{}/{round}", task.build, task.id)
}

/// A conversation about a task.
struct Round {
    /// Counts tries, from 1, as the script and the journal do.
    number: u32,
    refused: Vec<RefusedTry>,
    /// The first try of it; none where nobody began it.
    since: Option<u32>,
    /// Whether its try is begun already: it was cut off after it was sent back, or what it made goes to the gate again as it is.
    goes_on: bool,
    /// Whether a model has replied in it before.
    resumes: bool,
    /// What it came to so far, where it is taken up: whoever goes through it again comes to that again.
    made: Vec<CommitId>,
    /// How long the task rested since somebody who held it could not go on.
    rested: Option<TimeDelta>,
}

/// Finds the conversation that an attempt goes on with: a new one where the last came to an end of its own.
async fn round(context: &Context, task: &Task) -> Result<Round, BuilderError> {
    let attempts = attempts_at(&context.store, task.build, &task.id).await?;
    let refused_in = |round: u32| {
        let same = attempts.iter().filter(move |one| one.round == round);
        same.flat_map(|one| one.tries.iter().cloned())
    };
    let ended = attempts.iter().filter(|attempt| was_last(attempt));
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX - 1);
    let tried = ended
        .clone()
        .map(|attempt| attempt.round + count(refused_in(attempt.round).count()))
        .max();
    // Attempts of before rounds were stored count one by one.
    let next = tried.unwrap_or_default().max(count(ended.count())) + 1;
    // What was begun once goes on, whatever was counted before it.
    let open = attempts.iter().filter(|attempt| !was_last(attempt));
    let begun = open.map(|attempt| attempt.round).max();
    let number = next.max(begun.unwrap_or_default());
    let of_round = attempts.iter().filter(|one| one.round == number);
    let first = format!("{}/1", conversation(task, number));
    let first = context.store.get::<ModelCall>(&first).await?;
    let last = of_round.clone().next_back();
    let is_shown_again = task.regate.is_some() && !task.has_to_hear();
    // A try that has failed is no more begun.
    let mut failures = task.earlier_failures.iter().chain(&task.failures);
    let is_over = failures.any(|failure| failure.attempt == task.attempts);
    let was_sent_back = last.is_some_and(|one| !one.tries.is_empty());
    // Several may have the same number. Whoever is to rest and has not failed was kept from going on.
    let newest = of_round.clone().max_by_key(|one| one.started_at);
    let ended_at = newest.and_then(|one| one.ended_at);
    let rested = task.not_before.zip(ended_at).filter(|_| !is_over);
    let made = of_round.clone().filter(|_| first.is_some());
    let made = made.flat_map(|one| {
        let tried = one.tries.iter().map(|tried| &tried.candidate);
        one.candidate.iter().chain(tried)
    });
    Ok(Round {
        made: made.cloned().collect(),
        number,
        refused: refused_in(number).collect(),
        since: of_round.map(|one| one.number).min(),
        goes_on: !is_over && (is_shown_again || was_sent_back),
        resumes: first.is_some(),
        rested: rested.map(|(until, since)| until - since),
    })
}

/// Says whether an attempt was the last of its conversation: it failed with what nobody mends by waiting, or somebody meant to end
/// what was tried. A crash ends no conversation.
fn was_last(attempt: &Attempt) -> bool {
    let has_failed = attempt.state == AttemptState::Failed;
    match &attempt.failure {
        Some(failure) => !has_failed || failure::ends_conversation(failure.class),
        None => has_failed,
    }
}

async fn claim(
    shared: &SharedState,
    context: &Context,
    build: &Versioned<Build>,
    task: &Versioned<Task>,
    (request, obstacles): (&LockRequest, &Obstacles),
    (base, round): (CommitId, &Round),
) -> Result<(ChangeSet, Task, Attempt, Vec<Predecessor>), BuilderError> {
    let now = context.now();
    let mut changes = ChangeSet::new();
    // A pause, a stop or a landing in between makes this claim void.
    changes.require(build);
    let attempt = Attempt {
        id: request.holder.attempt,
        build: build.id,
        task: task.id.clone(),
        number: task.attempts + u32::from(!round.goes_on),
        round: round.number,
        tries: Vec::new(),
        loop_name: context.source().clone(),
        state: AttemptState::Working,
        token: 0,
        base,
        candidate: None,
        preserve_ref: None,
        granted: Vec::new(),
        gotchas: Vec::new(),
        failure: None,
        summary: None,
        tokens: 0,
        started_at: now,
        ended_at: None,
    };
    let input = Input::Claim {
        attempt: attempt.id,
        goes_on: round.goes_on,
        resumes: round.resumes,
    };
    let mut claimed = Scene::new(shared, context, build)
        .task(&mut changes, task, input)
        .await?;
    // A conversation that is gone through again finds the checkout as it was when it began.
    let kept = claimed.resume_from.as_ref();
    if kept.is_some_and(|kept| round.made.contains(kept)) {
        claimed.resume(None);
    }
    changes.update(task, &claimed);
    changes.insert(&attempt);
    locks::acquire(&mut changes, request, now);
    let after = obstacles.take(&mut changes, now);
    Ok((changes, claimed, attempt, after))
}
