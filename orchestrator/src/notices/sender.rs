//! Sends what is due, mends what is no longer so, and writes down what came of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::QuestionId;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{
    ChangeSet, CommitError, CommitOrRead, Query, ReadError, Versioned, retry_on_conflict,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::decide;
use super::port::{Arrival, Notification, Port, SendError};
use super::together::{age, gathered, is_begun, newest_first, telling};
use super::{ESCALATE, Turn, row, text};
use crate::context::Context;
use crate::questions::{Rank, rank};
use crate::timers;

/// How long the sender waits at most for somebody to say that there is something.
const LOOK: Duration = Duration::from_secs(5);
/// How many notices one look takes.
const AT_ONCE: u32 = 256;
/// How many messages of one notice are known that are not its newest: words in reply to one are said of it.
const EARLIER: usize = 512;
/// How long what is over is kept.
const KEPT: TimeDelta = TimeDelta::days(30);

/// What came of a look.
enum Round {
    /// Nothing more is to be done before this.
    Until(DateTime<Utc>),
    /// The port cannot be used before this, whatever is due.
    Rest(Duration),
}

/// Sends the notices of one port.
pub(super) struct Sender {
    port: Arc<dyn Port>,
    turn: Turn,
    wake: Arc<Notify>,
}

impl Sender {
    pub(super) fn new(port: Arc<dyn Port>, turn: Turn, wake: Arc<Notify>) -> Self {
        Self { port, turn, wake }
    }

    /// Sends until `stop`, whenever it is the turn of this process.
    pub(super) async fn run(&self, context: &Context, stop: CancellationToken) {
        let mut held = None;
        loop {
            if held.is_none() {
                held = (self.turn)();
            }
            let round = match &held {
                None => Ok(Round::Until(context.now() + LOOK)),
                Some(_) => self.round(context).await,
            };
            // Who asked to be left alone is, whatever else there is to tell.
            let may_wake = !matches!(round, Ok(Round::Rest(_)));
            let rest = self.rest_after(round, context);
            tokio::select! {
                () = stop.cancelled() => return,
                () = context.clock.sleep(rest) => {}
                () = self.wake.notified(), if may_wake => {}
            }
        }
    }

    fn rest_after(&self, round: Result<Round, CommitOrRead>, context: &Context) -> Duration {
        match round {
            Ok(Round::Until(at)) => (at - context.now()).to_std().unwrap_or_default().min(LOOK),
            Ok(Round::Rest(rest)) => rest,
            Err(error) => {
                let port = self.port.name();
                warn!("notices of `{port}` wait: {}", Words::of(&error));
                LOOK
            }
        }
    }

    /// Does what is due, what holds work up first: of what is asked, the first of the queue before others; of what happened,
    /// the newest before what is older.
    async fn round(&self, context: &Context) -> Result<Round, CommitOrRead> {
        let now = context.now();
        let open = Query::new()
            .equal("port", self.port.name())
            .equal("open", true)
            .order_by("due")
            .limit(AT_ONCE);
        let open = context.store.list::<Notice>(open).await?;
        let next = open.iter().map(|notice| notice.due).find(|due| *due > now);
        let due = open.iter().filter(|notice| notice.due <= now);
        let (too_old, mut due): (Vec<_>, Vec<_>) =
            due.partition(|notice| decide::is_given_up(notice, now));
        // Whatever goes before them and does not get through, such as a question.
        for same in too_old.chunk_by(|one, other| one.receiver == other.receiver) {
            self.give_up(same, "it was not told for a day", context)
                .await?;
        }
        let keys = too_old.iter().map(|notice| notice.key.clone());
        let mut done: HashSet<String> = keys.collect();
        let ranks = ranks(&due, context).await?;
        due.sort_by(|one, other| {
            let place = |notice: &Notice| {
                let rank = notice.question.and_then(|id| ranks.get(&id));
                (!notice.urgent, rank.is_none(), rank)
            };
            let placed = place(one).cmp(&place(other));
            placed.then_with(|| age(one).cmp(&age(other)))
        });
        for notice in due {
            if done.contains(&notice.key) {
                continue;
            }
            let begun;
            let together = if is_begun(notice) {
                begun = self.begun_with(notice, context).await?;
                newest_first(&begun)
            } else {
                gathered(notice, open.iter().filter(|one| !done.contains(&one.key)))
            };
            done.extend(together.iter().map(|notice| notice.key.clone()));
            if let Some(rest) = self.settle(&together, context).await? {
                return Ok(Round::Rest(rest));
            }
        }
        self.forget(context).await?;
        Ok(Round::Until(next.unwrap_or(now + LOOK)))
    }

