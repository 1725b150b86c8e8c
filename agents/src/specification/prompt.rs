//! Builds the job of one specification: what the model is told within its budget, and what it has to submit.

use std::sync::Arc;

use ropewalk_config::{Prompt, Prompts};
use ropewalk_desk::attachments;
use ropewalk_engine::llm::{Message, ScriptKey};
use ropewalk_engine::{
    Amendable, ContextBuilder, Job, Limits, ModelRole, SectionKind, Submission, UsageScope,
};
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::amendment::forget_owners;
use ropewalk_schemas::clip;
use ropewalk_schemas::document::without_mark;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::specification::Revision;
use serde_json::{Value, json};

use super::context::{Material, Text};
use super::standing::BaseBuild;
use super::submission::{self, Draft, Form};
use super::{migrations, sources, validate};
use crate::idea_folder::{BRIEF, README};

/// The tool that ends the work of the model.
pub(super) const SUBMIT: &str = "specification";
/// How many tokens the sources may take.
const BUDGET_TOKENS: usize = 60_000;
/// How often the model is asked. It reads the code first, as much as it needs.
const TURNS: u32 = 60;
/// How much of one document the model gets to read.
const DOCUMENT_CHARACTERS: usize = 32_000;
/// How much of the revision before it gets to read.
const REVISION_CHARACTERS: usize = 80_000;

/// What was said before about the plan that is being made.
pub(super) struct EarlierDialogue {
    /// The turns, each question with its answer.
    pub(super) turns: Vec<Message>,
    /// Which of the answers stand in them.
    pub(super) answered: Vec<usize>,
    /// What was handed in there so far.
    pub(super) draft: Arc<Draft>,
}

/// Builds the job. What was asked in `earlier` conversations about this plan and answered since stands in them.
pub(super) fn job(
    prompts: &Prompts,
    material: &Material,
    earlier: &EarlierDialogue,
    repairs: u32,
) -> Result<Job, AgentError> {
    let mut messages = vec![Message::user(request(
        prompts,
        material,
        &earlier.answered,
    )?)];
    messages.extend(earlier.turns.iter().cloned());
    let job = exchange(material, &earlier.draft, (said(material), repairs));
    let draft = Arc::clone(&earlier.draft);
    let submission = job.submission.map(|submission| Submission {
        check: Arc::new(move |value| draft.take_with_faults(value)),
        ..submission
    });
    Ok(Job {
        system: system(prompts, material)?,
        messages,
        submission,
        ..job
    })
}

/// Builds what the model is asked and hands its plan in by after people have `said` so much, all but what it is told.
pub(super) fn exchange(
    material: &Material,
    draft: &Arc<Draft>,
    (said, repairs): (usize, u32),
) -> Job {
    let checked = Arc::clone(draft);
    Job {
        journal_key: journal_key(material, said),
        role: ModelRole::Spec,
        script: ScriptKey {
            agent: "specification".to_owned(),
            idea: material.spec.idea.to_string(),
            task: format!("revision-{}", material.spec.next_revision()),
            attempt: 1,
            turn: 1,
        },
        scope: UsageScope {
            idea: Some(material.spec.idea.clone()),
            chain: Some(material.spec.correlation_id),
            ..UsageScope::default()
        },
        system: String::new(),
        messages: Vec::new(),
        tools: material.look.tools.clone(),
        submission: Some(Submission {
            name: SUBMIT.to_owned(),
            description: "Submits the specification, whole or what changes of it, or the one blocking question that has to be answered first."
                .to_owned(),
            schema: submission::schema::<Form>(),
            draft: Some(Arc::clone(draft) as Arc<dyn Amendable>),
            check: Arc::new(move |value| checked.take(value)),
            repairs,
        }),
        limits: Limits { turns: TURNS, ..Limits::default() },
    }
}

/// Counts what people have said to it so far.
pub(super) fn said(material: &Material) -> usize {
    material.spec.feedback.len() + material.answers.len()
}

/// Names the work by all that people have said to it: what was answered from less is not to be replayed.
fn journal_key(material: &Material, said: usize) -> String {
    let spec = &material.spec;
    let key = format!("spec/{}/{}", spec.id, spec.next_revision());
    match said {
        0 => key,
        said => format!("{key}/{said}"),
    }
}

/// What stays as it is from one idea about the repository to the next: a provider keeps what every request begins with.
fn system(prompts: &Prompts, material: &Material) -> Result<String, AgentError> {
    let fits = FittingSources::of(material);
    let conventions = material
        .conventions
        .as_ref()
        .filter(|found| fits.has(&found.path));
    let values = json!({
        "conventions": conventions.map(|found| &found.text),
        "wishes": material.wishes,
        "repository": material.look.told(),
        "ideas": material.ideas,
        "stack": material.stack,
        "submit_tool": SUBMIT,
    });
    prompts
        .render(Prompt::Specification, &values)
        .map_err(AgentError::permanent)
}

