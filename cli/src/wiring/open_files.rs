//! Lets the process hold so many files and connections open as it needs to serve all who may come.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::warn;

/// Enough for every connection that a server holds at once, with what it is answered from, and for the work beside it. Not
/// all that the system allows: some programs close every number that they could have, and what runs below inherits this.
const ENOUGH: u64 = 16_384;

/// Raises the limit that shells and managers set out of caution, as far as it may be raised.
pub fn raise() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let wanted = ENOUGH.min(hard);
        if soft >= wanted {
            return Ok(());
        }
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
    });
    if let Err(error) = raised {
        warn!("few files can be open at once: cannot raise the limit: {error}");
    }
}
