//! Lists every event type with its payload (design §5); the one place where a type gets its name.

mod alerts;
mod builds;
mod halts;
mod ideation;
mod knowledge;
mod phones;
mod questions;
mod reviews;
mod specifications;
mod tasks;

use serde_json::Value;

pub use alerts::{
    AlertCleared, AlertEscalated, BudgetExceeded, BuildFailedAlert, ComponentDown,
    ConflictDetected, DeadlockDetected, DecisionMade, DecisionRequested, ProviderDown, RefusedCall,
    SlotRetired, StuckTask, Verdict,
};
pub use builds::{
    BuildCompleted, BuildMerged, BuildPaused, BuildPriority, BuildRequest, BuildStarted, BuildTell,
    ChangeDecided, ChangeRequested, LockExtended, LockReleased, LockRevoked, WorkAssigned,
};
pub use halts::{HaltBegun, HaltLifted};
pub use ideation::{
    ArtifactSaved, CandidateCreated, IdeaAbandoned, IdeationCompleted, IdeationMessage,
    IdeationStarted, PhaseChanged,
};
pub use knowledge::{
    KnowledgeDeprecated, KnowledgePromoted, KnowledgeRecorded, KnowledgeReinforced,
};
pub use phones::{PhoneLinked, UpdateKept, UpdateLeft};
pub use questions::{
    QuestionAnswered, QuestionAsked, QuestionClosed, QuestionReminded, ScheduleDue,
};
pub use reviews::ReviewCompleted;
pub use specifications::{
    SpecApproved, SpecGenerated, SpecRejected, SpecRequested, SpecRevisionRefused,
    SpecRevisionRequested,
};
pub use tasks::{TaskCompleted, TaskFailed, TaskRetry, TaskSkipped, TaskStarted};

use crate::question::before_ids;

/// Says why a payload cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadError {
    /// The type is not in the list.
    UnknownType,
    /// The schema version is above the one known here.
    NewerVersion {
        /// The newest version known here.
        known: u32,
    },
    /// The data does not fit the type.
    Malformed(String),
}