/// Lists those documents that fit, each without what another of them says.
fn documents(material: &Material, fits: &FittingSources) -> Vec<Value> {
    let documents: Vec<&Text> = material
        .documents
        .iter()
        .filter(|document| fits.has(&document.path))
        .collect();
    let paths: Vec<&str> = documents
        .iter()
        .map(|document| document.path.as_str())
        .collect();
    let brief = documents.iter().find(|document| document.path == BRIEF);
    let brief = brief.map(|brief| shown(brief));
    let documents = documents.iter().filter_map(|document| {
        let text = match document.path.as_str() {
            README => sources::without_repeated(&shown(document), &paths),
            _ => shown(document),
        };
        // What people attached says what it says, down to the last line.
        let may_repeat = document.path != BRIEF && !is_attached(document);
        let text = match brief.as_deref().filter(|_| may_repeat) {
            Some(brief) => sources::beside_the_brief(&text, brief)?,
            None => text,
        };
        Some(json!({ "path": document.path, "text": text }))
    });
    documents.collect()
}

/// What the model is asked: what the idea is, with what fits of its sources, what people have answered, and what it had written
/// before.
fn request(
    prompts: &Prompts,
    material: &Material,
    answered: &[usize],
) -> Result<String, AgentError> {
    let fits = FittingSources::of(material);
    let answers = material.answers.iter().enumerate();
    let answers = answers.filter(|(index, _)| !answered.contains(index));
    let answers: Vec<Value> = answers
        .map(|(_, (question, answer))| json!({ "question": question, "answer": answer }))
        .collect();
    let previous = material.previous.as_ref().map(|previous| {
        let text = stands(previous).to_string();
        let text = clip::letters(&text, REVISION_CHARACTERS);
        json!({ "number": previous.number, "text": text })
    });
    let lessons = |title: &str, items: &[KnowledgeItem]| -> Vec<Value> {
        let items = if fits.has(title) { items } else { &[] };
        items
            .iter()
            .map(|item| json!({ "text": item.told() }))
            .collect()
    };
    let values = json!({
        "idea": material.idea.title,
        "slug": material.spec.idea,
        "attached": material.documents.iter().any(is_attached),
        "documents": documents(material, &fits),
        "missing_inputs": material.missing_inputs,
        "gotchas": lessons(GOTCHAS, &material.gotchas),
        "patterns": lessons(PATTERNS, &material.patterns),
        "feedback": material.spec.requests(),
        "complexity": material.spec.complexity.as_str(),
        "most_tasks": validate::usual_tasks(material.spec.complexity, material.facts.small),
        "migrations": migrations::next_numbers(&material.facts.migrations),
        "answers": answers,
        "previous": previous,
        "standing": material.facts.standing.as_ref().map(BaseBuild::told),
    });
    prompts
        .render(Prompt::SpecificationIdea, &values)
        .map_err(AgentError::permanent)
}

const GOTCHAS: &str = "gotchas";
const PATTERNS: &str = "patterns";

/// The sources that fit into the budget, by importance.
struct FittingSources {
    titles: Vec<String>,
}

impl FittingSources {
    fn of(material: &Material) -> Self {
        let mut builder = ContextBuilder::new(BUDGET_TOKENS);
        for document in &material.documents {
            let kind = match document.path.as_str() {
                README | BRIEF => SectionKind::Task,
                path if path.starts_with("research/") || is_attached(document) => {
                    SectionKind::Research
                }
                _ => SectionKind::Readme,
            };
            builder = builder.section(kind, &document.path, shown(document));
        }
        if let Some(found) = &material.conventions {
            let (path, text) = (&found.path, found.text.as_str());
            builder = builder.section(SectionKind::Conventions, path, text);
        }
        let contents = |items: &[KnowledgeItem]| {
            items
                .iter()
                .map(KnowledgeItem::told)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let built = builder
            .section(SectionKind::Gotchas, GOTCHAS, contents(&material.gotchas))
            .section(
                SectionKind::Template,
                PATTERNS,
                contents(&material.patterns),
            )
            .build();
        // Half a document misleads: what would have to be cut is left out.
        let whole = |title: &String| built.cut.as_ref() != Some(title);
        Self {
            titles: built
                .included
                .iter()
                .filter(|title| whole(title))
                .cloned()
                .collect(),
        }
    }

    fn has(&self, title: &str) -> bool {
        self.titles.iter().any(|known| known == title)
    }
}

fn is_attached(document: &Text) -> bool {
    let folder = document.path.split_once('/').map(|(folder, _)| folder);
    folder == Some(attachments::FOLDER)
}

fn shown(document: &Text) -> String {
    clip::letters(without_mark(&document.text), DOCUMENT_CHARACTERS).into_owned()
}

/// Returns a revision as a model would hand it in.
pub(super) fn stands(previous: &Revision) -> Value {
    let document = &previous.document;
    let mut tasks = previous.tasks.clone();
    // Whose a file was when it was planned is no word of the planner.
    tasks.iter_mut().for_each(forget_owners);
    for line in tasks.iter_mut().flat_map(|task| &mut task.requirements) {
        let mut whole = document.all_requirements();
        // It need not be said again, and neither is it shown again.
        if whole.any(|one| line.id.as_ref() == Some(&one.id) && line.text == one.text) {
            line.text.clear();
        }
    }
    json!({ "document": submission::shown(document), "tasks": submission::shown(&tasks) })
}
