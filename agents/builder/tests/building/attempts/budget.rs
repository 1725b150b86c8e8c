//! What a build does when a budget or a quota is used up.

use std::time::Duration;

use ropewalk_engine::{Allowance, Budgets};
use ropewalk_orchestrator::questions::{AskOutcome, Deadlines, QuestionRequest, ask};
use ropewalk_schemas::attempt::{AttemptState, FailureClass};
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::model_call::{ModelCall, Spending};
use ropewalk_schemas::question::{About, Choice, Question, QuestionKind, QuestionState};
use ropewalk_schemas::task::{TaskState, WaitReason};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, ChoiceId, Payload, QuestionId, Subject};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use crate::world::project::{OpenProject, Project, task, writes};

fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
    }])
}

async fn spending(open: &OpenProject, build: BuildId) -> Spending {
    let calls = Query::new().equal("build", build.to_string());
    open.services.store.spending(calls).await.unwrap()
}

async fn waits(open: &OpenProject) -> Vec<String> {
    let waits = open
        .services
        .store
        .list::<Wait>(Query::new())
        .await
        .unwrap();
    let mut told: Vec<String> = waits
        .iter()
        .filter(|wait| wait.resource.is_sink())
        .map(|wait| format!("{} {}", wait.waiter, wait.resource))
        .collect();
    told.sort();
    told
}

async fn events(open: &OpenProject, wanted: &str) -> Vec<Value> {
    let events = open.events().await.into_iter();
    events
        .filter(|(name, _)| name == wanted)
        .map(|(_, data)| data)
        .collect()
}

/// Returns what the plan uses when nothing limits it.
async fn unlimited(rules: &str) -> u64 {
    let project = Project::new(rules);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let spent = spending(&open, build.id).await;
    assert_eq!((spent.calls, spent.unpriced_calls), (2, 2));
    assert_eq!(build.spent, Some(spent));
    let told = events(&open, "build.completed").await;
    assert_eq!(told[0]["spent"]["tokens"], spent.tokens);
    open.close().await;
    spent.tokens
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_stops_before_the_call_and_a_raise_goes_on_where_it_stopped() {
    let rules = writes("T-1", "a.txt", "good\n", None);
    // Less than the first call uses, and more than half of it.
    let limit = unlimited(&rules).await * 2 / 5;
    let project = Project::new(&rules).with(|options| {
        options.budgets = Budgets {
            build: Allowance {
                tokens: Some(limit),
                micro_usd: None,
            },
            ..Budgets::default()
        };
    });
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Budget));
    let waiting = task(&tasks, "T-1");
    assert_eq!(
        (waiting.state, waiting.waiting_for),
        (TaskState::Waiting, Some(WaitReason::Budget))
    );
    assert_eq!(spending(&open, build.id).await.calls, 1);
    let scope = format!("build/{}", build.id);
    assert_eq!(
        waits(&open).await,
        [
            format!("build/{} budget/{scope}", build.id),
            format!("task/{}/T-1 budget/{scope}", build.id)
        ]
    );
    let told = events(&open, "budget.exceeded").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["scope"], scope);
    assert_eq!(told[0]["limit"], format!("{limit} tokens"));
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(attempts[0].state, AttemptState::Interrupted);
    let kept = format!("refs/ropewalk/preserve/{}", build.id);
    let refs = crate::world::project::git(
        &project.state().join("repository.git"),
        &["for-each-ref", "--format=%(refname)", &kept],
    );
    assert_eq!(refs.lines().count(), 1, "the work is kept: {refs}");
    assert!(open.held_locks().await.is_empty());
    open.answer_about_build("double").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!((build.raises.len(), build.exhausted), (1, None));
    let done = task(&tasks, "T-1");
    assert_eq!((done.state, done.tries), (TaskState::Complete, 0));
    // What was answered before the stop is not paid for again.
    assert_eq!(spending(&open, build.id).await.calls, 2);
    assert_eq!(waits(&open).await, Vec::<String>::new());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_that_nobody_raises_stops_the_build() {
    let rules = writes("T-1", "a.txt", "good\n", None);
    let project = Project::new(&rules).with(|options| options.budgets.task.tokens = Some(1));
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let scope = format!("task/{}/T-1", build.id);
    assert_eq!(build.exhausted, None, "only one task is out of budget");
    assert_eq!(
        waits(&open).await,
        [format!("task/{}/T-1 budget/{scope}", build.id)]
    );
    open.answer("T-1", "stop").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    assert!(build.reason.unwrap().contains(&scope));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_is_waited_for_visibly_until_the_time_that_is_stored() {
    let rules = format!(
        "- agent: build\n  task: T-1\n  turn: 1\n  attempt: 1\n  reply: {{ error: {{ kind: rate_limited, message: slow, retry_after_seconds: 600 }} }}\n{}",
        writes("T-1", "a.txt", "good\n", None)
    );
    let project = Project::new(&rules);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Quota));
    let waiting = task(&tasks, "T-1");
    assert!(
        waiting
            .not_before
            .is_some_and(|due| due > open.context.now())
    );
    let rows = open
        .services
        .store
        .list::<Wait>(Query::new())
        .await
        .unwrap();
    assert!(
        matches!(rows[0].resource, Resource::Quota { .. }),
        "{rows:?}"
    );
    let asked = open.services.store.count::<Question>(Query::new()).await;
    assert_eq!(asked.unwrap(), 0);
    open.close().await;
}

