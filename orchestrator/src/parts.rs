//! Keeps the loops of agents going: one that crashes is shown, rests, and is started again; the last crash ends the process.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use ropewalk_runtime::{CrashHandler, Restarts, Supervisor, idle};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::agent::AgentState;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::payload::ComponentDown;
use ropewalk_schemas::{ComponentName, Payload, Subject};
use ropewalk_store::ChangeSet;
use tracing::{error, warn};

use crate::agent::Worker;
use crate::context::Context;

/// Runs a worker until the process stops.
pub(crate) fn keep(worker: Worker, context: Context, supervisor: &Supervisor) {
    let stop = supervisor.shutdown().soft().clone();
    let Worker { name, run } = worker;
    let (part, shown) = (name.clone(), context.clone());
    let start = move || {
        context.registry.set(&part, AgentState::Idle, None);
        let (work, stop) = (run(context.clone(), stop.clone()), stop.clone());
        async move {
            idle::unless_idle(&stop, work).await;
        }
        .boxed()
    };
    let name = Arc::new(name);
    let crashed: CrashHandler = Box::new(move |message, rest| {
        let (name, context) = (Arc::clone(&name), shown.clone());
        Box::pin(async move { tell(&name, &context, &message, rest).await })
    });
    supervisor.spawn_again("worker", Restarts::default(), start, crashed);
}

/// Shows a crash: in the registry, as an alert, and to everybody who listens.
async fn tell(name: &ComponentName, context: &Context, message: &str, rest: Option<Duration>) {
    let line = match rest {
        Some(rest) => format!("`{name}` crashed and is started again in {rest:?}: {message}"),
        None => format!("`{name}` crashed too often, the program ends: {message}"),
    };
    error!(component = %name, "{line}");
    context.registry.set(name, AgentState::Error, None);
    let mut changes = ChangeSet::new();
    let severity = Severity::Error;
    changes.put(&Alert {
        cause: Subject::component(name).to_string(),
        severity,
        message: line,
        build: None,
        raised_at: context.now(),
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    });
    changes.emit(context.event(
        Subject::component(name),
        Payload::ComponentDown(ComponentDown {
            component: name.clone(),
            silent_seconds: 0,
            severity: Some(severity),
        }),
    ));
    if let Err(problem) = context.store.commit(changes).await {
        warn!(
            "the crash of `{name}` could not be stored: {}",
            Words::of(&problem)
        );
    }
}
