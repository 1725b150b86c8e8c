//! Remembers, finds and weighs lessons in a real store.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use ropewalk_knowledge::{
    Draft, Effect, PlannedInjection, RecordOutcome, confirm, deprecate, generalise, inject,
    patterns, record, reinforce, retrieve, search, settle,
};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{
    BuildId, ComponentName, KnowledgeId, Payload, RepoPath, Slug, SpecId, TaskId,
};
use ropewalk_store::{Location, Query, Store, Versioned};
use tempfile::TempDir;

const LESSON: &str = "SQLite has no DATETIME type; store dates as TEXT in ISO-8601";

/// A store that lessons are recorded in, on a clock that stands still.
struct LessonStore {
    store: Store,
    clock: Clock,
    ids: Ids,
    _directory: TempDir,
}

impl LessonStore {
    async fn new() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let location = Location::Sqlite(directory.path().join("store.db"));
        Ok(Self {
            store: Store::open(&location, clock.clone()).await?,
            ids: Ids::seeded(1, clock.clone()),
            clock,
            _directory: directory,
        })
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    async fn record(&self, draft: Draft) -> anyhow::Result<(RecordOutcome, Vec<Payload>)> {
        let id = KnowledgeId::from(self.ids.next());
        let recorded = record(&self.store, draft, id, self.now()).await?;
        if !recorded.changes.is_empty() {
            self.store.commit(recorded.changes).await?;
        }
        Ok((recorded.outcome, recorded.payloads))
    }

    async fn item(&self, id: KnowledgeId) -> anyhow::Result<Versioned<KnowledgeItem>> {
        let found = self.store.get::<KnowledgeItem>(&id.to_string()).await?;
        found.ok_or_else(|| anyhow::anyhow!("no item {id}"))
    }

    async fn added(&self, draft: Draft) -> anyhow::Result<Versioned<KnowledgeItem>> {
        let (outcome, _) = self.record(draft).await?;
        let id = outcome.item().ok_or_else(|| anyhow::anyhow!("refused"))?;
        self.item(id).await
    }

    async fn all(&self) -> anyhow::Result<Vec<Versioned<KnowledgeItem>>> {
        Ok(self.store.list(Query::new()).await?)
    }
}

fn draft(content: &str, execution: &str, confidence: f64) -> anyhow::Result<Draft> {
    Ok(Draft {
        kind: KnowledgeKind::Gotcha,
        content: content.to_owned(),
        globs: vec![generalise(&RepoPath::parse(
            "database/migrations/001_habits.sql",
        )?)],
        action: Some(Action::Create),
        topics: vec!["sqlite".to_owned()],
        confidence,
        execution: execution.to_owned(),
        idea: Some(Slug::parse("habits")?),
        evidence: vec![format!("attempt/{execution}")],
        discovered_by: ComponentName::parse("build")?,
        from_person: false,
    })
}

fn task(number: u32) -> anyhow::Result<TaskId> {
    Ok(TaskId::parse(&format!("T-{number:03}"))?)
}

#[tokio::test]
async fn a_lesson_of_one_build_reaches_the_tasks_of_another_idea() -> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let item = lessons.added(draft(LESSON, "build-1", 0.7)?).await?;
    assert_eq!(item.record.state, KnowledgeState::Candidate);
    assert_eq!(item.record.globs, ["database/migrations/*.sql"]);
    let change = confirm(&item, lessons.now())?;
    lessons.store.commit(change.changes).await?;

    let file = RepoPath::parse("database/migrations/001_tasks.sql")?;
    let found = retrieve(&lessons.store, &file, Action::Create, 0.7, 5).await?;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].record.state, KnowledgeState::Confirmed);
    let none = retrieve(&lessons.store, &file, Action::Update, 0.7, 5).await?;
    assert!(none.is_empty());

    let spec = SpecId::from(lessons.ids.next());
    let plan = [PlannedInjection {
        item: found[0].clone(),
        task: task(1)?,
    }];
    let injected = inject(&lessons.store, spec, &plan, true, lessons.now()).await?;
    assert_eq!(injected.carried, [(task(1)?, item.record.id)]);
    lessons.store.commit(injected.changes).await?;
    assert_eq!(lessons.item(item.record.id).await?.record.injections, 1);

    let build = BuildId::from(lessons.ids.next());
    let settled = settle(&lessons.store, spec, &task(1)?, build).await?;
    lessons.store.commit(settled).await?;
    let uses = lessons.store.list::<Injection>(Query::new()).await?;
    assert_eq!(uses[0].record.build, Some(build));
    assert_eq!(uses[0].record.helped, None, "a review says what it did");

    let item = lessons.item(item.record.id).await?;
    let change = reinforce(
        &item,
        Effect::PreventedFailure,
        "T-001 passed",
        lessons.now(),
    );
    lessons.store.commit(change.changes).await?;
    let confidence = lessons.item(item.record.id).await?.record.confidence;
    assert!((confidence - 0.95).abs() < 1e-9);
    Ok(())
}

