//! Makes the job of an attempt: what the model is told, and what it must hand in.

pub(super) mod background;
pub(super) mod earlier;
mod helpers;
pub(super) mod submission;

use std::sync::Arc;

use ropewalk_config::{Prompt, PromptError, Prompts};
use ropewalk_engine::llm::{Message, ScriptKey};
use ropewalk_engine::{Job, Limits, ModelRole, Toolbox, UsageScope};
use ropewalk_schemas::TaskId;
use ropewalk_schemas::amendment::without_owners;
use ropewalk_schemas::attempt::Failure;
use ropewalk_schemas::specification::{Document, Interface, Requirement};
use ropewalk_schemas::task::Task;
use serde_json::{Value, json};

use super::work::Work;
use crate::BuildOptions;
use crate::claim::{Claim, conversation};
use crate::decide::failure::is_waited_out;
use crate::error::BuilderError;
use background::Background;
use submission::{FINISH, KeptSummary, finish};

/// Makes the job of an attempt whose conversation keeps its summary in `kept`.
pub(crate) fn job(
    prompts: &Prompts,
    options: &BuildOptions,
    claim: &Claim,
    background: &Background,
    gotchas: &[String],
    tools: Toolbox,
    kept: &Arc<KeptSummary>,
) -> Result<Job, PromptError> {
    let task = &claim.task;
    let system = prompts.render(
        Prompt::Build,
        &json!({
            "conventions": background.common.conventions,
            "wishes": background.common.wishes,
            "setup": background.setup,
            "package_managers": options.package_managers,
            "hosts": background.hosts,
            "submit_tool": FINISH,
            "tools": tools.names(),
        }),
    )?;
    let told = prompts.render(Prompt::BuildTask, &task_values(claim, background, gotchas))?;
    Ok(Job {
        // A crash runs the same work again: what was answered then is answered from the journal.
        journal_key: conversation(task, claim.round),
        role: ModelRole::Build,
        script: ScriptKey {
            agent: "build".to_owned(),
            idea: claim.build.idea.to_string(),
            task: task.id.to_string(),
            attempt: claim.round,
            turn: 0,
        },
        scope: scope(claim),
        system,
        messages: vec![Message::user(told)],
        tools,
        submission: Some(finish(kept)),
        limits: Limits {
            turns: options.turns,
            total_tokens: options.attempt_tokens,
            ..Limits::default()
        },
    })
}

fn scope(claim: &Claim) -> UsageScope {
    UsageScope {
        idea: Some(claim.build.idea.clone()),
        build: Some(claim.task.build),
        task: Some(claim.task.id.clone()),
        chain: Some(claim.build.correlation_id),
    }
}

/// Says what an attempt may still use, from the nearest bound to the farthest, as it was when its conversation began: one that
/// is taken up again begins with the same words, of which a provider has kept what it read.
pub(super) async fn budget(work: &Work<'_>) -> Result<Vec<String>, BuilderError> {
    let options = &work.shared.options;
    let mut lines = vec![format!("{} replies in this conversation", options.turns)];
    lines.extend(
        options
            .attempt_tokens
            .map(|tokens| format!("{tokens} tokens for each try")),
    );
    let began = earlier::began(work).await?;
    let scope = scope(work.claim);
    let left = work.shared.engine.budget_left(&scope, began).await?;
    lines.extend(left);
    Ok(lines)
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
    // What was waited out since it began is nothing that it did. Whoever wants another round may speak of it.
    let concerns_it =
        |failure: &&Failure| failure.attempt < claim.since || !is_waited_out(failure.class);
    let failures: Vec<Value> = task
        .earlier_failures
        .iter()
        .chain(task.failures.iter().filter(concerns_it))
        .filter(|failure| failure.class.is_of_the_work())
        .filter(is_told)
        .map(|failure| json!({ "class": failure.class, "output": failure.error }))
        .collect();
    let gotchas: Vec<Value> = gotchas.iter().map(|text| json!({ "text": text })).collect();
    json!({
        "task": block(task),
        "requirements": requirements(task, background),
        "sizes": background.sizes,
        "read_first": background.read_first,
        "helpers": background.helpers,
        "gotchas": gotchas,
        "conventions": background.own.conventions,
        "wishes": background.own.wishes,
        "idea_context": background.idea,
        "idea": title(claim, background),
        "spec_path": background.spec_path,
        "plan": background.document,
        "interfaces": interfaces(task, background),
        "others": background.others,
        "more_others": background.more_others,
        "before": background.before,
        "gate": background.gate,
        "failures": failures,
        "answers": background.answers,
        "guidance": ([&background.permissions[..], task.told()].concat()),
        "tools": background.tools,
        "budget": background.budget,
        "made_ready": background.made_ready,
        "resumed": background.resumed,
        "earlier": background.earlier.as_ref().map(|earlier| json!({
            "summary": earlier.summary, "difference": earlier.difference,
        })),
    })
}

