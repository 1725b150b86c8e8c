//! Answers for people who are not there: what a rule, the mode or the guard against circles leaves to one is refused at
//! once, and people hear of it once for each build, and again where the task that it was about is complete and another one meets
//! it. What one of them allows then holds for what is called later.

use std::borrow::Cow;

use async_trait::async_trait;
use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::DecisionNeeded;
use ropewalk_engine::{Approval, ApprovalRequest, Approver, AskedBy};
use ropewalk_orchestrator::Context;
use ropewalk_runtime::terminal;
use ropewalk_schemas::clip;
use ropewalk_schemas::payload::{DecisionRequested, RefusedCall};
use ropewalk_schemas::question::{About, Content, Question, QuestionState};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{BuildId, ChoiceId, Event, EventPattern, Payload, Subject, TaskId};
use ropewalk_store::{ChangeSet, EventFilter, Query, ReadError, retry_on_conflict};
use tracing::warn;

use crate::attempt::work::Work;
use crate::context;
use crate::error::BuilderError;

/// What a person can do about a refusal while the work goes on.
const OPTIONS: [DecisionNeeded; 4] = [
    DecisionNeeded::AllowCall,
    DecisionNeeded::AllowRule,
    DecisionNeeded::Guide,
    DecisionNeeded::Leave,
];
/// What a model does without what was refused.
const INSTEAD: &str = "no person is there now; do the task without it. Where that cannot be done, hand in with `blocked` \
                       and say what it needs";
/// What was refused is told whole up to so many characters. Nobody allows what is not shown whole: a yes is for what was shown.
const SUBJECT: usize = 1_000;

/// Answers for people while a task of a build is worked on.
pub(in crate::attempt) struct UnattendedApprover {
    context: Context,
    build: BuildId,
    task: TaskId,
}

impl UnattendedApprover {
    /// Answers in an attempt.
    pub(in crate::attempt) fn new(work: &Work<'_>) -> Self {
        let (build, task, _) = work.ids();
        Self {
            context: work.context.clone(),
            build,
            task: task.clone(),
        }
    }

    /// Lets people hear of a refusal, unless they know of this rule in this build.
    async fn tell(&self, request: &ApprovalRequest) -> Result<(), BuilderError> {
        let rule = request.asked_by.to_string();
        retry_on_conflict!(BuilderError, &self.task, {
            let store = &self.context.store;
            let Some(build) = context::build(store, self.build).await? else {
                return Ok(Some(()));
            };
            let subject = Subject::build(self.build);
            let filter = EventFilter {
                pattern: Some(EventPattern::of("decision.requested")),
                subject: Some(subject.clone()),
                ..EventFilter::default()
            };
            for told in store.events(&filter).await? {
                if let Ok(told) = Event::try_from(&*told.event)
                    && self.is_known(&told, &rule).await?
                {
                    return Ok(Some(()));
                }
            }
            let mut changes = ChangeSet::new();
            // Who tells the same at the same time has to look again.
            changes.update(&build, &build.record);
            let requested = Payload::DecisionRequested(self.decision(request));
            changes.emit(self.context.event(subject, requested));
            store.commit(changes).await?;
            Ok(Some(()))
        })
    }

    /// Says whether an event told of `rule` and people still know of it: not where the question that came of it was withdrawn, as
    /// it is when its task is complete, or where none came, since the task was, or the build had ended.
    async fn is_known(&self, told: &Event, rule: &str) -> Result<bool, ReadError> {
        let Payload::DecisionRequested(refusal) = &told.payload else {
            return Ok(false);
        };
        if refusal.rule.as_deref() != Some(rule) {
            return Ok(false);
        }
        let Some(task) = &refusal.task_id else {
            return Ok(true);
        };
        let store = &self.context.store;
        let asked = Query::new()
            .equal("build", self.build.to_string())
            .equal("trigger", Trigger::DecisionNeeded.as_str());
        let asked = store.list::<Question>(asked).await?;
        // What is not shown whole has no content that could be allowed.
        let shown = refusal.call.as_ref().and(refusal.rule.as_ref());
        let came_of_it = asked.iter().filter(|question| {
            let is_about =
                matches!(&question.about, About::Task { task: about, .. } if about == task);
            let of_rule = match &question.content {
                Some(Content::Call { rule, .. }) => Some(rule),
                _ => None,
            };
            is_about && of_rule == shown && question.asked_at >= told.time
        });
        if let Some(question) = came_of_it.min_by_key(|question| question.asked_at) {
            return Ok(question.state != QuestionState::Superseded);
        }
        let task = context::task(store, self.build, task).await?;
        let is_complete = task.is_none_or(|task| task.state == TaskState::Complete);
        Ok(!is_complete && !self.has_ended_since(told).await?)
    }

