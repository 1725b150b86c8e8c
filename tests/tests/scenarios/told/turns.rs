//! A failed gate and a question are turns of one conversation, over HTTP (V38, V39).

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Request, Role, model, told};

/// Returns the place of the request that brings the result of a call, and that result.
fn result_of<'a>(requests: &'a [&'a Request], id: &str) -> anyhow::Result<(usize, &'a Value)> {
    let found = requests.iter().enumerate().find_map(|(place, request)| {
        let content = request.messages().last()?["content"].as_array()?;
        let result = content.iter().find(|block| block["tool_use_id"] == id)?;
        Some((place, result))
    });
    found.with_context(|| format!("no result of `{id}`"))
}

fn says(result: &Value) -> String {
    match &result["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn a_failed_gate_is_the_result_of_finish_and_one_edit_mends_it() -> anyhow::Result<()> {
    let told = told()?;
    let build = told.of(Role::Build);
    let (place, result) = result_of(&build, "first-5")?;
    let failure = says(result);
    for part in [
        "Not taken: ",
        "AssertionError",
        "Your checkout is as you left it",
    ] {
        ensure!(failure.contains(part), "{failure}");
    }
    let (before, after) = (build[place - 1].messages(), build[place].messages());
    assert_eq!(after.len(), before.len() + 2, "one conversation");
    // The mend finds the wrong line where the failed try had left it, and nothing is written twice.
    let (_, mended) = result_of(&build, "first-6")?;
    ensure!(says(mended).starts_with("edited `habits.py`"), "{mended}");
    let written = build
        .last()
        .map(|request| request.messages())
        .unwrap_or_default();
    ensure!(!written.is_empty());
    let subjects: Vec<&str> = told
        .commits
        .iter()
        .map(|(subject, _)| subject.as_str())
        .collect();
    let of_task = subjects
        .iter()
        .filter(|one| **one == "T-001: habits: tell the longest streak");
    assert_eq!(of_task.count(), 1, "{subjects:?}");
    Ok(())
}

#[test]
fn every_role_may_answer_at_the_length_that_the_configuration_allows() -> anyhow::Result<()> {
    for role in Role::ALL {
        for request in told()?.of(role) {
            assert_eq!(request.body["max_tokens"], 32_000, "{role:?}");
        }
    }
    Ok(())
}

#[test]
fn a_question_of_the_model_is_answered_in_its_conversation() -> anyhow::Result<()> {
    let told = told()?;
    let waits = told.waits.to_string();
    ensure!(
        waits.contains("T-002") && waits.contains("person"),
        "{waits}"
    );
    let build = told.of(Role::Build);
    let (place, answer) = result_of(&build, "second-1")?;
    ensure!(says(answer).contains(model::ANSWER), "{answer}");
    let (before, after) = (build[place - 1].messages(), build[place].messages());
    assert_eq!(
        (before.len(), after.len()),
        (1, 3),
        "the conversation that asked goes on"
    );
    assert_eq!(Request::said(&before[0]), Request::said(&after[0]));
    // Nothing is asked twice of the provider: each turn is paid once.
    let asked: Vec<usize> = build
        .iter()
        .map(|request| request.messages().len())
        .collect();
    assert_eq!(asked, [1, 3, 5, 7, 9, 1, 3, 5, 7]);
    assert_eq!(told.build["state"], "succeeded", "{}", told.build);
    Ok(())
}

#[test]
fn what_a_model_says_of_its_work_reaches_commits_dependents_and_the_review() -> anyhow::Result<()> {
    const SAID: &str = "it takes any iterable and returns 0 for none";
    let told = told()?;
    let body = told
        .commits
        .iter()
        .find(|(subject, _)| subject == "T-001: habits: tell the longest streak")
        .map(|(_, body)| body);
    ensure!(body.is_some_and(|body| body.contains(SAID)), "{body:?}");
    let second = told.of(Role::Build)[5].messages()[0].clone();
    ensure!(Request::said(&second).contains(SAID), "T-002 is told");
    let review = told.of(Role::Review);
    ensure!(
        review
            .iter()
            .any(|request| Request::said(&request.messages()[0]).contains(SAID))
    );
    Ok(())
}

#[test]
fn what_people_want_and_wrote_for_all_work_reaches_who_chats_plans_and_builds() -> anyhow::Result<()>
{
    let told = told()?;
    for role in [Role::Ideation, Role::Specification, Role::Build] {
        for request in told.of(role) {
            let system = request.system();
            for part in [model::WISH, "Functions are pure, and have a docstring"] {
                ensure!(system.contains(part), "{role:?} is not told `{part}`");
            }
        }
    }
    // What holds for some files alone is told with the task that has them: the system prompt is that of every task.
    for request in told.of(Role::Build) {
        let first = Request::said(&request.messages()[0]);
        let has_them = first.contains("# BUILD TASK: T-002");
        for part in [model::WISH_OF_DOCS, "Sentences are short."] {
            assert_eq!(first.contains(part), has_them, "`{part}` in {first}");
            ensure!(!request.system().contains(part), "`{part}` is told to all");
        }
    }
    Ok(())
}
