//! Reviews a build, once for each end to which it comes.

use std::time::Duration;

use ropewalk_engine::{AgentMode, EngineError, SilentObserver};
use ropewalk_knowledge::decide::{FAILURE_SEEN, MERELY_TOLD};
use ropewalk_knowledge::{Draft, RecordOutcome, record, similarity};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::review::{Divergence, Review, ReviewKind};
use ropewalk_schemas::{BuildId, KnowledgeId, RepoPath, RequirementId, ReviewId, Subject, TaskId};
use ropewalk_store::ChangeSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::ledger::Ledger;
use super::{completed, lessons};
use crate::failure;
use crate::improvement::context::{self, BuildChanges, ReviewedBuild, Successor};
use crate::improvement::decide::{self, TaskFacts};
use crate::improvement::findings::{self, Difference, Findings, Lesson};
use crate::improvement::{ImprovementOptions, prompt};
use crate::repository::ReadingTools;

/// What is noted of a build of which a model has nothing to read.
const UNBEGUN: &str = "no task was begun before it was stopped, so that no model was asked";
/// A lesson that one build taught is not surer than this.
const SUREST_PATTERN: f64 = 0.85;

/// Reviews a build; an end that has a review gets no second one.
pub(super) async fn build(
    options: &ImprovementOptions,
    build: BuildId,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let reviewed = context::build(&context.store, build).await?;
    let Some(reviewed) = reviewed.filter(|reviewed| !reviewed.is_reviewed()) else {
        return Ok(changes);
    };
    let mut notes: Vec<String> = reviewed.whole_check().into_iter().collect();
    let difference = difference(options, &reviewed, &mut notes).await;
    let findings = if reviewed.is_unbegun() {
        notes.push(UNBEGUN.to_owned());
        None
    } else {
        interpretation(options, &reviewed, difference.as_ref(), &mut notes).await?
    };
    // What was left out is to be read at the next end.
    let is_whole = |changed: &BuildChanges| changed.shown.left_out == 0;
    let is_read = findings.is_some() && difference.as_ref().is_some_and(is_whole);
    let findings = findings.unwrap_or_default();
    let mut ledger = Ledger::open(reviewed.lessons.iter().chain(&reviewed.carried));
    let gotchas = lessons::confirm(&mut ledger, &reviewed, context.now());
    let prevented = lessons::weigh(&mut ledger, &reviewed, context.now(), &mut notes);
    lessons::write_down_uses(&mut changes, &reviewed);
    let mut review = Review {
        id: ReviewId(context.ids.next()),
        kind: ReviewKind::Build,
        idea: reviewed.build.idea.clone(),
        build: Some(build),
        spec: Some(reviewed.build.spec),
        gotchas,
        patterns: Vec::new(),
        divergences: divergences(&reviewed, difference.as_ref(), &findings),
        metrics: metrics(&reviewed, prevented),
        notes,
        ended_at: reviewed.build.completed_at,
        head: reviewed.build.head.clone().filter(|_| is_read),
        at: context.now(),
    };
    learn(&mut ledger, &mut review, &reviewed, findings, context).await?;
    keep_former(&mut review, &reviewed);
    compare(&mut review, &reviewed);
    let improvements = ledger.close(&mut changes, context);
    completed(
        &mut changes,
        context,
        Subject::build(build),
        &review,
        improvements,
    );
    let lessons = counted(improvements, "lesson");
    let objections = told_objections(&review, build);
    info!(build.id = %build, "reviewed build `{build}`: {lessons} changed{objections}");
    Ok(changes)
}

