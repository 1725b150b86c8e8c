//! Puts questions to people, takes their answers, and applies what happens when nobody answers (design §11).

mod answer;
mod ask;
mod decide;
mod form;
mod reply;
mod service;

pub use answer::{
    AcceptedAnswer, AnswerError, answer, answer_defaults, choices_in_short, choices_told, chosen,
};
pub use ask::{AskOutcome, QuestionRequest, ask, supersede};
pub use decide::{Deadline, Deadlines, OnDeadline, Rank, default_of, rank, role};
pub use form::form;
pub use reply::{AnswerInput, takes_words};
pub use service::QuestionService;

/// The timer that reminds people of a question.
pub(crate) const REMIND: &str = "question.remind";

/// The timer that ends a question nobody answered.
pub(crate) const DEADLINE: &str = "question.deadline";

/// Who answers a question that nobody answered in time.
pub(crate) const BY_DEFAULT: &str = "default";
