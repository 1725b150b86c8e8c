//! Writes a specification and says what changes.

use std::sync::Arc;

use ropewalk_config::Trigger;
use ropewalk_desk::specifications::{self, RequestError};
use ropewalk_engine::Silent;
use ropewalk_orchestrator::questions::{self, Asked, Asking};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::amendment::without_owners;
use ropewalk_schemas::document::{self, spec_md, tasks_md};
use ropewalk_schemas::payload::{IdeationCompleted, SpecGenerated, SpecRejected};
use ropewalk_schemas::question::{About, Content};
use ropewalk_schemas::specification::{
    Complexity, Document, Price, Revision, SpecState, Specification,
};
use ropewalk_schemas::task::{Action, GotchaReference, TaskBlock};
use ropewalk_schemas::{Payload, SpecId, Subject};
use ropewalk_store::{ChangeSet, Versioned};
use ropewalk_workspace::FileLock;
use tokio_util::sync::CancellationToken;

use super::context::{self, Loaded, Material};
use super::submission::{Draft, Plan, Submitted};
use super::{SpecificationOptions, dry_run, lessons, order, price, prompt};
use crate::failure;
use crate::idea_folder::{SPEC, TASKS};
use crate::model_question::ModelQuestion;

/// So often what trying the checks showed goes back to the model.
const DRY_RUNS: u32 = 2;
/// So many warnings stand in the question whether to build.
const WARNINGS: usize = 12;

/// Writes the next revision of a specification that is asked for.
pub(super) async fn requested(
    options: &SpecificationOptions,
    id: SpecId,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let alone = alone(options, id).await?;
    write(options, id, context, &alone).await
}

/// Waits until nobody writes the specification `id`, in any process: two who write it at once pay for the same call.
pub(super) async fn alone(
    options: &SpecificationOptions,
    id: SpecId,
) -> Result<FileLock, AgentError> {
    let places = &options.places;
    std::fs::create_dir_all(places.specification_locks()).map_err(AgentError::transient)?;
    FileLock::wait(&places.specification_lock(id))
        .await
        .map_err(AgentError::transient)
}

/// Writes the next revision of a specification that is a draft; any other stays as it is.
pub(super) async fn write(
    options: &SpecificationOptions,
    id: SpecId,
    context: &Context,
    _alone: &FileLock,
) -> Result<ChangeSet, AgentError> {
    let material = match context::load(options, id, context).await? {
        Loaded::Nothing => return Ok(ChangeSet::new()),
        Loaded::Missing(spec, absent) => {
            return Ok(refuse(context, &spec, &missing(&spec, &absent)));
        }
        Loaded::Ready(material) => material,
    };
    match draft(options, &material).await? {
        Ok(Submitted::Question(question)) => ask_first(options, context, &material, question).await,
        Ok(Submitted::Plan(plan)) => generate(options, context, &material, *plan).await,
        Err(reason) => Ok(refuse(context, &material.spec, &reason)),
    }
}

/// Lets the model hand in a plan, and tells it what trying its checks showed; the error says why there is none.
///
/// A plan that it will not mend goes on to people with what was found: they can read it, and a refusal would leave them nothing.
async fn draft(
    options: &SpecificationOptions,
    material: &Material,
) -> Result<Result<Submitted, String>, AgentError> {
    let stands = material.previous.as_ref().map(prompt::stands);
    let draft = Arc::new(Draft::new(material.facts.clone(), stands));
    let job = prompt::job(&options.prompts, material, &draft, options.repairs)?;
    let mut session = options
        .engine
        .open(&job)
        .map_err(|error| failure::of_job(&error))?;
    let mut handed_in: Option<Box<Plan>> = None;
    for dry_runs in 0.. {
        let outcome = session.run(&CancellationToken::new(), &Silent).await;
        match (outcome, handed_in.take()) {
            (Ok(_), _) => {}
            (Err(error), _) if failure::may_pass(&error) => return Err(failure::of_job(&error)),
            (Err(_), Some(plan)) => return Ok(Ok(Submitted::Plan(plan))),
            (Err(error), None) => return Ok(Err(one_line(&error.to_string()))),
        }
        let mut plan = match draft.taken() {
            Some(Submitted::Plan(plan)) => plan,
            Some(question) => return Ok(Ok(question)),
            None => break,
        };
        // What is kept has passed its check where it landed.
        let kept = material.facts.kept(&plan.document, &plan.tasks);
        let open = plan.tasks.iter().filter(|task| !kept.contains(&task.id));
        let open: Vec<&TaskBlock> = open.collect();
        let dry = dry_run::run(options, &material.look.commit, &open).await;
        plan.warnings.extend(dry.notes);
        plan.warnings.extend(dry.faults.iter().cloned());
        if dry.faults.is_empty() || dry_runs == DRY_RUNS {
            return Ok(Ok(Submitted::Plan(plan)));
        }
        session.send_back(&format!(
            "not accepted; the checks were tried on the repository as it is. Mend this and call again, with `amends` for what changes alone: {}",
            dry.faults.join("; ")
        ));
        handed_in = Some(plan);
    }
    Ok(Err("the model handed in nothing".to_owned()))
}

