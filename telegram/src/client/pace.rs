//! Sends no more than Telegram takes: one message a second to a chat, a few at once, twenty a minute to a group, and thirty a
//! second in all. What would be refused with 429 waits here instead.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::Clock;

use crate::api::ApiError;

/// How much is sent within how long.
#[derive(Clone, Copy)]
struct Limit {
    most: usize,
    within: TimeDelta,
}

const CHAT: Limit = Limit {
    most: 5,
    within: TimeDelta::seconds(5),
};
const GROUP: Limit = Limit {
    most: 20,
    within: TimeDelta::minutes(1),
};
const WHOLE: Limit = Limit {
    most: 30,
    within: TimeDelta::seconds(1),
};
/// How long a message waits here; one that would have to wait longer comes again, so that a stop waits for none.
const LONGEST: TimeDelta = TimeDelta::seconds(5);

/// What was sent lately, and when the next may be.
pub(super) struct Pacer {
    clock: Clock,
    sent: Mutex<SentTimes>,
}

/// When what was sent in the last minute was, and what has its turn already will be.
#[derive(Default)]
struct SentTimes {
    whole: VecDeque<DateTime<Utc>>,
    chats: HashMap<i64, VecDeque<DateTime<Utc>>>,
}

impl Pacer {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            sent: Mutex::default(),
        }
    }

    /// Waits until a chat may be sent something.
    pub(super) async fn turn(&self, chat: i64) -> Result<(), ApiError> {
        let now = self.clock.now();
        let turn = {
            let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.reserve(chat, now)
        };
        match turn {
            Ok(at) => {
                self.clock.sleep_until(at).await;
                Ok(())
            }
            Err(wait) => Err(ApiError::Later {
                after: Some(wait),
                reason: "the chat has as many messages as Telegram takes at a time".to_owned(),
            }),
        }
    }
}

impl SentTimes {
    /// Takes the next turn of a chat; says how long it is away where that is too long.
    fn reserve(&mut self, chat: i64, now: DateTime<Utc>) -> Result<DateTime<Utc>, Duration> {
        self.forget(now - GROUP.within);
        let of_chat = self.chats.entry(chat).or_default();
        // The chats of groups are negative.
        let group = (chat < 0).then(|| GROUP.next(of_chat));
        let turns = [CHAT.next(of_chat), WHOLE.next(&self.whole), group.flatten()];
        let at = turns.into_iter().flatten().fold(now, DateTime::max);
        if at - now > LONGEST {
            return Err((at - now).to_std().unwrap_or_default());
        }
        of_chat.push_back(at);
        let place = self.whole.partition_point(|other| *other <= at);
        self.whole.insert(place, at);
        Ok(at)
    }

    fn forget(&mut self, before: DateTime<Utc>) {
        let is_new = |at: &DateTime<Utc>| *at > before;
        self.whole.retain(is_new);
        self.chats.retain(|_, times| {
            times.retain(is_new);
            !times.is_empty()
        });
    }
}

impl Limit {
    /// Returns when the next may be sent after those, which are in order; at any time where they are few.
    fn next(self, times: &VecDeque<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        let oldest = times.len().checked_sub(self.most)?;
        times.get(oldest).map(|at| *at + self.within)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn no_chat_no_group_and_not_all_of_them_are_sent_more_than_telegram_takes() {
        let begin = DateTime::UNIX_EPOCH;
        let (mut sent, mut now) = (SentTimes::default(), begin);
        let mut turns: Vec<(i64, DateTime<Utc>)> = Vec::new();
        // As much as there is room for, to a group, one person and many.
        while now < begin + TimeDelta::minutes(3) {
            for chat in [-1, 1].into_iter().chain(100..140) {
                turns.extend(sent.reserve(chat, now).ok().map(|at| (chat, at)));
            }
            now += TimeDelta::milliseconds(500);
        }
        turns.sort_by_key(|(_, at)| *at);
        let most = |is_it: &dyn Fn(i64) -> bool, limit: Limit| {
            let times: Vec<_> = turns.iter().filter(|(chat, _)| is_it(*chat)).collect();
            let from = |(_, at): &&(i64, DateTime<Utc>)| *at;
            let within = |first: &&(i64, DateTime<Utc>)| {
                let end = from(first) + limit.within;
                times
                    .iter()
                    .filter(|one| (from(first)..end).contains(&from(one)))
                    .count()
            };
            times.iter().map(within).max().unwrap_or_default()
        };
        assert_eq!(most(&|chat| chat == -1, GROUP), GROUP.most);
        assert!(most(&|chat| chat == 1, CHAT) <= CHAT.most);
        assert_eq!(most(&|_| true, WHOLE), WHOLE.most);
    }

    #[tokio::test]
    async fn a_message_waits_for_its_turn_and_one_that_would_wait_long_comes_again() {
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let pacer = Arc::new(Pacer::new(clock.clone()));
        for _ in 0..CHAT.most {
            pacer.turn(1).await.unwrap();
        }
        let mut sixth = Box::pin(pacer.turn(1));
        let soon = Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, &mut sixth).await.is_err());
        pacer.turn(2).await.unwrap();
        clock.advance(Duration::from_secs(4));
        assert!(tokio::time::timeout(soon, &mut sixth).await.is_err());
        clock.advance(Duration::from_secs(1));
        sixth.await.unwrap();
        for _ in 0..GROUP.most {
            pacer.turn(-1).await.unwrap();
            clock.advance(Duration::from_secs(1));
        }
        let refused = pacer.turn(-1).await;
        let Err(ApiError::Later { after, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(after, Some(Duration::from_secs(40)));
    }
}
