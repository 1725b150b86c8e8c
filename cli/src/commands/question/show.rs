//! Verb `question show`: a question with its options and what waits for it.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use ropewalk_desk::views::question::QuestionView;
use ropewalk_orchestrator::questions::default_of;
use ropewalk_schemas::question::{About, Content, Question, QuestionState};
use ropewalk_workspace::{LocalClone, shell_word};

use crate::app::App;
use crate::error::CliError;
use crate::ids::{IdText, last_digits};
use crate::output::time;

/// The question.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `question list` shows it.
    id: IdText,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let question = self
            .id
            .find::<Question>(&opened, "question", "question list")
            .await?
            .record;
        app.output.show(&QuestionView::from(question), |shown| {
            let question = &shown.question;
            whole(question, opened.project.state()) + &answering(question)
        })
    }
}

/// Returns the whole question for people, and how they see a kept commit that it is about: that is in no repository but the one
/// below `state`.
pub(super) fn whole(question: &Question, state: &Path) -> String {
    let text = human(question);
    let Some(Content::Files { candidate, .. }) = &question.content else {
        return text;
    };
    let kept = LocalClone::directory_below(state);
    let kept = kept.display().to_string();
    let command = format!("git --git-dir {} show {candidate}", shell_word(&kept));
    format!("{text}all of commit {}: `{command}`\n", candidate.short())
}

/// Returns the question for people.
pub(crate) fn human(question: &Question) -> String {
    let mut text = format!("{}\n", question.text.trim());
    // Writing to a String cannot fail.
    if !question.context.trim().is_empty() {
        writeln!(text, "\n{}", question.context.trim()).ok();
    }
    text.push('\n');
    for (index, choice) in question.choices.iter().enumerate() {
        let mark = if choice.recommended {
            " (recommended)"
        } else {
            ""
        };
        let (number, id, words) = (index + 1, &choice.id, choice.words.typed());
        writeln!(text, "  {number}. {id}{words}: {}{mark}", choice.label).ok();
        for more in [&choice.description, &choice.implications]
            .into_iter()
            .flatten()
        {
            writeln!(text, "     {more}").ok();
        }
    }
    if question.free_text {
        text.push_str("  or any text of yours\n");
    }
    if let Some(content) = &question.content {
        text.push_str(&bound(content));
    }
    writeln!(
        text,
        "\n{} {} asked by {} at {}",
        question.kind.in_words(),
        question.id,
        question.agent,
        time(question.asked_at)
    )
    .ok();
    writeln!(text, "waits for it: {}", waits(&question.about)).ok();
    match (&question.answer, default_of(question), question.due_at) {
        (Some(answer), _, _) => {
            writeln!(
                text,
                "{}: {} (by {} over {} at {})",
                question.state,
                question.answer_in_words(answer),
                answer.by,
                answer.channel,
                time(answer.at)
            )
            .ok();
        }
        (None, Some(default), Some(due)) if question.state == QuestionState::Pending => {
            writeln!(
                text,
                "{}; takes `{default}` at {}",
                question.state,
                time(due)
            )
            .ok();
        }
        _ => {
            writeln!(text, "{}", question.state).ok();
        }
    }
    for late in &question.late {
        let (said, by, at) = (question.answer_in_words(late), &late.by, time(late.at));
        writeln!(
            text,
            "too late: {said} (by {by} over {} at {at})",
            late.channel
        )
        .ok();
    }
    text
}

/// Says how the question is answered, while it can be.
fn answering(question: &Question) -> String {
    if question.state != QuestionState::Pending {
        return String::new();
    }
    let id = last_digits(question.id);
    format!("`ropewalk question answer {id} …` answers it\n")
}

/// Says what a yes holds for, and for nothing else.
fn bound(content: &Content) -> String {
    match content {
        Content::Revision { revision, hash } => {
            format!("\na yes holds for revision {revision} with hash {hash}\n")
        }
        Content::Call { tool, subject, .. } => {
            format!(
                "\na yes holds for this alone, or for its rule in this build: {tool} {subject}\n"
            )
        }
        Content::Files { candidate, changes } => {
            let files = changes.iter().map(|change| change.path.as_str());
            let files: Vec<&str> = files.collect();
            format!(
                "\na yes holds for {} as commit {} has it\n",
                files.join(", "),
                candidate.short()
            )
        }
    }
}

fn waits(about: &About) -> String {
    match about {
        About::Session { session } => format!("the conversation {session}"),
        About::Specification { spec } => format!("specification {spec}"),
        About::Build { build } => format!("build {build}"),
        About::Task { build, task } => format!("task {task} of build {build}"),
        About::Knowledge { item } => format!("knowledge item {item}"),
        About::Nothing => "nothing".to_owned(),
    }
}
