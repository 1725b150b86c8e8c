//! Brings the questions of a building model to a person: the attempt ends, and the one that follows finds the answer in the
//! place where the question was put.

pub(super) mod unattended;

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_engine::{AskReply, Asker, TaskQuestion};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::amount::and_more;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::{AttemptId, BuildId, TaskId};
use ropewalk_store::Query;

use super::work::{Base, PendingQuestion, Work, based_on};
use crate::SharedState;
use crate::context::attempts_at;
use crate::error::BuilderError;
use crate::machine::TopicQuestion;

/// So many files that others changed meanwhile are named.
const CHANGED: usize = 40;

/// Brings questions of one attempt.
pub(super) struct Questions {
    shared: Arc<SharedState>,
    context: Context,
    build: BuildId,
    task: TaskId,
    attempt: AttemptId,
    round: u32,
    base: Base,
    waiting: PendingQuestion,
}

impl Questions {
    /// Makes those of an attempt.
    pub(super) fn new(work: &Work<'_>) -> Self {
        let (build, task, attempt) = work.ids();
        Self {
            shared: Arc::clone(work.shared),
            context: work.context.clone(),
            build,
            task: task.clone(),
            attempt,
            round: work.claim.round,
            base: Arc::clone(&work.base),
            waiting: Arc::clone(&work.waiting),
        }
    }

    async fn bring(&self, number: u32, question: &TaskQuestion) -> Result<AskReply, BuilderError> {
        let topic = format!("{}/{number}", self.round);
        let asked = self.asked().await?;
        let closed = asked.iter().find(|asked| {
            asked.topic.as_deref() == Some(&*topic) && asked.state != QuestionState::Pending
        });
        let Some(closed) = closed else {
            let told = format!("asks a person: {}", question.question.trim());
            // Nobody else sets it, and the attempt ends with it.
            drop(self.waiting.set(TopicQuestion {
                question: question.clone(),
                topic,
            }));
            return Ok(AskReply::Ended(told));
        };
        let mut told = match &closed.answer {
            Some(answer) => {
                let said = closed.answer_in_full().unwrap_or_default();
                format!("{} answered: {said}", answer.by)
            }
            None => "The question was closed without an answer. Decide yourself, and say in your summary what you took for granted.".to_owned(),
        };
        let next = asked.iter().find(|next| next.asked_at > closed.asked_at);
        let changed = self.changed_between(closed, next).await?;
        told.push_str(&in_words(&changed));
        Ok(AskReply::Answered { told, changed })
    }

    /// Lists what was asked in this conversation, oldest first.
    async fn asked(&self) -> Result<Vec<Question>, BuilderError> {
        let asked = Query::new().equal("build", self.build.to_string());
        let asked = self.context.store.list::<Question>(asked).await?;
        let round = format!("{}/", self.round);
        let of_round = |question: &Question| {
            let about = matches!(&question.about, About::Task { task, .. } if *task == self.task);
            let topic = question.topic.as_deref();
            about && topic.is_some_and(|topic| topic.starts_with(&round))
        };
        let mut asked: Vec<Question> = asked.into_iter().map(|row| row.record).collect();
        asked.retain(of_round);
        asked.sort_by_key(|question| question.asked_at);
        Ok(asked)
    }

    /// Lists the files that others changed from where a question was put to where the next one was, or to where the attempt
    /// stands now: however often the conversation is taken up, each answer brings what it brought.
    async fn changed_between(
        &self,
        asked: &Question,
        next: Option<&Question>,
    ) -> Result<Vec<String>, BuilderError> {
        let attempts = attempts_at(&self.context.store, self.build, &self.task).await?;
        let asked_on = |question: &Question| {
            let attempts = attempts.iter().map(|row| &row.record);
            let before = attempts.filter(|one| {
                one.round == self.round
                    && one.id != self.attempt
                    && one.started_at <= question.asked_at
            });
            before
                .max_by_key(|one| one.started_at)
                .map(|one| one.base.clone())
        };
        let until = next
            .and_then(asked_on)
            .unwrap_or_else(|| based_on(&self.base));
        let Some(from) = asked_on(asked).filter(|from| *from != until) else {
            return Ok(Vec::new());
        };
        let clone = &self.shared.clone;
        let files = clone.changed_files(from.as_str(), until.as_str()).await?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }
}

/// Tells what others changed; nothing where that is nothing.
fn in_words(changed: &[String]) -> String {
    if changed.is_empty() {
        return String::new();
    }
    let told = changed.iter().take(CHANGED);
    let told = told.map(|file| format!("`{file}`"));
    let names: Vec<String> = told.chain(and_more(changed.len(), CHANGED)).collect();
    format!(
        "\n\nSince you asked, others changed {}; your work stands on that now. Read such a file again, or the part of \
         it, before you change it.",
        names.join(", ")
    )
}

#[async_trait]
impl Asker for Questions {
    async fn ask(&self, number: u32, question: &TaskQuestion) -> AskReply {
        match self.bring(number, question).await {
            Ok(reply) => reply,
            Err(error) => AskReply::Ended(format!("the question could not be put: {error}")),
        }
    }
}