/// A project whose build uses up its budget at once.
fn poor(rules: &str) -> Project {
    Project::new(rules).with(|options| options.budgets.build.tokens = Some(1))
}

/// Asks about the whole build.
async fn ask_about(
    open: &OpenProject,
    build: BuildId,
    trigger: &str,
    topic: Option<&str>,
) -> QuestionId {
    let asking = QuestionRequest {
        kind: QuestionKind::Blocking,
        trigger: trigger.to_owned(),
        text: "Shall it go on?".to_owned(),
        context: String::new(),
        choices: ["half", "double", "stop"]
            .map(|id| Choice::new(ChoiceId::parse(id).unwrap(), id))
            .to_vec(),
        free_text: false,
        default: None,
        consequential: true,
        content: None,
        about: About::Build { build },
        topic: topic.map(str::to_owned),
        idea: None,
    };
    let mut changes = ChangeSet::new();
    let asked = ask(&mut changes, &open.context, &Deadlines::default(), asking).await;
    let AskOutcome::Open(question) = asked.unwrap() else {
        panic!("it is asked anew")
    };
    open.services.store.commit(changes).await.unwrap();
    question
}

async fn ask_for_more(open: &OpenProject, build: BuildId, scope: &str) -> QuestionId {
    ask_about(open, build, "budget_exceeded", Some(scope)).await
}

/// Lets the whole build wait for a budget, as an attempt that meets its end does.
async fn use_up(open: &OpenProject, build: BuildId, scope: &str, question: QuestionId) {
    let wait = Wait {
        waiter: Party::Build { build },
        resource: Resource::Budget {
            scope: scope.to_owned(),
        },
        holder: None,
        since: open.context.now(),
    };
    let exhausted = |build: &mut Build| {
        build.exhausted = Some(scope.to_owned());
        build.question = Some(question);
    };
    open.change_build_with(build, Some(&wait), exhausted).await;
}

