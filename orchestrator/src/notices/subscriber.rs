//! Makes rows of what happens: who is told what, by one port.

use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::TimeDelta;
use ropewalk_config::questions::Trigger;
use ropewalk_schemas::idea::{Message, Session};
use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::payload::ScheduleDue;
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::{
    ComponentName, Event, EventPattern, InvalidId, Payload, QuestionId, Subject, UserSlug,
};
use ropewalk_store::{ChangeSet, Query, ReadError, Versioned};
use tokio::sync::Notify;

use super::compose::{self, Audience, TAKES};
use super::decide::{self, Listener, Rules, Urgency};
use super::port::Port;
use super::sender::Sender;
use super::summary::{self, SUMMARY};
use super::{ESCALATE, IDEA_COMPLETE, Turn, row};
use crate::agent::{Agent, AgentError, Profile, Worker};
use crate::context::Context;
use crate::timers;

/// What a notifier is made of.
pub struct Parts {
    /// How people are told.
    pub port: Arc<dyn Port>,
    /// Who is told.
    pub people: Vec<Listener>,
    /// When.
    pub rules: Rules,
    /// The duty of sending, which one process at a time has.
    pub turn: Turn,
}

/// For so long whose idea it is does not hear that it is complete, with what is best done then: where specifications are asked for
/// by themselves, that is done in this moment.
const OVERTAKEN_WITHIN: TimeDelta = TimeDelta::seconds(3);
/// For so long at most whoever was asked later than others is not reminded: everybody is asked at the time of a reminder.
const NEW: TimeDelta = TimeDelta::minutes(10);

/// Tells people what happens by one port: the subscriber `notify.<port>`.
#[derive(Clone)]
pub struct Notifier {
    pub(super) role: ComponentName,
    patterns: Vec<EventPattern>,
    sender: ComponentName,
    port: Arc<dyn Port>,
    people: Vec<Listener>,
    rules: Rules,
    turn: Turn,
    wake: Arc<Notify>,
}

impl Notifier {
    /// Returns the subscriber of a port.
    pub fn new(parts: Parts) -> Result<Self, InvalidId> {
        let name = parts.port.name();
        Ok(Self {
            role: Self::role(name)?,
            patterns: timers::patterns(TAKES, "notices")?,
            sender: ComponentName::parse(&format!("notify.{name}.sender"))?,
            port: parts.port,
            people: parts.people,
            rules: parts.rules,
            turn: parts.turn,
            wake: Arc::default(),
        })
    }

    /// Returns what the subscriber of the port `name` is called.
    pub fn role(name: &str) -> Result<ComponentName, InvalidId> {
        ComponentName::parse(&format!("notify.{name}"))
    }

    /// Returns whom the port reaches by now.
    pub(super) async fn reachable(&self, context: &Context) -> Result<Vec<String>, ReadError> {
        self.port.receivers(&self.everybody(), &context.store).await
    }

    /// Returns everybody.
    fn everybody(&self) -> Vec<UserSlug> {
        self.people
            .iter()
            .map(|person| person.name.clone())
            .collect()
    }

    /// Returns those of an audience whom the port reaches; everybody it reaches where that is nobody.
    async fn reached(
        &self,
        audience: &[UserSlug],
        context: &Context,
    ) -> Result<Vec<String>, ReadError> {
        let reached = self.port.receivers(audience, &context.store).await?;
        if reached.is_empty() {
            return self.reachable(context).await;
        }
        Ok(reached)
    }

