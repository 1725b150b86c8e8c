//! Kills while a build is offered on a phone, and while the button of the offer is pressed.

use anyhow::Context;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::specification::Specification;
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::phones::Phone;
use crate::picture::store;
use crate::running::stop;

/// What an offer begins with.
const OFFER: &str = "Build walks?";

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