    /// Says whether the build has ended since an event: nobody is asked any more what it told of then.
    async fn has_ended_since(&self, told: &Event) -> Result<bool, ReadError> {
        let ends = EventFilter {
            pattern: Some(EventPattern::of("build.completed")),
            subject: Some(Subject::build(self.build)),
            from: Some(told.time),
            limit: Some(1),
            ..EventFilter::default()
        };
        Ok(!self.context.store.events(&ends).await?.is_empty())
    }

    fn decision(&self, request: &ApprovalRequest) -> DecisionRequested {
        let is_whole = is_shown_whole(&request.subject);
        let may = |choice: &DecisionNeeded| match choice {
            DecisionNeeded::AllowCall => is_whole,
            // Nobody allows circles, nor all that cannot be read.
            DecisionNeeded::AllowRule => is_whole && request.asked_by.may_be_ruled(),
            _ => true,
        };
        let id = |choice: DecisionNeeded| ChoiceId::parse(choice.as_str()).ok();
        DecisionRequested {
            build_id: self.build,
            task_id: Some(self.task.clone()),
            question: told(request),
            options: OPTIONS.into_iter().filter(may).filter_map(id).collect(),
            recommended: id(DecisionNeeded::Leave),
            rule: Some(request.asked_by.to_string()),
            call: is_whole.then(|| RefusedCall {
                agent: request.agent.clone(),
                tool: request.tool.clone(),
                subject: request.subject.clone(),
            }),
        }
    }

    /// Says whether a person allowed this before it was called, by itself or with all that its rule leaves to one.
    async fn is_allowed(&self, request: &ApprovalRequest) -> Result<bool, ReadError> {
        let of_build = Query::new().equal("build", self.build.to_string());
        let asked = self.context.store.list::<Question>(of_build).await?;
        let by = request.asked_by.to_string();
        Ok(asked.iter().any(|question| {
            let Some(answer) = &question.answer else {
                return false;
            };
            let Some(Content::Call {
                rule,
                tool,
                subject,
            }) = &question.content
            else {
                return false;
            };
            let is_of_rule = answer.at <= request.at && *rule == by;
            is_of_rule
                && match DecisionNeeded::of(answer.choice.as_ref()) {
                    Some(DecisionNeeded::AllowCall) => {
                        *tool == request.tool && *subject == request.subject
                    }
                    Some(DecisionNeeded::AllowRule) => request.asked_by.may_be_ruled(),
                    _ => false,
                }
        }))
    }
}

/// Says whether every surface shows all of this as it is.
fn is_shown_whole(subject: &str) -> bool {
    let is_plain = matches!(terminal::visible(subject), Cow::Borrowed(_));
    is_plain && subject.chars().count() <= SUBJECT && !subject.contains("```")
}

/// Tells a person what was refused, as a block in which no surface reads marks, and what can be done about it.
fn told(request: &ApprovalRequest) -> String {
    let tool = &request.tool;
    let subject = terminal::visible(&request.subject);
    let subject = clip::letters(&subject, SUBJECT);
    let refused = "Nobody was there, so it was refused, and the work goes on without it";
    match &request.asked_by {
        AskedBy::Repetition => format!(
            "The model goes round in circles: it wanted to use `{tool}` for the third time for\n```sh\n{subject}\n```\n\
             {refused}; what it is told may help it out."
        ),
        AskedBy::Unreadable => format!(
            "The model wanted to use `{tool}` for\n```sh\n{subject}\n```\nand no rule can judge that, since it cannot be read \
             before it runs. {refused}; other such lines of this build are refused alike."
        ),
        asked_by => format!(
            "The model wanted to use `{tool}` for\n```sh\n{subject}\n```\nwhich {asked_by} leaves to a person. \
             {refused}; other such calls of this build are refused alike. A rule in `policy.rules` that allows it holds \
             from the next turn on."
        ),
    }
}

#[async_trait]
impl Approver for UnattendedApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Approval {
        match self.is_allowed(request).await {
            Ok(true) => return Approval::Granted,
            Ok(false) => {}
            Err(error) => {
                warn!(task.id = %self.task, "what people allowed cannot be read: {error}");
            }
        }
        if let Err(error) = self.tell(request).await {
            // The refusal stands; the next one tells it.
            warn!(task.id = %self.task, "nobody could be told that {} asks: {error}", request.asked_by);
        }
        Approval::Denied(INSTEAD.to_owned())
    }
}