    /// Puts an open question to those of `receivers` who have not got it. Where there are none, that is written down: it waits for
    /// somebody who can be reached, and not for time to pass.
    async fn put(
        &self,
        changes: &mut ChangeSet,
        context: &Context,
        question: &Question,
        receivers: Vec<String>,
    ) -> Result<(), ReadError> {
        let known = self.of_question(question.id, context).await?;
        let (port, now) = (self.port.name(), context.now());
        if receivers.is_empty() {
            if known.is_empty() {
                changes.insert(&row::to_nobody(port, question, now));
            }
            return Ok(());
        }
        row::delete_unreached(changes, &known);
        let urgency = match question.kind {
            QuestionKind::Blocking => Urgency::Blocking,
            // What is only said on the way is worth nothing once the way has ended; the end of a way is celebrated too,
            // and waits for its answer.
            _ if question.trigger == Trigger::MilestoneReached.as_str() => Urgency::Gathered,
            _ => Urgency::Soon,
        };
        for receiver in receivers {
            if known.iter().any(|notice| notice.receiver == receiver) {
                continue;
            }
            changes.insert(&Notice {
                due: decide::due(now, urgency, &self.rules),
                ..row::asking(port, question, &receiver, now)
            });
        }
        Ok(())
    }

    /// Returns what a receiver is told of an event.
    fn of_event(
        &self,
        (event, context): (&Event, &Context),
        receiver: &str,
        (urgency, text): (Urgency, NoticeText),
    ) -> Notice {
        let (id, now) = (event.id.to_string(), context.now());
        let told = (urgency.is_urgent(), text);
        Notice {
            event_type: event.event_type().to_owned(),
            due: decide::due(now, urgency, &self.rules),
            ..row::of(
                (self.port.name(), &id, receiver),
                event.subject.clone(),
                told,
                now,
            )
        }
    }

    /// Lists who was told of a question by this port.
    pub(super) async fn of_question(
        &self,
        question: QuestionId,
        context: &Context,
    ) -> Result<Vec<Versioned<Notice>>, ReadError> {
        let of_it = Query::new()
            .equal("question", question)
            .equal("port", self.port.name());
        context.store.list::<Notice>(of_it).await
    }

    /// Puts a question to those whom it is for who have not got it, and sets when everybody hears of it.
    pub(super) async fn asked(
        &self,
        id: QuestionId,
        context: &Context,
    ) -> Result<ChangeSet, ReadError> {
        let mut changes = ChangeSet::new();
        let Some(question) = open(id, context).await? else {
            return Ok(changes);
        };
        // Who talks there and hears nothing by this port is not asked by it, but those of the role are.
        let mut talks = BTreeSet::new();
        for talker in talkers(&question, context).await? {
            let of_them = slice::from_ref(&talker);
            let reached = self.port.receivers(of_them, &context.store).await?;
            if !reached.is_empty() {
                talks.insert(talker);
            }
        }
        let first = decide::asked(&question, &talks, &self.people);
        let receivers = self.reached(&first, context).await?;
        if first.len() < self.people.len() {
            let due = context.now() + self.rules.escalate;
            timers::set(&mut changes, context, ESCALATE, &id.to_string(), due);
        }
        self.put(&mut changes, context, &question, receivers)
            .await?;
        Ok(changes)
    }

    /// Puts a question that nobody answered to everybody.
    async fn escalated(&self, target: &str, context: &Context) -> Result<ChangeSet, AgentError> {
        let mut changes = ChangeSet::new();
        let id: QuestionId = target.parse().map_err(AgentError::permanent)?;
        if let Some(question) = open(id, context).await? {
            let all = self.reachable(context).await?;
            self.put(&mut changes, context, &question, all).await?;
        }
        Ok(changes)
    }

    /// Tells those who were told of a question again.
    async fn reminded(&self, id: QuestionId, context: &Context) -> Result<ChangeSet, ReadError> {
        let mut changes = ChangeSet::new();
        let Some(question) = open(id, context).await? else {
            return Ok(changes);
        };
        for told in self.of_question(id, context).await? {
            // One that is on its way need not be sent twice, and whoever heard of it later than others, or than it was asked,
            // has only just heard.
            let heard = told.sent_at.unwrap_or(told.created_at);
            let late = heard - question.asked_at;
            let is_new = context.now() - heard < (late / 2).min(NEW);
            if told.state == NoticeState::Sent && !told.outdated && !is_new {
                let again = Notice {
                    state: NoticeState::Waiting,
                    tries: 0,
                    due: decide::due(context.now(), Urgency::Soon, &self.rules),
                    ..told.record.clone()
                };
                changes.update(&told, &again);
            }
        }
        Ok(changes)
    }

