//! Says why a build stands as it does.

use ropewalk_schemas::build::Build;
use ropewalk_schemas::outage::Outage;

/// Says why a build stands as it does: for an outage that holds it, else for a reason of its own.
pub(super) fn why(build: &Build, outage: Option<&Outage>) -> Option<String> {
    match outage {
        Some(outage) => Some(outage.to_string()),
        None => build.reason.clone(),
    }
}