async fn state_of(open: &OpenProject, id: QuestionId) -> QuestionState {
    let row = open.services.store.get::<Question>(&id.to_string()).await;
    row.unwrap().unwrap().state
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_day_ends_only_what_its_budget_asked() {
    let rules = writes("T-1", "a.txt", "bad\n", None);
    let project = Project::new(&rules);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let yesterday = "day/1999-12-31";
    let of_budget = ask_for_more(&open, build.id, yesterday).await;
    let of_branch = ask_about(&open, build.id, "branch_moved", None).await;
    use_up(&open, build.id, yesterday, of_branch).await;
    let (build, _) = open.until(spec, |build, _| build.exhausted.is_none()).await;
    assert_eq!(build.question, Some(of_branch));
    assert_eq!(state_of(&open, of_branch).await, QuestionState::Pending);
    assert_eq!(state_of(&open, of_budget).await, QuestionState::Superseded);
    assert_eq!(waits(&open).await, Vec::<String>::new());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_that_are_used_up_side_by_side_are_raised_one_by_one() {
    let project = poor(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let first = build.question.unwrap();
    let scope = format!("build/{}", build.id);
    let second = ask_for_more(&open, build.id, "project").await;
    use_up(&open, build.id, "project", second).await;
    open.answer_question(first, "half").await;
    let (build, tasks) = open.until(spec, |build, _| !build.raises.is_empty()).await;
    open.settled().await;
    assert_eq!(build.raises[0].scope, scope);
    assert_eq!(build.exhausted.as_deref(), Some("project"));
    assert_eq!(build.question, Some(second));
    assert_eq!(build.state, BuildState::Paused);
    assert_eq!(task(&tasks, "T-1").state, TaskState::Ready);
    assert_eq!(state_of(&open, second).await, QuestionState::Pending);
    assert_eq!(
        waits(&open).await,
        [format!("build/{} budget/project", build.id)]
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_build_waits_for_no_budget() {
    let project = poor(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let asked = build.question.unwrap();
    let stop = Payload::BuildStop(crate::world::project::request(build.id));
    open.emit(Subject::build(build.id), stop).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    assert_eq!((build.exhausted, build.question), (None, None));
    assert_eq!(waits(&open).await, Vec::<String>::new());
    assert_eq!(state_of(&open, asked).await, QuestionState::Superseded);
    open.close().await;
}

/// The rule of an agent whose every reply is larger than is kept.
fn talks_without_end() -> String {
    let text = "x".repeat(1_300_000);
    format!("- agent: build\n  task: T-1\n  reply:\n    text: {text}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_are_not_kept_are_paid_counted_and_come_to_an_end_with_a_question() {
    let project = Project::new(&talks_without_end()).with(|options| {
        options.tries.backoff = Duration::from_millis(20);
    });
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |_, tasks| {
            task(tasks, "T-1").state == TaskState::Failed
        })
        .await;
    let spent = spending(&open, build.id).await;
    assert_eq!(spent.calls, 3);
    assert!(spent.tokens >= 3 * 1_300_000 / 4, "{spent:?}");
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(attempts.len(), 3);
    for attempt in attempts {
        let failure = attempt.failure.unwrap();
        assert_eq!(failure.class, FailureClass::ReplyTooLarge);
        assert!(failure.error.contains("1048576 bytes"), "{}", failure.error);
    }
    let reason = task(&tasks, "T-1").reason.clone().unwrap();
    assert!(
        reason.contains("a reply of the model was too large"),
        "{reason}"
    );
    assert!(open.open_question("T-1").await.is_some());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_knows_what_was_paid_for_a_reply_that_is_not_kept() {
    let project = Project::new(&talks_without_end()).with(|options| {
        options.tries.backoff = Duration::from_millis(20);
        options.budgets.task.tokens = Some(200);
    });
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |_, tasks| {
            task(tasks, "T-1").state == TaskState::Waiting
        })
        .await;
    let waiting = task(&tasks, "T-1").waiting_for;
    assert_eq!(waiting, Some(WaitReason::Budget));
    assert_eq!(spending(&open, build.id).await.calls, 1);
    open.close().await;
}

/// Three loops ask side by side, each call a little later than the one before.
fn three_talkers() -> (String, Value) {
    let rules: Vec<String> = (1..=3)
        .map(|number| {
            let steps = (1..=60).map(|step| {
                let delay = 20 + 7 * number;
                format!(
                    "- {{ agent: build, task: T-{number}, turn: {step}, reply: {{ delay_ms: {delay}, tools: [{{ name: bash, input: {{ command: \"echo {step}\" }} }}] }} }}\n"
                )
            });
            steps.collect::<String>()
        })
        .collect();
    let tasks: Vec<Value> = (1..=3)
        .map(|number| {
            json!({
                "id": format!("T-{number}"), "phase": "api", "action": "CREATE", "file": format!("{number}.txt"),
                "validation": { "command": format!("grep -q good {number}.txt"), "expected": "exit 0" },
            })
        })
        .collect();
    (rules.concat(), json!(tasks))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_is_passed_by_one_call_of_each_loop_at_most() {
    let (rules, plan) = three_talkers();
    let limit = 30_000;
    let project = Project::new(&rules).with(|options| {
        options.loops = 3;
        options.budgets = Budgets {
            build: Allowance {
                tokens: Some(limit),
                micro_usd: None,
            },
            ..Budgets::default()
        };
    });
    let open = project.open().await;
    let spec = open.approve(plan).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Budget));
    let query = Query::new()
        .equal("build", build.id.to_string())
        .order_by("at");
    let calls = open.services.store.list::<ModelCall>(query).await.unwrap();
    let mut spent = 0;
    let mut beyond = Vec::new();
    for call in &calls {
        if spent >= limit {
            beyond.push(call.task.clone().unwrap());
        }
        spent += call.input_tokens + call.output_tokens;
    }
    assert!(
        spent >= limit && calls.len() > 3,
        "{spent} in {}",
        calls.len()
    );
    // Those that were on their way when one of them used the budget up.
    let loops = beyond.len();
    beyond.sort();
    beyond.dedup();
    assert_eq!(beyond.len(), loops, "no loop began another call");
    assert!(loops <= 2, "{loops} calls beyond the budget");
    open.close().await;
}