/// Says how much a review holds against its build, and what shows it; nothing where there is nothing.
fn told_objections(review: &Review, build: BuildId) -> String {
    let parts = [
        (review.missed(), "requirement", "missed"),
        (review.deviations(), "thing", "worse than planned"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let told: Vec<String> = parts
        .map(|(count, noun, what)| format!("{} for {what}", counted(count, noun)))
        .collect();
    match told.as_slice() {
        [] => String::new(),
        told => format!(
            "; it holds {}: `ropewalk review show {build}`",
            told.join(" and ")
        ),
    }
}

/// Reads what changed; a build without commits, or a clone that cannot be read, is noted and no more.
async fn difference(
    options: &ImprovementOptions,
    reviewed: &ReviewedBuild,
    notes: &mut Vec<String>,
) -> Option<BuildChanges> {
    let most = prompt::diff_bytes(options.engine.models().window_tokens(prompt::ROLE));
    match context::changed(options.repository.local_clone(), reviewed, most).await {
        Ok(Some(changed)) => Some(changed),
        Ok(None) => {
            notes.push("the build made no commits".to_owned());
            None
        }
        Err(error) => {
            notes.push(format!("what changed could not be read: {error}"));
            None
        }
    }
}

/// Asks a model what rules cannot see; none where none answered. No failure of it may lose the review.
async fn interpretation(
    options: &ImprovementOptions,
    reviewed: &ReviewedBuild,
    changed: Option<&BuildChanges>,
    notes: &mut Vec<String>,
) -> Result<Option<Findings>, AgentError> {
    let reading = reading(options, reviewed).await;
    let tools = reading.as_ref().map(|reading| reading.tools.clone());
    let asked = match prompt::job(&options.prompts, (reviewed, changed), tools) {
        Ok(job) => {
            let (engine, never) = (&options.engine, CancellationToken::new());
            match engine.run(&job, &never, &SilentObserver).await {
                Ok(outcome) => findings::read(&outcome.submission.unwrap_or_default())
                    .map_err(|errors| errors.join("; ")),
                // It comes back by itself, so the review waits.
                Err(error @ EngineError::Outage(_)) => return Err(failure::of_job(&error)),
                Err(error) => Err(error.to_string()),
            }
        }
        Err(reason) => Err(reason),
    };
    Ok(asked
        .inspect_err(|reason| {
            notes.push(format!(
                "reviewed by rules alone, without a model: {reason}"
            ));
        })
        .ok())
}

/// Lets the model look at what the build left. One that left nothing, or cannot be checked out, is judged by what is told.
async fn reading(options: &ImprovementOptions, reviewed: &ReviewedBuild) -> Option<ReadingTools> {
    let head = reviewed.build.head.as_ref()?;
    // What was planned stands in what it is told.
    let ideas = RepoPath::parse(decide::IDEAS).ok();
    let repository = &options.repository;
    let reading = repository.tools_at(AgentMode::Review, head, ideas.as_ref());
    reading
        .await
        .inspect_err(|error| warn!("the review cannot look at `{head}`: {error}"))
        .ok()
}

fn divergences(
    reviewed: &ReviewedBuild,
    changed: Option<&BuildChanges>,
    findings: &Findings,
) -> Vec<Divergence> {
    let files = changed.map_or(&[][..], |changed| changed.files.as_slice());
    let mut plan = reviewed.plan();
    if changed.is_none() {
        // Nothing is known of the files, so only what became of the tasks is told.
        plan.retain(|task| task.state != ropewalk_schemas::task::TaskState::Complete);
    }
    let mut seen: Vec<Divergence> = findings.divergences.iter().map(divergence).collect();
    if reviewed.successor.is_some() {
        seen.retain(|one| !Successor::excuses(one, &reviewed.tasks));
    }
    decide::interpreted(decide::divergences(&plan, files), seen)
}

/// Keeps what the review of an earlier end found; what it held against the build is told to the model, which says what still holds.
fn keep_former(review: &mut Review, reviewed: &ReviewedBuild) {
    for before in &reviewed.before {
        for id in &before.patterns {
            add(&mut review.patterns, Some(*id));
        }
        for id in &before.gotchas {
            add(&mut review.gotchas, Some(*id));
        }
    }
}

fn divergence(seen: &Difference) -> Divergence {
    Divergence {
        class: seen.class,
        file: seen.file.clone(),
        task: seen
            .task
            .as_deref()
            .and_then(|task| TaskId::parse(task).ok()),
        requirement: seen
            .requirement
            .as_deref()
            .and_then(|requirement| RequirementId::parse(requirement).ok()),
        planned: seen.planned.clone(),
        actual: seen.actual.clone(),
    }
}

fn metrics(reviewed: &ReviewedBuild, prevented: usize) -> std::collections::BTreeMap<String, f64> {
    let build = &reviewed.build;
    let facts: Vec<TaskFacts> = reviewed
        .tasks
        .iter()
        .map(|task| reviewed.facts(task))
        .collect();
    let elapsed = build
        .started_at
        .zip(build.completed_at)
        .and_then(|(start, end)| (end - start).to_std().ok())
        .unwrap_or_default();
    decide::metrics(
        &facts,
        elapsed,
        Duration::from_millis(build.working_ms),
        prevented,
    )
}

/// Records what the model found. What it calls a mistake where nothing failed has to be seen again before a task is told of it.
async fn learn(
    ledger: &mut Ledger,
    review: &mut Review,
    reviewed: &ReviewedBuild,
    findings: Findings,
    context: &Context,
) -> Result<(), AgentError> {
    let failed = reviewed
        .tasks
        .iter()
        .any(|task| reviewed.failed(&task.id).next().is_some());
    let mut told: Vec<String> = Vec::new();
    let surest = if failed { FAILURE_SEEN } else { MERELY_TOLD };
    let gotchas = findings.gotchas.into_iter();
    let gotchas = gotchas.map(|lesson| (KnowledgeKind::Gotcha, lesson, surest));
    let patterns = findings.patterns.into_iter();
    let patterns = patterns.map(|lesson| (KnowledgeKind::Pattern, lesson, SUREST_PATTERN));
    for (kind, lesson, most) in gotchas.chain(patterns) {
        let words = similarity::normalise(&lesson.content);
        if told.contains(&words) {
            continue;
        }
        told.push(words);
        let draft = draft(reviewed, kind, lesson, most, context);
        let id = KnowledgeId(context.ids.next());
        let recorded = record(&context.store, draft, id, context.now()).await?;
        match (&recorded.outcome, kind) {
            (RecordOutcome::Refused(why), _) => review
                .notes
                .push(format!("not remembered: {}", Words::of(why))),
            (outcome, KnowledgeKind::Pattern) => add(&mut review.patterns, outcome.item()),
            (outcome, _) => add(&mut review.gotchas, outcome.item()),
        }
        ledger.record(recorded);
    }
    review.notes.extend(findings.notes);
    Ok(())
}

fn add(ids: &mut Vec<KnowledgeId>, id: Option<KnowledgeId>) {
    if let Some(id) = id.filter(|id| !ids.contains(id)) {
        ids.push(id);
    }
}

fn draft(
    reviewed: &ReviewedBuild,
    kind: KnowledgeKind,
    lesson: Lesson,
    most: f64,
    context: &Context,
) -> Draft {
    let build = &reviewed.build;
    Draft {
        kind,
        content: lesson.content,
        globs: lesson.globs,
        action: lesson.action,
        topics: lesson.topics,
        confidence: lesson.confidence.min(most),
        execution: build.id.to_string(),
        idea: Some(build.idea.clone()),
        evidence: vec![format!("build/{}", build.id)],
        discovered_by: context.source().clone(),
        from_person: false,
    }
}

/// Notes how the build compares with those before it.
fn compare(review: &mut Review, reviewed: &ReviewedBuild) {
    const SHARE: &str = "first_pass_success";
    let before: Vec<f64> = reviewed
        .earlier
        .iter()
        .filter_map(|earlier| earlier.metrics.get(SHARE).copied())
        .collect();
    let Ok(count) = u32::try_from(before.len()) else {
        return;
    };
    if let (1.., Some(now)) = (count, review.metrics.get(SHARE)) {
        let average = before.iter().sum::<f64>() / f64::from(count);
        let builds = counted(count, "build");
        review.notes.push(format!(
            "first-pass success {now:.2}, against {average:.2} on average in the {builds} before"
        ));
    }
}
