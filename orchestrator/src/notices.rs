//! Tells people what happens: a durable subscriber for each way of telling, and a row for each who is told.
//!
//! What happened becomes rows in the commit that closes its delivery; a loop beside the handler sends what is due, mends
//! what is no longer so, and writes down what came of it. Whatever becomes of that, no work waits for it.
//!
//! To add a way of telling: implement [`Port`], and hand a [`Notifier`] of it to the frame.

mod compose;
mod decide;
mod port;
mod row;
mod sender;
mod subscriber;
mod summary;
mod text;
mod together;
mod unheard;
mod webhook;

use std::sync::Arc;

pub use decide::{Listener, Rules};
pub use port::{Arrival, Notification, Port, PosedQuestion, SendError};
pub use row::asked_for;
pub use subscriber::{Notifier, Parts};
pub use summary::summary_of_last_day;
pub use webhook::{Webhook, WebhookError};

/// The event by which people are told that an idea is complete, with what is best done then.
pub const IDEA_COMPLETE: &str = "ideation.completed";

/// The timer after which everybody hears of a question.
pub(crate) const ESCALATE: &str = "notices.escalate";

/// What is held as long as a duty is done that one process at a time has.
pub type DutyGuard = Box<dyn Send + Sync>;

/// Takes a duty that one process at a time has; none while another one does it.
pub type Turn = Arc<dyn Fn() -> Option<DutyGuard> + Send + Sync>;
