//! What was to be done next is advised to nobody once somebody has done it.

use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::payload::{IdeationCompleted, SpecRequested};
use ropewalk_schemas::specification::{Complexity, Specification};
use ropewalk_schemas::{ContentHash, Payload, SessionId, Slug, SpecId, Subject, UserSlug};
use ropewalk_store::{ChangeSet, Versioned};
use serde_json::json;

use super::paper::{Paper, at_noon, rows};
use super::{begun, build, tell};
use crate::world::{FrameWorld, noon};

const ADVICE: &str = "ask for its specification";

/// Tells that the idea of somebody is complete.
async fn complete(world: &FrameWorld, user: &str) -> anyhow::Result<()> {
    let idea = Slug::parse("walks")?;
    let payload = Payload::IdeationCompleted(IdeationCompleted {
        session_id: SessionId(world.services.ids.next()),
        idea_slug: idea.clone(),
        user_slug: UserSlug::parse(user)?,
        brief_path: "planning/brief.md".to_owned(),
        confidence: 0.9,
        ready_for_spec: true,
    });
    tell(world, Subject::idea(&idea), payload).await
}

/// Tells that its specification is asked for.
async fn requested(world: &FrameWorld) -> anyhow::Result<()> {
    let spec_id = SpecId(world.services.ids.next());
    let payload = Payload::SpecRequested(SpecRequested {
        spec_id,
        idea_slug: Slug::parse("walks")?,
        user_slug: UserSlug::parse("ada")?,
        requested_by: UserSlug::parse("ada")?,
        complexity: Complexity::Simple,
    });
    tell(world, Subject::specification(spec_id), payload).await
}

#[tokio::test]
async fn nobody_is_advised_to_ask_for_what_is_asked_for_or_built_meanwhile() -> anyhow::Result<()> {
    for is_built in [false, true] {
        let paper = Paper::new(&["ada"]);
        let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
        complete(&world, "cleo").await?;
        world.settle().await?;
        let waits = rows(&world).await?;
        let best = waits[0].text.recommendation.as_deref();
        assert_eq!((waits.len(), best), (1, Some(ADVICE)));
        if is_built {
            begun(&world, build(&world), "walks").await?;
        } else {
            requested(&world).await?;
        }
        world.settle().await?;
        world.pass(Duration::from_mins(6)).await;
        if is_built {
            paper.said(&world, 1).await?;
        }
        world.settle().await?;
        let told = paper.all();
        assert_eq!(told.len(), usize::from(is_built), "{told:#?}");
        assert!(!format!("{told:?}").contains(ADVICE), "{told:#?}");
        let rows = rows(&world).await?;
        let is_over = |event: &str| {
            let mut of_event = rows.iter().filter(|row| row.event_type == event);
            of_event.all(|row| row.state == NoticeState::Over)
        };
        assert!(is_over("ideation.completed"), "{rows:#?}");
        world.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn whose_idea_it_is_hears_at_once_that_it_is_complete_and_others_with_the_rest()
-> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[]), ("bob", &[])]).await?;
    complete(&world, "ada").await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(
        (said[0].to.as_str(), said[0].title.as_str()),
        ("ada", "The idea `walks` is complete")
    );
    assert_eq!(paper.to("bob"), 0);
    world.pass(Duration::from_mins(6)).await;
    paper.until(&world, || paper.to("bob") == 1).await?;
    world.close().await
}

#[tokio::test]
async fn whose_idea_it_is_hears_nothing_where_its_specification_is_asked_for_in_the_same_moment()
-> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob"]);
    let (_directory, world) = at_noon(&paper, &[("ada", &[]), ("bob", &[])]).await?;
    complete(&world, "ada").await?;
    // No time passes meanwhile.
    paper.until_rows(&world, |rows| rows.len() == 2).await?;
    let waits = rows(&world).await?;
    let after = |name: &str| {
        let told = waits.iter().find(|told| told.receiver == name);
        told.map(|told| told.due - noon())
    };
    assert_eq!(after("ada"), Some(TimeDelta::seconds(3)));
    assert_eq!(after("bob"), Some(TimeDelta::minutes(5)), "no longer");
    world.pass(Duration::from_secs(2)).await;
    requested(&world).await?;
    let is_over = |row: &Versioned<Notice>| row.state == NoticeState::Over;
    paper
        .until_rows(&world, |rows| rows.iter().all(is_over))
        .await?;
    world.pass(Duration::from_mins(6)).await;
    world.settle().await?;
    assert_eq!(paper.all(), []);
    world.close().await
}

#[tokio::test]
async fn nobody_is_advised_to_ask_for_what_was_asked_for_before() -> anyhow::Result<()> {
    for (state, best) in [
        ("draft", None),
        ("generated", None),
        ("approved", None),
        ("rejected", Some(ADVICE)),
    ] {
        let paper = Paper::new(&["ada"]);
        let (_directory, world) = at_noon(&paper, &[("ada", &[])]).await?;
        let ids = &world.services.ids;
        let spec: Specification = serde_json::from_value(json!({
            "id": ids.next(), "idea": "walks", "user": "ada", "state": state, "revision": 1, "hash": ContentHash::of(b"walks"),
            "complexity": "simple", "requested_by": "ada", "correlation_id": ids.next(), "created_at": noon(),
            "updated_at": noon(),
        }))?;
        let mut changes = ChangeSet::new();
        changes.insert(&spec);
        world.services.store.commit(changes).await?;
        complete(&world, "cleo").await?;
        world.settle().await?;
        let told = rows(&world).await?;
        let told: Vec<_> = told
            .iter()
            .map(|row| row.text.recommendation.as_deref())
            .collect();
        assert_eq!(told, [best], "{state}");
        world.close().await?;
    }
    Ok(())
}
