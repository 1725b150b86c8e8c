//! Builds the job in which a model reads a build.

pub(super) mod change;

use std::fmt::Write as _;
use std::sync::Arc;

use ropewalk_config::Prompt;
use ropewalk_config::Prompts;
use ropewalk_engine::llm::{Message, ScriptKey};
use ropewalk_engine::{Job, Limits, ModelRole, Submission, Toolbox, UsageScope};
use ropewalk_schemas::amendment::told_by_people;
use ropewalk_schemas::clip;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::review::Review;
use ropewalk_schemas::specification::Document;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{RepoPath, RequirementId, TaskId};
use serde_json::{Value, json};

use super::context::{BuildChanges, Remark, ReviewedBuild, moment};
use super::findings::{self, Findings};
use ropewalk_engine::schema_of;

/// The tool that ends the job.
const SUBMIT: &str = "review";
/// How often a wrong submission is sent back.
const REPAIRS: u32 = 2;
/// Who reviews.
pub(super) const ROLE: ModelRole = ModelRole::Small;
/// How often the model is asked. It may look around first; what matters stands in what it is told.
const TURNS: u32 = 20;
/// So much of the change is shown: what a review does not see it has to read by itself, a call for each file.
const DIFF_BYTES: usize = 200_000;
/// So much of a question, and of its answer, is shown.
const QUESTION_LETTERS: usize = 600;
/// So much of one failure is shown.
const FAILURE_LETTERS: usize = 1_500;

/// Returns how much of a change a model of such a window is shown: a byte for each token fills a third of it at most, as code goes.
pub(super) fn diff_bytes(window_tokens: Option<u64>) -> usize {
    let room = window_tokens.and_then(|tokens| usize::try_from(tokens).ok());
    room.map_or(DIFF_BYTES, |room| room.min(DIFF_BYTES))
}

/// Builds the job of a model that looks with `tools`, if there is anything to look at; the error says why there is none.
pub(super) fn job(
    prompts: &Prompts,
    (reviewed, changed): (&ReviewedBuild, Option<&BuildChanges>),
    tools: Option<Toolbox>,
) -> Result<Job, String> {
    let build = &reviewed.build;
    // Rules may keep files from it.
    let looks = tools
        .as_ref()
        .is_some_and(|tools| ["read", "history"].iter().all(|name| tools.contains(name)));
    let shown = changed.map(|changed| &changed.shown);
    let values = json!({
        "build": format!("{} of {}", build.id, build.idea),
        "outcome": outcome(reviewed),
        "plan": plan(reviewed),
        "tasks": reviewed.tasks.iter().map(|task| told(reviewed, task)).collect::<Vec<_>>(),
        "diff": shown.map(|shown| &shown.text),
        "left_out": shown.map_or(0, |shown| shown.left_out),
        "looks": looks,
        "since": changed.is_some_and(|changed| changed.since),
        "known": known(reviewed),
        "told": told_by_people(&reviewed.tasks).iter().map(|told| heard(reviewed, told)).collect::<Vec<_>>(),
        "next": next(reviewed),
        "former": reviewed.former.as_ref().map(found),
    });
    let told = prompts
        .render(Prompt::ImprovementBuild, &values)
        .map_err(|error| error.to_string())?;
    let system = prompts
        .render(
            Prompt::Improvement,
            &json!({ "submit_tool": SUBMIT, "looks": looks }),
        )
        .map_err(|error| error.to_string())?;
    Ok(Job {
        journal_key: journal_key(reviewed),
        role: ROLE,
        script: ScriptKey {
            agent: "improvement".to_owned(),
            idea: build.idea.to_string(),
            task: "review".to_owned(),
            attempt: 1,
            turn: 1,
        },
        scope: UsageScope {
            idea: Some(build.idea.clone()),
            build: Some(build.id),
            task: None,
            chain: Some(build.correlation_id),
        },
        system,
        messages: vec![Message::user(told)],
        tools: tools.unwrap_or_default(),
        submission: Some(Submission {
            name: SUBMIT.to_owned(),
            description: "Records what the build teaches: patterns, gotchas, divergences, notes."
                .to_owned(),
            schema: schema_of::<Findings>(),
            draft: None,
            check: Arc::new(|value: &Value| findings::read(value).map(|_| ())),
            repairs: REPAIRS,
        }),
        limits: Limits {
            turns: TURNS,
            ..Limits::default()
        },
    })
}

/// Names the work by how often the build was reviewed: what was found at an earlier end is not to be replayed.
fn journal_key(reviewed: &ReviewedBuild) -> String {
    let key = format!("review/{}", reviewed.build.id);
    match reviewed.before.len() {
        0 => key,
        before => format!("{key}/{before}"),
    }
}

fn outcome(reviewed: &ReviewedBuild) -> String {
    let build = &reviewed.build;
    let mut outcome = build.state.to_string();
    if let Some(reason) = &build.reason {
        outcome = format!("{outcome}: {reason}");
    }
    if let Some(check) = reviewed.whole_check() {
        outcome = format!("{outcome}; {check}");
    }
    outcome
}

