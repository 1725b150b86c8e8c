//! Puts the questions of a build into a change set.

mod tried;

use std::collections::BTreeMap;

use ropewalk_config::questions::choice::{BranchMoved, BuildFinished, LandingRefused};
use ropewalk_config::{QuestionDraft, Trigger, fenced};
use ropewalk_engine::BudgetOverrun;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::{self, AskOutcome, QuestionRequest};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::build::{Build, TaskCounts};
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::question::{
    About, Choice, Content, FileChange, Question, QuestionKind, QuestionState,
};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, ChoiceId, CommitId, QuestionId};
use ropewalk_store::{ChangeSet, Query, ReadError, Versioned};
use ropewalk_workspace::shell_word;

use ropewalk_gate::protected::ProtectedChange;

use super::SharedState;
use super::decide::counts::TaskImpact;
use super::decide::failure::recommended;
use super::error::BuilderError;
use super::land::LandError;
use super::machine::{IllegalRequest, TopicQuestion, build};
use super::scheduler::adopt::adopted;
use tried::Tries;

/// So much of a difference goes into a question.
const DIFFERENCE_BYTES: usize = 8 * 1024;
/// So much of an error goes into a question; the whole lies in the evidence.
const ERROR_BYTES: usize = 1_500;

/// So many letters of an answer that a model offers are shown.
const OPTION_LETTERS: usize = 400;

/// A task that has used up its tries.
pub(crate) struct FailedTask<'a> {
    pub(crate) task: &'a Task,
    /// Of the whole round.
    pub(crate) class: FailureClass,
    /// What the agent said of the last try, which is written down with the question.
    pub(crate) summary: Option<String>,
    /// What its end means for the others.
    pub(crate) standing: TaskImpact,
}

/// Asks what shall become of a task that has used up its tries.
pub(crate) async fn task_failed(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    failed: FailedTask<'_>,
) -> Result<Option<QuestionId>, BuilderError> {
    let FailedTask {
        task,
        class,
        summary,
        standing,
    } = failed;
    let error = task.failures.last().map_or("", |failure| &failure.error);
    let failures: Vec<&Failure> = task.earlier_failures.iter().chain(&task.failures).collect();
    let mut tries = Tries::load(context, task).await?;
    if let Some(last) = failures.last() {
        tries.add(last.attempt, summary);
    }
    let values = BTreeMap::from([
        ("task_id", task.id.to_string()),
        ("attempts", tries.count(&failures).to_string()),
        (
            "error_message",
            clip::ends(error.trim(), ERROR_BYTES, Weight::Tail).into_owned(),
        ),
        ("attempts_list", tries.told(&failures).join("\n")),
        ("standing", standing.in_words()),
        ("recommended", recommended(class).to_owned()),
    ]);
    let draft = shared
        .questions
        .render(Trigger::TaskFailedRepeatedly, &values)?;
    let about = about_task(build, task);
    put(shared, context, changes, build, about, draft).await
}

