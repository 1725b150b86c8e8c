//! Answers for people who are not there: what a rule or the mode leaves to one is refused at once, and people hear of it
//! once for each build.

use async_trait::async_trait;
use ropewalk_engine::{Approval, ApprovalRequest, Approver};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::payload::DecisionRequested;
use ropewalk_schemas::{BuildId, ChoiceId, Event, EventPattern, Payload, Subject, TaskId};
use ropewalk_store::{ChangeSet, EventFilter};
use tracing::warn;

use crate::attempt::work::Work;
use crate::context::{self, retry_on_conflict};
use crate::error::BuilderError;

/// What a person can do about a refusal while the work goes on.
const OPTIONS: [&str; 2] = ["guide", "leave"];
/// What a model does without what was refused.
const INSTEAD: &str = "no person is there now; do the task without it. Where that cannot be done, hand in with `blocked` \
                       and say what it needs";
/// So much of what was refused is told, in characters.
const SUBJECT: usize = 300;

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

    /// Lets people hear of a refusal, unless they have heard of this rule in this build.
    async fn tell(&self, request: &ApprovalRequest) -> Result<(), BuilderError> {
        retry_on_conflict!(&self.task, {
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
            let told = store.events(&filter).await?;
            let mut told = told
                .iter()
                .filter_map(|told| Event::try_from(&*told.event).ok());
            let is_told = told.any(|told| match told.payload {
                Payload::DecisionRequested(told) => told.rule.as_ref() == Some(&request.asked_by),
                _ => false,
            });
            if is_told {
                return Ok(Some(()));
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

    fn decision(&self, request: &ApprovalRequest) -> DecisionRequested {
        let subject: String = request.subject.chars().take(SUBJECT).collect();
        let choice = |id: &str| ChoiceId::parse(id).ok();
        DecisionRequested {
            build_id: self.build,
            task_id: Some(self.task.clone()),
            question: format!(
                "The model wanted to use `{}` for `{subject}`, which {} leaves to a person. Nobody was there, so it was \
                 refused, and the work goes on without it; other such calls of this build are refused alike. A rule in \
                 `policy.rules` that allows it holds from the next turn on.",
                request.tool, request.asked_by
            ),
            options: OPTIONS.into_iter().filter_map(choice).collect(),
            recommended: choice("leave"),
            rule: Some(request.asked_by.clone()),
        }
    }
}

#[async_trait]
impl Approver for UnattendedApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Approval {
        if let Err(error) = self.tell(request).await {
            // The refusal stands; the next one tells it.
            warn!(task.id = %self.task, "nobody could be told that {} asks: {error}", request.asked_by);
        }
        Approval::Denied(INSTEAD.to_owned())
    }
}
