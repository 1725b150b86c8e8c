//! What takes a right is refused who does not have it, by requests and by the forms of pages alike, and changes nothing.
//! The terminal is asked the same in `cli/tests/suite/people.rs`.

use ropewalk_schemas::ContentHash;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::TaskState;
use serde_json::{Value, json};

use super::assert_problem;
use crate::browser::HTML;
use crate::world::{ADA, BOB, ServerWorld, answered};

/// What takes a right: a request with its body, and the fields of the form that does the same.
struct GuardedVerb {
    right: Right,
    method: &'static str,
    path: String,
    body: Value,
    fields: Vec<(&'static str, String)>,
}

fn guarded(right: Right, path: String, body: Value) -> GuardedVerb {
    let fields = ["choice", "hash", "text"].into_iter();
    GuardedVerb {
        right,
        method: "POST",
        path,
        fields: fields
            .filter_map(|name| Some((name, body[name].as_str()?.to_owned())))
            .collect(),
        body,
    }
}

/// Lists all that takes a right, each where it would be done for who has it.
async fn verbs(world: &ServerWorld) -> Vec<GuardedVerb> {
    let (spec, finished) = world.specified().await;
    let (runs, done) = (world.built().await, world.built().await);
    world
        .change(done, |build| build.state = BuildState::Succeeded)
        .await;
    let budget = world.asked("budget_exceeded", ["half", "stop"]).await;
    let complete = world.asked("spec_complete", ["start", "revise"]).await;
    let hash = json!({ "hash": ContentHash::of(b"new") });
    let rejected = json!({ "hash": hash["hash"], "text": "Not wanted" });
    let answer = |right, id, choice: &str| {
        let path = format!("/questions/{id}/answer");
        guarded(right, path, json!({ "choice": choice }))
    };
    let of_spec = |verb: &str| format!("/specifications/{spec}/{verb}");
    let steered = |verb: &str| guarded(Right::Stop, format!("/builds/{runs}/{verb}"), json!({}));
    let letter = |verb: &str| {
        let path = format!("/dead-letters/1/build/{verb}");
        guarded(Right::Stop, path, json!({}))
    };
    vec![
        guarded(Right::Approve, of_spec("approve"), hash.clone()),
        guarded(Right::Approve, of_spec("reject"), rejected),
        answer(Right::Approve, complete, "start"),
        guarded(Right::Land, format!("/builds/{done}/land"), json!({})),
        answer(Right::Land, finished, "merge"),
        answer(Right::Spend, budget, "half"),
        answer(Right::Stop, budget, "stop"),
        steered("pause"),
        steered("resume"),
        steered("stop"),
        letter("replay"),
        letter("discard"),
        guarded(Right::Stop, "/ideas/walks/abandon".to_owned(), json!({})),
        guarded(Right::Stop, "/halt".to_owned(), json!({})),
        GuardedVerb {
            method: "DELETE",
            ..guarded(Right::Stop, "/halt/lift".to_owned(), json!({}))
        },
    ]
}

impl GuardedVerb {
    /// Returns where a program asks for it.
    fn resource(&self) -> String {
        let path = self.path.replace("/ideas/", "/ideation/sessions/");
        format!("/api{}", path.trim_end_matches("/lift"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lacks_a_right_is_told_which_by_request_and_by_form_and_changes_nothing() {
    let world = ServerWorld::new().await;
    let verbs = verbs(&world).await;
    for right in Right::ALL {
        assert!(
            verbs.iter().any(|guarded| guarded.right == right),
            "{right}"
        );
    }
    let before = world.rows().await;
    for guarded in &verbs {
        let told = format!("`bob` may not {}", guarded.right);
        let resource = guarded.resource();
        let request = world
            .ask(guarded.method, &resource, BOB)
            .json(&guarded.body);
        let refused = answered(request).await;
        assert_problem(&refused, 403, "forbidden");
        assert_eq!(refused.body["message"], json!(told), "{resource}");
        assert_eq!(world.rows().await, before, "{resource}");
        let mut fields = url::form_urlencoded::Serializer::new(String::new());
        fields.extend_pairs(&guarded.fields);
        let form = world.ask("POST", &guarded.path, BOB).header("Accept", HTML);
        let form = form.header("Content-Type", "application/x-www-form-urlencoded");
        let refused = answered(form.body(fields.finish())).await;
        assert_eq!(refused.status, 403, "{}: {}", guarded.path, refused.text);
        let words = format!("may not {}", guarded.right);
        assert!(
            refused.text.contains(&words),
            "{}: {}",
            guarded.path,
            refused.text
        );
        assert_eq!(world.rows().await, before, "{}", guarded.path);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_stopped_is_set_going_by_another_try_of_who_may_let_it_go_on_alone() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-001", TaskState::Failed).await;
    let stopped = |cause| {
        move |build: &mut Build| {
            build.state = BuildState::Stopped;
            build.stop = Some(cause);
        }
    };
    world.change(build, stopped(StopCause::Person)).await;
    let before = world.rows().await;
    let (path, body) = (
        format!("/api/builds/{build}/retry"),
        json!({ "task": "T-001" }),
    );
    let refused = answered(world.ask("POST", &path, BOB).json(&body)).await;
    assert_problem(&refused, 403, "forbidden");
    assert_eq!(refused.body["message"], json!("`bob` may not stop"));
    assert_eq!(world.rows().await, before);
    let form = format!("/builds/{build}/tasks/T-001/retry");
    let form = world.ask("POST", &form, BOB).header("Accept", HTML);
    let form = form.header("Content-Type", "application/x-www-form-urlencoded");
    let refused = answered(form.body("guidance=")).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert_eq!(world.rows().await, before);
    // Nobody is offered what is refused.
    let page = format!("/builds/{build}/tasks/T-001");
    let offers = async |token: &str| {
        let page = answered(world.ask("GET", &page, token).header("Accept", HTML)).await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.text
            .contains(&format!("action=\"/builds/{build}/tasks/T-001/retry\""))
    };
    assert_eq!((offers(ADA).await, offers(BOB).await), (true, false));
    let taken = world.send(&path, &body).await;
    assert_eq!(taken.status, 202, "{}", taken.text);
    // What failed by itself is tried again by whoever knows how.
    world.change(build, stopped(StopCause::Failures)).await;
    let taken = answered(world.ask("POST", &path, BOB).json(&body)).await;
    assert_eq!(taken.status, 202, "{}", taken.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_right_spends_more() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let budget = world.asked("budget_exceeded", ["half", "stop"]).await;
    let path = format!("/api/questions/{budget}/answer");
    let half = world.send(&path, &json!({ "choice": "half" })).await;
    assert_eq!(
        (half.status, &half.body["choice"]),
        (200, &json!("half")),
        "{}",
        half.text
    );
    let kept = world.read(&format!("/api/questions/{budget}")).await;
    assert_eq!(
        (&kept["state"], &kept["answer"]["by"]),
        (&json!("answered"), &json!("ada"))
    );
    world.stop().await;
}
