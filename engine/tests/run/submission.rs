//! How a job comes to a typed result.

use ropewalk_engine::{EngineError, ModelRole, Tool, Toolbox};
use ropewalk_llm::{StopReason, ToolChoice};
use ropewalk_schemas::attempt::FailureClass;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Counter, ScriptedEngine, counting, job, submission};

fn forced() -> ToolChoice {
    ToolChoice::Tool("finish".to_owned())
}

#[tokio::test]
async fn an_accepted_result_ends_the_job() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(
        "- reply: { text: Done., tools: [{ name: finish, input: { number: 3 } }] }",
    )
    .await?;
    let mut job = job(Toolbox::default());
    job.submission = Some(submission(2));
    let outcome = scripted.run(&job).await?;
    assert_eq!(outcome.submission, Some(json!({ "number": 3 })));
    assert_eq!((outcome.text.as_str(), outcome.turns), ("Done.", 1));
    assert_eq!(scripted.requests()[0].tool_choice, forced());
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_goes_back_to_the_model_until_it_is_right() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(
        r#"
- turn: 1
  reply: { tools: [{ name: finish, input: { number: many } }] }
- turn: 2
  contains: "`number`"
  reply: { tools: [{ name: Finish, input: { number: 12 } }] }
- turn: 3
  contains: "`number` is above 9"
  reply: { tools: [{ name: finish, malformed: '{"number": ' }] }
- turn: 4
  contains: not a JSON object
  reply: { tools: [{ name: finish, input: { number: 9 } }] }
"#,
    )
    .await?;
    let mut job = job(Toolbox::default());
    job.submission = Some(submission(3));
    let outcome = scripted.run(&job).await?;
    assert_eq!(outcome.submission, Some(json!({ "number": 9 })));
    assert_eq!(outcome.turns, 4);
    assert!(scripted.last_results()[0].1);
    Ok(())
}

#[tokio::test]
async fn used_up_repairs_end_the_job_with_what_was_wrong() -> anyhow::Result<()> {
    let scripted =
        ScriptedEngine::new("- reply: { tools: [{ name: finish, input: { number: 12 } }] }")
            .await?;
    let mut job = job(Toolbox::default());
    job.submission = Some(submission(2));
    match scripted.run(&job).await {
        Err(EngineError::Submission {
            tries: 3, errors, ..
        }) => {
            assert_eq!(errors, ["`number` is above 9"]);
        }
        other => anyhow::bail!("{other:?}"),
    }
    assert_eq!(scripted.requests().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_model_that_writes_text_is_told_to_go_on_and_chooses_freely() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(
        r"
- turn: 1
  reply: { text: I am done. }
- turn: 2
  contains: Go on with your tools, or call `finish`
  reply: { tools: [{ name: count, input: { n: 1 } }] }
- turn: 3
  reply: { tools: [{ name: finish, input: { number: 1 } }] }
",
    )
    .await?;
    let (toolbox, counter) = counting()?;
    let mut job = job(toolbox);
    job.submission = Some(submission(0));
    let outcome = scripted.run(&job).await?;
    assert_eq!(outcome.submission, Some(json!({ "number": 1 })));
    assert_eq!(counter.runs.load(Ordering::SeqCst), 1);
    let mut requests = scripted.requests().into_iter();
    assert!(requests.all(|request| request.tool_choice == ToolChoice::Auto));
    Ok(())
}

#[tokio::test]
async fn a_question_in_the_text_is_no_result_and_the_third_text_in_a_row_ends_the_job()
-> anyhow::Result<()> {
    let question = r#"Which one?\n```json\n{\"number\": 5}\n```"#;
    let script = format!(
        "- {{ turn: 2, reply: {{ tools: [{{ name: count, input: {{ n: 1 }} }}] }} }}\n\
         - {{ reply: {{ text: \"{question}\" }} }}\n"
    );
    let scripted = ScriptedEngine::new(&script).await?;
    let mut job = job(counting()?.0);
    job.submission = Some(submission(0));
    let ended = scripted.run(&job).await.unwrap_err();
    let told = ended.to_string();
    assert!(
        told.contains("3 replies in a row") && told.contains("Which one?"),
        "{told}"
    );
    assert_eq!(ended.failure_class(), Some(FailureClass::AgentRefused));
    // One text, a call, and then three texts.
    assert_eq!(scripted.requests().len(), 5);
    Ok(())
}

#[tokio::test]
async fn a_chat_may_speak_before_it_submits() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(
        "- reply: { text: Hello!, tools: [{ name: finish, input: { number: 1 } }] }",
    )
    .await?;
    let mut job = job(Toolbox::default());
    job.role = ModelRole::Chat;
    job.submission = Some(submission(1));
    let outcome = scripted.run(&job).await?;
    assert_eq!(outcome.text, "Hello!");
    assert_eq!(scripted.requests()[0].tool_choice, ToolChoice::Auto);
    Ok(())
}

