//! Reminds people of questions and applies defaults when their time has come.

use async_trait::async_trait;
use ropewalk_schemas::payload::{QuestionClosed, QuestionReminded, ScheduleDue};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId, Payload, Subject};
use ropewalk_store::{ChangeSet, Versioned};

use super::decide::{self, Deadlines, Ending, OnDeadline};
use super::{BY_DEFAULT, DEADLINE, REMIND, answer, reply};
use crate::agent::{Agent, AgentError, Profile};
use crate::context::Context;
use crate::timers;

/// The events that it takes.
const TAKES: [&str; 1] = ["schedule.due"];

/// The subscriber that keeps the time of questions.
#[derive(Debug)]
pub struct QuestionService {
    role: ComponentName,
    patterns: Vec<EventPattern>,
    deadlines: Deadlines,
}

impl QuestionService {
    /// Returns the service with the given waiting times.
    pub fn new(deadlines: Deadlines) -> Result<Self, InvalidId> {
        Ok(Self {
            role: ComponentName::parse("questions")?,
            patterns: timers::patterns(TAKES, "question")?,
            deadlines,
        })
    }

    /// Reminds people of an open question, and sets the next reminder where its kind has one.
    fn remind(&self, question: &Versioned<Question>, context: &Context) -> ChangeSet {
        let mut changes = ChangeSet::new();
        let now = context.now();
        changes.update(
            question,
            &Question {
                reminded_at: Some(now),
                ..question.record.clone()
            },
        );
        changes.emit(context.event(
            Subject::question(question.id),
            Payload::QuestionReminded(QuestionReminded {
                question_id: question.id,
                text: question.text.clone(),
                idea_slug: question.idea.clone(),
            }),
        ));
        if let Some(again) = self.deadlines.of(question.kind).remind_again {
            timers::set(
                &mut changes,
                context,
                REMIND,
                &question.id.to_string(),
                now + again,
            );
        }
        changes
    }

    /// Ends a question whose time has passed, in the way of its kind.
    fn end(&self, question: &Versioned<Question>, context: &Context) -> ChangeSet {
        let mut changes = ChangeSet::new();
        let on_deadline = self
            .deadlines
            .of(question.kind)
            .ends
            .map_or(OnDeadline::Default, |(_, how)| how);
        match decide::at_deadline(question, on_deadline) {
            Ending::StaysOpen => {}
            Ending::Default(choice) => {
                let reply = reply::picked(question, &choice);
                answer::record(&mut changes, context, question, reply, BY_DEFAULT, "timer");
            }
            Ending::Dismiss => {
                let state = QuestionState::Dismissed;
                let reason = "nobody answered in time".to_owned();
                changes.update(
                    question,
                    &Question {
                        state,
                        closed_because: Some(reason.clone()),
                        ..question.record.clone()
                    },
                );
                changes.emit(context.event(
                    Subject::question(question.id),
                    Payload::QuestionDismissed(QuestionClosed {
                        question_id: question.id,
                        reason,
                        about: question.about.clone(),
                    }),
                ));
            }
        }
        changes
    }
}

#[async_trait]
impl Agent for QuestionService {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: self.patterns.clone(),
            in_flight: 8,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        let Payload::ScheduleDue(ScheduleDue { name, target, .. }) = &event.payload else {
            return Ok(ChangeSet::new());
        };
        if name != REMIND && name != DEADLINE {
            return Ok(ChangeSet::new());
        }
        let Some(question) = context.store.get::<Question>(target).await? else {
            return Ok(ChangeSet::new());
        };
        if question.state != QuestionState::Pending {
            return Ok(ChangeSet::new());
        }
        Ok(if name == REMIND {
            self.remind(&question, context)
        } else {
            self.end(&question, context)
        })
    }
}