    /// Lists what is in the message that was begun with a notice, however much else waits.
    async fn begun_with(
        &self,
        notice: &Notice,
        context: &Context,
    ) -> Result<Vec<Versioned<Notice>>, ReadError> {
        let of_it = Query::new()
            .equal("nonce", notice.nonce.as_str())
            .equal("port", self.port.name())
            .equal("open", true);
        let mut of_it = context.store.list::<Notice>(of_it).await?;
        of_it.retain(|notice| is_begun(notice));
        Ok(of_it)
    }

    /// Forgets what is long over; that a question was told, or could not be, is not as long as it is open.
    async fn forget(&self, context: &Context) -> Result<(), CommitOrRead> {
        let now = context.now();
        let old = Query::new()
            .equal("port", self.port.name())
            .equal("open", false)
            .at_most("due", now - KEPT)
            .limit(AT_ONCE);
        let mut changes = ChangeSet::new();
        for old in context.store.list::<Notice>(old).await? {
            let question = asked(&old, context).await?;
            if question.is_some_and(|question| question.state == QuestionState::Pending) {
                let kept = Notice {
                    due: now,
                    ..old.record.clone()
                };
                changes.update(&old, &kept);
            } else {
                changes.delete(&old);
            }
        }
        if !changes.is_empty() {
            self.record(changes, context).await?;
        }
        Ok(())
    }

    /// Does what is to be done about notices that go together; returns how long the port wants to rest.
    async fn settle(
        &self,
        together: &[&Versioned<Notice>],
        context: &Context,
    ) -> Result<Option<Duration>, CommitOrRead> {
        let Some(first) = together.first() else {
            return Ok(None);
        };
        let question = asked(first, context).await?;
        if first.state == NoticeState::Sent {
            return self.mend(first, question.as_deref(), context).await;
        }
        if is_over(first, question.as_deref()) {
            return self.end(together, context).await;
        }
        self.send(first, together, context).await
    }

    /// Ends notices of what is over; what arrived is mended.
    async fn end(
        &self,
        together: &[&Versioned<Notice>],
        context: &Context,
    ) -> Result<Option<Duration>, CommitOrRead> {
        let over = |notice: &mut Notice| {
            notice.outdated = !notice.messages.is_empty();
            notice.state = if notice.outdated {
                NoticeState::Sent
            } else {
                NoticeState::Over
            };
        };
        self.change(together, over, context).await.map(|()| None)
    }

    /// Hands notices over; whether they arrived is known only after it is written down that they may have.
    async fn send(
        &self,
        first: &Notice,
        together: &[&Versioned<Notice>],
        context: &Context,
    ) -> Result<Option<Duration>, CommitOrRead> {
        let begin = |notice: &mut Notice| {
            notice.repeats += u32::from(notice.state == NoticeState::Sending);
            notice.state = NoticeState::Sending;
            // One message is known by one nonce, also to who sends it again after a death.
            notice.nonce.clone_from(&first.nonce);
            notice.tries += 1;
        };
        self.change(together, begin, context).await?;
        // It may have been answered while that was written down.
        let question = asked(first, context).await?;
        if is_over(first, question.as_deref()) {
            return self.end(together, context).await;
        }
        let telling = telling(first, together, question.as_deref());
        match self.hand_over(telling, (first, together), context).await? {
            Ok(message) => {
                let now = context.now();
                let arrived = |notice: &mut Notice| {
                    notice.state = NoticeState::Sent;
                    notice.sent_at = Some(now);
                    notice.error = None;
                    begin_anew(notice);
                    let is_new = |message: &String| !notice.messages.contains(message);
                    let message = message.clone().filter(is_new);
                    notice.messages.extend(message);
                    // One message at a time asks: the buttons of those before it go.
                    notice.outdated |= notice.question.is_some() && notice.messages.len() > 1;
                };
                self.change(together, arrived, context).await?;
                self.works(context).await?;
                Ok(None)
            }
            Err(SendError::Refused(reason)) => self.give_up(together, &reason, context).await,
            Err(SendError::Later { after, reason }) => {
                let rest = decide::pause(first.tries + 1, after);
                self.put_off(together, (NoticeState::Waiting, reason), rest, context)
                    .await
            }
            // The next try counts as one by which it may arrive twice.
            Err(SendError::Unanswered(reason)) => {
                let rest = decide::pause(first.tries + 1, None);
                self.put_off(together, (NoticeState::Sending, reason), rest, context)
                    .await
            }
        }
    }

