//! A choice that needs no words: pressed, it counts without any; why it was chosen elsewhere is read with it.

use anyhow::Context as _;
use ropewalk_orchestrator::questions::{self, QuestionRequest};
use ropewalk_schemas::question::{Choice, ChoiceWords, QuestionState};
use ropewalk_schemas::{ChoiceId, QuestionId};
use ropewalk_store::ChangeSet;

use crate::building::told;
use crate::files::said;
use crate::phones::{Phones, until};
use crate::world::{ADA, BotWorld, asking};

/// Asks what has consequences, with a last choice that may have words.
async fn asked(world: &BotWorld, text: &str, label: &str) -> anyhow::Result<QuestionId> {
    let mut asking = QuestionRequest {
        consequential: true,
        ..asking("missing_context", text)?
    };
    asking.choices.push(Choice {
        words: ChoiceWords::Optional,
        ..Choice::new(ChoiceId::parse("skip")?, label)
    });
    world.put(ChangeSet::new(), asking).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_no_words_counts_as_it_is_pressed_and_takes_none_of_the_next()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    told(&phones, ADA, "/newtask Walks").await?;
    let id = asked(&world, "Which one?", "Skip one").await?;
    let message = phones.message(ADA, "Which one?").await?;
    let (_, skip) = message.buttons.last().context("no button")?;
    phones.press(ADA, ADA, message.id, skip).await?;
    phones.shown("Taken: Skip one").await?;
    phones.write(ADA, ADA, "With dogs").await?;
    until(
        "what is written next is said in the conversation",
        || async {
            let said = said(&world).await?;
            Ok(said
                .iter()
                .any(|(text, _)| text == "With dogs")
                .then_some(()))
        },
    )
    .await?;
    let question = world.question(id).await?;
    assert!(question.late.is_empty(), "{:?}", question.late);
    let answer = question.answer.context("no answer")?;
    let given = (answer.choice, answer.text.as_str(), answer.says_why);
    assert_eq!(given, (Some(ChoiceId::parse("skip")?), "Skip one", false));
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reply_decides_by_a_reason_and_one_that_was_said_elsewhere_is_read_with_the_choice()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = asked(&world, "Which one?", "Skip one").await?;
    let message = phones.message(ADA, "Which one?").await?;
    phones.reply(ADA, &message, "skip: nobody needs it").await?;
    phones.message(ADA, "words decide nothing").await?;
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    let context = world.context()?;
    questions::answer(&context, id, "skip: nobody needs it", "eve", "cli").await?;
    let taken = "Skip one: nobody needs it";
    let mended = format!("Answered by eve over cli: {taken}");
    until("what was chosen in the message that asked", || async {
        let edits = phones.did("editmessagetext").await?;
        let says_so = |edit: &serde_json::Value| {
            let text = edit["parameters"]["text"].as_str();
            text.is_some_and(|text| text.starts_with(&mended))
        };
        Ok(edits.iter().any(says_so).then_some(()))
    })
    .await?;
    let answer = world.question(id).await?.answer.context("no answer")?;
    assert!(answer.says_why && answer.choice == Some(ChoiceId::parse("skip")?));
    world.close().await
}
