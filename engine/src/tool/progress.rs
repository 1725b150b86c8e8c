//! Carries what a tool says before it has ended to those who watch.

use tokio::sync::mpsc;

/// So many pieces wait to be seen; who watches too slowly misses some, and reads all in the result.
const WAITING: usize = 64;

/// Is where a tool says how far it has come. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    pieces: Option<mpsc::Sender<String>>,
}

impl Progress {
    /// Makes one with its other end, which hears the pieces in order.
    pub(crate) fn heard() -> (Self, mpsc::Receiver<String>) {
        let (pieces, heard) = mpsc::channel(WAITING);
        let pieces = Some(pieces);
        (Self { pieces }, heard)
    }

    /// Says more of what the tool found or wrote; never waits. It is to hold no secret, also none that a later piece ends.
    pub fn say(&self, text: String) {
        if let Some(pieces) = &self.pieces
            && !text.is_empty()
        {
            // A full channel has news enough, and one without its other end nobody listens to.
            pieces.try_send(text).ok();
        }
    }
}
