//! Plain words answer the open question that they are for, and none that they are not for.

use anyhow::Context as _;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::question::{About, QuestionState};
use ropewalk_schemas::{QuestionId, Slug, SpecId};
use ropewalk_store::ChangeSet;

use crate::building::told;
use crate::files::said;
use crate::phones::{Phones, until};
use crate::talking::answer;
use crate::world::{ADA, BOB, BotWorld, asking};

/// A question of whoever plans an idea.
fn of_plan(world: &BotWorld, idea: &str, text: &str) -> anyhow::Result<QuestionRequest> {
    let spec = SpecId(world.services.ids.next());
    Ok(QuestionRequest {
        about: About::Specification { spec },
        idea: Some(Slug::parse(idea)?),
        ..asking("multiple_architectures", text)?
    })
}

/// Puts it, and waits until both have it.
async fn put(world: &BotWorld, asking: QuestionRequest) -> anyhow::Result<QuestionId> {
    let id = world.put(ChangeSet::new(), asking).await?;
    until("both to be asked", || async {
        let told = world.told(id).await?;
        let is_there = |notice: &Notice| notice.sent_at.is_some();
        Ok((told.len() == 2 && told.iter().all(is_there)).then_some(id))
    })
    .await
}

/// Returns what was chosen, and said, for an answer.
async fn answered(world: &BotWorld, id: QuestionId) -> anyhow::Result<(Option<String>, String)> {
    let answer = world.question(id).await?.answer.context("no answer")?;
    Ok((answer.choice.map(String::from), answer.text))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_that_name_a_choice_or_come_behind_a_question_answer_it_and_no_others()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    told(&phones, ADA, "Walks").await?;
    for (number, words) in ["leave it", "leave", "2"].into_iter().enumerate() {
        let asking = of_plan(&world, "walks", &format!("Which way, {number}?"))?;
        let id = put(&world, asking).await?;
        let told = told(&phones, ADA, words).await?.text;
        assert!(
            told.starts_with("Taken: Leave it\nIt answers: Which way"),
            "{told}"
        );
        let expected = (Some("leave".to_owned()), "Leave it".to_owned());
        assert_eq!(answered(&world, id).await?, expected, "{words}");
    }
    let asking = of_plan(&world, "walks", "And then?")?;
    let id = put(&world, asking).await?;
    let taken = told(&phones, ADA, "other people know").await?.text;
    assert!(taken.starts_with("Taken: other people know"), "{taken}");
    assert_eq!(
        answered(&world, id).await?,
        (None, "other people know".to_owned())
    );
    assert_eq!(
        said(&world).await?.len(),
        1,
        "nothing was told to the model"
    );

    // What has consequences takes no words, and what the model asked since goes before a question of before.
    let binding = QuestionRequest {
        consequential: true,
        free_text: false,
        ..of_plan(&world, "walks", "Start it?")?
    };
    let binding = put(&world, binding).await?;
    let refused = told(&phones, ADA, "Merge it").await?.text;
    assert!(refused.contains("press a button"), "{refused}");
    assert_eq!(world.question(binding).await?.state, QuestionState::Pending);
    let asking = of_plan(&world, "walks", "How long?")?;
    let long = put(&world, asking).await?;
    answer(&world, "Which river?").await?;
    phones.message(ADA, "Which river?").await?;
    phones.write(ADA, ADA, "The small one").await?;
    phones.write(ADA, ADA, "/ideas").await?;
    phones.message(ADA, "walks: Walks").await?;
    assert_eq!(said(&world).await?[2].0, "The small one");
    // Of two that are open, no word tells which is meant.
    let unclear = told(&phones, ADA, "Leave it").await?.text;
    assert!(unclear.contains("reply to the message"), "{unclear}");
    for id in [binding, long] {
        assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    }
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_about_one_idea_answer_no_question_about_another_but_its_label() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    told(&phones, ADA, "Walks").await?;
    let asking = of_plan(&world, "rivers", "How wide?")?;
    let id = put(&world, asking).await?;
    phones.write(ADA, ADA, "With dogs").await?;
    phones.write(ADA, ADA, "/ideas").await?;
    phones.message(ADA, "walks: Walks").await?;
    assert_eq!(said(&world).await?[1].0, "With dogs");
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    // Bob talks about nothing, so that he says it to who asked him.
    let taken = told(&phones, BOB, "as a street").await?.text;
    assert!(
        taken.starts_with("Taken: as a street\nIt answers: How wide?"),
        "{taken}"
    );
    let answer = world.question(id).await?.answer.context("no answer")?;
    assert_eq!(answer.by, "bob");
    assert_eq!(said(&world).await?.len(), 2, "no idea was begun by it");
    world.close().await
}
