//! Lists that keep to a state or a time, and the timeline as a file.

use chrono::TimeDelta;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::BuildState;
use serde_json::Value;

use crate::browser::Browser;
use crate::world::{ADA, ServerWorld, answered};

/// Returns the ids that a list of the API holds.
async fn listed(world: &ServerWorld, path: &str) -> Vec<String> {
    let answer = world.read(path).await;
    let items = answer["items"].as_array().unwrap();
    let ids = items.iter().map(|item| item["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_are_listed_by_state_and_time_and_by_an_address_that_can_be_kept() {
    let world = ServerWorld::new().await;
    let (running, ended) = (world.built().await, world.built().await);
    world.end(ended).await;
    let early = world.services.clock.now() - TimeDelta::days(3);
    world.change(ended, |build| build.created_at = early).await;
    let day_before = (early + TimeDelta::days(2)).format("%Y-%m-%dT%H:%M:%SZ");
    let names = |ids: &[BuildId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    for (query, expected) in [
        (String::new(), names(&[ended, running])),
        ("?state=running".to_owned(), names(&[running])),
        ("?state=stopped&idea=walks".to_owned(), names(&[ended])),
        ("?state=failed".to_owned(), Vec::new()),
        (format!("?since={day_before}"), names(&[running])),
        (format!("?until={day_before}"), names(&[ended])),
        (format!("?since={day_before}&state=stopped"), Vec::new()),
    ] {
        let found = listed(&world, &format!("/api/builds{query}")).await;
        assert_eq!(found, expected, "{query}");
    }
    let browser = Browser::new(&world).await;
    let page = browser.read("/builds?state=running").await.text;
    assert!(page.contains(&format!("/builds/{running}")), "{page}");
    assert!(!page.contains(&format!("/builds/{ended}")), "{page}");
    assert!(page.contains("<option selected>running</option>"), "{page}");
    let minute = (early + TimeDelta::days(2)).format("%Y-%m-%dT%H:%M");
    for (query, [has_running, has_ended]) in [
        (format!("since={minute}"), [true, false]),
        (format!("until={minute}"), [false, true]),
        (format!("state=stopped&until={minute}"), [false, true]),
    ] {
        let page = browser.read(&format!("/builds?{query}")).await.text;
        let has = [running, ended].map(|build| page.contains(&format!("/builds/{build}")));
        assert_eq!(has, [has_running, has_ended], "{query}: {page}");
        assert!(page.contains(&format!("value=\"{minute}\"")), "{page}");
    }
    let none = browser.read("/builds?state=failed").await.text;
    assert!(none.contains("No build is as you ask for."), "{none}");
    for path in [
        "/api/builds?state=Running",
        "/api/builds?since=yesterday",
        "/api/ideation/sessions?state=done",
        "/api/ideation/sessions?until=1",
        "/?state=done",
        "/?since=yesterday",
        "/builds?until=1",
    ] {
        let answer = answered(world.ask("GET", path, ADA)).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
    }
    let told = browser.read("/builds?state=Running").await;
    assert_eq!(told.status, 400);
    let states = BuildState::ALL.iter().map(|state| state.as_str());
    let states = states.collect::<Vec<_>>().join(", ");
    assert!(told.text.contains(&states), "{}", told.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ideas_are_listed_by_how_far_they_have_come() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let all = world.read("/api/ideation/sessions").await;
    let state = all["items"][0]["state"].as_str().unwrap().to_owned();
    for known in ["draft", "candidate", "captured", "landed", "abandoned"] {
        let path = format!("/api/ideation/sessions?state={known}");
        let found = world.read(&path).await;
        let count = found["items"].as_array().unwrap().len();
        assert_eq!(count, usize::from(known == state), "{known}");
    }
    let none = world
        .read("/api/ideation/sessions?until=2020-01-01T00:00:00Z")
        .await;
    assert_eq!(none["items"].as_array().unwrap().len(), 0);
    let runs = serde_json::json!({ "text": "Runs" });
    let begun = world.send("/api/ideation/sessions", &runs).await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    let browser = Browser::new(&world).await;
    let every = (true, true);
    for (query, expected) in [
        ("", every),
        ("state=abandoned", (false, false)),
        ("words=WALK", (true, false)),
        ("words=runs", (false, true)),
        ("words=nothing+like+it", (false, false)),
        ("until=2020-01-01", (false, false)),
        ("since=2020-01-01T00:00", every),
        ("words=run&since=2020-01-01T00:00", (false, true)),
        ("words=run&page=2", (false, false)),
    ] {
        let page = browser.read(&format!("/?{query}")).await.text;
        let has = |idea: &str| page.contains(&format!("id=\"idea-{idea}\""));
        assert_eq!((has("walks"), has("runs")), expected, "{query}: {page}");
        let is_empty = page.contains("No idea is as you ask for.");
        let is_first = !query.contains("page");
        assert_eq!(is_empty, expected == (false, false) && is_first, "{query}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_nobody_can_mean_are_refused_in_the_same_words_everywhere() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    for (query, words) in [
        ("type=nothing.at-all", "no event type is called"),
        ("subject=two%20words", "cannot be understood"),
    ] {
        let told = answered(world.ask("GET", &format!("/api/events?{query}"), ADA)).await;
        let page = browser.read(&format!("/events?{query}")).await;
        assert_eq!((told.status, page.status), (400, 400), "{query}");
        for text in [&told.text, &page.text] {
            assert!(text.contains(words), "{query}: {text}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_is_taken_along_whole_or_as_it_is_filtered() {
    let world = ServerWorld::new().await;
    world.specified().await;
    world.elsewhere("runs").await;
    let last = world.many(1_500, "00").await;
    let browser = Browser::new(&world).await;
    let file = browser.read("/events/download").await;
    let kept = file.headers["content-disposition"].to_str().unwrap();
    assert_eq!(kept, "attachment; filename=\"events.jsonl\"");
    let lines: Vec<Value> = file
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let positions: Vec<i64> = lines
        .iter()
        .map(|line| line["sequence"].as_i64().unwrap())
        .collect();
    assert_eq!(positions, (1..=last).collect::<Vec<i64>>());
    let first = world.read("/api/events?limit=1").await;
    assert_eq!(lines[0], first["items"][0]);
    let about_runs = browser
        .read("/events/download?type=ideation.*&subject=idea%2Fruns")
        .await;
    let about_runs: Vec<Value> = about_runs
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = lines.iter().filter(|line| line["subject"] == "idea/runs");
    assert_eq!(about_runs, expected.cloned().collect::<Vec<_>>());
    assert_eq!(about_runs.len(), 1);
    let page = browser.read("/events?type=task.*").await.text;
    assert!(
        !page.contains("/events/download"),
        "there is nothing to take: {page}"
    );
    assert_eq!(browser.read("/events/download?type=x").await.status, 400);
    let stranger = world.bare("GET", "/events/download").send().await.unwrap();
    assert_eq!(stranger.status().as_u16(), 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_of_events_that_finds_nothing_says_what_may_be_meant_and_stays() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let browser = Browser::new(&world).await;
    let page = browser.read("/events?type=task&subject=idea/walks").await;
    assert_eq!(page.status, 400, "{}", page.text);
    for told in [
        "no event type is called <code>task</code>; <code>task.*</code> may be meant",
        "name=\"type\" value=\"task\"",
        "name=\"subject\" value=\"idea/walks\"",
    ] {
        assert!(page.text.contains(told), "no {told}: {}", page.text);
    }
    let page = browser.read("/events?subject=walks").await;
    assert_eq!(page.status, 200);
    let link = "<a href=\"/events?subject=idea/walks\">idea/walks</a>";
    assert!(page.text.contains(link), "{}", page.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_found_by_who_told_them_what_set_them_in_motion_and_when() {
    let world = ServerWorld::new().await;
    world.specified().await;
    world.elsewhere("runs").await;
    let browser = Browser::new(&world).await;
    let all = world.read("/api/events").await;
    let runs = &all["items"].as_array().unwrap().last().unwrap();
    assert_eq!(runs["subject"], "idea/runs");
    let correlation = runs["correlationid"].as_str().unwrap();
    let year = chrono::Datelike::year(&world.services.clock.now());
    let (next, last) = (year + 1, year - 1);
    let about = |text: &str| {
        (
            text.contains(">idea/walks</td>"),
            text.contains(">idea/runs</td>"),
        )
    };
    for (query, walks, has_runs) in [
        ("source=elsewhere".to_owned(), false, true),
        ("source=api".to_owned(), true, false),
        (format!("correlation={correlation}"), false, true),
        (
            format!("since={last}-01-01T00:00&until={next}-01-01"),
            true,
            true,
        ),
        (format!("since={next}-01-01T00:00:00Z"), false, false),
        (format!("until={last}-01-01"), false, false),
    ] {
        let page = browser.read(&format!("/events?{query}")).await.text;
        assert_eq!(about(&page), (walks, has_runs), "{query}: {page}");
        // The form stays as it was sent, and what is taken along is what is shown.
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            assert!(
                page.contains(&format!("name=\"{name}\""))
                    && page.contains(&format!("value=\"{value}\""))
            );
        }
        let file = browser
            .read(&format!("/events/download?{query}"))
            .await
            .text;
        let told = |subject: &str| file.contains(&format!("\"{subject}\""));
        assert_eq!(
            (told("idea/walks"), told("idea/runs")),
            (walks, has_runs),
            "{query}"
        );
    }
    let refused = browser.read("/events?since=yesterday").await;
    assert_eq!(refused.status, 400);
    let told = "<code>since</code> is no moment; write for example <code>2026-03-01T08:00</code>";
    assert!(refused.text.contains(told), "{}", refused.text);
    world.stop().await;
}
