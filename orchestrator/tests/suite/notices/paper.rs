//! A port that writes down what it was given, and fails on demand.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_config::settings::{QuietHours, TimeOfDay};
use ropewalk_orchestrator::Agent;
use ropewalk_orchestrator::notices::{
    Arrival, Listener, Notification, Notifier, Parts, Port, Rules, SendError,
};
use ropewalk_orchestrator::questions::{Deadlines, QuestionService};
use ropewalk_runtime::Clock;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::person::Role;
use ropewalk_schemas::{QuestionId, UserSlug};
use ropewalk_store::{Query, ReadError, Store, Versioned};
use tempfile::TempDir;

use crate::world::{FrameWorld, noon};

/// What somebody was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentNotice {
    pub(crate) to: String,
    pub(crate) nonce: String,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) question: Option<QuestionId>,
    pub(crate) piece: u32,
}

#[derive(Default)]
struct PaperState {
    said: Vec<SentNotice>,
    edits: Vec<(String, String)>,
    tries: usize,
    is_away: bool,
    /// How long it asks to be left alone.
    waits: Option<Duration>,
    hangs: bool,
    /// Whom it refuses to tell anything.
    refuses: Option<String>,
    /// How many pieces everything is told in; all at once where this is nothing.
    pieces: u32,
    is_lost: bool,
    /// How many more pieces it takes before it is away.
    takes: Option<u32>,
    /// Whom it reaches beside those that it was made for.
    newcomers: Vec<String>,
}

/// Paper on which everything is written that people are told.
#[derive(Clone)]
pub(crate) struct Paper {
    name: &'static str,
    reaches: Vec<String>,
    written: Arc<Mutex<PaperState>>,
}

impl Paper {
    pub(crate) fn new(reaches: &[&str]) -> Self {
        Self::named("paper", reaches)
    }

    pub(crate) fn named(name: &'static str, reaches: &[&str]) -> Self {
        Self {
            name,
            reaches: reaches.iter().map(|name| (*name).to_owned()).collect(),
            written: Arc::default(),
        }
    }

    fn written(&self) -> MutexGuard<'_, PaperState> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn away(&self, away: bool) {
        self.written().is_away = away;
    }

    /// Reaches somebody more from now on.
    pub(crate) fn comes(&self, name: &str) {
        self.written().newcomers.push(name.to_owned());
    }

    pub(crate) fn waits(&self, waits: Option<Duration>) {
        self.written().waits = waits;
    }

    pub(crate) fn hangs(&self, hangs: bool) {
        self.written().hangs = hangs;
    }

    pub(crate) fn refuses(&self, whom: Option<&str>) {
        self.written().refuses = whom.map(str::to_owned);
    }

    /// Tells everything in so many pieces.
    pub(crate) fn tells_in(&self, pieces: u32) {
        self.written().pieces = pieces;
    }

    /// Takes so many more pieces, and is away then.
    pub(crate) fn breaks_after(&self, pieces: u32) {
        self.written().takes = Some(pieces);
    }

    /// Takes the next thing and says nothing of it.
    pub(crate) fn loses_one(&self) {
        self.written().is_lost = true;
    }

    pub(crate) fn all(&self) -> Vec<SentNotice> {
        self.written().said.clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.written().said.len()
    }

    pub(crate) fn tries(&self) -> usize {
        self.written().tries
    }

    pub(crate) fn to(&self, name: &str) -> usize {
        let written = self.written();
        written.said.iter().filter(|said| said.to == name).count()
    }

    pub(crate) fn edits(&self) -> Vec<(String, String)> {
        self.written().edits.clone()
    }

    /// Waits until so many things were said, and returns all of them.
    pub(crate) async fn said(
        &self,
        world: &FrameWorld,
        count: usize,
    ) -> anyhow::Result<Vec<SentNotice>> {
        self.until(world, || self.count() >= count).await?;
        Ok(self.written().said.clone())
    }

    /// Waits until something is so; seconds pass meanwhile, and fewer of them on a busy machine than looks, or what a
    /// test has for later would happen.
    pub(crate) async fn until(
        &self,
        world: &FrameWorld,
        look: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let looks = AtomicU32::new(0);
        world
            .until("the paper", || async {
                let number = looks.fetch_add(1, Ordering::Relaxed);
                if number < 30 || number.is_multiple_of(20) {
                    world.pass(Duration::from_secs(1)).await;
                }
                Ok(look().then_some(()))
            })
            .await
    }

    /// Waits until something is so of the rows.
    pub(crate) async fn until_rows(
        &self,
        world: &FrameWorld,
        look: impl Fn(&[Versioned<Notice>]) -> bool,
    ) -> anyhow::Result<()> {
        world
            .until("the rows", || async {
                let rows = rows(world).await?;
                Ok((!rows.is_empty() && look(&rows)).then_some(()))
            })
            .await
    }
}

