//! Sends a request again while nothing of its reply was seen.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use ropewalk_runtime::{Clock, idle};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::error::{ModelError, Retry};
use crate::model::Model;
use crate::reply::{Delta, ReplyStream};
use crate::request::ModelRequest;

/// Says how often and how soon a request is sent again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// How many times after the first.
    pub retries: u32,
    /// The first wait; each further one doubles.
    pub base: Duration,
    /// The longest wait of its own choice.
    pub cap: Duration,
    /// The fraction by which a wait may be shorter or longer.
    pub jitter: f64,
    /// The longest wait that a provider may ask for; a longer one is the caller's to keep, who can pause the work
    /// to a stored time instead of holding a task.
    pub longest_asked: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 5,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(30),
            jitter: 0.25,
            longest_asked: Duration::from_mins(2),
        }
    }
}

impl RetryPolicy {
    /// Returns how long to wait after `error`, `retry` retries having been made; `None` gives up.
    ///
    /// `random` is a fraction in `0.0..1.0`. What the provider asks for wins, save for "at once", which would be
    /// a storm.
    pub fn wait(&self, retry: u32, error: &ModelError, random: f64) -> Option<Duration> {
        if retry >= self.retries || error.retry() != Retry::Soon {
            return None;
        }
        match error.retry_after() {
            Some(asked) if asked > self.longest_asked => None,
            Some(asked) if !asked.is_zero() => Some(asked),
            _ => {
                let doubled = self.base.saturating_mul(1 << retry.min(31)).min(self.cap);
                let factor = 1.0 + self.jitter * (2.0 * random - 1.0);
                Some(doubled.mul_f64(factor.max(0.0)).min(self.cap))
            }
        }
    }
}

/// Wraps a model and sends a request again until the first delta is known or the policy gives up.
///
/// From the first delta on the caller may have acted on it, so errors surface instead.
pub struct RetryingModel<M> {
    model: M,
    policy: RetryPolicy,
    clock: Clock,
}

impl<M: Model> RetryingModel<M> {
    /// Wraps `model`; waits go by `clock`.
    pub fn new(model: M, policy: RetryPolicy, clock: Clock) -> Self {
        Self {
            model,
            policy,
            clock,
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let stream = self.model.stream(request, cancel).await?;
        first_output(stream).await
    }
}

#[async_trait]
impl<M: Model> Model for RetryingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let mut retry = 0;
        loop {
            let error = match self.attempt(request, cancel).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            let again = self.policy.wait(retry, &error, rand::random());
            let Some(wait) = again.filter(|_| !request.once) else {
                return Err(error);
            };
            retry += 1;
            warn!(
                model.provider = self.name(),
                model.retry = retry,
                "asking again in {wait:?}: {error}"
            );
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                () = idle::waiting(self.clock.sleep(wait)) => {}
            }
        }
    }
}

