//! What was to be done next is advised to nobody once somebody has done it.

use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::notice::NoticeState;
use ropewalk_schemas::payload::{IdeationCompleted, SpecRequested};
use ropewalk_schemas::specification::{Complexity, Specification};
use ropewalk_schemas::{ContentHash, Payload, SessionId, Slug, SpecId, Subject, UserSlug};
use ropewalk_store::ChangeSet;
use serde_json::json;

use super::paper::{Paper, house, rows};
use super::{begun, build, tell};
use crate::house::{House, noon};

const ADVICE: &str = "ask for its specification";

/// Tells that the idea is complete.
async fn complete(house: &House) -> anyhow::Result<()> {
    let idea = Slug::parse("walks")?;
    let payload = Payload::IdeationCompleted(IdeationCompleted {
        session_id: SessionId(house.services.ids.next()),
        idea_slug: idea.clone(),
        user_slug: UserSlug::parse("ada")?,
        brief_path: "planning/brief.md".to_owned(),
        confidence: 0.9,
        ready_for_spec: true,
    });
    tell(house, Subject::idea(&idea), payload).await
}

/// Tells that its specification is asked for.
async fn requested(house: &House) -> anyhow::Result<()> {
    let spec_id = SpecId(house.services.ids.next());
    let payload = Payload::SpecRequested(SpecRequested {
        spec_id,
        idea_slug: Slug::parse("walks")?,
        user_slug: UserSlug::parse("ada")?,
        requested_by: UserSlug::parse("ada")?,
        complexity: Complexity::Simple,
    });
    tell(house, Subject::specification(spec_id), payload).await
}

#[tokio::test]
async fn nobody_is_advised_to_ask_for_what_is_asked_for_or_built_meanwhile() -> anyhow::Result<()> {
    for is_built in [false, true] {
        let directory = tempfile::tempdir()?;
        let clock = Clock::manual(noon());
        let paper = Paper::new(&["ada"]);
        let house = house(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
        complete(&house).await?;
        house.settle().await?;
        let waits = rows(&house).await?;
        let best = waits[0].text.recommendation.as_deref();
        assert_eq!((waits.len(), best), (1, Some(ADVICE)));
        if is_built {
            begun(&house, build(&house), "walks").await?;
        } else {
            requested(&house).await?;
        }
        house.settle().await?;
        house.pass(Duration::from_mins(6)).await;
        if is_built {
            paper.said(&house, 1).await?;
        }
        house.settle().await?;
        let told = paper.all();
        assert_eq!(told.len(), usize::from(is_built), "{told:#?}");
        assert!(!format!("{told:?}").contains(ADVICE), "{told:#?}");
        let rows = rows(&house).await?;
        let is_over = |event: &str| {
            let mut of_event = rows.iter().filter(|row| row.event_type == event);
            of_event.all(|row| row.state == NoticeState::Over)
        };
        assert!(is_over("ideation.completed"), "{rows:#?}");
        house.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn nobody_is_advised_to_ask_for_what_was_asked_for_before() -> anyhow::Result<()> {
    for (state, best) in [
        ("draft", None),
        ("generated", None),
        ("approved", None),
        ("rejected", Some(ADVICE)),
    ] {
        let directory = tempfile::tempdir()?;
        let clock = Clock::manual(noon());
        let paper = Paper::new(&["ada"]);
        let house = house(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
        let ids = &house.services.ids;
        let spec: Specification = serde_json::from_value(json!({
            "id": ids.next(), "idea": "walks", "user": "ada", "state": state, "revision": 1, "hash": ContentHash::of(b"walks"),
            "complexity": "simple", "requested_by": "ada", "correlation_id": ids.next(), "created_at": noon(),
            "updated_at": noon(),
        }))?;
        let mut changes = ChangeSet::new();
        changes.insert(&spec);
        house.services.store.commit(changes).await?;
        complete(&house).await?;
        house.settle().await?;
        let told = rows(&house).await?;
        let told: Vec<_> = told
            .iter()
            .map(|row| row.text.recommendation.as_deref())
            .collect();
        assert_eq!(told, [best], "{state}");
        house.close().await?;
    }
    Ok(())
}
