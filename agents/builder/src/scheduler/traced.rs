//! Shows whole builds as spans, in the words of the conventions for generative models: a build is a workflow.

use ropewalk_orchestrator::Context;
use ropewalk_runtime::traces::{self, AttributeValue, Kind, Span};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::trace;
use ropewalk_store::{ChangeSet, CommitError};

/// Commits `changes`, and shows the build that they end, if they do.
pub(super) async fn commit(
    context: &Context,
    before: &Build,
    changes: ChangeSet,
) -> Result<(), CommitError> {
    let span = ended(before, &changes);
    context.store.commit(changes).await?;
    span.into_iter().for_each(traces::record);
    Ok(())
}

/// Returns the span of a build that `changes` end; none where no spans are sent, or where it goes on or never began.
///
/// Whoever works for a build names its span before it has ended. One that was taken up again and ends once more is another part
/// of that.
fn ended(before: &Build, changes: &ChangeSet) -> Option<Span> {
    if !traces::are_on() || before.completed_at.is_some() {
        return None;
    }
    let written = changes.written::<Build>().into_iter();
    let after = written
        .filter(|build| build.id == before.id)
        .find(|build| build.completed_at.is_some())?;
    let (began, ended) = (after.started_at?, after.completed_at?);
    let whole = trace::build_span(after.id);
    let (id, parent) = if before.spent.is_some() {
        let again = format!("build/{}/{}", after.id, ended.timestamp_micros());
        (trace::work_span(&again), Some(whole))
    } else {
        (whole, after.cause.map(trace::event_span))
    };
    let failure = (after.state == BuildState::Failed).then_some("failed");
    let mut attributes = vec![
        (
            "gen_ai.operation.name",
            AttributeValue::from("invoke_workflow"),
        ),
        ("gen_ai.workflow.name", "build".into()),
        ("ropewalk.idea", after.idea.to_string().into()),
        ("ropewalk.build", after.id.to_string().into()),
        ("ropewalk.state", after.state.as_str().into()),
    ];
    attributes.extend(failure.map(|error| ("error.type", error.into())));
    Some(Span {
        trace: trace::trace_id(after.correlation_id),
        id,
        parent,
        state: None,
        kind: Kind::Internal,
        name: "invoke_workflow build".to_owned(),
        began,
        ended,
        attributes,
        failure: failure.map(str::to_owned),
    })
}
