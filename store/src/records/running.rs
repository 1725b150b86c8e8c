//! Rows of what runs: components, alerts, model calls, timers, what the program died of, providers that are away, and
//! that everything is stopped.

use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::deaths::Deaths;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::timer::Timer;

use super::record;

record!(Component, "components", |component| component.name.to_string(), {
    "role": text = &component.role,
    "state": text = component.state,
    "last_seen": integer = component.last_seen,
});

record!(Alert, "alerts", |alert| alert.cause.clone(), {
    "build": text = alert.build,
    "cleared": integer = alert.cleared_at.is_some(),
    "raised_at": integer = alert.raised_at,
});

record!(ModelCall, "model_calls", |call| call.key.clone(), {
    "role": text = &call.role,
    "idea": text = call.idea.as_ref(),
    "build": text = call.build,
    "task": text = call.task.as_ref(),
    "at": integer = call.at,
});

record!(Timer, "timers", |timer| timer.id.to_string(), {
    "name": text = &timer.name,
    "target": text = &timer.target,
    "due": integer = timer.due,
});

record!(Deaths, "deaths", |deaths| deaths.entity.clone(), {
    "count": integer = i64::from(deaths.count),
});

record!(Outage, "outages", |outage| outage.provider.clone(), {
    "open": integer = outage.stands(),
    "since": integer = outage.since,
});

record!(Halt, "halts", |halt| halt.scope.clone(), {
    "since": integer = halt.since,
});