    /// Hands over what is told, piece by piece: each is written down before the next one, so that whoever goes on after an
    /// outage or a death begins behind it.
    async fn hand_over(
        &self,
        mut telling: Notification,
        (first, together): (&Notice, &[&Versioned<Notice>]),
        context: &Context,
    ) -> Result<Result<Option<String>, SendError>, CommitOrRead> {
        loop {
            failpoint!(&format!("notices.{}.begun", self.port.name()));
            let sent = self.port.send(&first.receiver, &telling, &context.store);
            let sent = sent.await;
            failpoint!(&format!("notices.{}.sent", self.port.name()));
            let piece = match sent {
                Ok(Arrival {
                    more: true,
                    message,
                }) => message,
                Ok(last) => return Ok(Ok(last.message)),
                Err(error) => return Ok(Err(error)),
            };
            telling.pieces += 1;
            let arrived = |notice: &mut Notice| {
                notice.pieces = telling.pieces;
                know(&mut notice.earlier, piece.clone());
                if notice.question.is_some() {
                    // What is left of it has to be of the same text, however it would be put by then.
                    notice.text = telling.text.clone();
                }
            };
            self.change(together, arrived, context).await?;
        }
    }

    /// Leaves notices for a later try.
    async fn put_off(
        &self,
        together: &[&Versioned<Notice>],
        (state, reason): (NoticeState, String),
        rest: Duration,
        context: &Context,
    ) -> Result<Option<Duration>, CommitOrRead> {
        let due = context.now() + rest;
        let first = together.first().map(|notice| notice.key.as_str());
        let later = |notice: &mut Notice| {
            notice.state = state;
            notice.error = Some(reason.clone());
            notice.due = due;
            // Nothing arrived: what goes together the next time may be something else, and one nonce names one message.
            if !is_begun(notice) && first != Some(notice.key.as_str()) {
                notice.nonce = row::nonce();
            }
        };
        self.change(together, later, context).await?;
        Ok(Some(rest))
    }

    /// Puts what became of a question in the place of what was asked; while it is open, the newest message asks on.
    async fn mend(
        &self,
        notice: &Versioned<Notice>,
        question: Option<&Question>,
        context: &Context,
    ) -> Result<Option<Duration>, CommitOrRead> {
        let is_open = question.is_some_and(|question| question.state == QuestionState::Pending);
        let words = match question {
            Some(question) if is_open => text::asked_again(question),
            question => question.map(text::closed).unwrap_or_default(),
        };
        let old = notice.messages.len().saturating_sub(usize::from(is_open));
        if let Err(error) = self.edit(notice, old, words).await {
            return self.mend_later(notice, error, context).await;
        }
        let mut after = notice.record.clone();
        after.outdated = false;
        after.error = None;
        if is_open {
            for message in after.messages.drain(..old) {
                know(&mut after.earlier, Some(message));
            }
        }
        let mut changes = ChangeSet::new();
        changes.update(notice, &after);
        // Where it was closed meanwhile, or another message became known, the next look finds it as it is by then.
        self.record(changes, context).await.map(|()| None)
    }

