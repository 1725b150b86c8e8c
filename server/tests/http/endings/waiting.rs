//! Questions wait, remind and end by themselves as time passes, and the API shows it (V21, V22).

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_orchestrator::questions::{
    self, AskOutcome, Deadlines, QuestionRequest, QuestionService,
};
use ropewalk_orchestrator::{Agent, Context, Frame};
use ropewalk_runtime::Clock;
use ropewalk_schemas::question::{About, Choice, Question, QuestionKind, QuestionState};
use ropewalk_schemas::{ChoiceId, ComponentName, QuestionId, Slug};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::world::{BOB, ServerWorld, answered};

/// How often it is looked for what time brings.
const LOOKS: u32 = 2_000;

/// Lets questions remind and end at their time.
async fn keep_time(world: &ServerWorld) {
    let service = QuestionService::new(Deadlines::default()).unwrap();
    let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(service)];
    Frame::start(&world.services, agents, &world.supervisor)
        .await
        .unwrap();
}

/// Asks something with a yes, which is recommended, and a no, which a clarifying question takes by itself.
fn asking(kind: QuestionKind, text: &str) -> QuestionRequest {
    let choice = |id: &str, label: &str| Choice {
        recommended: id == "yes",
        ..Choice::new(ChoiceId::parse(id).unwrap(), label)
    };
    let takes_no = kind == QuestionKind::Clarifying;
    QuestionRequest {
        kind,
        trigger: "before_research".to_owned(),
        text: text.to_owned(),
        context: "A test.".to_owned(),
        choices: vec![choice("yes", "Yes"), choice("no", "No")],
        free_text: false,
        default: takes_no.then(|| ChoiceId::parse("no").unwrap()),
        consequential: false,
        content: None,
        about: About::Nothing,
        topic: None,
        idea: None,
    }
}

/// Puts a question, as an agent does.
async fn put(world: &ServerWorld, asking: QuestionRequest) -> AskOutcome {
    let source = ComponentName::parse("specification").unwrap();
    let context = Context::new(&world.services, source);
    let mut changes = ChangeSet::new();
    let deadlines = Deadlines::default();
    let asked = questions::ask(&mut changes, &context, &deadlines, asking)
        .await
        .unwrap();
    world.services.store.commit(changes).await.unwrap();
    asked
}

/// Puts a question that was not put before; a second later it is there.
async fn open(world: &ServerWorld, asking: QuestionRequest) -> QuestionId {
    let AskOutcome::Open(id) = put(world, asking).await else {
        panic!("it was answered before");
    };
    world.services.clock.advance(Duration::from_secs(1));
    id
}

/// Puts a question of each kind, and one that would spend; returns them in the order of the queue.
async fn one_of_each(world: &ServerWorld) -> [QuestionId; 7] {
    let educational = open(world, asking(QuestionKind::Educational, "Did you know?")).await;
    let preference = open(world, asking(QuestionKind::Preference, "Tabs?")).await;
    let celebratory = open(world, asking(QuestionKind::Celebratory, "Done!")).await;
    let confirming = open(world, asking(QuestionKind::Confirming, "As usual?")).await;
    let spending = QuestionRequest {
        consequential: true,
        ..asking(QuestionKind::Confirming, "Spend more?")
    };
    let spends = open(world, spending).await;
    let clarifying = open(world, asking(QuestionKind::Clarifying, "Colour?")).await;
    let blocking = open(world, asking(QuestionKind::Blocking, "Which way?")).await;
    [
        blocking,
        clarifying,
        spends,
        confirming,
        educational,
        preference,
        celebratory,
    ]
}

async fn stored(world: &ServerWorld, id: QuestionId) -> Question {
    let found = world.services.store.get::<Question>(&id.to_string()).await;
    found.unwrap().unwrap().into_inner()
}