/// Writes a class as people and models read it.
pub(crate) fn class_name(class: FailureClass) -> String {
    serde_json::to_value(class)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Asks what shall become of a task that stands for a reason which a person has to judge: its attempt was ended because it stood
/// still ([`Trigger::TaskInterrupted`]), or its check could not run ([`Trigger::CheckHeld`]).
pub(crate) async fn task_stands(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    (build, task): (&Build, &Task),
    trigger: Trigger,
    why: String,
) -> Result<Option<QuestionId>, BuilderError> {
    let values = BTreeMap::from([("task_id", task.id.to_string()), ("why", why)]);
    let draft = shared.questions.render(trigger, &values)?;
    let about = about_task(build, task);
    put(shared, context, changes, build, about, draft).await
}

/// Asks whether a task may change files that judge its work, showing how; a yes holds for that content alone. Nothing is
/// recommended where the plan that a person approved names all of them: only the difference tells.
pub(crate) async fn protected_files(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    task: &Task,
    candidate: CommitId,
    protected: &[ProtectedChange],
) -> Result<Option<QuestionId>, BuilderError> {
    let is_planned = |path: &str| task.block.files().any(|file| file.as_str() == path);
    let list: Vec<String> = protected
        .iter()
        .map(|protected| {
            let why = &protected.why;
            if is_planned(&protected.path) {
                format!("- {why}; the approved plan names the file")
            } else {
                format!("- {why}")
            }
        })
        .collect();
    let mut wanted: Vec<FileChange> = protected.iter().map(ProtectedChange::change).collect();
    wanted.sort();
    wanted.dedup();
    let values = BTreeMap::from([
        ("task_id", task.id.to_string()),
        ("file_list", list.join("\n")),
        ("difference", difference(shared, &candidate, &wanted).await?),
    ]);
    let mut draft = shared.questions.render(Trigger::ProtectedFiles, &values)?;
    if wanted.iter().all(|file| is_planned(&file.path)) {
        draft.recommend(None);
    }
    let asking = QuestionRequest {
        content: Some(Content::Files {
            candidate,
            changes: wanted,
        }),
        ..QuestionRequest::of(draft, about_task(build, task), Some(&build.idea))
    };
    put_asking(shared, context, changes, asking).await
}

/// Shows what a candidate changes in some files: whole where it is small, else its beginning and where the rest is.
async fn difference(
    shared: &SharedState,
    candidate: &CommitId,
    files: &[FileChange],
) -> Result<String, BuilderError> {
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let before = format!("{candidate}^");
    let shown = shared
        .clone
        .diff_of(&before, candidate.as_str(), &paths)
        .await?;
    let text = shown.text.trim_end();
    if text.len() <= DIFFERENCE_BYTES && !shown.truncated {
        return Ok(fenced(text, Some("diff")));
    }
    let words: Vec<_> = paths.iter().map(|path| shell_word(path)).collect();
    let kept = &text[..text.floor_char_boundary(DIFFERENCE_BYTES)];
    let (kept, _) = kept.rsplit_once('\n').unwrap_or((kept, ""));
    Ok(format!(
        "{}\n\nThis is its beginning; all of it: `git --git-dir {} diff {before} {candidate} -- {}`",
        fenced(kept, Some("diff")),
        shell_word(&shared.clone.directory().display().to_string()),
        words.join(" "),
    ))
}

/// Asks what the model of a task wants to know, in its own words.
pub(crate) async fn of_model(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    task: &Task,
    put: TopicQuestion,
) -> Result<Option<QuestionId>, BuilderError> {
    let TopicQuestion { question, topic } = put;
    let trigger = match question.options.len() {
        0 | 1 => Trigger::MissingContext,
        _ => Trigger::MultipleImplementations,
    };
    let labels = question.options.iter().map(|option| option.label.as_str());
    let ids = ChoiceId::of_labels(labels);
    let choices = question.options.iter().zip(ids).map(|(option, id)| Choice {
        description: option.meaning.as_deref().map(on_one_line),
        ..Choice::new(id, on_one_line(&option.label))
    });
    let why_it_asks = match question.why.trim() {
        "" => String::new(),
        why => in_words_of_model("The model says why", why),
    };
    let asking = QuestionRequest {
        kind: QuestionKind::Blocking,
        trigger: trigger.as_str().to_owned(),
        text: in_words_of_model(
            &format!("The model of task {} asks", task.id),
            &question.question,
        ),
        context: why_it_asks,
        choices: choices.collect(),
        free_text: true,
        default: None,
        consequential: false,
        content: None,
        about: about_task(build, task),
        topic: Some(topic),
        idea: Some(build.idea.clone()),
    };
    put_asking(shared, context, changes, asking).await
}

/// Shows words as those of a model in each of their lines, so that nobody takes them for words of this program.
fn in_words_of_model(says: &str, words: &str) -> String {
    let lines = words.trim().replace("\r\n", "\n");
    let lines = lines.replace(['\n', '\r', '\u{2028}', '\u{2029}'], "\n> ");
    format!("{says}: {lines}")
}

/// Shows what a model offers as an answer in one line: others below it would pass for those of this program.
fn on_one_line(words: &str) -> String {
    clip::line(words, OPTION_LETTERS)
}

/// Says that a question is about a task.
pub(crate) fn about_task(build: &Build, task: &Task) -> About {
    About::Task {
        build: build.id,
        task: task.id.clone(),
    }
}

/// Asks how to go on with a branch that somebody else moved.
pub(crate) async fn branch_moved(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    found: Option<&CommitId>,
) -> Result<Build, BuilderError> {
    let shown = |commit: Option<&CommitId>| {
        commit.map_or_else(|| "no branch".to_owned(), ToString::to_string)
    };
    let values = BTreeMap::from([
        ("branch", build.branch.clone()),
        ("expected", shown(build.published.as_ref())),
        ("found", shown(found)),
    ]);
    let mut draft = shared.questions.render(Trigger::BranchMoved, &values)?;
    if adopted(shared, context, build).await?.is_none() {
        // Nothing is offered that cannot be done.
        let on_top = BranchMoved::BuildOnTop.as_str();
        draft.choices.retain(|choice| choice.id.as_str() != on_top);
    }
    put_about(shared, context, changes, build, draft).await
}

/// Asks how to go on with a build that something keeps until a person has looked: its branch, which the user's repository does not
/// take ([`Trigger::BranchRefused`]), or work that ended the program too often ([`Trigger::BuildHeld`]).
pub(crate) async fn held(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    trigger: Trigger,
    why: String,
) -> Result<Build, BuilderError> {
    let values = BTreeMap::from([
        ("idea", build.idea.to_string()),
        ("branch", build.branch.clone()),
        ("why", why),
    ]);
    let draft = shared.questions.render(trigger, &values)?;
    put_about(shared, context, changes, build, draft).await
}

/// What landing a build that has ended comes to.
pub(crate) struct BranchOutlook {
    /// What was shown of its requirements.
    pub(crate) requirements: String,
    /// What no gate of the project stands for in the check of the whole, a line each.
    pub(crate) gate: String,
    /// What its review holds against it, a line each.
    pub(crate) objections: Vec<String>,
    /// Whether something else speaks against landing it.
    pub(crate) doubts: bool,
    /// What lies where its documents go.
    pub(crate) in_the_way: Option<LandError>,
}

/// Asks what shall become of the branch of a build that has ended; merging is recommended where nothing speaks against it.
pub(crate) async fn build_finished(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    counts: &TaskCounts,
    outlook: BranchOutlook,
) -> Result<Build, BuilderError> {
    let doubts = outlook.doubts || outlook.in_the_way.is_some() || !outlook.objections.is_empty();
    let command = format!("`ropewalk review show {}`", build.id);
    let review = if outlook.objections.is_empty() {
        format!(
            "follows where the improvement agent runs; while this is open, you are asked anew if it speaks against landing, and {command} shows it then"
        )
    } else {
        format!("{command} shows all of it")
    };
    let in_the_way = outlook.in_the_way;
    let in_the_way = in_the_way.map(|error| Words::of(&error).to_string());
    let buts = in_the_way.into_iter().chain(outlook.objections);
    let buts: Vec<String> = buts.map(|but| format!("\n**But:** {but}")).collect();
    let values = BTreeMap::from([
        ("idea", build.idea.to_string()),
        ("gate", outlook.gate),
        ("buts", buts.concat()),
        ("requirements", outlook.requirements),
        ("status", build.state.to_string()),
        ("complete", counts.complete.to_string()),
        ("failed", counts.failed.to_string()),
        ("skipped", counts.skipped.to_string()),
        ("branch", build.branch.clone()),
        ("review", review),
    ]);
    let mut draft = shared.questions.render(Trigger::BuildFinished, &values)?;
    let best = if doubts {
        BuildFinished::Leave
    } else {
        BuildFinished::Merge
    };
    draft.recommend(Some(best.as_str()));
    put_about(shared, context, changes, build, draft).await
}

/// Asks whether to spend more than a budget allows.
pub(crate) async fn budget_exceeded(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    task: Option<&Task>,
    exceeded: &BudgetOverrun,
) -> Result<Option<QuestionId>, BuilderError> {
    let values = BTreeMap::from([
        ("idea", build.idea.to_string()),
        ("scope", exceeded.scope.clone()),
        ("used", exceeded.used.clone()),
        ("limit", exceeded.limit.clone()),
    ]);
    let draft = shared.questions.render(Trigger::BudgetExceeded, &values)?;
    let whole = About::Build { build: build.id };
    let about = task.map_or(whole, |task| about_task(build, task));
    let asking = QuestionRequest {
        topic: Some(exceeded.scope.clone()),
        ..QuestionRequest::of(draft, about, Some(&build.idea))
    };
    put_asking(shared, context, changes, asking).await
}

/// Asks what to do about a branch that could not be merged.
pub(crate) async fn landing_refused(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    refusal: &LandError,
) -> Result<Build, BuilderError> {
    // Where it is told on one line, the next sentence follows it.
    let mut why = format!("{}.", Words::of(refusal));
    if let Some(sides) = refusal.sides() {
        why.push_str("\n\n");
        why.push_str(&fenced(
            &clip::ends(sides.trim(), ERROR_BYTES, Weight::Even),
            None,
        ));
    }
    let values = BTreeMap::from([
        ("branch", build.branch.clone()),
        ("into", build.target.clone()),
        ("why", why),
    ]);
    let mut draft = shared.questions.render(Trigger::LandingRefused, &values)?;
    if refusal.can_be_resolved() {
        // Somebody wanted it landed, and this leads there.
        draft.recommend(Some(LandingRefused::Resolve.as_str()));
    } else {
        // Nothing is offered that cannot be done.
        let resolve = LandingRefused::Resolve.as_str();
        draft.choices.retain(|choice| choice.id.as_str() != resolve);
    }
    put_about(shared, context, changes, build, draft).await
}

/// Puts a question about a whole build, and returns the build that waits for its answer; nothing is asked about one that is over.
async fn put_about(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    draft: QuestionDraft,
) -> Result<Build, BuilderError> {
    if build::holds_no_question(build) {
        // Whoever asks so late would have nothing to do with an answer.
        return Ok(build.clone());
    }
    let about = About::Build { build: build.id };
    let asked = put(shared, context, changes, build, about, draft).await?;
    Ok(note(context, build, asked)?)
}

/// Notes which question about a whole build is open, in place of the one before; none where nothing is asked any more.
pub(crate) fn note(
    context: &Context,
    build: &Build,
    asked: Option<QuestionId>,
) -> Result<Build, IllegalRequest> {
    build::apply_alone(build, build::Input::Ask(asked), context.now())
}

/// Puts a question about a build, or about one of its tasks.
pub(crate) async fn put(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    about: About,
    draft: QuestionDraft,
) -> Result<Option<QuestionId>, BuilderError> {
    put_asking(
        shared,
        context,
        changes,
        QuestionRequest::of(draft, about, Some(&build.idea)),
    )
    .await
}

/// Puts a question that says itself what it is about.
pub(crate) async fn put_asking(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    asking: QuestionRequest,
) -> Result<Option<QuestionId>, BuilderError> {
    let asked = questions::ask(changes, context, &shared.options.deadlines, asking).await?;
    Ok(match asked {
        AskOutcome::Open(question) => Some(question),
        AskOutcome::Reused(_) => None,
    })
}

/// Closes the open questions about a task that no longer matter.
pub(crate) async fn supersede(
    context: &Context,
    changes: &mut ChangeSet,
    task: &Task,
    reason: &str,
) -> Result<(), ReadError> {
    let same = |question: &Question| matches!(&question.about, About::Task { task: about, .. } if *about == task.id);
    close(context, changes, task.build, reason, same).await
}

/// Closes the open questions about a whole build.
pub(crate) async fn supersede_about(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    reason: &str,
) -> Result<(), ReadError> {
    let whole = |question: &Question| matches!(question.about, About::Build { .. });
    close(context, changes, build, reason, whole).await
}

/// Closes the open questions about a whole build that `trigger` asked.
pub(crate) async fn supersede_asked(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    trigger: Trigger,
    reason: &str,
) -> Result<(), ReadError> {
    let asked = |question: &Question| {
        question.trigger == trigger.as_str() && matches!(question.about, About::Build { .. })
    };
    close(context, changes, build, reason, asked).await
}

/// Closes the open questions about what models of a build were refused.
pub(crate) async fn supersede_refusals(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    reason: &str,
) -> Result<(), ReadError> {
    let of_call = |question: &Question| {
        question.trigger == Trigger::DecisionNeeded.as_str()
            && matches!(question.about, About::Task { .. })
    };
    close(context, changes, build, reason, of_call).await
}

/// Closes the open questions about a build and about its tasks.
pub(crate) async fn supersede_all(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    reason: &str,
) -> Result<(), ReadError> {
    close(context, changes, build, reason, |_| true).await
}

/// Closes the open questions about a build and its tasks that are meant; what `changes` close already is closed once.
pub(crate) async fn close(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    reason: &str,
    is_meant: impl Fn(&Question) -> bool,
) -> Result<(), ReadError> {
    let closed: Vec<Question> = changes.written();
    for question in open_questions(context, build).await? {
        let is_closed = closed.iter().any(|closed| closed.id == question.id);
        if !is_closed && is_meant(&question) {
            questions::supersede(changes, context, &question, reason);
        }
    }
    Ok(())
}

/// Lists the open questions about a build and about its tasks, the oldest first.
pub(crate) async fn open_questions(
    context: &Context,
    build: BuildId,
) -> Result<Vec<Versioned<Question>>, ReadError> {
    let query = Query::new()
        .equal("state", QuestionState::Pending.as_str())
        .equal("build", build.to_string())
        .order_by("asked_at");
    context.store.list::<Question>(query).await
}

/// Returns whether the question about a build is one about a budget.
pub(crate) async fn asks_about_budget(context: &Context, build: &Build) -> Result<bool, ReadError> {
    let Some(question) = build.question else {
        return Ok(false);
    };
    let asked = context.store.get::<Question>(&question.to_string()).await?;
    Ok(asked.is_some_and(|asked| is_of_budget(&asked)))
}

/// Returns whether a question is one about a budget.
pub(crate) fn is_of_budget(question: &Question) -> bool {
    question.trigger == Trigger::BudgetExceeded.as_str()
}
