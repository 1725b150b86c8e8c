//! What happens to builds reaches phones: what holds work up at once, the rest together.

use std::time::Duration;

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::{BuildState, TaskCounts};
use ropewalk_schemas::payload::{BuildCompleted, BuildStarted, TaskCompleted, TaskFailed};
use ropewalk_schemas::{BuildId, Payload, Slug, SpecId, Subject, TaskId};
use ropewalk_store::ChangeSet;

use crate::outage::running;
use crate::phones::{Message, Phones, until};
use crate::world::{ADA, BOB, BotWorld};

/// How long what holds nothing up is gathered.
const BATCH: Duration = Duration::from_hours(12);

/// A build of five tasks whose events a test tells.
struct BuildEvents<'a> {
    world: &'a BotWorld,
    build: BuildId,
}

impl<'a> BuildEvents<'a> {
    fn of(world: &'a BotWorld) -> Self {
        let build = BuildId(world.services.ids.next());
        Self { world, build }
    }

    async fn tell(&self, subject: Subject, payload: Payload) -> anyhow::Result<()> {
        let mut changes = ChangeSet::new();
        changes.emit(self.world.context()?.event(subject, payload));
        self.world.services.store.commit(changes).await?;
        // What is gathered is timed by when it was heard of.
        until("it to be heard", || async {
            let open = self.world.services.store.open_deliveries(None, 0, 1);
            Ok(open.await?.is_empty().then_some(()))
        })
        .await
    }

    async fn begins(&self) -> anyhow::Result<()> {
        let begun = BuildStarted {
            build_id: self.build,
            spec_id: SpecId(self.world.services.ids.next()),
            idea_slug: Slug::parse("walks")?,
            task_count: 5,
            branch: "build/walks".to_owned(),
        };
        let subject = Subject::build(self.build);
        self.tell(subject, Payload::BuildStarted(begun)).await
    }

    async fn lands(&self, number: u32) -> anyhow::Result<()> {
        let task = TaskId::parse(&format!("T-00{number}"))?;
        let landed = TaskCompleted {
            build_id: self.build,
            task_id: task.clone(),
            idea_slug: Slug::parse("walks")?,
            attempts: 1,
            duration_seconds: 3,
            commit_sha: None,
            unblocked: Vec::new(),
            counts: TaskCounts {
                total: 5,
                complete: number,
                ..TaskCounts::default()
            },
        };
        let subject = Subject::task(self.build, &task);
        self.tell(subject, Payload::TaskCompleted(landed)).await
    }

    async fn fails(&self, task: &str) -> anyhow::Result<()> {
        let task = TaskId::parse(task)?;
        let failed = TaskFailed {
            build_id: self.build,
            task_id: task.clone(),
            idea_slug: Slug::parse("walks")?,
            attempt: 3,
            category: FailureClass::ValidationFailed,
            error: "the list is empty".to_owned(),
            will_retry: false,
            blocked: 1,
            continuing: 2,
            recommended: Some("give guidance".to_owned()),
        };
        let subject = Subject::task(self.build, &task);
        self.tell(subject, Payload::TaskFailed(failed)).await
    }

    async fn ends(&self) -> anyhow::Result<()> {
        let ended = BuildCompleted {
            build_id: self.build,
            spec_id: SpecId(self.world.services.ids.next()),
            idea_slug: Slug::parse("walks")?,
            status: BuildState::Stopped,
            reason: None,
            counts: TaskCounts {
                total: 5,
                complete: 3,
                failed: 1,
                blocked: 1,
                ..TaskCounts::default()
            },
            duration_seconds: 61,
            quote: None,
            spent: None,
            branch: "build/walks".to_owned(),
            commits: Vec::new(),
        };
        let subject = Subject::build(self.build);
        self.tell(subject, Payload::BuildCompleted(ended)).await
    }
}

/// Waits for the message of this number in a chat.
async fn message(phones: &Phones, chat: i64, number: usize) -> anyhow::Result<Message> {
    until(&format!("message {number}"), || async {
        Ok(phones.messages(chat).await?.get(number - 1).cloned())
    })
    .await
}

fn holds(message: &Message, parts: &[&str]) {
    for part in parts {
        assert!(message.text.contains(part), "{part} in {}", message.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_and_landings_are_told_together_and_a_failure_at_once_with_what_it_blocks()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (clock, mut moves) = running();
    let world = BotWorld::open_gathering(directory.path(), &phones.server, &clock, BATCH).await?;
    let build = BuildEvents::of(&world);
    build.begins().await?;
    build.lands(1).await?;
    build.lands(2).await?;
    assert_eq!(phones.messages(ADA).await?, [], "they hold nothing up");
    // It waits for nobody, and takes along what was gathered until then.
    build.fails("T-005").await?;
    for chat in [ADA, BOB] {
        holds(
            &message(&phones, chat, 1).await?,
            &[
                "4 things happened",
                "Task T-005 of walks failed",
                "the list is empty",
                "1 blocked by it, 2 go on without it.",
                "→ give guidance",
                "The build of walks began",
                "5 tasks on build/walks.",
                "Task T-001 of walks is complete",
                "Task T-002 of walks is complete",
            ],
        );
    }
    build.lands(3).await?;
    build.lands(4).await?;
    assert_eq!(phones.messages(ADA).await?.len(), 1, "nor do these");
    clock.advance(BATCH);
    for chat in [ADA, BOB] {
        holds(
            &message(&phones, chat, 2).await?,
            &[
                "2 things happened",
                "Half of walks is done",
                "Task T-003 is complete, 3 of 5 tasks are.",
                "Task T-004 of walks is complete",
            ],
        );
    }
    build.ends().await?;
    for chat in [ADA, BOB] {
        let ended = message(&phones, chat, 3).await?;
        holds(
            &ended,
            &[
                "The build of walks is stopped",
                "3 completed, 1 failed, 1 blocked of 5 tasks.",
            ],
        );
    }
    // A restart tells nothing again.
    world.close().await?;
    let world = BotWorld::open_gathering(directory.path(), &phones.server, &clock, BATCH).await?;
    clock.advance(BATCH * 2);
    world.ask("missing_context", "What next?").await?;
    for chat in [ADA, BOB] {
        holds(&message(&phones, chat, 4).await?, &["What next?"]);
    }
    // While time passes: it may be waiting until Telegram takes another message.
    world.close().await?;
    moves.shutdown().await;
    Ok(())
}