    /// Sees to it that nobody is asked any more what is closed.
    async fn closed(&self, id: QuestionId, context: &Context) -> Result<ChangeSet, ReadError> {
        let mut changes = ChangeSet::new();
        timers::clear(&mut changes, &context.store, &[ESCALATE], &id.to_string()).await?;
        let told = self.of_question(id, context).await?;
        row::delete_unreached(&mut changes, &told);
        for told in told {
            let mut after = told.record.clone();
            after.due = context.now();
            match told.state {
                NoticeState::Waiting if told.messages.is_empty() => after.state = NoticeState::Over,
                NoticeState::Waiting => {
                    after.state = NoticeState::Sent;
                    after.outdated = true;
                }
                NoticeState::Sending | NoticeState::Sent => after.outdated = true,
                NoticeState::Over | NoticeState::Dead => continue,
            }
            changes.update(&told, &after);
        }
        Ok(changes)
    }

    /// Ends what was to be told of `subject` and is no longer news.
    async fn forget(
        &self,
        changes: &mut ChangeSet,
        subject: &Subject,
        is_old: impl Fn(&str) -> bool,
        context: &Context,
    ) -> Result<(), ReadError> {
        let before = Query::new()
            .equal("subject", subject.as_str())
            .equal("port", self.port.name())
            .equal("open", true);
        for before in context.store.list::<Notice>(before).await? {
            // Whoever has read the beginning reads the end.
            let is_untold = before.state == NoticeState::Waiting && before.pieces == 0;
            if is_old(&before.event_type) && is_untold && before.question.is_none() {
                let state = NoticeState::Over;
                let over = Notice {
                    state,
                    ..before.record.clone()
                };
                changes.update(&before, &over);
            }
        }
        Ok(())
    }

    /// Tells what happened; what was to be told of the same matter before is no longer news, nor what it overtakes.
    async fn told(&self, event: &Event, context: &Context) -> Result<ChangeSet, ReadError> {
        let mut changes = ChangeSet::new();
        if let Some(idea) = compose::overtaken(&event.payload) {
            let is_old = |told: &str| told == IDEA_COMPLETE;
            self.forget(&mut changes, &Subject::idea(idea), is_old, context)
                .await?;
        }
        let Some(draft) = compose::draft(event, &context.store).await? else {
            return Ok(changes);
        };
        let is_old = |told: &str| decide::is_old(told, event.event_type());
        self.forget(&mut changes, &event.subject, is_old, context)
            .await?;
        let audience = match &draft.audience {
            Audience::Everybody => self.everybody(),
            Audience::Roles(roles) => {
                let audiences = roles.iter();
                let audience: BTreeSet<UserSlug> = audiences
                    .flat_map(|role| decide::audience(*role, &self.people))
                    .collect();
                audience.into_iter().collect()
            }
        };
        let awaits = compose::awaited_by(event, &context.store).await?;
        let awaits: Vec<UserSlug> = awaits.into_iter().collect();
        let awaits = self.port.receivers(&awaits, &context.store).await?;
        let mut receivers = self.reached(&audience, context).await?;
        let knows = compose::done_by(event, &context.store).await?;
        let knows = knows.as_ref().map(UserSlug::as_str);
        receivers.retain(|receiver| !awaits.contains(receiver) && knows != Some(receiver.as_str()));
        let others = receivers.into_iter().map(|one| (one, draft.urgency));
        let first = awaits.into_iter().map(|one| (one, Urgency::Awaited));
        for (receiver, urgency) in first.chain(others) {
            let what = (urgency, draft.text.clone());
            let mut told = self.of_event((event, context), &receiver, what);
            if told.event_type == IDEA_COMPLETE && urgency == Urgency::Awaited {
                told.due += OVERTAKEN_WITHIN;
            }
            changes.insert(&told);
        }
        Ok(changes)
    }