    /// Puts words in the place of the oldest messages of a notice; to do that twice changes nothing.
    async fn edit(&self, notice: &Notice, old: usize, words: NoticeText) -> Result<(), SendError> {
        let telling = Notification {
            nonce: notice.nonce.clone(),
            event_type: notice.event_type.clone(),
            subject: notice.subject.clone(),
            text: words,
            question: None,
            silent: true,
            pieces: 0,
        };
        for message in notice.messages.iter().take(old) {
            failpoint!(&format!("notices.{}.edit.before", self.port.name()));
            let edited = self.port.edit(message, &telling).await;
            failpoint!(&format!("notices.{}.edit.after", self.port.name()));
            match edited {
                // A message that is gone needs no mending.
                Ok(()) | Err(SendError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Leaves what is outdated for a later try.
    async fn mend_later(
        &self,
        notice: &Versioned<Notice>,
        error: SendError,
        context: &Context,
    ) -> Result<Option<Duration>, CommitOrRead> {
        let (after, reason) = match error {
            SendError::Later { after, reason } => (after, reason),
            error => (None, error.to_string()),
        };
        let rest = decide::pause(notice.tries + 1, after);
        let due = context.now() + rest;
        let later = |notice: &mut Notice| {
            notice.tries += 1;
            notice.error = Some(reason.clone());
            notice.due = due;
        };
        self.change(&[notice], later, context).await?;
        Ok(Some(rest))
    }

    /// Gives notices up, and says so where operators look. A question waits no longer for whoever does not hear it: its time
    /// is over now, by every port.
    async fn give_up(
        &self,
        together: &[&Versioned<Notice>],
        reason: &str,
        context: &Context,
    ) -> Result<Option<Duration>, CommitOrRead> {
        let whom = together.first().map_or("", |notice| &notice.receiver);
        let mut changes = ChangeSet::new();
        changes.put(&Alert {
            cause: self.cause(),
            severity: Severity::Error,
            message: format!(
                "`{whom}` could not be told by {}: {reason}",
                self.port.name()
            ),
            build: None,
            raised_at: context.now(),
            escalations: 0,
            acknowledged: None,
            cleared_at: None,
        });
        for question in together.iter().filter_map(|notice| notice.question) {
            let (target, now) = (question.to_string(), context.now());
            timers::set(&mut changes, context, ESCALATE, &target, now);
        }
        context.store.commit(changes).await?;
        let dead = |notice: &mut Notice| {
            notice.state = NoticeState::Dead;
            notice.error = Some(reason.to_owned());
            begin_anew(notice);
        };
        self.change(together, dead, context).await?;
        Ok(None)
    }

    /// Ends the alert that somebody could not be told.
    async fn works(&self, context: &Context) -> Result<(), CommitOrRead> {
        let alert = context.store.get::<Alert>(&self.cause()).await?;
        if let Some(alert) = alert.filter(|alert| alert.cleared_at.is_none()) {
            let mut changes = ChangeSet::new();
            let cleared_at = Some(context.now());
            changes.update(
                &alert,
                &Alert {
                    cleared_at,
                    ..alert.record.clone()
                },
            );
            self.record(changes, context).await?;
        }
        Ok(())
    }

    fn cause(&self) -> String {
        format!("notices/{}", self.port.name())
    }

    /// Changes notices as they stand by now: an answer may have come meanwhile.
    async fn change(
        &self,
        together: &[&Versioned<Notice>],
        change: impl Fn(&mut Notice),
        context: &Context,
    ) -> Result<(), CommitOrRead> {
        retry_on_conflict!(CommitOrRead, self.cause(), {
            let mut changes = ChangeSet::new();
            for notice in together {
                let Some(found) = context.store.get::<Notice>(&notice.key).await? else {
                    continue;
                };
                let mut after = found.record.clone();
                change(&mut after);
                changes.update(&found, &after);
            }
            context.store.commit(changes).await?;
            Ok(Some(()))
        })
    }

    /// Commits what the next look would do again.
    async fn record(&self, changes: ChangeSet, context: &Context) -> Result<(), CommitOrRead> {
        match context.store.commit(changes).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Adds what a message is called to those that are known, of which the newest count.
fn know(earlier: &mut Vec<String>, message: Option<String>) {
    earlier.extend(message);
    let surplus = earlier.len().saturating_sub(EARLIER);
    earlier.drain(..surplus);
}

/// Lets a notice be told from its first piece on when it is told again.
fn begin_anew(notice: &mut Notice) {
    notice.pieces = 0;
    if notice.question.is_some() {
        notice.text = NoticeText::default();
    }
}

/// Returns the question that a notice puts.
async fn asked(
    notice: &Notice,
    context: &Context,
) -> Result<Option<Versioned<Question>>, ReadError> {
    match notice.question {
        Some(id) => context.store.get::<Question>(&id.to_string()).await,
        None => Ok(None),
    }
}

/// Returns where the questions of these notices stand in the queue.
async fn ranks(
    notices: &[&Versioned<Notice>],
    context: &Context,
) -> Result<HashMap<QuestionId, Rank>, ReadError> {
    let mut ranks = HashMap::new();
    for notice in notices {
        if let Some(question) = asked(notice, context).await? {
            ranks.insert(question.id, rank(&question));
        }
    }
    Ok(ranks)
}

/// Returns whether a notice puts a question that is closed, or gone.
fn is_over(notice: &Notice, question: Option<&Question>) -> bool {
    notice.question.is_some()
        && question.is_none_or(|question| question.state != QuestionState::Pending)
}
