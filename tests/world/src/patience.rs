//! Waits that end: what never comes fails its test, and does not hold it for ever.

use std::time::Duration;

/// How long anything is waited for that should happen at once; a busy machine takes a while for it.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// How long nobody looks after a look that found nothing.
const REST: Duration = Duration::from_millis(10);

/// Tells that something was waited for which never came.
#[derive(Debug, thiserror::Error)]
#[error("waited for {0}, and it never came")]
pub struct NeverCame(String);

/// Looks until `look` finds what it looks for.
pub async fn until<T, E, F, Looking>(what: &str, mut look: F) -> Result<T, E>
where
    E: From<NeverCame>,
    F: FnMut() -> Looking,
    Looking: Future<Output = Result<Option<T>, E>>,
{
    let search = async {
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            tokio::time::sleep(REST).await;
        }
    };
    tokio::time::timeout(PATIENCE, search)
        .await
        .unwrap_or_else(|_| Err(NeverCame(what.to_owned()).into()))
}
