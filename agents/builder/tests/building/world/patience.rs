//! Waits that end: what never comes fails its test, and does not hold it for ever.

use std::path::Path;
use std::time::Duration;

use crate::world::project::PATIENCE;

/// Waits until a command has made this file.
pub(crate) async fn exists(place: &Path) {
    let what = format!("{} is there", place.display());
    until(&what, async || place.exists()).await;
}

/// Waits until `what` has come about, which `holds` tells.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let reached = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "it never came about that {what}");
}