fn plan(reviewed: &ReviewedBuild) -> String {
    let revision = reviewed.revision.as_ref();
    let mut plan = revision.map_or_else(String::new, |revision| wanted(&revision.document));
    for task in &reviewed.tasks {
        let files: Vec<&str> = task.block.files().map(RepoPath::as_str).collect();
        let lines = task.block.requirements.iter();
        // What a requirement says stands above.
        let wanted: Vec<&str> = lines
            .map(|line| {
                line.id
                    .as_ref()
                    .map_or(line.text.as_str(), RequirementId::as_str)
            })
            .collect();
        let (id, title) = (&task.id, task.block.in_words());
        let (files, wanted) = (files.join(", "), wanted.join("; "));
        // Writing to a String cannot fail.
        writeln!(plan, "- {id}: {title} (in {files}; for {wanted})").ok();
        for line in &task.block.leave_alone {
            writeln!(plan, "  leaves alone: {line}").ok();
        }
    }
    plan
}

/// Tells what was approved: the requirements, what is left out, and the signatures that tasks share.
fn wanted(document: &Document) -> String {
    let mut wanted = format!("{}: {}\n", document.title, document.objective);
    for requirement in document.all_requirements() {
        let (id, priority) = (&requirement.id, &requirement.priority);
        // Writing to a String cannot fail.
        writeln!(wanted, "- {id} ({priority}): {}", requirement.text).ok();
        if !requirement.acceptance.is_empty() {
            writeln!(wanted, "  shown by: {}", requirement.acceptance).ok();
        }
        if let Some(old) = &requirement.replaces {
            writeln!(wanted, "  in place of {old}, which holds no longer").ok();
        }
    }
    for line in &document.out_of_scope {
        writeln!(wanted, "- out of scope: {line}").ok();
    }
    for one in &document.interfaces {
        let maker = one.made_by.as_ref();
        let maker = maker.map_or_else(String::new, |task| format!(", made by {task}"));
        let signature = one.signature.replace('\n', "\n  ");
        writeln!(wanted, "- interface{maker}: {signature}").ok();
    }
    wanted
}

/// Tells what was asked about a task, and what was answered, by whom and when.
fn asked(reviewed: &ReviewedBuild, task: &Task) -> Vec<Value> {
    let about = |question: &&Question| matches!(&question.about, About::Task { task: of, .. } if *of == task.id);
    let questions = reviewed.questions.iter().filter(about);
    let told = questions.filter_map(|question| {
        let (given, answer) = (question.answer.as_ref()?, question.answer_in_full()?);
        let question = clip::letters(&question.text, QUESTION_LETTERS);
        let answer = clip::letters(&answer, QUESTION_LETTERS);
        Some(json!({ "question": question, "answer": answer, "by": given.by, "at": moment(given.at) }))
    });
    told.collect()
}

fn told(reviewed: &ReviewedBuild, task: &Task) -> Value {
    let failures: Vec<Value> = reviewed
        .failed(&task.id)
        .filter(|failure| failure.class.is_of_the_work())
        .map(|failure| json!({ "class": failure.class, "output": clip::lines(&failure.error, FAILURE_LETTERS) }))
        .collect();
    json!({
        "id": task.id,
        "state": task.state,
        "kept": reviewed.is_kept(task),
        "asked": asked(reviewed, task),
        "summary": summary(reviewed, task),
        "failures": failures,
    })
}

/// Tells what people said to tasks, and who did when: to several tasks it was said once for each.
fn heard(reviewed: &ReviewedBuild, (tasks, words): &(Vec<&TaskId>, &str)) -> Value {
    let said = reviewed.sayings.iter().filter(|saying| saying.is(words));
    let mut said: Vec<String> = said.map(Remark::attribution).collect();
    said.dedup();
    json!({ "tasks": tasks, "words": words, "said": said })
}

/// Tells of the build for which this one was ended early.
fn next(reviewed: &ReviewedBuild) -> Option<Value> {
    let next = reviewed.successor.as_ref()?;
    let tasks = reviewed.tasks.iter();
    let tasks = tasks.filter(|task| next.goes_on_with(task));
    let tasks: Vec<&TaskId> = tasks.map(|task| &task.id).collect();
    Some(json!({ "build": next.build, "revision": next.revision, "tasks": tasks }))
}

/// Tells what the review before held against what it saw.
fn found(former: &Review) -> Vec<Value> {
    let objections = former.objections();
    let told = objections.map(|one| {
        let (planned, actual) = (&one.planned, &one.actual);
        json!({ "class": one.class, "place": one.place(), "planned": planned, "actual": actual })
    });
    told.collect()
}

/// What the agent said whose work landed: that of a kept task, in a build before.
fn summary<'a>(reviewed: &'a ReviewedBuild, task: &Task) -> Option<&'a str> {
    let is_kept = reviewed.is_kept(task);
    let landed = reviewed.landed.get(&task.id);
    let landed = landed.filter(|attempt| is_kept || attempt.build == reviewed.build.id)?;
    landed.summary.as_deref().map(str::trim)
}

fn known(reviewed: &ReviewedBuild) -> Vec<Value> {
    let known = reviewed.known.iter();
    known
        .map(|item| json!({ "kind": item.kind, "text": item.content }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_room_in_the_window_of_whoever_reviews_it() {
        let rows = [
            (None, DIFF_BYTES),
            (Some(8_192), 8_192),
            (Some(1_000_000), DIFF_BYTES),
        ];
        for (window, bytes) in rows {
            assert_eq!(diff_bytes(window), bytes, "{window:?}");
        }
    }
}