/// Returns what the idea is called: as the plan says, or by the name of its folder.
fn title<'a>(claim: &'a Claim, background: &'a Background) -> &'a str {
    let document = background.document.as_ref();
    let title = document.map(|document| document.title.as_str());
    let title = title.filter(|title| !title.is_empty());
    title.unwrap_or(claim.build.idea.as_str())
}

/// Returns the block of a task as its prompt holds it.
fn block(task: &Task) -> Value {
    let mut block = json!(task.block);
    // An absent list and an empty one are the same to a reader.
    if let Some(block) = block.as_object_mut() {
        block.entry("more_files").or_insert_with(|| json!([]));
        if let Some(notes) = &task.block.notes {
            let notes: Vec<&str> = without_owners(notes).collect();
            block.insert("notes".to_owned(), json!(notes.join("\n").trim()));
        }
    }
    block
}

/// Lists the signatures that concern the task, those together that the same tasks make and use.
fn interfaces(task: &Task, background: &Background) -> Vec<Value> {
    let document = background.document.as_ref();
    let all = document.map_or(&[][..], |document| &document.interfaces);
    let told = together(&task.id, all).into_iter().map(|group| {
        json!({
            "signature": group.signatures.join("\n"),
            "made_by": group.made_by,
            "used_by": group.used_by.join(", "),
        })
    });
    told.collect()
}

/// Signatures that the same tasks make and use.
#[derive(Debug)]
struct InterfaceGroup<'a> {
    made_by: Option<String>,
    used_by: Vec<String>,
    signatures: Vec<&'a str>,
}

fn together<'a>(own: &TaskId, all: &'a [Interface]) -> Vec<InterfaceGroup<'a>> {
    let named = |id: &TaskId| {
        if id == own {
            "your task".to_owned()
        } else {
            id.to_string()
        }
    };
    let mut groups: Vec<InterfaceGroup<'a>> = Vec::new();
    for one in all {
        let is_plain = one.made_by.is_none() && one.used_by.is_empty();
        if !is_plain && one.made_by.as_ref() != Some(own) && !one.used_by.contains(own) {
            continue;
        }
        let made_by = one.made_by.as_ref().map(named);
        let used_by: Vec<String> = one.used_by.iter().map(named).collect();
        let mut known = groups.iter_mut();
        match known.find(|group| group.made_by == made_by && group.used_by == used_by) {
            Some(group) => group.signatures.push(&one.signature),
            None => groups.push(InterfaceGroup {
                made_by,
                used_by,
                signatures: vec![one.signature.as_str()],
            }),
        }
    }
    groups
}

/// Joins what the task says of its requirements with what the specification says of them.
fn requirements(task: &Task, background: &Background) -> Vec<Value> {
    let document = background.document.as_ref();
    let known: Vec<&Requirement> = document
        .map(Document::all_requirements)
        .into_iter()
        .flatten()
        .collect();
    let lines = task.block.requirements.iter().map(|line| {
        let of = |one: &&&Requirement| line.id.as_ref() == Some(&one.id);
        let whole = known.iter().find(of);
        json!({
            "id": line.id,
            "text": line.text,
            "whole": whole.map(|one| &one.text).filter(|text| text.trim() != line.text.trim()),
            "acceptance": whole.map(|one| &one.acceptance),
        })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_the_same_tasks_are_told_together_and_those_of_others_not_at_all() {
        let id = |text: &str| TaskId::parse(text).unwrap();
        let interface = |signature: &str, made_by: Option<&str>, used_by: &[&str]| Interface {
            signature: signature.to_owned(),
            made_by: made_by.map(id),
            used_by: used_by.iter().map(|user| id(user)).collect(),
        };
        let all = [
            interface("fn a()", Some("T-1"), &["T-2", "T-3"]),
            interface("fn b()", None, &["T-2"]),
            interface("fn c()", Some("T-1"), &["T-3"]),
            interface("fn d()", Some("T-1"), &["T-2", "T-3"]),
            Interface::plain("fn e()"),
            interface("fn f()", None, &["T-2"]),
            Interface::plain("fn g()"),
        ];
        let found = together(&id("T-2"), &all);
        let told: Vec<(Option<&str>, String, &[&str])> = found
            .iter()
            .map(|group| {
                let made_by = group.made_by.as_deref();
                (made_by, group.used_by.join(", "), &*group.signatures)
            })
            .collect();
        let expected: [(Option<&str>, &str, &[&str]); 3] = [
            (Some("T-1"), "your task, T-3", &["fn a()", "fn d()"]),
            (None, "your task", &["fn b()", "fn f()"]),
            (None, "", &["fn e()", "fn g()"]),
        ];
        let expected = expected.map(|(made, used, told)| (made, used.to_owned(), told));
        assert_eq!(told, expected);
    }
}
