//! Whoever talks about an idea is told how far it has come, last of all and anew with each message.

use ropewalk_desk::specifications;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::{Author, Message};
use ropewalk_schemas::{BuildId, CommitId, SessionId};
use ropewalk_store::{ChangeSet, Query};

use super::answers::built;
use super::house::{House, user};
use super::specification::{BRIEF, README, rule, small_plan};

const HEADING: &str = "## Where the Idea Stands\n";

/// Says something, and returns what stood before it in what the model was told of the session.
async fn told(house: &House, session: SessionId, words: &str) -> String {
    house.say(session, words).await;
    let of_session = Query::new().equal("session", session.to_string());
    let messages = house.store().list::<Message>(of_session).await.unwrap();
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

async fn change(house: &House, build: BuildId, change: impl FnOnce(&mut Build)) {
    let found = house.store().get::<Build>(&build.to_string()).await;
    let found = found.unwrap().unwrap();
    let mut after = found.record.clone();
    change(&mut after);
    let mut changes = ChangeSet::new();
    changes.update(&found, &after);
    house.store().commit(changes).await.unwrap();
}

#[tokio::test]
async fn who_talks_about_an_idea_is_told_what_is_written_asked_built_and_landed() {
    let answers = "- {agent: ideation, reply: {text: I see., tools: [{name: reply, input: {}}]}}\n";
    let script = rule("idea: pets", &small_plan("Pets")) + answers;
    let house = House::new(&script).await;
    let idea = house.idea("pets", &[README, BRIEF]).await;
    let session = house.idea_record("pets").await.session;
    let before = told(&house, session, "Sitters live nearby.").await;
    assert!(!before.contains(HEADING), "{before}");

    let spec = house.specify(&idea).await;
    let question = house.open_questions().await.remove(0).id;
    let written = told(&house, session, "ok go").await;
    let asked = format!("- Open question {question}: ");
    // What starts a build is chosen, never worded.
    let answer = format!("`ropewalk question answer {question} CHOICE`");
    holds(
        &written,
        &[
            "- Specification: revision 1 is written and waits for an approval.",
            "presses \"Yes, start building!\"",
            "`/execute pets`",
            &asked,
            "Yes, start building!",
            &answer,
        ],
    );

    let (person, build) = built(&house, spec, BuildState::Running).await;
    let running = told(&house, session, "whats up").await;
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

    change(&house, build, |build| build.state = BuildState::Stopped).await;
    let stopped = told(&house, session, "go").await;
    holds(&stopped, &["is stopped", "`/resume pets`"]);

    change(&house, build, |build| {
        build.state = BuildState::Succeeded;
        build.completed_at = Some(house.clock.now());
        build.merged = CommitId::parse(&"a".repeat(40)).ok();
    })
    .await;
    let landed = told(&house, session, "csv export too").await;
    holds(
        &landed,
        &["it has landed in `main` as aaaaaaa", "`/newtask WORDS`"],
    );

    specifications::revise(&person, spec, &user("ann"), "csv export too")
        .await
        .unwrap();
    let revised = told(&house, session, "and now?").await;
    assert!(revised.contains("- Specification: revision "), "{revised}");
    // What was told before stands where it stood.
    let again = house.store().list::<Message>(Query::new()).await.unwrap();
    let mut kept = again.iter().filter_map(|message| message.told.as_deref());
    assert!(kept.any(|told| told == written), "{written}");
}
