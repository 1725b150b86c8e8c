//! Carries the two-step stop: drain first, abort second.

use tokio_util::sync::CancellationToken;

/// Tells every part of a process to stop: softly (take nothing new, finish) or hard (drop what you hold).
///
/// A hard stop implies a soft one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown {
    soft: CancellationToken,
    hard: CancellationToken,
}

impl Default for Shutdown {
    fn default() -> Self {
        let hard = CancellationToken::new();
        Self {
            soft: hard.child_token(),
            hard,
        }
    }
}

impl Shutdown {
    /// Returns a fresh pair of tokens, neither cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a drain: intake stops, work in hand goes on.
    pub fn begin(&self) {
        self.soft.cancel();
    }

    /// Asks for an abort: work in hand is dropped where it is safe to drop it.
    pub fn abort(&self) {
        self.hard.cancel();
    }

    /// Returns the token that intake watches.
    pub fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    /// Returns the token that work in hand watches.
    pub fn hard(&self) -> &CancellationToken {
        &self.hard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_stop_is_a_soft_stop_too_and_not_the_other_way_round() {
        let shutdown = Shutdown::new();
        shutdown.begin();
        assert!(shutdown.soft().is_cancelled() && !shutdown.hard().is_cancelled());
        let shutdown = Shutdown::new();
        shutdown.abort();
        assert!(shutdown.soft().is_cancelled() && shutdown.hard().is_cancelled());
    }
}
