//! Lists that are longer than a page of them.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::task::TaskState;
use ropewalk_store::ChangeSet;
use serde_json::json;

use crate::browser::Browser;
use crate::world::ServerWorld;

/// More ideas than two pages of the board have.
const IDEAS: usize = 130;

/// Stores ideas, each a minute younger than the one before.
async fn ideas(world: &ServerWorld) {
    let (ids, begun) = (&world.services.ids, world.services.clock.now());
    let mut changes = ChangeSet::new();
    for number in 0..IDEAS {
        let minutes = TimeDelta::minutes(i64::try_from(number).unwrap());
        let idea: Idea = serde_json::from_value(json!({
            "slug": format!("idea-{number:03}"), "user": "ada", "title": format!("Idea {number}"), "state": "captured",
            "session": ids.next(), "correlation_id": ids.next(), "created_at": begun + minutes,
        }))
        .unwrap();
        changes.insert(&idea);
    }
    world.services.store.commit(changes).await.unwrap();
}

/// Returns the ideas whose cards a page has.
fn cards(page: &str) -> BTreeSet<usize> {
    let links = page.split("<h3><a href=\"/ideas/idea-").skip(1);
    links
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_the_board_have_every_idea_and_the_first_what_is_worked_on() {
    let world = ServerWorld::new().await;
    ideas(&world).await;
    let built = world.built().await;
    world
        .change(built, |build| build.idea = "idea-003".parse().unwrap())
        .await;
    let browser = Browser::new(&world).await;
    let first = browser.read("/").await.text;
    let newest: BTreeSet<usize> = (IDEAS - 50..IDEAS).collect();
    let mut expected = newest.clone();
    expected.insert(3);
    assert_eq!(cards(&first), expected);
    assert!(first.contains("130 ideas in all"), "{first}");
    assert!(!first.contains("newer ones"), "{first}");
    let mut seen = newest;
    let mut page = first;
    let mut pages = 1;
    while let Some((_, rest)) = page.split_once("<a href=\"/?page=") {
        // What leads back stands before what leads on.
        let onward = rest.rsplit("<a href=\"/?page=").next().unwrap();
        let Some((number, "older ones")) = onward
            .split_once("\">")
            .map(|(number, words)| (number, words.split('<').next().unwrap()))
        else {
            break;
        };
        page = browser.read(&format!("/?page={number}")).await.text;
        seen.extend(cards(&page));
        pages += 1;
    }
    assert_eq!(seen, (0..IDEAS).collect());
    assert_eq!(pages, 3);
    assert!(page.contains("newer ones"), "{page}");
    let beyond = browser.read("/?page=4294967295").await;
    assert_eq!((beyond.status, cards(&beyond.text).len()), (200, 0));
    assert_eq!(browser.read("/?page=x").await.status, 400);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_counts_the_tasks_that_wait_for_others_of_their_plan() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    for number in 1..=7 {
        let state = match number {
            1 => TaskState::Complete,
            2 => TaskState::Working,
            3 => TaskState::Blocked,
            _ => TaskState::Pending,
        };
        world.task(build, &format!("T-{number:03}"), state).await;
    }
    let browser = Browser::new(&world).await;
    let page = browser.read("/running").await.text;
    assert!(page.contains("5 tasks of the build of walks"), "{page}");
    world.end(build).await;
    let page = browser.read("/running").await.text;
    assert!(page.contains("Nobody waits."), "{page}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_build_lists_its_tasks_page_by_page_and_draws_all_of_them() {
    const TASKS: usize = 230;
    let world = ServerWorld::new().await;
    let build = world.built().await;
    for number in 1..=TASKS {
        let id = format!("T-{number:03}");
        world.task(build, &id, TaskState::Pending).await;
    }
    let browser = Browser::new(&world).await;
    let mut listed = Vec::new();
    for (number, beside) in [
        (1, vec!["further tasks"]),
        (2, vec!["tasks before", "further tasks"]),
        (3, vec!["tasks before"]),
    ] {
        let page = browser
            .read(&format!("/builds/{build}?page={number}"))
            .await
            .text;
        let rows = page
            .split("<th scope=\"row\"><a class=\"id\" href=\"/builds/")
            .skip(1);
        let ids = rows.map(|row| row.split_once("/tasks/").unwrap().1);
        listed.extend(ids.map(|row| row.split('"').next().unwrap().to_owned()));
        assert_eq!(page.matches("<text class=\"id\"").count(), TASKS);
        assert!(page.contains(&format!("0/{TASKS} tasks")), "{page}");
        let ways = ["tasks before", "further tasks"];
        let found: Vec<&str> = ways
            .into_iter()
            .filter(|words| page.contains(&format!(">{words}</a>")))
            .collect();
        assert_eq!(found, beside, "page {number}");
    }
    let expected: Vec<String> = (1..=TASKS).map(|number| format!("T-{number:03}")).collect();
    assert_eq!(listed, expected);
    let beyond = browser
        .read(&format!("/builds/{build}?page=4294967295"))
        .await;
    assert_eq!(beyond.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_beyond_the_last_says_so_and_one_that_is_no_number_in_one_line() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Pending).await;
    ideas(&world).await;
    let browser = Browser::new(&world).await;
    for (path, last) in [
        ("/builds".to_owned(), 1),
        ("/".to_owned(), 3),
        (format!("/builds/{build}"), 1),
    ] {
        let page = browser.read(&format!("{path}?page=99")).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let link = format!("This page is beyond the last. <a href=\"{path}?page={last}\">");
        assert!(page.text.contains(&link), "{path}: {}", page.text);
        assert!(!page.text.contains("Nothing was built yet"), "{path}");
        let page = browser.read(&format!("{path}?page={last}")).await;
        assert!(!page.text.contains("beyond the last"), "{path}");
    }
    for (path, name) in [
        ("/builds?page=abc", "page"),
        ("/builds?page=-1", "page"),
        ("/events?before=abc", "before"),
    ] {
        let refused = browser.read(path).await;
        assert_eq!(refused.status, 400, "{path}");
        let told = format!("`{name}` is not a number that it can be");
        assert!(refused.text.contains(&told), "{path}: {}", refused.text);
        assert!(!refused.text.contains("deserialize"), "{path}");
    }
    let older = browser.read("/events?before=0").await.text;
    assert!(
        older.contains("Nothing older") && !older.contains("Begin with"),
        "{older}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idea_and_its_build_are_found_by_words_of_their_names_wherever_they_stand() {
    let world = ServerWorld::new().await;
    ideas(&world).await;
    let built = world.built().await;
    world
        .change(built, |build| build.idea = "idea-007".parse().unwrap())
        .await;
    let browser = Browser::new(&world).await;
    let found = browser.read("/find?words=007+IDEA").await.text;
    for link in ["/ideas/idea-007".to_owned(), format!("/builds/{built}")] {
        let link = format!("href=\"{link}\" data-found");
        assert!(found.contains(&link), "no {link}: {found}");
    }
    assert!(!found.contains("idea-008"), "{found}");
    let many = browser.read("/find?words=idea").await.text;
    assert_eq!(many.matches("data-found").count(), 21, "{many}");
    let none = browser.read("/find?words=walrus").await.text;
    assert!(none.contains("No idea and no build is called so"), "{none}");
    assert!(!browser.read("/find").await.text.contains("data-found"));
    world.stop().await;
}
