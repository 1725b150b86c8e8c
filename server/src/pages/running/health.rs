//! How everything is that a run needs, as `doctor` tells it.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::health::{Finding, Fitness};

use crate::pages::frame::{Frame, page};
use crate::pages::shown;
use crate::problem::Problem;
use crate::shared::ServerState;

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPage {
    frame: Frame,
    findings: Vec<Finding>,
}

/// Looks at everything anew and shows what was found.
pub(in crate::pages) async fn show(
    State(shared): State<ServerState>,
    frame: Frame,
) -> Result<Response, Problem> {
    page(&HealthPage {
        frame,
        findings: shared.examined().await,
    })
}

/// Returns the class of the colour of a verdict.
const fn tone(verdict: Fitness) -> &'static str {
    match verdict {
        Fitness::Ok => "good",
        Fitness::Warn => "waits",
        Fitness::Fail => "bad",
    }
}