#[tokio::test]
async fn a_result_that_comes_with_a_failed_call_is_not_taken() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(
        r"
- turn: 1
  reply: { tools: [{ name: fail }, { name: finish, input: { number: 1 } }] }
- turn: 2
  contains: it failed
  reply: { tools: [{ name: finish, input: { number: 2 } }] }
",
    )
    .await?;
    let fail = Counter::alone("fail", &Arc::default());
    let mut job = job(Toolbox::new([fail.clone() as Arc<dyn Tool>])?);
    job.submission = Some(submission(0));
    let outcome = scripted.run(&job).await?;
    assert_eq!(outcome.submission, Some(json!({ "number": 2 })));
    assert_eq!(fail.runs.load(Ordering::SeqCst), 1);
    let results = scripted.last_results();
    assert_eq!(results.len(), 2);
    assert!(results[1].0.contains("not taken"));
    Ok(())
}

#[tokio::test]
async fn a_cut_reply_is_no_result() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(
        "- reply: { stop: max_tokens, tools: [{ name: finish, input: { number: 1 } }] }",
    )
    .await?;
    let mut job = job(Toolbox::default());
    job.submission = Some(submission(1));
    let ended = scripted.run(&job).await;
    assert!(matches!(
        ended,
        Err(EngineError::Stopped {
            reason: StopReason::MaxTokens,
            ..
        })
    ));
    Ok(())
}

#[tokio::test]
async fn a_submission_called_like_a_tool_is_refused_before_any_call() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let mut job = job(counting()?.0);
    let mut clash = submission(1);
    clash.name = "Count".to_owned();
    job.submission = Some(clash);
    assert!(matches!(scripted.run(&job).await, Err(EngineError::Job(_))));
    assert!(scripted.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn who_only_looks_around_is_made_to_submit_before_the_turns_are_over() -> anyhow::Result<()> {
    let look = |turn: u32| {
        format!(
            "- {{turn: {turn}, reply: {{ tools: [{{ name: count, input: {{ n: {turn} }} }}] }}}}\n"
        )
    };
    let rules: String = (1..=2).map(look).collect();
    let finish = "- reply: { tools: [{ name: finish, input: { number: 3 } }] }";
    let scripted = ScriptedEngine::new(&format!("{rules}{finish}")).await?;
    let mut job = job(counting()?.0);
    job.submission = Some(submission(1));
    job.limits.turns = 4;
    scripted.run(&job).await?;
    let choices: Vec<ToolChoice> = scripted
        .requests()
        .into_iter()
        .map(|request| request.tool_choice)
        .collect();
    assert_eq!(choices, [ToolChoice::Auto, ToolChoice::Auto, forced()]);
    // Who changes something is never made to say that it is done.
    let scripted = ScriptedEngine::new(&look(1)).await?;
    let alone: Arc<dyn Tool> = Counter::alone("count", &Arc::default());
    job.tools = Toolbox::new([alone])?;
    job.limits.turns = 1;
    job.journal_key.push_str("/other");
    scripted.run(&job).await.unwrap_err();
    assert_eq!(scripted.requests()[0].tool_choice, ToolChoice::Auto);
    Ok(())
}

#[tokio::test]
async fn who_writes_words_late_is_told_to_hand_in_and_nothing_else() -> anyhow::Result<()> {
    let free = "Go on with your tools, or call `finish` when the work is done";
    let made = "Nothing was handed in yet. Call `finish` with your result";
    for (asks, turns) in [(false, 4), (true, 4), (false, 3)] {
        let scripted = ScriptedEngine::new(
            "- { turn: 1, reply: { text: I will look. } }\n\
             - { turn: 2, reply: { tools: [{ name: finish, input: { number: 3 } }] } }\n",
        )
        .await?;
        let mut job = job(counting()?.0);
        let mut submission = submission(1);
        if asks {
            submission.schema["properties"]["question"] = json!({ "type": "object" });
        }
        job.submission = Some(submission);
        job.limits.turns = turns;
        scripted.run(&job).await?;
        let request = scripted.requests().pop();
        let request = request.ok_or_else(|| anyhow::anyhow!("nobody was asked"))?;
        let is_made = turns == 3;
        assert_eq!(request.tool_choice == forced(), is_made);
        let told = format!("{:?}", request.messages.last());
        assert_eq!(told.contains(made), is_made, "{told}");
        assert_eq!(told.contains(free), !is_made, "{told}");
        assert_eq!(told.contains("or with a `question`"), asks, "{told}");
    }
    Ok(())
}
