//! Holds what every Ropewalk process runs on: clock, ids, retry, supervision, shutdown, telemetry, HTTP clients.
//!
//! What it is not: it knows no event, no agent and no store, and it holds no business rule. Nothing here is
//! global but what is the process's own, its log, its [`stderr`] and its [`secrets`]: a [`Clock`] or an [`Ids`] is passed to whoever needs
//! one, so that a test can move it.
//!
//! To add one more service: write a module with one public type that is cheap to clone, take the [`Clock`]
//! as an argument if it needs time, and name its task kind in [`supervisor`].

pub mod brake;
pub mod clock;
#[cfg(feature = "failpoints")]
pub mod failpoint;
pub mod http;
pub mod idle;
pub mod ids;
pub mod in_hand;
pub mod retry;
pub mod secrets;
pub mod service;
pub mod shutdown;
pub mod stderr;
pub mod supervisor;
pub mod telemetry;
pub mod terminal;
pub mod token;
pub mod traces;

pub use brake::Brake;
pub use clock::Clock;
pub use ids::Ids;
pub use in_hand::InHand;
pub use retry::Backoff;
pub use service::ServiceManager;
pub use shutdown::Shutdown;
pub use supervisor::{CrashHandler, Restarts, Supervisor, TaskFailure};

/// Marks a place at which a test can make the process fail; nothing at all without the feature `failpoints`.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! failpoint {
    ($place:expr) => {
        $crate::failpoint::pass($place)
    };
}

/// Marks a place at which a test can make the process fail; nothing at all without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! failpoint {
    ($place:expr) => {};
}