/// Waits until a question is as `look` wants it; seconds pass meanwhile.
async fn until(world: &ServerWorld, id: QuestionId, look: impl Fn(&Question) -> bool) -> Value {
    for _ in 0..LOOKS {
        if look(&stored(world, id).await) {
            return world.read(&format!("/api/questions/{id}")).await;
        }
        world.services.clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came: {:?}", stored(world, id).await);
}

/// Lets time pass up to a moment.
fn pass_until(clock: &Clock, moment: DateTime<Utc>) {
    let left = moment - clock.now();
    clock.advance(left.to_std().unwrap_or_default());
}

fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_question_waits_over_the_api_for_fourteen_hours_and_holds_nothing_else() {
    let clock = Clock::manual(Clock::system().now());
    let mut world = ServerWorld::at(&clock).await;
    keep_time(&world).await;
    let begun = json!({ "text": "Walks" });
    assert_eq!(
        world.send("/api/ideation/sessions", &begun).await.status,
        201
    );
    let spec = world.specification().await;
    let walks = QuestionRequest {
        about: About::Specification { spec },
        idea: Slug::parse("walks").ok(),
        ..asking(QuestionKind::Blocking, "One file or many?")
    };
    let id = open(&world, walks).await;
    let waits = world.read("/api/waits").await;
    assert_eq!(waits["items"].as_array().map(Vec::len), Some(1), "{waits}");
    assert!(waits.to_string().contains(&id.to_string()), "{waits}");
    // Whoever works on something else goes on.
    let other = json!({ "text": "Boats" });
    assert_eq!(
        world.send("/api/ideation/sessions", &other).await.status,
        201
    );
    for half_hour in 1..=28 {
        if half_hour == 15 {
            world = world.again().await;
            keep_time(&world).await;
        }
        let before = stored(&world, id).await.reminded_at;
        clock.advance(Duration::from_mins(30));
        until(&world, id, |question| question.reminded_at != before).await;
    }
    assert_eq!(world.events("question.reminded").await.len(), 28);
    let all = world.ask("POST", "/api/questions/all-defaults", BOB);
    assert_eq!(answered(all).await.body["items"], json!([]));
    assert_eq!(world.read("/api/locks").await["items"], json!([]));
    let open = world.read("/api/questions").await;
    assert_eq!(ids(&open), [id.to_string()]);

    let path = format!("/api/questions/{id}/answer");
    let no = world
        .ask("POST", &path, BOB)
        .json(&json!({ "choice": "no" }));
    let first = answered(no).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let second = world.send(&path, &json!({ "choice": "yes" })).await;
    assert_eq!(second.status, 409, "{}", second.text);
    let kept = world.read(&format!("/api/questions/{id}")).await["answer"].clone();
    let told = ["choice", "by", "channel"].map(|name| kept[name].as_str().unwrap().to_owned());
    assert_eq!(told, ["no", "bob", "api"]);
    assert_eq!(kept["at"], json!(clock.now()));
    assert_eq!(world.read("/api/questions").await["items"], json!([]));
    assert_eq!(world.read("/api/waits").await["items"], json!([]));
    assert_eq!(world.events("question.answered").await.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_question_ends_over_the_api_at_its_time_and_no_default_has_consequences() {
    let clock = Clock::manual(Clock::system().now());
    let world = ServerWorld::at(&clock).await;
    keep_time(&world).await;
    let queue = one_of_each(&world).await;
    let [
        blocking,
        clarifying,
        spends,
        confirming,
        educational,
        preference,
        celebratory,
    ] = queue;
    let listed = world.read("/api/questions").await;
    assert_eq!(ids(&listed), queue.map(|id| id.to_string()));

    let asked = clock.now();
    pass_until(&clock, asked + Duration::from_mins(30));
    until(&world, clarifying, |one| one.reminded_at.is_some()).await;
    pass_until(&clock, asked + Duration::from_mins(239));
    assert_eq!(
        stored(&world, clarifying).await.state,
        QuestionState::Pending
    );
    pass_until(&clock, asked + Duration::from_hours(4));
    let ended = |one: &Question| one.state != QuestionState::Pending;
    let taken = until(&world, clarifying, ended).await;
    let answer = |shown: &Value| {
        let names = ["by", "choice"];
        names.map(|name| shown["answer"][name].as_str().unwrap().to_owned())
    };
    assert_eq!(taken["state"], "defaulted");
    assert_eq!(answer(&taken), ["default", "no"]);
    // The same is not asked again, and whose answer was taken is marked.
    let again = put(&world, asking(QuestionKind::Clarifying, "Colour?")).await;
    assert!(matches!(again, AskOutcome::Reused(answer) if answer.text == "No"));
    let all = world.read("/api/questions?all=true").await;
    let mut all = all["items"].as_array().unwrap().iter();
    assert!(all.any(|one| one["reused_from"] == json!(clarifying)));

    pass_until(&clock, asked + Duration::from_hours(23));
    assert_eq!(
        stored(&world, confirming).await.state,
        QuestionState::Pending
    );
    pass_until(&clock, asked + Duration::from_hours(24));
    let taken = until(&world, confirming, ended).await;
    assert_eq!(taken["state"], "defaulted");
    assert_eq!(answer(&taken), ["default", "yes"]);
    pass_until(&clock, asked + Duration::from_hours(7 * 24));
    for id in [educational, preference, celebratory] {
        let over = until(&world, id, ended).await;
        assert_eq!(
            (&over["state"], &over["answer"]),
            (&json!("dismissed"), &Value::Null)
        );
    }
    let world = world.again().await;
    keep_time(&world).await;
    let before = stored(&world, blocking).await.reminded_at;
    clock.advance(Duration::from_hours(1));
    until(&world, blocking, |one| one.reminded_at != before).await;
    let open = world.read("/api/questions").await;
    assert_eq!(ids(&open), [blocking, spends].map(|id| id.to_string()));
    assert_eq!(
        world.events("question.defaulted").await.len(),
        2,
        "each once"
    );
    assert_eq!(
        world.events("question.dismissed").await.len(),
        3,
        "each once"
    );
    world.stop().await;
}
