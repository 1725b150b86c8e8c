//! Makes a revision of a plan: what the program knows in the place of guesses, its documents, and the question whether to build.

use std::collections::BTreeSet;

use ropewalk_config::Trigger;
use ropewalk_desk::specifications::approval_told;
use ropewalk_orchestrator::questions::{self, QuestionRequest};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::amendment::{forget_owners, owner_note};
use ropewalk_schemas::document::tasks_md::Progress;
use ropewalk_schemas::document::{self, DocumentError, spec_md, tasks_md};
use ropewalk_schemas::payload::SpecGenerated;
use ropewalk_schemas::question::{About, Content};
use ropewalk_schemas::specification::{Document, Price, Revision, SpecState, Specification};
use ropewalk_schemas::task::{Action, GotchaReference, TaskBlock, TaskState};
use ropewalk_schemas::{Payload, RepoPath, Subject};
use ropewalk_store::ChangeSet;

use super::one_line;
use crate::failure;
use crate::idea_folder::{SPEC, TASKS};
use crate::specification::context::Material;
use crate::specification::submission::Plan;
use crate::specification::{SpecificationOptions, lessons, order, price};

/// Makes a revision of a checked plan.
pub(super) async fn generate(
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
    let kept = material.facts.kept(&document, &tasks);
    let revision = Revision {
        spec: material.spec.id,
        number: material.spec.next_revision(),
        hash: document::hash(&document, &tasks),
        document,
        tasks,
        kept: kept.into_iter().collect(),
        validation: plan.warnings,
        dry_run: plan.dry_run,
        answers: material.answered.clone(),
        at: now,
    };
    let price = price::estimate(&to_read(&revision, material), &material.history);
    let spec = Specification {
        state: SpecState::Generated,
        revision: revision.number,
        hash: Some(revision.hash.clone()),
        price: Some(price.clone()),
        reason: None,
        updated_at: now,
        ..material.spec.record.clone().with_all_fulfilled()
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

/// Lists how long the files are that each task has to read which is not done yet, as far as they are there.
fn to_read(revision: &Revision, material: &Material) -> Vec<Vec<u64>> {
    let to_do = revision.tasks.iter();
    let to_do = to_do.filter(|task| !revision.kept.contains(&task.id));
    let sizes = |task: &TaskBlock| -> Vec<u64> {
        let files: BTreeSet<&RepoPath> = task.files().chain(&task.read_first).collect();
        let sizes = files.into_iter().map(|file| material.look.bytes_of(file));
        sizes.flatten().collect()
    };
    to_do.map(sizes).collect()
}

/// Says in a task which other build owns a file that it changes; what an earlier revision said of that is forgotten.
fn name_owners(tasks: &mut [TaskBlock], material: &Material) {
    for task in tasks {
        forget_owners(task);
        if task.action == Action::Verify {
            continue;
        }
        let owned = task.files().filter_map(|file| {
            let owner = material.owners.get(&file.key())?;
            Some(owner_note(file, *owner))
        });
        let notes = task.notes.iter().cloned().chain(owned);
        let notes = notes.collect::<Vec<_>>().join("\n");
        task.notes = Some(notes).filter(|notes| !notes.is_empty());
    }
}

/// Puts facts in the place of what a model would have to guess.
fn complete(document: Document, tasks: &[TaskBlock], material: &Material) -> Document {
    // Where they lie in the repository, which may have a README.md of its own.
    let folder = RepoPath::of_idea(&material.spec.idea);
    let read = material.documents.iter();
    let read = read.map(|document| format!("{folder}/{}", document.path));
    let missing = material.missing_inputs.iter();
    let missing = missing.map(|path| format!("{folder}/{path}"));
    let conventions = material
        .conventions
        .as_ref()
        .map(|found| found.path.clone());
    let mut document = Document {
        title: one_line(&document.title),
        context_read: read.chain(conventions).collect(),
        missing_inputs: missing.collect(),
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
    let tasks = with_progress(&tasks, material, revision).map_err(AgentError::permanent)?;
    let spec = spec_md::render(&spec_md::SpecHeader::from(spec), &revision.document);
    for (path, text) in [(SPEC, spec), (TASKS, tasks)] {
        material
            .folder
            .write(path, &text)
            .map_err(|error| failure::of_folder(&error))?;
    }
    Ok(())
}

/// Says in tasks.md what has landed already.
fn with_progress(
    tasks: &str,
    material: &Material,
    revision: &Revision,
) -> Result<String, DocumentError> {
    let standing = material.facts.standing.as_ref();
    let mut document = tasks_md::parse(tasks)?;
    for task in &revision.kept {
        let landed = Progress {
            status: TaskState::Complete,
            completed_at: standing.and_then(|standing| standing.landed_at(task)),
            ..Progress::PENDING
        };
        document.set_status(task, &landed)?;
    }
    Ok(document.to_string())
}

/// Asks whether to build: the question shows the hash that a yes approves, and the price.
fn whether_to_build(
    options: &SpecificationOptions,
    spec: &Specification,
    revision: &Revision,
    price: &Price,
) -> Result<QuestionRequest, AgentError> {
    let risks = match revision.document.risks.as_slice() {
        [] => "none named".to_owned(),
        risks => risks.join("; "),
    };
    let values = [
        ("task_count", revision.tasks.len().to_string()),
        ("complexity", spec.complexity.as_str().to_owned()),
        ("risks", risks),
    ];
    let draft = options
        .templates
        .render(Trigger::SpecComplete, &values.into())
        .map_err(AgentError::permanent)?;
    let context = format!(
        "{}\nRevision {}, hash {}, expected cost {}.\n{}",
        draft.context,
        revision.number,
        revision.hash,
        Price::in_words(Some(price)),
        approval_told(revision)
    );
    let about = About::Specification { spec: spec.id };
    Ok(QuestionRequest {
        context,
        content: Some(Content::Revision {
            revision: revision.number,
            hash: revision.hash.clone(),
        }),
        ..QuestionRequest::of(draft, about, Some(&spec.idea))
    })
}
