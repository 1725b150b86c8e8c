//! What is as long as a message of Telegram gets, and longer, is taken whole or refused in one line.

use ropewalk_desk::halt;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::question::QuestionState;
use ropewalk_store::Query;
use serde_json::json;

use crate::building::{built, events, told};
use crate::files::{document, said};
use crate::phones::{Phones, until};
use crate::world::{ADA, BotWorld};

/// How many letters a message of Telegram has at most, one more than that, and many more.
const LENGTHS: [usize; 3] = [4_096, 4_097, 12_000];
/// What a message to a phone may have.
const MESSAGE: usize = 4_096;

/// Returns a text of so many letters that begins with `words`; half of them are no single byte.
fn long(words: &str, letters: usize) -> String {
    let more = "né".chars().cycle();
    words.chars().chain(more).take(letters).collect()
}

/// Returns the texts of what people said, the oldest first.
async fn texts(world: &BotWorld) -> anyhow::Result<Vec<String>> {
    let said = said(world).await?.into_iter();
    Ok(said.map(|(text, _)| text).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_idea_is_kept_whole_however_it_is_begun() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let mut written = Vec::new();
    for (number, letters) in LENGTHS.into_iter().enumerate() {
        let text = long(&format!("Walks {number} "), letters);
        // The first words begin the idea, the others are the argument of a command.
        let command = if number == 0 { "" } else { "/newtask " };
        let begun = told(&phones, ADA, &format!("{command}{text}")).await?.text;
        assert!(
            begun.starts_with("It is the idea walks-"),
            "{letters}: {begun}"
        );
        written.push(text);
        assert_eq!(texts(&world).await?, written, "{letters}");
    }
    for idea in world.services.store.list::<Idea>(Query::new()).await? {
        assert!(idea.title.chars().count() <= 81, "{}", idea.title);
    }
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_answer_is_taken_whole_whether_it_replies_or_was_asked_for() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for letters in LENGTHS {
        for is_reply in [true, false] {
            let text = format!("Which way of {letters}, {is_reply}?");
            let id = world.ask("missing_context", &text).await?;
            let asked = phones.message(ADA, &text).await?;
            let words = long("By boat ", letters);
            if is_reply {
                phones.reply(ADA, &asked, &words).await?;
            } else {
                phones
                    .press(ADA, ADA, asked.id, &asked.buttons[2].1)
                    .await?;
                phones
                    .shown("Write your words as the next message.")
                    .await?;
                phones.write(ADA, ADA, &words).await?;
            }
            let answered = until("the answer", || async {
                let question = world.question(id).await?;
                Ok(question.answer)
            })
            .await?;
            assert_eq!(answered.text, words, "{letters} {is_reply}");
            assert_eq!(world.question(id).await?.state, QuestionState::Answered);
        }
    }
    assert_eq!(world.services.store.count::<Idea>(Query::new()).await?, 0);
    for message in phones.messages(ADA).await? {
        assert!(
            message.text.encode_utf16().count() <= MESSAGE,
            "{}",
            message.text
        );
    }
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_caption_is_kept_whole_with_its_file() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    told(&phones, ADA, "Walks").await?;
    for letters in LENGTHS {
        let (name, words) = (format!("f{letters}"), long("A map ", letters));
        phones.hold(&name, b"\0a map").await?;
        phones.send(ADA, document(&name, &name, 6), &words).await?;
        phones
            .message(ADA, &format!("Kept with walks as attachments/{name}"))
            .await?;
        let last = texts(&world).await?.pop().unwrap_or_default();
        assert!(
            last.starts_with(&format!("{words}\n\n[A file came along")),
            "{letters}: {last}"
        );
    }
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_argument_of_a_command_is_passed_on_whole_or_refused_in_one_message()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let build = built(&world, "walks", "running").await?;
    let words = long("use metres ", 4_096);
    let heard = told(&phones, ADA, &format!("/tell walks {words}"))
        .await?
        .text;
    assert!(heard.contains("hears it"), "{heard}");
    let tried = told(&phones, ADA, &format!("/retry walks T-002 {words}"))
        .await?
        .text;
    assert!(tried.starts_with("Recorded"), "{tried}");
    assert_eq!(
        (
            events(&world, "build.tell").await?,
            events(&world, "task.retry").await?
        ),
        (
            vec![json!({ "build_id": build, "task_id": "T-002", "said_by": "ada", "text": words })],
            vec![
                json!({ "build_id": build, "task_id": "T-002", "requested_by": "ada", "guidance": words, "may_resume": true })
            ],
        )
    );

    let last = world.services.store.last_sequence().await?;
    let too_long = long("x", 12_000);
    for (command, expected) in [
        ("/tell walks", "say something of at most 8192 bytes"),
        ("/stopall", "and 8192 is the most"),
        ("/pause", "There is no build of"),
        ("/land", "There is no build of"),
        ("/idea", "No idea is called"),
        ("/done", "is not a valid"),
        ("/execute", "is not a valid"),
        ("/spec", "is not a valid"),
        ("/priority", "Say how urgent"),
        ("/status", "1 of 2 tasks complete"),
    ] {
        let before = phones.messages(ADA).await?.len();
        let refused = told(&phones, ADA, &format!("{command} {too_long}"))
            .await?
            .text;
        assert!(refused.contains(expected), "{command}: {refused}");
        // What comes next is the answer to the next word, and no further piece of this one.
        told(&phones, ADA, "/settings").await?;
        assert_eq!(phones.messages(ADA).await?.len(), before + 2, "{command}");
    }
    let unknown = told(&phones, ADA, &format!("/{too_long}")).await?.text;
    assert!(unknown.contains("/help lists what there is"), "{unknown}");
    assert_eq!(
        world.services.store.last_sequence().await?,
        last,
        "nothing came of it"
    );
    phones.write(ADA, ADA, &format!("/stopall {words}")).await?;
    phones
        .message(ADA, "Everything is stopped. /resumeall lets it go on.")
        .await?;
    let halt = halt::standing(&world.services.store).await?;
    assert_eq!(halt.and_then(|halt| halt.reason), Some(words));
    world.close().await
}
