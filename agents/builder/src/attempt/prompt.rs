//! Makes the job of an attempt: what the model is told, and what it must hand in.

use std::sync::Arc;

use ropewalk_config::{Prompt, PromptError, Prompts};
use ropewalk_engine::llm::{Message, ScriptKey};
use ropewalk_engine::{Job, Limits, ModelRole, Submission, Toolbox, UsageScope};
use ropewalk_schemas::attempt::Failure;
use ropewalk_schemas::{CommitId, Slug};
use ropewalk_workspace::{GitError, LocalClone};
use serde_json::{Value, json};

use super::report::Finished;
use crate::BuildOptions;
use crate::claim::Claim;
use crate::decide::amend::without_owners;

/// The tool that ends an attempt.
const FINISH: &str = "finish";
/// So much of the idea's text goes into a prompt.
const IDEA_LETTERS: usize = 500;
/// So much of the conventions goes into a prompt.
const CONVENTION_LETTERS: usize = 16_000;
/// How often a wrong or missing result is sent back.
const REPAIRS: u32 = 2;

/// What a prompt is made of beside the task.
pub(crate) struct Background {
    /// The conventions of the project, at the build's base.
    pub(crate) conventions: Option<String>,
    /// What the idea is about.
    pub(crate) idea: String,
    /// What came of installing packages in the checkout, if that was tried.
    pub(crate) packages: Option<String>,
    /// What an earlier conversation about the task came to.
    pub(crate) earlier: Option<Earlier>,
}

/// What an earlier conversation about a task left.
pub(crate) struct Earlier {
    /// What its agent said it did.
    pub(crate) summary: Option<String>,
    /// What it changed.
    pub(crate) difference: String,
}

impl Background {
    /// Reads conventions and idea from a commit.
    pub(crate) async fn load(
        clone: &LocalClone,
        base: &CommitId,
        head: &CommitId,
        idea: &Slug,
    ) -> Result<Self, GitError> {
        let folder = format!("ideas/{idea}");
        let documents = [
            format!("{folder}/README.md"),
            format!("{folder}/problem-solution.md"),
            format!("{folder}/planning/brief.md"),
        ];
        let conventions = [(base, "CLAUDE.md"), (base, "AGENTS.md")];
        let ideas = documents.iter().map(|path| (head, path.as_str()));
        let places: Vec<(&CommitId, &str)> = conventions.into_iter().chain(ideas).collect();
        let mut found = clone.read_places(&places).await?;
        let ideas = found.split_off(conventions.len());
        let conventions = found.into_iter().flatten().next();
        let text = ideas.into_iter().flatten().next().unwrap_or_default();
        Ok(Self {
            conventions: conventions
                .map(|text| cut(&String::from_utf8_lossy(&text), CONVENTION_LETTERS)),
            idea: cut(&String::from_utf8_lossy(&text), IDEA_LETTERS),
            packages: None,
            earlier: None,
        })
    }
}

/// Makes the job of an attempt.
pub(crate) fn job(
    prompts: &Prompts,
    options: &BuildOptions,
    claim: &Claim,
    background: &Background,
    gotchas: &[String],
    tools: Toolbox,
) -> Result<Job, PromptError> {
    let task = &claim.task;
    let system = prompts.render(
        Prompt::Build,
        &json!({ "conventions": background.conventions, "submit_tool": FINISH }),
    )?;
    let told = prompts.render(Prompt::BuildTask, &task_values(claim, background, gotchas))?;
    Ok(Job {
        // A crash runs the same work again: what was answered then is answered from the journal.
        journal_key: format!("attempt/{}/{}/{}", task.build, task.id, claim.round),
        role: ModelRole::Build,
        script: ScriptKey {
            agent: "build".to_owned(),
            idea: claim.build.idea.to_string(),
            task: task.id.to_string(),
            attempt: claim.round,
            turn: 0,
        },
        scope: UsageScope {
            idea: Some(claim.build.idea.clone()),
            build: Some(task.build),
            task: Some(task.id.clone()),
        },
        system,
        messages: vec![Message::user(told)],
        tools,
        submission: Some(submission()),
        limits: Limits {
            turns: options.turns,
            total_tokens: options.attempt_tokens,
            ..Limits::default()
        },
    })
}

fn task_values(claim: &Claim, background: &Background, gotchas: &[String]) -> Value {
    let task = &claim.task;
    // What this very conversation was told before it was cut off, it is told in its place again.
    let is_told = |failure: &&Failure| {
        let refused = claim.refused.iter();
        !refused
            .map(|one| one.failure.attempt)
            .any(|number| number == failure.attempt)
    };
    let failures: Vec<Value> = task
        .earlier_failures
        .iter()
        .chain(&task.failures)
        .filter(is_told)
        .map(|failure| json!({ "class": failure.class, "output": failure.error }))
        .collect();
    let gotchas: Vec<Value> = gotchas.iter().map(|text| json!({ "text": text })).collect();
    let mut block = json!(task.block);
    // An absent list and an empty one are the same to a reader.
    if let Some(block) = block.as_object_mut() {
        block.entry("more_files").or_insert_with(|| json!([]));
        if let Some(notes) = &task.block.notes {
            let notes: Vec<&str> = without_owners(notes).collect();
            block.insert("notes".to_owned(), json!(notes.join("\n").trim()));
        }
    }
    json!({
        "task": block,
        "gotchas": gotchas,
        "idea_context": background.idea,
        "failures": failures,
        "guidance": task.guidance,
        "packages": background.packages,
        "resumed": task.resume_from.is_some(),
        "earlier": background.earlier.as_ref().map(|earlier| json!({
            "summary": earlier.summary, "difference": earlier.difference,
        })),
    })
}

fn submission() -> Submission {
    Submission {
        name: FINISH.to_owned(),
        description: "Ends the work on this task. The gate then checks it.".to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "summary": { "type": "string", "minLength": 1,
                    "description": "What you changed, in two or three sentences." },
                "lesson": {
                    "type": "object",
                    "description": "A mistake that you made and mended and that others should avoid, if there was one.",
                    "properties": {
                        "text": { "type": "string", "minLength": 1 },
                        "globs": { "type": "array", "items": { "type": "string" } },
                    },
                    "required": ["text"],
                },
            },
            "required": ["summary"],
        }),
        check: Arc::new(|value| {
            serde_json::from_value::<Finished>(value.clone())
                .map(|_| ())
                .map_err(|error| vec![error.to_string()])
        }),
        repairs: REPAIRS,
    }
}

fn cut(text: &str, letters: usize) -> String {
    text.trim().chars().take(letters).collect()
}
