//! Who answers too late hears that it is kept, and what changes the matter now.

use chrono::DateTime;
use ropewalk_desk::phones as linking;
use ropewalk_orchestrator::questions::{self, QuestionRequest};
use ropewalk_schemas::phone::WordsFor;
use ropewalk_schemas::question::{About, LATE_ANSWERS};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{Slug, UserSlug};
use ropewalk_store::ChangeSet;
use serde_json::json;

use crate::building::{built, events, told};
use crate::commanding::specified;
use crate::files::said;
use crate::phones::{Message, Phones, until};
use crate::world::{ADA, BOB, BotWorld, asking};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_is_kept_and_its_writer_is_shown_what_changes_the_matter()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let spec = specified(&world, "walks", "approved").await?;
    built(&world, "walks", "running").await?;
    let asking = QuestionRequest {
        about: About::Specification { spec },
        idea: Some(Slug::parse("walks")?),
        ..asking("missing_context", "Print what?")?
    };
    let id = world.put(ChangeSet::new(), asking).await?;
    let asked = phones.message(ADA, "Print what?").await?;
    questions::answer(&world.context()?, id, "leave", "eve", "cli").await?;
    let first = "Answered already, by eve over cli: Leave it.";
    let after = "What you answered is kept beside it and changes nothing.";
    let now = "/tell walks WORDS tells whoever builds it";
    phones.reply(ADA, &asked, "a line").await?;
    let told_so = phones.message(ADA, first).await?;
    for part in [after, now] {
        assert!(told_so.text.contains(part), "{part} in {}", told_so.text);
    }
    let late = world.question(id).await?.late;
    let late: Vec<_> = late
        .iter()
        .map(|late| (late.by.as_str(), late.text.as_str()))
        .collect();
    assert_eq!(late, [("ada", "a line")]);

    // A choice that takes words asks for none that would change nothing.
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[2].1)
        .await?;
    let to_ada = until("the other answer", || async {
        let to_ada = phones.messages(ADA).await?;
        let late = to_ada
            .iter()
            .filter(|one| one.text.contains("Answered already"));
        Ok((late.count() == 2).then_some(to_ada))
    })
    .await?;
    let asks = |one: &Message| one.text.contains("What exactly?");
    assert!(!to_ada.iter().any(asks), "{to_ada:#?}");
    // What it shows does what it says.
    let [(label, change)] = told_so.buttons.as_slice() else {
        anyhow::bail!("{told_so:#?}");
    };
    assert_eq!(label, "Change this...");
    phones.press(ADA, ADA, told_so.id, change).await?;
    phones.message(ADA, "Change walks: what exactly?").await?;
    let wished = told(&phones, ADA, "Print a line").await?.text;
    assert!(
        wished.starts_with("Recorded: another revision of walks is written by your words."),
        "{wished}"
    );
    let wish = json!({ "spec_id": spec, "idea_slug": "walks", "requested_by": "ada", "feedback": "Print a line" });
    assert_eq!(events(&world, "spec.revision_requested").await?, [wish]);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_changed_from_a_phone_also_while_it_is_built() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let spec = specified(&world, "walks", "approved").await?;
    built(&world, "walks", "running").await?;
    let shown = told(&phones, BOB, "/spec walks").await?;
    let [(label, change)] = shown.buttons.as_slice() else {
        anyhow::bail!("{shown:#?}");
    };
    assert_eq!(label, "Change this...");
    phones.press(BOB, BOB, shown.id, change).await?;
    phones.message(BOB, "Change walks: what exactly?").await?;
    let wished = told(&phones, BOB, "Count rests, too").await?.text;
    assert!(
        wished.starts_with("Recorded: another revision of walks"),
        "{wished}"
    );
    let key = spec.to_string();
    let row = world.services.store.get::<Specification>(&key).await?;
    let row = row.map(|row| (row.state, row.feedback.clone()));
    let feedback = vec!["Count rests, too".to_owned()];
    assert_eq!(row, Some((SpecState::Draft, feedback)));
    // While that is written there is nothing to change, and no words are asked for.
    phones.press(BOB, BOB, shown.id, change).await?;
    phones.shown("revision 2 is being written").await?;
    let shown = told(&phones, BOB, "/spec walks").await?;
    assert_eq!(shown.buttons, [], "{}", shown.text);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_that_finds_no_room_is_not_said_to_be_kept() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "Print what?").await?;
    let asked = phones.message(ADA, "Print what?").await?;
    let context = world.context()?;
    questions::answer(&context, id, "leave", "eve", "cli").await?;
    for number in 0..LATE_ANSWERS {
        let words = format!("line {number}");
        let late = questions::answer(&context, id, &words, "eve", "cli").await;
        assert!(late.is_err(), "{number}");
    }
    phones.reply(ADA, &asked, "a line").await?;
    let told_so = phones.message(ADA, "Answered already, by eve").await?.text;
    assert!(told_so.contains("and yours is not"), "{told_so}");
    assert_eq!(world.question(id).await?.late.len(), LATE_ANSWERS);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_turns_to_something_else_or_waits_long_asks_for_no_revision_by_the_next_words()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for typed in ["/newtask Walks", "/newtask Rivers"] {
        told(&phones, ADA, typed).await?;
    }
    let spec = specified(&world, "walks", "approved").await?;
    let shown = told(&phones, ADA, "/spec walks").await?;
    let [(_, change)] = shown.buttons.as_slice() else {
        anyhow::bail!("{shown:#?}");
    };
    phones.press(ADA, ADA, shown.id, change).await?;
    phones.message(ADA, "Change walks: what exactly?").await?;
    told(&phones, ADA, "/idea rivers").await?;
    let words_for = WordsFor::Revision {
        spec,
        until: Some(DateTime::UNIX_EPOCH),
    };
    let (context, ada) = (world.context()?, UserSlug::parse("ada")?);
    for words in ["Add cats", "Add dogs"] {
        phones.write(ADA, ADA, words).await?;
        until(words, || async {
            let said = said(&world).await?;
            let is_said = said.iter().any(|(text, _)| text == words);
            Ok(is_said.then_some(()))
        })
        .await?;
        // Those that come next come too late.
        linking::change(&context, &ada, |phone| {
            phone.words_for = Some(words_for.clone());
        })
        .await?;
    }
    assert!(events(&world, "spec.revision_requested").await?.is_empty());
    world.close().await
}