/// Lists every notice.
pub(crate) async fn rows(world: &FrameWorld) -> anyhow::Result<Vec<Versioned<Notice>>> {
    Ok(world.services.store.list::<Notice>(Query::new()).await?)
}

/// Opens a world in which people hear by the paper, and sleep from ten to seven.
pub(crate) async fn world(
    directory: &Path,
    clock: &Clock,
    paper: &Paper,
    people: &[(&str, &[Role])],
) -> anyhow::Result<FrameWorld> {
    world_of(directory, clock, paper, listeners(people)?, None).await
}

/// Does the same in a directory of its own, which lasts as long as what is returned first, from noon on.
pub(crate) async fn at_noon(
    paper: &Paper,
    people: &[(&str, &[Role])],
) -> anyhow::Result<(TempDir, FrameWorld)> {
    let directory = tempfile::tempdir()?;
    let world = world(directory.path(), &Clock::manual(noon()), paper, people).await?;
    Ok((directory, world))
}

/// Returns people with their roles.
pub(crate) fn listeners(people: &[(&str, &[Role])]) -> anyhow::Result<Vec<Listener>> {
    let listener = |(name, roles): &(&str, &[Role])| {
        Ok(Listener {
            name: UserSlug::parse(name)?,
            roles: roles.iter().copied().collect(),
            rights: [].into(),
            summary: true,
        })
    };
    people.iter().map(listener).collect()
}

/// Opens a world in which these people hear by the paper, and a summary at a time of the day.
pub(crate) async fn world_of(
    directory: &Path,
    clock: &Clock,
    paper: &Paper,
    people: Vec<Listener>,
    summary: Option<TimeOfDay>,
) -> anyhow::Result<FrameWorld> {
    let notifier = notifier(paper, people, summary)?;
    let questions = QuestionService::new(Deadlines::default())?;
    let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(notifier), Arc::new(questions)];
    FrameWorld::open(directory, clock.clone(), agents).await
}

/// Returns who tells these people by the paper, and a summary at a time of the day.
pub(crate) fn notifier(
    paper: &Paper,
    people: Vec<Listener>,
    summary: Option<TimeOfDay>,
) -> anyhow::Result<Notifier> {
    Ok(Notifier::new(Parts {
        port: Arc::new(paper.clone()),
        people,
        rules: Rules {
            escalate: Duration::from_hours(1),
            batch: Duration::from_mins(5),
            quiet: QuietHours::try_from("22:00-07:00".to_owned()).ok(),
            summary,
        },
        turn: Arc::new(|| Some(Box::new(()))),
    })?)
}

#[async_trait]
impl Port for Paper {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn receivers(&self, people: &[UserSlug], _: &Store) -> Result<Vec<String>, ReadError> {
        let people = people.iter().map(ToString::to_string);
        let newcomers = self.written().newcomers.clone();
        let is_reached = |name: &String| self.reaches.contains(name) || newcomers.contains(name);
        Ok(people.filter(is_reached).collect())
    }

    async fn send(
        &self,
        receiver: &str,
        telling: &Notification,
        _: &Store,
    ) -> Result<Arrival, SendError> {
        let more;
        let (hangs, number) = {
            let mut written = self.written();
            written.tries += 1;
            if written.takes == Some(0) {
                (written.takes, written.is_away) = (None, true);
            }
            if written.is_away || written.waits.is_some() {
                let reason = "the paper is away".to_owned();
                return Err(SendError::Later {
                    after: written.waits,
                    reason,
                });
            }
            if written.refuses.as_deref() == Some(receiver) {
                return Err(SendError::Refused("blocked by the user".to_owned()));
            }
            written.takes = written.takes.map(|left| left - 1);
            written.said.push(SentNotice {
                to: receiver.to_owned(),
                nonce: telling.nonce.clone(),
                title: telling.text.title.clone(),
                body: telling.text.body.clone(),
                question: telling.question.as_ref().map(|put| put.id),
                piece: telling.pieces,
            });
            if std::mem::take(&mut written.is_lost) {
                return Err(SendError::Unanswered("nothing came back".to_owned()));
            }
            more = telling.pieces + 1 < written.pieces;
            (written.hangs, written.said.len())
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(Arrival {
            message: Some(number.to_string()),
            more,
        })
    }

    async fn edit(&self, message: &str, telling: &Notification) -> Result<(), SendError> {
        let edit = (message.to_owned(), telling.text.title.clone());
        self.written().edits.push(edit);
        Ok(())
    }
}