/// Asks for the specification of an idea whose ideation is complete, unless somebody has asked for it already.
pub(super) async fn on_ideation_completed(
    options: &SpecificationOptions,
    completed: &IdeationCompleted,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    if !options.auto_generate || !completed.ready_for_spec {
        return Ok(changes);
    }
    let (idea, by) = (&completed.idea_slug, &completed.user_slug);
    match specifications::add_request(&mut changes, context, idea, by, Complexity::Medium).await {
        Ok(_) => Ok(changes),
        Err(RequestError::OnItsWay { .. } | RequestError::Abandoned(_)) => Ok(ChangeSet::new()),
        Err(RequestError::Read(error)) => Err(error.into()),
        Err(error) => Err(AgentError::permanent(error)),
    }
}

fn missing(spec: &Specification, absent: &[&str]) -> String {
    format!(
        "a specification needs {}; write {}, or go on with `ropewalk idea chat {}`",
        absent.join(" and "),
        if absent.len() == 1 { "it" } else { "them" },
        spec.idea
    )
}

/// Says that the specification cannot be made, and why.
fn refuse(context: &Context, spec: &Versioned<Specification>, reason: &str) -> ChangeSet {
    let mut changes = ChangeSet::new();
    let reason: String = reason.chars().take(4_000).collect();
    changes.update(
        spec,
        &Specification {
            state: SpecState::Rejected,
            reason: Some(reason.clone()),
            updated_at: context.now(),
            ..spec.record.clone()
        },
    );
    changes.emit(context.event(
        Subject::specification(spec.id),
        Payload::SpecRejected(SpecRejected {
            spec_id: spec.id,
            idea_slug: spec.idea.clone(),
            rejected_by: context.source().to_string(),
            reason,
        }),
    ));
    changes
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Puts a question that has to be answered before there can be a plan; the draft waits for the answer.
async fn ask_first(
    options: &SpecificationOptions,
    context: &Context,
    material: &Material,
    question: ModelQuestion,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let spec = &material.spec;
    let asking = question.asking(About::Specification { spec: spec.id }, &spec.idea);
    match questions::ask(&mut changes, context, &options.deadlines, asking).await? {
        Asked::Open(_) => {
            changes.update(
                spec,
                &Specification {
                    updated_at: context.now(),
                    ..spec.record.clone()
                },
            );
            Ok(changes)
        }
        // The answer was in what the model read; to ask again would go on for ever.
        Asked::Reused(answer) => {
            let reason = format!(
                "the model asks again what was answered with `{}`",
                answer.text
            );
            Ok(refuse(context, spec, &reason))
        }
    }
}

/// Makes a revision of a checked plan.
async fn generate(
    options: &SpecificationOptions,
    context: &Context,
    material: &Material,
    plan: Plan,
) -> Result<ChangeSet, AgentError> {
    let now = context.now();
    let mut tasks = order::ordered(plan.tasks, &material.stack.phases);
    name_owners(&mut tasks, material);
    let lessons = lessons::inject(
        &context.store,
        material.spec.id,
        &mut tasks,
        &options.lessons,
        now,
    )
    .await?;
    let document = complete(plan.document, &tasks, material);
    let revision = Revision {
        spec: material.spec.id,
        number: material.spec.revision + 1,
        hash: document::hash(&document, &tasks),
        document,
        tasks,
        validation: plan.warnings,
        answers: material.answered.clone(),
        at: now,
    };
    let kept = material.facts.kept(&revision.document, &revision.tasks);
    let price = price::estimate(revision.tasks.len() - kept.len(), &material.history);
    let spec = Specification {
        state: SpecState::Generated,
        revision: revision.number,
        hash: Some(revision.hash.clone()),
        price: Some(price.clone()),
        reason: None,
        updated_at: now,
        ..material.spec.record.clone()
    };
    write_documents(material, &spec, &revision)?;
    let mut changes = lessons.changes;
    changes.update(&material.spec, &spec);
    changes.insert(&revision);
    changes.emit(context.event(
        Subject::specification(spec.id),
        Payload::SpecGenerated(SpecGenerated {
            spec_id: spec.id,
            idea_slug: spec.idea.clone(),
            user_slug: Some(spec.user.clone()),
            revision: revision.number,
            hash: revision.hash.clone(),
            task_count: count(revision.tasks.len()),
            estimated_complexity: spec.complexity,
            gotchas_injected: count(lessons.carried),
        }),
    ));
    let mut asked = vec![whether_to_build(options, &spec, &revision, &price)?];
    asked.extend(
        plan.question
            .map(|question| question.asking(About::Specification { spec: spec.id }, &spec.idea)),
    );
    for asking in asked {
        questions::ask(&mut changes, context, &options.deadlines, asking).await?;
    }
    Ok(changes)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Says in a task which other build owns a file that it changes.
fn name_owners(tasks: &mut [TaskBlock], material: &Material) {
    for task in tasks
        .iter_mut()
        .filter(|task| task.action != Action::Verify)
    {
        let before = task.notes.take().unwrap_or_default();
        let kept = without_owners(&before).map(str::to_owned);
        let owned = task.files().filter_map(|file| {
            let owner = material.owners.get(&file.key())?;
            Some(format!("`{file}` is owned by build {owner}."))
        });
        let notes = kept.chain(owned).collect::<Vec<_>>().join("\n");
        task.notes = Some(notes).filter(|notes| !notes.is_empty());
    }
}

/// Puts facts in the place of what a model would have to guess.
fn complete(document: Document, tasks: &[TaskBlock], material: &Material) -> Document {
    let read = material
        .documents
        .iter()
        .map(|document| document.path.to_owned());
    let conventions = material.conventions.as_ref().map(|(name, _)| name.clone());
    let mut document = Document {
        title: one_line(&document.title),
        context_read: read.chain(conventions).collect(),
        missing_inputs: material.missing_inputs.clone(),
        gotchas: lessons_of(tasks),
        ..document
    };
    for plan in document
        .new_files
        .iter_mut()
        .chain(&mut document.modified_files)
    {
        plan.owner = material
            .owners
            .get(&plan.path.key())
            .map(ToString::to_string);
    }
    document
}

/// Lists the lessons of all tasks, each once.
fn lessons_of(tasks: &[TaskBlock]) -> Vec<GotchaReference> {
    let mut lessons: Vec<GotchaReference> = Vec::new();
    for lesson in tasks.iter().flat_map(|task| &task.gotchas) {
        if !lessons.contains(lesson) {
            lessons.push(lesson.clone());
        }
    }
    lessons
}

/// Writes spec.md and tasks.md before the commit: whoever sees the event finds the files.
fn write_documents(
    material: &Material,
    spec: &Specification,
    revision: &Revision,
) -> Result<(), AgentError> {
    let tasks = tasks_md::render(&tasks_md::TasksPlan {
        id: spec.id,
        title: &revision.document.title,
        spec_version: revision.number,
        context: &revision.document.context_read,
        tasks: &revision.tasks,
    });
    let spec = spec_md::render(&spec_md::SpecHeader::from(spec), &revision.document);
    for (path, text) in [(SPEC, spec), (TASKS, tasks)] {
        material
            .folder
            .write(path, &text)
            .map_err(|error| failure::of_folder(&error))?;
    }
    Ok(())
}

/// Asks whether to build: the question shows the hash that a yes approves, and the price.
fn whether_to_build(
    options: &SpecificationOptions,
    spec: &Specification,
    revision: &Revision,
    price: &Price,
) -> Result<Asking, AgentError> {
    let risks = match revision.document.risks.as_slice() {
        [] => "none named".to_owned(),
        risks => risks.join("; "),
    };
    let values = [
        ("task_count", revision.tasks.len().to_string()),
        ("complexity", prompt::name_of(spec.complexity).to_owned()),
        ("risks", risks),
    ];
    let draft = options
        .templates
        .render(Trigger::SpecComplete, &values.into())
        .map_err(AgentError::permanent)?;
    let context = format!(
        "{}\nRevision {}, hash {}, expected cost {}.{}",
        draft.context,
        revision.number,
        revision.hash,
        told(price),
        noted(&revision.validation)
    );
    let about = About::Specification { spec: spec.id };
    Ok(Asking {
        context,
        content: Some(Content::Revision {
            revision: revision.number,
            hash: revision.hash.clone(),
        }),
        ..Asking::of(draft, about, Some(&spec.idea))
    })
}

/// Lists what was found in the plan and not mended, so that nobody approves it unseen.
fn noted(warnings: &[String]) -> String {
    let mut lines: Vec<String> = warnings
        .iter()
        .take(WARNINGS)
        .map(|warning| format!("warning: {warning}"))
        .collect();
    let more = warnings.len().saturating_sub(WARNINGS);
    if more > 0 {
        lines.push(format!("and {more} more warnings"));
    }
    lines.iter().flat_map(|line| ["\n", line]).collect()
}

/// Tells a price in words.
fn told(price: &Price) -> String {
    let cents = |micro_usd: u64| {
        format!(
            "{}.{:02}",
            micro_usd / 1_000_000,
            micro_usd % 1_000_000 / 10_000
        )
    };
    let dollars = match (price.micro_usd_low, price.micro_usd_high) {
        (Some(low), Some(high)) => format!(", ${} to ${}", cents(low), cents(high)),
        _ => ", price in dollars unknown".to_owned(),
    };
    format!(
        "{} to {} tokens{dollars} ({})",
        price.tokens_low, price.tokens_high, price.basis
    )
}