#[tokio::test]
async fn a_lesson_is_kept_once_and_counts_its_executions() -> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let first = lessons.added(draft(LESSON, "build-1", 0.7)?).await?;
    let again = "SQLite has no DATETIME type: store dates as TEXT, in ISO-8601";
    let (outcome, payloads) = lessons.record(draft(again, "build-1", 0.7)?).await?;
    assert_eq!(outcome, RecordOutcome::SeenAgain(first.record.id));
    assert!(
        payloads.is_empty(),
        "the same execution does not count twice"
    );

    let mut other = draft(again, "build-2", 0.6)?;
    other.idea = Some(Slug::parse("tasks")?);
    let (outcome, payloads) = lessons.record(other).await?;
    assert_eq!(outcome, RecordOutcome::SeenAgain(first.record.id));
    assert_eq!(payloads.len(), 1);
    let rows = lessons.all().await?;
    assert_eq!(rows.len(), 1);
    let executions: BTreeSet<String> = ["build-1", "build-2"].map(str::to_owned).into();
    assert_eq!(rows[0].record.executions, executions);
    assert_eq!(rows[0].record.ideas.len(), 2);
    assert!(
        (rows[0].record.confidence - 0.7).abs() < 1e-9,
        "a candidate waits for its review"
    );
    let change = confirm(&rows[0], lessons.now())?;
    assert!((change.item.confidence - 0.85).abs() < 1e-9);
    Ok(())
}

#[tokio::test]
async fn what_a_review_alone_supposes_reaches_no_task_until_a_person_says_it_too()
-> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let mut supposed = draft(LESSON, "build-1", 0.7)?;
    supposed.evidence = vec!["build/1".to_owned()];
    let item = lessons.added(supposed).await?;
    let file = RepoPath::parse("database/migrations/001_tasks.sql")?;
    let found = retrieve(&lessons.store, &file, Action::Create, 0.5, 5).await?;
    assert!(found.is_empty(), "{found:?}");
    let mut said = draft(LESSON, "person/ada", 0.7)?;
    said.evidence = vec!["person/ada".to_owned()];
    said.from_person = true;
    let (outcome, _) = lessons.record(said).await?;
    assert_eq!(outcome, RecordOutcome::SeenAgain(item.record.id));
    let found = retrieve(&lessons.store, &file, Action::Create, 0.5, 5).await?;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].record.state, KnowledgeState::Confirmed);
    Ok(())
}

#[tokio::test]
async fn what_the_reviews_of_two_builds_suppose_is_confirmed() -> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let supposed = |build: &str| -> anyhow::Result<Draft> {
        let mut draft = draft(LESSON, build, 0.5)?;
        draft.evidence = vec![format!("build/{build}")];
        Ok(draft)
    };
    let item = lessons.added(supposed("build-1")?).await?;
    lessons.record(supposed("build-1")?).await?;
    let once = lessons.item(item.record.id).await?;
    assert_eq!(once.record.state, KnowledgeState::Candidate);
    lessons.record(supposed("build-2")?).await?;
    let twice = lessons.item(item.record.id).await?;
    assert_eq!(twice.record.state, KnowledgeState::Confirmed);
    assert!((twice.record.confidence - 0.85).abs() < 1e-9);
    Ok(())
}

