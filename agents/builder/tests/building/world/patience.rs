//! Waits that end: what never comes fails its test, and does not hold it for ever.

use std::path::Path;

use ropewalk_world::patience::{self, NeverCame};

/// Waits until a command has made this file.
pub(crate) async fn exists(place: &Path) {
    let what = format!("{} is there", place.display());
    until(&what, async || place.exists()).await;
}

/// Waits until `what` has come about, which `holds` tells.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let look = || async { Ok::<_, NeverCame>(holds().await.then_some(())) };
    patience::until(what, look).await.unwrap();
}