macro_rules! payloads {
    (@version) => { 1 };
    (@version $version:literal) => { $version };
    ($( $(#[$doc:meta])* $variant:ident($payload:ty) = $name:literal $(version $version:literal from $before:path)? ),+ $(,)?) => {
        /// Says what happened.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Payload {
            $( $(#[$doc])* $variant($payload) ),+
        }

        impl Payload {
            /// Lists every event type.
            pub const TYPES: &'static [&'static str] = &[$( $name ),+];

            /// Returns the event type.
            pub const fn event_type(&self) -> &'static str {
                match self { $( Self::$variant(_) => $name ),+ }
            }

            /// Returns the data of the event.
            pub fn to_value(&self) -> Value {
                // A payload is a struct of plain fields, which JSON can always hold.
                match self { $( Self::$variant(payload) => serde_json::to_value(payload) ),+ }
                    .unwrap_or(Value::Null)
            }

            /// Returns the version of the payload's schema.
            pub const fn schema_version(&self) -> u32 {
                match self { $( Self::$variant(_) => payloads!(@version $($version)?) ),+ }
            }

            /// Reads the data of an event of `event_type`.
            pub fn decode(event_type: &str, version: u32, data: &Value) -> Result<Self, PayloadError> {
                match event_type {
                    $( $name => {
                        let known = payloads!(@version $($version)?);
                        if version > known {
                            return Err(PayloadError::NewerVersion { known });
                        }
                        $( if version < $version {
                            let mut data = data.clone();
                            $before(&mut data);
                            return read(&data).map(Self::$variant);
                        } )?
                        read(data).map(Self::$variant)
                    } )+
                    _ => Err(PayloadError::UnknownType),
                }
            }

            /// Returns the JSON Schema of every payload by event type.
            pub fn json_schemas() -> Vec<(&'static str, schemars::Schema)> {
                vec![$( ($name, schemars::schema_for!($payload)) ),+]
            }
        }
    };
}

fn read<P: serde::de::DeserializeOwned>(data: &Value) -> Result<P, PayloadError> {
    P::deserialize(data).map_err(|error| PayloadError::Malformed(error.to_string()))
}

payloads! {
    /// A person wrote to an ideation session.
    IdeationMessage(IdeationMessage) = "ideation.message",
    /// A session began.
    IdeationStarted(IdeationStarted) = "ideation.started",
    /// A session moved to its next phase.
    PhaseChanged(PhaseChanged) = "ideation.phase_changed",
    /// An artifact was written to the idea folder.
    ArtifactSaved(ArtifactSaved) = "artifact.saved",
    /// An idea became a candidate with its first artifact.
    CandidateCreated(CandidateCreated) = "candidate.created",
    /// A session is complete and its brief written.
    IdeationCompleted(IdeationCompleted) = "ideation.completed",
    /// A person gave an idea up.
    IdeaAbandoned(IdeaAbandoned) = "idea.abandoned",
    /// Somebody asked for a specification.
    SpecRequested(SpecRequested) = "spec.requested",
    /// Somebody asked for changes to a specification.
    SpecRevisionRequested(SpecRevisionRequested) = "spec.revision_requested",
    /// An answer asked for changes that cannot be made now.
    SpecRevisionRefused(SpecRevisionRefused) = "spec.revision_refused",
    /// A revision of a specification is ready to be read.
    SpecGenerated(SpecGenerated) = "spec.generated",
    /// A specification was refused, by a person or because it could not be made.
    SpecRejected(SpecRejected) = "spec.rejected",
    /// A person approved one revision by its hash.
    SpecApproved(SpecApproved) = "spec.approved",
    /// A build began.
    BuildStarted(BuildStarted) = "build.started",
    /// A build stands still.
    BuildPaused(BuildPaused) = "build.paused",
    /// A build's branch was merged.
    BuildMerged(BuildMerged) = "build.merged",
    /// A build ended.
    BuildCompleted(BuildCompleted) = "build.completed",
    /// Somebody asked a build to pause.
    BuildPause(BuildRequest) = "build.pause",
    /// Somebody asked a build to go on.
    BuildResume(BuildRequest) = "build.resume",
    /// Somebody asked a build to stop.
    BuildStop(BuildRequest) = "build.stop",
    /// Somebody said how urgent a build is.
    BuildPriority(BuildPriority) = "build.priority",
    /// Somebody said something to the model of a task.
    BuildTell(BuildTell) = "build.tell",
    /// Somebody asked for a task to be tried again.
    TaskRetry(TaskRetry) = "task.retry",
    /// A task was given to a loop.
    WorkAssigned(WorkAssigned) = "work.assigned",
    /// PM decided something.
    DecisionMade(DecisionMade) = "decision.made",
    /// A running attempt got files that its task does not declare.
    LockExtended(LockExtended) = "lock.extended",
    /// A file lock was released.
    LockReleased(LockReleased) = "lock.released",
    /// A file lock was taken away from its holder.
    LockRevoked(LockRevoked) = "lock.revoked",
    /// A build asks the owner of a file for a change.
    ChangeRequested(ChangeRequested) = "change.requested",
    /// The owner of a file answered a change request.
    ChangeDecided(ChangeDecided) = "change.decided",
    /// An attempt at a task began.
    TaskStarted(TaskStarted) = "task.started",
    /// A task landed.
    TaskCompleted(TaskCompleted) = "task.completed",
    /// A task was left out.
    TaskSkipped(TaskSkipped) = "task.skipped",
    /// An attempt at a task failed.
    TaskFailed(TaskFailed) = "task.failed",
    /// A task makes no progress.
    StuckTask(StuckTask) = "alert.stuck_task",
    /// A task has made no progress for so long that it is worse than was told.
    StuckTaskEscalated(AlertEscalated) = "alert.stuck_task.escalated",
    /// A stuck task moves again.
    StuckTaskCleared(AlertCleared) = "alert.stuck_task.cleared",
    /// A cycle of waits was found.
    DeadlockDetected(DeadlockDetected) = "alert.deadlock",
    /// A component gives no sign of life.
    ComponentDown(ComponentDown) = "alert.component_down",
    /// A component is back.
    ComponentDownCleared(AlertCleared) = "alert.component_down.cleared",
    /// A provider of models is away.
    ProviderDown(ProviderDown) = "alert.provider_down",
    /// A provider of models answers again.
    ProviderDownCleared(AlertCleared) = "alert.provider_down.cleared",
    /// A checkout could not be made clean any more.
    SlotRetired(SlotRetired) = "alert.slot_retired",
    /// A build failed.
    BuildFailed(BuildFailedAlert) = "alert.build_failed",
    /// Two builds want one file.
    ConflictDetected(ConflictDetected) = "conflict.detected",
    /// Work cannot go on without a decision.
    DecisionRequested(DecisionRequested) = "decision.requested",
    /// A budget is used up.
    BudgetExceeded(BudgetExceeded) = "budget.exceeded",
    /// A question was put to people.
    QuestionAsked(QuestionAsked) = "question.asked",
    /// People were reminded of an open question.
    QuestionReminded(QuestionReminded) = "question.reminded",
    /// A person answered a question.
    QuestionAnswered(QuestionAnswered) = "question.answered" version 2 from before_ids::answered,
    /// A question took its default.
    QuestionDefaulted(QuestionAnswered) = "question.defaulted" version 2 from before_ids::answered,
    /// A question was dismissed without an answer.
    QuestionDismissed(QuestionClosed) = "question.dismissed",
    /// A question no longer matters.
    QuestionSuperseded(QuestionClosed) = "question.superseded",
    /// A knowledge item was recorded.
    KnowledgeRecorded(KnowledgeRecorded) = "knowledge.recorded",
    /// A knowledge item gained or lost confidence.
    KnowledgeReinforced(KnowledgeReinforced) = "knowledge.reinforced",
    /// A knowledge item was added to the conventions file.
    KnowledgePromoted(KnowledgePromoted) = "knowledge.promoted",
    /// A knowledge item was put out of use.
    KnowledgeDeprecated(KnowledgeDeprecated) = "knowledge.deprecated",
    /// A review is written.
    ReviewCompleted(ReviewCompleted) = "review.completed",
    /// Somebody stopped everything.
    HaltBegun(HaltBegun) = "halt.begun",
    /// Somebody let everything go on.
    HaltLifted(HaltLifted) = "halt.lifted",
    /// Somebody was linked to a phone.
    PhoneLinked(PhoneLinked) = "phone.linked",
    /// A bot keeps what somebody did in a chat until it has its turn.
    UpdateKept(UpdateKept) = "phone.update_kept",
    /// A bot could not do what somebody did in a chat.
    UpdateLeft(UpdateLeft) = "phone.update_left",
    /// A timer or a schedule came due.
    ScheduleDue(ScheduleDue) = "schedule.due",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_named_once() {
        let mut names = Payload::TYPES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Payload::TYPES.len());
    }

    #[test]
    fn unknown_types_and_newer_versions_are_told_apart_from_malformed_data() {
        let data = serde_json::json!({});
        assert_eq!(
            Payload::decode("task.vanished", 1, &data),
            Err(PayloadError::UnknownType)
        );
        assert_eq!(
            Payload::decode("task.started", 2, &data),
            Err(PayloadError::NewerVersion { known: 1 })
        );
        assert!(matches!(
            Payload::decode("task.started", 1, &data),
            Err(PayloadError::Malformed(_))
        ));
    }
}
