//! Asks anew about a branch whose review holds something against it: the question was put before anybody had looked.

use ropewalk_config::Trigger;
use ropewalk_desk::builds::landing;
use ropewalk_desk::views::review::ObjectionView;
use ropewalk_desk::views::trace::Trace;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::payload::ReviewCompleted;
use ropewalk_schemas::review::Review;
use ropewalk_store::ChangeSet;

use crate::SharedState;
use crate::ask::{self, BranchOutlook};
use crate::context::{self, Plan, of_build};
use crate::decide::counts::count;
use crate::error::BuilderError;

/// So many objections are told in a question; the rest is counted.
const TOLD: usize = 3;

/// Puts the question about the branch of a build in the light of its review, where that is still open and something speaks
/// against landing it.
pub(super) async fn reviewed(
    shared: &SharedState,
    context: &Context,
    completed: &ReviewCompleted,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let id = completed.review_id.to_string();
    let Some(review) = context.store.get::<Review>(&id).await? else {
        return Ok(changes);
    };
    let Some(build) = review
        .build
        .filter(|_| review.objections().next().is_some())
    else {
        return Ok(changes);
    };
    let Some(plan) = Plan::load(&context.store, build).await? else {
        return Ok(changes);
    };
    let finished = Trigger::BuildFinished;
    let open = ask::open_questions(context, build).await?;
    let is_open = open.iter().any(|asked| asked.trigger == finished.as_str());
    // A review of an end that was taken back says nothing of the one that is asked about.
    if !is_open || review.ended_at != plan.build.completed_at {
        return Ok(changes);
    }
    // Somebody has decided, and the question is closed once that is done.
    if context::wish(&context.store, build).await?.is_some() {
        return Ok(changes);
    }
    let context = of_build(context, &plan.build);
    let why = "the review found what speaks against it";
    ask::supersede_asked(&context, &mut changes, build, finished, why).await?;
    let trace = Trace::load(&context.store, &plan.build).await?;
    let outlook = BranchOutlook {
        requirements: Fulfilment::summed_up(&trace.fulfilments(), trace.tasks()),
        gate: landing::gate_lines(trace.newest_of_whole(), trace.tasks()),
        objections: objections(&review),
        doubts: false,
        in_the_way: None,
    };
    let counts = count(&plan.records());
    let after = ask::build_finished(
        shared,
        &context,
        &mut changes,
        &plan.build,
        &counts,
        outlook,
    )
    .await?;
    changes.update(&plan.build, &after);
    Ok(changes)
}

/// Tells what a review holds against a build, a line each.
fn objections(review: &Review) -> Vec<String> {
    let all = ObjectionView::all(review);
    let more = all.len().saturating_sub(TOLD);
    let told = all.into_iter().take(TOLD).map(|objection| objection.told);
    let mut told: Vec<String> = told.collect();
    if let Some(last) = told.last_mut().filter(|_| more > 0) {
        *last = format!("{last}; and {more} more");
    }
    told
}
