//! What the page of a lesson tells of its life.

use std::collections::BTreeSet;

use ropewalk_desk::knowledge::{Remark, remember};
use ropewalk_desk::people::Person;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind};
use ropewalk_schemas::payload::{KnowledgePromoted, KnowledgeReinforced};
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{ComponentName, Payload, Slug, Subject};
use ropewalk_store::ChangeSet;
use serde_json::json;

use crate::browser::Browser;
use crate::world::{ServerWorld, name};

#[tokio::test(flavor = "multi_thread")]
async fn a_lesson_tells_where_it_belongs_and_what_became_of_it() {
    let world = ServerWorld::new().await;
    let context = Context::new(&world.services, ComponentName::parse("test").unwrap());
    let remark = Remark {
        content: "Mind leap years when days are counted.".to_owned(),
        kind: KnowledgeKind::Gotcha,
        globs: vec!["src/days.rs".to_owned()],
        action: Some(Action::Update),
        topics: vec!["dates".to_owned()],
        idea: Some(Slug::parse("walks").unwrap()),
        confidence: 0.7,
    };
    let item = remember(&context, remark, &Person::alone(name("ada"))).await;
    let item_id = item.unwrap().item();
    let mut changes = ChangeSet::new();
    let weighed = |from: f64, to: f64, reason: &str| {
        Payload::KnowledgeReinforced(KnowledgeReinforced {
            item_id,
            from,
            to,
            reason: reason.to_owned(),
        })
    };
    for payload in [
        weighed(0.7, 0.85, "confirmed, seen in 2 executions"),
        weighed(0.85, 0.75, "its mistake came back in `T-1`"),
        Payload::KnowledgePromoted(KnowledgePromoted {
            item_id,
            file: "AGENTS.md".to_owned(),
            approved_by: "ada".to_owned(),
        }),
    ] {
        changes.emit(context.event(Subject::knowledge(item_id), payload));
    }
    world.services.store.commit(changes).await.unwrap();
    let page = Browser::new(&world)
        .await
        .read(&format!("/knowledge/{item_id}"))
        .await;
    assert_eq!(page.status, 200, "{}", page.text);
    let (_, history) = page.text.split_once("What became of it").unwrap();
    let mut rest = history;
    // In this order.
    for told in [
        "recorded</th><td data-of=\"Confidence\">0.70</td><td data-of=\"Why\">learned from <code>walks</code></td>",
        "reinforced</th><td data-of=\"Confidence\">0.85</td><td data-of=\"Why\">confirmed, seen in 2 executions</td>",
        "weakened</th><td data-of=\"Confidence\">0.75</td><td data-of=\"Why\">its mistake came back in <code>T-1</code>",
        "promoted</th><td data-of=\"Confidence\"></td><td data-of=\"Why\">put into <code>AGENTS.md</code>, as ada said</td>",
    ] {
        let found = rest.split_once(told);
        let (_, after) = found.unwrap_or_else(|| panic!("no {told}: {history}"));
        rest = after;
    }
    for told in [
        "<dt>action</dt><dd>UPDATE</dd>",
        "<a href=\"/ideas/walks\">walks</a>",
        "<code>src/days.rs</code>",
    ] {
        assert!(page.text.contains(told), "no {told}: {}", page.text);
    }
    let shown = world.read(&format!("/api/knowledge/{item_id}")).await;
    let steps = shown["history"].as_array().unwrap().iter();
    let steps: Vec<&str> = steps.map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["recorded", "reinforced", "weakened", "promoted"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_is_read_page_by_page_to_the_last() {
    let world = ServerWorld::new().await;
    let mut changes = ChangeSet::new();
    for number in 1..=52_u128 {
        let item: KnowledgeItem = serde_json::from_value(json!({
            "id": uuid::Uuid::from_u128(number), "kind": "gotcha", "content": format!("Mind gap number {number}."),
            "confidence": 0.8, "executions": ["a"], "ideas": ["walks"], "discovered_by": "build",
            "state": "confirmed", "injections": 0, "created_at": "2026-03-01T08:00:00Z",
            "updated_at": "2026-03-01T08:00:00Z",
        }))
        .unwrap();
        changes.insert(&item);
    }
    world.services.store.commit(changes).await.unwrap();
    let browser = Browser::new(&world).await;
    for path in ["/knowledge?", "/knowledge?words=gap&amp;"] {
        let mut told = BTreeSet::new();
        for (page, count) in [(1, 25), (2, 25), (3, 2)] {
            let asked = format!("{path}page={page}").replace("&amp;", "&");
            let read = browser.read(&asked).await.text;
            let items = read.split("<h2><a href=\"/knowledge/").skip(1);
            let items: Vec<&str> = items.map(|rest| &rest[..36]).collect();
            assert_eq!(items.len(), count, "{asked}: {read}");
            told.extend(items.into_iter().map(str::to_owned));
            let next = format!("href=\"{path}page={}\"", page + 1);
            let next = next.replace("&amp;", "&#38;");
            assert_eq!(read.contains(&next), page < 3, "{asked}: {read}");
        }
        assert_eq!(told.len(), 52, "{path}");
    }
    let beyond = browser.read("/knowledge?page=4").await;
    assert!(beyond.text.contains("beyond the last"), "{}", beyond.text);
    world.stop().await;
}
