//! Whoever talks about an idea is told how far it has come, last of all and anew with each message.

use std::collections::BTreeMap;

use ropewalk_config::settings::PersonRecord;
use ropewalk_desk::people::People;
use ropewalk_desk::specifications;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::{Author, Message};
use ropewalk_schemas::{BuildId, CommitId, SessionId};
use ropewalk_store::{ChangeSet, Query};

use super::answers::built;
use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, user};

const HEADING: &str = "## Where the Idea Stands\n";

/// Says something, and returns what stood before it in what the model was told of the session.
async fn told(world: &IdeaWorld, session: SessionId, words: &str) -> String {
    world.say(session, words).await;
    let of_session = Query::new().equal("session", session.to_string());
    let messages = world.store().list::<Message>(of_session).await.unwrap();
    let said = messages
        .into_iter()
        .filter(|message| message.author == Author::Agent);
    let newest = said.max_by_key(|message| message.id);
    newest.unwrap().record.told.unwrap()
}

/// Checks that the section is there, stands last and holds all of `parts`.
fn holds(told: &str, parts: &[&str]) {
    let (_, section) = told.split_once(HEADING).unwrap_or_else(|| panic!("{told}"));
    assert!(!section.contains("\n## "), "it stands last: {told}");
    for part in parts {
        assert!(section.contains(part), "no {part}: {told}");
    }
}

async fn change(world: &IdeaWorld, build: BuildId, change: impl FnOnce(&mut Build)) {
    let found = world.store().get::<Build>(&build.to_string()).await;
    let found = found.unwrap().unwrap();
    let mut after = found.record.clone();
    change(&mut after);
    let mut changes = ChangeSet::new();
    changes.update(&found, &after);
    world.store().commit(changes).await.unwrap();
}

#[tokio::test]
async fn who_talks_about_an_idea_is_told_what_is_written_asked_built_and_landed() {
    let answers = "- {agent: ideation, reply: {text: I see., tools: [{name: reply, input: {}}]}}\n";
    let script = rule("idea: pets", &small_plan("Pets")) + answers;
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let session = world.idea_record("pets").await.session;
    let before = told(&world, session, "Sitters live nearby.").await;
    assert!(!before.contains(HEADING), "{before}");

    let spec = world.specify(&idea).await;
    let question = world.open_questions().await.remove(0).id;
    let written = told(&world, session, "ok go").await;
    let asked = format!("- Open question {question}: ");
    // What starts a build is chosen, never worded.
    let answer = format!("`ropewalk question answer {question} CHOICE`");
    holds(
        &written,
        &[
            "- Specification: revision 1 is written and waits for an approval.",
            "`ropewalk spec approve pets --hash HASH`",
            &asked,
            &answer,
        ],
    );

    let (person, build) = built(&world, spec, BuildState::Running).await;
    let running = told(&world, session, "whats up").await;
    let tell = format!("`ropewalk build tell {build} WORDS`");
    holds(
        &running,
        &[
            "- Specification: revision 1 is approved, by ann.",
            "`ropewalk spec revise pets WORDS`",
            "- Build: that of revision 1 is running, 0 of 0 tasks complete on `build/pets`; it has not landed in `main`.",
            &tell,
        ],
    );
    assert!(!running.contains("Open question"), "{running}");

    change(&world, build, |build| build.state = BuildState::Stopped).await;
    let stopped = told(&world, session, "go").await;
    let resume = format!("`ropewalk build resume {build}`");
    holds(&stopped, &["is stopped", &resume]);

    change(&world, build, |build| {
        build.state = BuildState::Succeeded;
        build.completed_at = Some(world.clock.now());
        build.merged = CommitId::parse(&"a".repeat(40)).ok();
    })
    .await;
    let landed = told(&world, session, "csv export too").await;
    holds(
        &landed,
        &["it has landed in `main` as aaaaaaa", "`ropewalk idea new`"],
    );
    // Nobody has a phone.
    for told in [&written, &running, &stopped, &landed] {
        for of_phones in ["phone", "press", "`/"] {
            assert!(!told.contains(of_phones), "{of_phones}: {told}");
        }
    }

    specifications::revise(&person, spec, &user("ann"), "csv export too")
        .await
        .unwrap();
    let revised = told(&world, session, "and now?").await;
    assert!(revised.contains("- Specification: revision "), "{revised}");
    // What was told before stands where it stood.
    let again = world.store().list::<Message>(Query::new()).await.unwrap();
    let mut kept = again.iter().filter_map(|message| message.told.as_deref());
    assert!(kept.any(|told| told == written), "{written}");
}

#[tokio::test]
async fn who_has_a_phone_is_told_what_to_press_and_to_say_there_and_nobody_else_is() {
    let answers = "- {agent: ideation, reply: {text: I see., tools: [{name: reply, input: {}}]}}\n";
    let script = rule("idea: pets", &small_plan("Pets")) + answers;
    let mut world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let session = world.idea_record("pets").await.session;
    world.specify(&idea).await;
    let reachable = |name: &str| {
        let record = PersonRecord {
            telegram_user: Some(7),
            telegram_chats: vec![7],
            ..PersonRecord::default()
        };
        (user(name), record)
    };
    let ann = (user("ann"), PersonRecord::default());
    let of_another = BTreeMap::from([ann, reachable("bob")]);
    let own = BTreeMap::from([reachable("ann")]);
    for (people, is_reached) in [(of_another, false), (own, true)] {
        world.phones = Some(People::new(people, user("ann")));
        world.move_in().await;
        let told = told(&world, session, "ok go").await;
        for of_phones in [
            "what they\npress or type",
            "presses \"Yes, start building!\"",
            "`/execute pets` shows it on the phone",
            "presses its button",
        ] {
            assert_eq!(told.contains(of_phones), is_reached, "{told}");
        }
        holds(&told, &["types `ropewalk question answer "]);
    }
}