#[tokio::test]
async fn a_stronger_lesson_takes_the_place_of_a_weaker_one() -> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let weak = lessons.added(draft(LESSON, "build-1", 0.7)?).await?;
    let (outcome, _) = lessons.record(draft(LESSON, "build-2", 0.8)?).await?;
    let RecordOutcome::Superseded { old, new } = outcome else {
        anyhow::bail!("{outcome:?}");
    };
    assert_eq!(old, weak.record.id);
    let retired = lessons.item(old).await?;
    assert_eq!(retired.record.state, KnowledgeState::Superseded);
    assert_eq!(retired.record.superseded_by, Some(new));
    assert_eq!(lessons.item(new).await?.record.occurrences(), 2);
    let file = RepoPath::parse("database/migrations/2.sql")?;
    let found = retrieve(&lessons.store, &file, Action::Create, 0.6, 5).await?;
    let ids: Vec<KnowledgeId> = found.iter().map(|row| row.record.id).collect();
    assert_eq!(ids, [new]);
    Ok(())
}

#[tokio::test]
async fn what_teaches_nothing_is_not_kept() -> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    for content in [
        "Validation failed",
        "curl: (7) Failed to connect: Connection refused",
    ] {
        let (outcome, payloads) = lessons.record(draft(content, "build-1", 0.7)?).await?;
        assert!(matches!(outcome, RecordOutcome::Refused(_)), "{outcome:?}");
        assert!(payloads.is_empty());
    }
    assert!(lessons.all().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn the_fifth_use_is_held_out_and_stays_so_in_the_next_revision() -> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let item = lessons.added(draft(LESSON, "build-1", 0.7)?).await?;
    let spec = SpecId::from(lessons.ids.next());
    let mut plan = Vec::new();
    for number in 1..=6 {
        plan.push(PlannedInjection {
            item: item.clone(),
            task: task(number)?,
        });
    }
    let injected = inject(&lessons.store, spec, &plan, true, lessons.now()).await?;
    assert_eq!(injected.held_out, [(task(5)?, item.record.id)]);
    assert_eq!(injected.carried.len(), 5);
    lessons.store.commit(injected.changes).await?;
    assert_eq!(lessons.item(item.record.id).await?.record.injections, 5);

    let again = inject(&lessons.store, spec, &plan, true, lessons.now()).await?;
    assert!(again.changes.is_empty());
    assert_eq!(again.held_out, [(task(5)?, item.record.id)]);

    let other = SpecId::from(lessons.ids.next());
    let switched_off = inject(&lessons.store, other, &plan, false, lessons.now()).await?;
    assert!(switched_off.held_out.is_empty());
    Ok(())
}

#[tokio::test]
async fn what_is_out_of_use_is_found_no_more() -> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let mut pattern = draft(
        "Keep parsing apart from printing, so that both can be tested",
        "b",
        0.8,
    )?;
    pattern.kind = KnowledgeKind::Pattern;
    let item = lessons.added(pattern).await?;
    let topics = ["SQLite".to_owned()];
    assert_eq!(patterns(&lessons.store, &topics, 0.7, 5).await?.len(), 1);
    assert!(patterns(&lessons.store, &topics, 0.9, 5).await?.is_empty());
    assert_eq!(
        search(&lessons.store, "parsing \"AND\" printing*", 5)
            .await?
            .len(),
        1
    );
    let change = deprecate(&item, "the library changed", "ada", lessons.now())?;
    lessons.store.commit(change.changes).await?;
    assert!(patterns(&lessons.store, &topics, 0.7, 5).await?.is_empty());
    assert!(search(&lessons.store, "parsing", 5).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_lesson_with_a_glob_without_bounds_is_refused_and_a_stored_one_harms_nobody()
-> anyhow::Result<()> {
    let lessons = LessonStore::new().await?;
    let nested = format!("{}a{}", "{".repeat(8_000), "}".repeat(8_000));
    let mut endless = draft(LESSON, "b-1", 0.7)?;
    endless.globs = vec![nested.clone()];
    let (outcome, _) = lessons.record(endless).await?;
    assert!(matches!(outcome, RecordOutcome::Refused(_)), "{outcome:?}");

    let sound = lessons.added(draft(LESSON, "b-1", 0.7)?).await?;
    let mut stored = sound.record.clone();
    stored.id = KnowledgeId::from(lessons.ids.next());
    stored.globs = vec![nested];
    let mut changes = ropewalk_store::ChangeSet::new();
    changes.insert(&stored);
    lessons.store.commit(changes).await?;
    let file = RepoPath::parse("database/migrations/002_streaks.sql")?;
    let found = retrieve(&lessons.store, &file, Action::Create, 0.6, 5).await?;
    let ids: Vec<KnowledgeId> = found.iter().map(|row| row.record.id).collect();
    assert_eq!(ids, [sound.record.id]);
    Ok(())
}
