//! What the page of a lesson tells of its life.

use ropewalk_desk::knowledge::{Remark, remember};
use ropewalk_desk::people::Person;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::payload::{KnowledgePromoted, KnowledgeReinforced};
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{ComponentName, Payload, Slug, Subject};
use ropewalk_store::ChangeSet;

use crate::browser::Browser;
use crate::house::{House, name};

#[tokio::test(flavor = "multi_thread")]
async fn a_lesson_tells_where_it_belongs_and_what_became_of_it() {
    let house = House::new().await;
    let context = Context::new(&house.services, ComponentName::parse("test").unwrap());
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
    house.services.store.commit(changes).await.unwrap();
    let page = Browser::new(&house)
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
    let shown = house.read(&format!("/api/knowledge/{item_id}")).await;
    let steps = shown["history"].as_array().unwrap().iter();
    let steps: Vec<&str> = steps.map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["recorded", "reinforced", "weakened", "promoted"]);
    house.stop().await;
}
