//! Kills while a build or a landing is offered on a phone, and while the buttons of the offer are pressed.

use anyhow::Context;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::Specification;
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use crate::phones::Phone;
use crate::picture::{events_of, git, store};
use crate::running::{finish, stop};
use crate::trial::until;

/// What an offer begins with.
const OFFER: &str = "Build walks?";
/// Where a kill may fall between a press and the end of the edit that says what it decided.
const OF_A_PRESS: [&str; 4] = [
    "telegram.update.begun:1",
    "telegram.update.acted:1",
    "telegram.reply.edit.before:1",
    "telegram.reply.edit.after:1",
];

/// Stores a specification that waits for an approval, while nobody runs.
async fn specify(phone: &Phone) -> anyhow::Result<()> {
    let clock = Clock::system();
    let (ids, now) = (Ids::system(clock.clone()), clock.now());
    let spec: Specification = serde_json::from_value(json!({
        "id": ids.next(), "idea": "walks", "user": "pat", "state": "generated", "revision": 1,
        "hash": ContentHash::of(b"walks"), "complexity": "simple", "requested_by": "pat",
        "correlation_id": ids.next(), "created_at": now, "updated_at": now,
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&spec);
    let store = store(phone.project.path()).await?;
    store.commit(changes).await?;
    Ok(store.close().await?)
}

/// Asks for an offer, dies at a place, and returns the newest of so many offers once it runs again.
async fn offered(phone: &Phone, place: &str, wanted: usize) -> anyhow::Result<Value> {
    phone.write("/execute walks").await?;
    phone.project.crash_at(place, &[]).await?;
    let mut up = phone.up().await?;
    let mut offers = phone.messages_with(OFFER, wanted).await?;
    phone.until_said().await?;
    stop(&mut up).await?;
    assert_eq!(phone.sent(OFFER).await?.len(), wanted, "{place}");
    offers.pop().context("no offer")
}

#[tokio::test]
async fn a_kill_while_a_build_is_offered_or_declined_leaves_an_offer_that_is_declined_once()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    specify(&phone).await?;
    let mut offers = 0;
    for (asked, pressed, messages) in [
        ("telegram.update.acted:1", "telegram.update.acted:1", 1),
        ("telegram.reply.begun:1", "telegram.update.begun:1", 1),
        // Whether it arrived nobody knew, so that it comes once more.
        ("telegram.reply.sent:1", "telegram.update.acted:1", 2),
    ] {
        let begun = phone.known().await?.repeats;
        offers += messages;
        let offer = offered(&phone, asked, offers).await?;
        let repeats = phone.known().await?.repeats - begun;
        assert_eq!(repeats, u32::from(asked.contains("reply")), "{asked}");
        phone.press(&offer, "Cancel").await?;
        phone.project.crash_at(pressed, &[]).await?;
        let mut up = phone.up().await?;
        let number = &offer["result"]["message_id"];
        phone.until_edited(number, "Nothing is started").await?;
        phone.until_said().await?;
        stop(&mut up).await?;
        assert_eq!(phone.known().await?.starting, None, "{pressed}");
    }
    Ok(())
}

/// Types what shows an offer, and returns that.
async fn shown(phone: &Phone, typed: &str, offer: &str) -> anyhow::Result<Value> {
    let before = phone.sent(offer).await?.len();
    let mut up = phone.up().await?;
    phone.write(typed).await?;
    let shown = phone.messages_with(offer, before + 1).await?.pop();
    phone.until_said().await?;
    stop(&mut up).await?;
    shown.context("no offer")
}

#[tokio::test]
async fn a_kill_while_a_build_is_started_leaves_one_approval_and_one_build() -> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    phone.project.specify()?;
    let specified = phone.keep()?;
    for place in OF_A_PRESS {
        phone.put_back(&specified)?;
        let offer = shown(&phone, "/execute habits", "Build habits?").await?;
        phone.press(&offer, "Start").await?;
        phone.project.crash_at(place, &[]).await?;
        let mut up = phone.up().await?;
        let number = &offer["result"]["message_id"];
        let told = "Approved: revision 1 is being built.";
        phone.until_edited(number, told).await?;
        phone.until_said().await?;
        until(&phone.project, "build", async || {
            let store = store(phone.project.path()).await?;
            let builds = store.count::<Build>(Query::new()).await?;
            store.close().await?;
            Ok((builds > 0).then_some(()))
        })
        .await?;
        stop(&mut up).await?;
        assert_eq!(
            phone.edits_of(number).await?.last(),
            Some(&told.to_owned()),
            "{place}"
        );
        let store = store(phone.project.path()).await?;
        let approved = events_of(&store, "spec.approved").await?;
        let builds = store.count::<Build>(Query::new()).await?;
        store.close().await?;
        assert_eq!((approved.len(), builds), (1, 1), "{place}");
        assert_eq!(approved[0].event.data["approved_by"], "pat", "{place}");
        assert_eq!(phone.known().await?.repeats, 0, "{place}");
    }
    Ok(())
}

/// Waits until the build of a project has landed.
async fn until_landed(phone: &Phone) -> anyhow::Result<Build> {
    until(&phone.project, "landing", async || {
        let store = store(phone.project.path()).await?;
        let builds = store.list::<Build>(Query::new()).await?;
        store.close().await?;
        let mut builds = builds.into_iter().map(|build| build.record);
        Ok(builds.find(|build| build.merged.is_some()))
    })
    .await
}

#[tokio::test]
async fn a_kill_while_a_build_is_landed_leaves_one_landing_which_is_told_as_such()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    phone.project.approve()?;
    finish(&phone.project.runner, phone.project.path(), 1).await?;
    let built = phone.keep()?;
    for place in OF_A_PRESS {
        phone.put_back(&built)?;
        let offer = shown(&phone, "/land habits", "Land the build of habits?").await?;
        phone.press(&offer, "Land it").await?;
        phone.project.crash_at(place, &[]).await?;
        // What was wanted is done before the bot hears again of the press.
        let is_wanted = place != OF_A_PRESS[0];
        if is_wanted {
            phone.go_away().await?;
        }
        let mut up = phone.up().await?;
        if is_wanted {
            until_landed(&phone).await?;
            phone.come_back().await?;
        }
        let number = &offer["result"]["message_id"];
        let told = "pat lets the build of habits be landed.";
        phone.until_edited(number, told).await?;
        phone.until_said().await?;
        let landed = until_landed(&phone).await?;
        stop(&mut up).await?;
        assert_eq!(
            phone.edits_of(number).await?.last(),
            Some(&told.to_owned()),
            "{place}"
        );
        let store = store(phone.project.path()).await?;
        let merged = events_of(&store, "build.merged").await?;
        let asked = store
            .list::<Question>(Query::new().equal("trigger", "build_finished"))
            .await?;
        store.close().await?;
        assert_eq!(merged.len(), 1, "{place}");
        assert_eq!(merged[0].event.data["merged_by"], "pat", "{place}");
        let main = git(&phone.project.repository(), &["rev-parse", "main"])?;
        assert_eq!(
            landed.merged.map(|commit| commit.to_string()),
            Some(main),
            "{place}"
        );
        // Whoever was asked about the branch is told who decided.
        let question = asked.last().context("nobody was asked")?;
        let closed = question.closed_because.as_deref();
        assert_eq!(question.state, QuestionState::Superseded, "{place}");
        assert_eq!(
            closed,
            Some("the branch was landed in `main` by pat"),
            "{place}"
        );
        assert_eq!(phone.known().await?.repeats, 0, "{place}");
    }
    Ok(())
}