/// Reads up to the first delta that shows something of the reply, and puts back what was read.
async fn first_output(mut stream: ReplyStream) -> Result<ReplyStream, ModelError> {
    let mut read = Vec::new();
    while let Some(item) = stream.next().await {
        let delta = item?;
        let shows = !matches!(delta, Delta::Usage(_));
        read.push(Ok(delta));
        if shows {
            return Ok(ReplyStream::new(stream::iter(read).chain(stream)));
        }
    }
    Err(ModelError::Truncated)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use chrono::{DateTime, TimeDelta};

    use super::*;
    use crate::error::TimeoutKind;
    use crate::reply::{Reply, StopReason, Usage, complete};

    type Items = Vec<Result<Delta, ModelError>>;

    /// Plays one list of items per request.
    struct Plays(Mutex<VecDeque<Items>>);

    impl Plays {
        fn new(items: impl IntoIterator<Item = Items>) -> Self {
            Self(Mutex::new(items.into_iter().collect()))
        }

        fn left(&self) -> usize {
            self.0.lock().unwrap().len()
        }
    }

    #[async_trait]
    impl Model for Plays {
        fn name(&self) -> &'static str {
            "plays"
        }

        async fn stream(
            &self,
            _: &ModelRequest,
            _: &CancellationToken,
        ) -> Result<ReplyStream, ModelError> {
            let items = self.0.lock().unwrap().pop_front().unwrap();
            Ok(ReplyStream::new(stream::iter(items)))
        }
    }

    fn reply() -> Reply {
        Reply {
            blocks: Vec::new(),
            stop: StopReason::EndTurn,
            usage: Usage::default(),
            model: "m".to_owned(),
        }
    }

    fn overloaded() -> ModelError {
        ModelError::Overloaded {
            status: 503,
            message: String::new(),
            retry_after: None,
        }
    }

    fn limited(seconds: u64) -> ModelError {
        ModelError::RateLimited {
            message: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    /// Asks once while the clock runs; returns the outcome, the requests left over and the time that passed.
    async fn ask(plays: Vec<Items>) -> (Result<Reply, ModelError>, usize, Duration) {
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let model = RetryingModel::new(Plays::new(plays), RetryPolicy::default(), clock.clone());
        let cancel = CancellationToken::new();
        let request = ModelRequest::new("m", "", Vec::new());
        let work = async { complete(model.stream(&request, &cancel).await?, |_| ()).await };
        let time = async {
            loop {
                tokio::task::yield_now().await;
                clock.advance(Duration::from_millis(10));
            }
        };
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = time => unreachable!("time does not end"),
        };
        let passed: TimeDelta = clock.now() - DateTime::UNIX_EPOCH;
        (outcome, model.model.left(), passed.to_std().unwrap())
    }

    #[test]
    fn the_wait_follows_the_policy() {
        let policy = RetryPolicy::default();
        let cases = [
            (0, overloaded(), 0.5, Some(1_000)),
            (0, overloaded(), 0.0, Some(750)),
            (0, overloaded(), 1.0, Some(1_250)),
            (3, overloaded(), 0.5, Some(8_000)),
            (4, overloaded(), 0.5, Some(16_000)),
            (5, overloaded(), 0.5, None),
            (0, limited(3), 0.0, Some(3_000)),
            (4, limited(120), 0.0, Some(120_000)),
            (0, limited(121), 0.0, None),
            (1, limited(0), 0.5, Some(2_000)),
            (0, ModelError::Truncated, 0.5, Some(1_000)),
            (
                0,
                ModelError::OutOfCredit {
                    message: String::new(),
                },
                0.5,
                None,
            ),
            (0, ModelError::Cancelled, 0.5, None),
            (
                0,
                ModelError::Timeout {
                    what: TimeoutKind::Idle,
                },
                0.5,
                Some(1_000),
            ),
            (
                0,
                ModelError::Timeout {
                    what: TimeoutKind::Total,
                },
                0.5,
                None,
            ),
        ];
        for (retry, error, random, milliseconds) in cases {
            assert_eq!(
                policy.wait(retry, &error, random),
                milliseconds.map(Duration::from_millis),
                "retry {retry}, {error:?}, {random}"
            );
        }
        let patient = RetryPolicy {
            retries: 50,
            ..policy
        };
        let wait = patient.wait(40, &overloaded(), 1.0);
        assert_eq!(wait, Some(Duration::from_secs(30)));
    }

    #[tokio::test]
    async fn five_retries_and_then_the_error() {
        let plays = (0..7).map(|_| vec![Err(overloaded())]).collect();
        let (outcome, left, passed) = ask(plays).await;
        assert_eq!((outcome, left), (Err(overloaded()), 1));
        // 1 + 2 + 4 + 8 + 16 seconds, a quarter less at best.
        assert!(passed >= Duration::from_millis(23_250), "{passed:?}");
    }

    #[tokio::test]
    async fn the_wait_that_the_provider_asks_for_is_kept() {
        let plays = vec![vec![Err(limited(3))], vec![Ok(Delta::Done(reply()))]];
        let (outcome, left, passed) = ask(plays).await;
        assert_eq!((outcome, left), (Ok(reply()), 0));
        assert!(passed >= Duration::from_secs(3), "{passed:?}");
    }

    #[tokio::test]
    async fn an_error_after_mere_counts_is_retried() {
        let usage = Ok(Delta::Usage(Usage::default()));
        let plays = vec![
            vec![usage, Err(overloaded())],
            vec![Ok(Delta::Done(reply()))],
        ];
        assert_eq!(ask(plays).await.0, Ok(reply()));
    }

    #[tokio::test]
    async fn an_error_after_a_delta_surfaces() {
        let text = Ok(Delta::Text("half".to_owned()));
        let plays = vec![
            vec![text, Err(overloaded())],
            vec![Ok(Delta::Done(reply()))],
        ];
        let (outcome, left, _) = ask(plays).await;
        assert_eq!((outcome, left), (Err(overloaded()), 1));
    }

    #[tokio::test]
    async fn an_overflow_surfaces_at_once() {
        let overflow = ModelError::ContextOverflow {
            message: String::new(),
        };
        let plays = vec![vec![Err(overflow.clone())], Vec::new()];
        let (outcome, left, _) = ask(plays).await;
        assert_eq!((outcome, left), (Err(overflow), 1));
    }

    #[tokio::test]
    async fn cancelling_ends_the_wait() {
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let plays = Plays::new([vec![Err(limited(60))]]);
        let model = RetryingModel::new(plays, RetryPolicy::default(), clock);
        let cancel = CancellationToken::new();
        let request = ModelRequest::new("m", "", Vec::new());
        let (outcome, ()) = tokio::join!(model.stream(&request, &cancel), async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
        assert_eq!(outcome.unwrap_err(), ModelError::Cancelled);
    }
}