    /// Tells those who want it what happened since they heard it last. What an earlier summary said that is still to be
    /// told stays news.
    async fn summed_up(&self, event: &Event, context: &Context) -> Result<ChangeSet, ReadError> {
        let mut changes = ChangeSet::new();
        if self.rules.summary.is_none() {
            // It was switched off since; what another process still wants it lays down again.
            timers::clear(&mut changes, &context.store, &[SUMMARY], "").await?;
            return Ok(changes);
        }
        let people = self.people.iter().filter(|person| person.summary);
        let people: Vec<UserSlug> = people.map(|person| person.name.clone()).collect();
        let receivers = self.port.receivers(&people, &context.store).await?;
        let Some(text) = summary::of(event, &context.store).await? else {
            return Ok(changes);
        };
        for receiver in receivers {
            let what = (Urgency::Soon, text.clone());
            changes.insert(&self.of_event((event, context), &receiver, what));
        }
        Ok(changes)
    }
}

/// Returns who talks in the conversation that a question belongs to.
async fn talkers(question: &Question, context: &Context) -> Result<BTreeSet<UserSlug>, ReadError> {
    let About::Session { session } = question.about else {
        return Ok(BTreeSet::new());
    };
    let said = Query::new().equal("session", session);
    let said = context.store.list::<Message>(said).await?;
    let users = said.iter().filter_map(|message| message.user.clone());
    let mut talkers: BTreeSet<UserSlug> = users.collect();
    let found = context.store.get::<Session>(&session.to_string()).await?;
    talkers.extend(found.map(|found| found.user.clone()));
    Ok(talkers)
}

/// Returns a question, if it is open.
async fn open(id: QuestionId, context: &Context) -> Result<Option<Question>, ReadError> {
    let question = context.store.get::<Question>(&id.to_string()).await?;
    Ok(question
        .map(Versioned::into_inner)
        .filter(|question| question.state == QuestionState::Pending))
}

#[async_trait]
impl Agent for Notifier {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: self.patterns.clone(),
            in_flight: 8,
            schedules: self
                .rules
                .summary
                .map(summary::schedule)
                .into_iter()
                .collect(),
        }
    }

    fn begins_now(&self) -> bool {
        true
    }

    async fn recover(&self, context: &Context) -> Result<(), AgentError> {
        self.look_at_unheard(context, None).await;
        Ok(())
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        Ok(match &event.payload {
            Payload::QuestionAsked(asked) => self.asked(asked.question_id, context).await?,
            Payload::QuestionReminded(asked) => self.reminded(asked.question_id, context).await?,
            Payload::QuestionAnswered(answered) | Payload::QuestionDefaulted(answered) => {
                self.closed(answered.question_id, context).await?
            }
            Payload::QuestionDismissed(closed) | Payload::QuestionSuperseded(closed) => {
                self.closed(closed.question_id, context).await?
            }
            Payload::ScheduleDue(ScheduleDue { name, target, .. }) if name == ESCALATE => {
                self.escalated(target, context).await?
            }
            Payload::ScheduleDue(ScheduleDue { name, .. }) if name == SUMMARY => {
                self.summed_up(event, context).await?
            }
            Payload::ScheduleDue(_) => ChangeSet::new(),
            Payload::PhoneLinked(_) => self.put_unheard(context, None).await?,
            _ => self.told(event, context).await?,
        })
    }

    async fn committed(&self, event: &Event, context: &Context) {
        // Somebody may have been linked between the look at whom the port reaches and the note that it is nobody.
        if let Payload::QuestionAsked(asked) = &event.payload {
            self.look_at_unheard(context, Some(asked.question_id)).await;
        }
        self.wake.notify_one();
    }

    fn workers(&self) -> Vec<Worker> {
        let sender = Sender::new(
            Arc::clone(&self.port),
            Arc::clone(&self.turn),
            Arc::clone(&self.wake),
        );
        let sender = Arc::new(sender);
        vec![Worker {
            name: self.sender.clone(),
            run: Box::new(move |context, stop| {
                let sender = Arc::clone(&sender);
                Box::pin(async move { sender.run(&context, stop).await })
            }),
        }]
    }
}
