//! Reviews and lessons, over real git and a scripted model.

use ropewalk_agents::improvement::WEEKLY;
use ropewalk_knowledge::{PlannedInjection, inject};
use ropewalk_schemas::attempt::{Attempt, FailureClass};
use ropewalk_schemas::build::{Build, BuildState, TaskCounts};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::{
    ReviewCompleted, SpecGenerated, TaskCompleted, TaskFailed, TaskSkipped,
};
use ropewalk_schemas::review::{Divergence, DivergenceClass, Review, ReviewKind};
use ropewalk_schemas::specification::{Complexity, Document, Requirement, Revision};
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{Payload, RequirementId};
use ropewalk_store::Versioned;

use crate::workshop::{FINDINGS, Workshop, completed, landed, migration, near};
use crate::world::{attempt_at, build, build_id, id, noon, types};

#[tokio::test]
async fn a_clean_build_is_reviewed_once_and_what_it_calls_a_mistake_has_to_be_seen_again() {
    use DivergenceClass::{Enhancement, IntentionalSkip, ScopeCreep};
    let workshop = Workshop::open(FINDINGS).await;
    workshop.built(&[landed(1)]).await;
    let told = workshop.review().await;
    assert_eq!(
        types(&told),
        [
            "knowledge.recorded",
            "knowledge.recorded",
            "review.completed"
        ]
    );
    let review = workshop.only_review().await;
    let classes: Vec<DivergenceClass> = review.divergences.iter().map(|one| one.class).collect();
    assert_eq!(
        classes,
        [ScopeCreep, Enhancement, Enhancement, IntentionalSkip]
    );
    assert!(
        review
            .divergences
            .iter()
            .all(|one| one.file.is_some() && !one.planned.is_empty())
    );
    assert_eq!((review.patterns.len(), review.gotchas.len()), (1, 1));
    let supposed = workshop.item(review.gotchas[0]).await;
    assert!(near(supposed.confidence, 0.5), "{}", supposed.confidence);
    let pattern = workshop.item(review.patterns[0]).await;
    assert_eq!(
        (pattern.kind, pattern.action),
        (KnowledgeKind::Pattern, Some(Action::Create))
    );
    assert_eq!(pattern.globs, ["database/*.sql"]);
    assert!(pattern.confidence < 0.9, "{}", pattern.confidence);
    for (metric, expected) in [
        ("first_pass_success", 1.0),
        ("gotcha_effectiveness", 0.0),
        ("build_duration_minutes", 3.0),
        ("gotcha_prevented_failure", 0.0),
    ] {
        assert!(
            near(review.metrics[metric], expected),
            "{metric}: {:?}",
            review.metrics
        );
    }
    let [
        _,
        _,
        Payload::ReviewCompleted(ReviewCompleted {
            review_id,
            patterns_found: 1,
            gotchas_found: 1,
            improvements_made: 2,
            ..
        }),
    ] = told.as_slice()
    else {
        panic!("{told:?}");
    };
    assert_eq!(*review_id, review.id);
    assert_eq!(workshop.review().await, []);
    workshop.only_review().await;
}

#[tokio::test]
async fn a_requirement_that_a_review_holds_for_missed_is_named_and_counted() {
    let missed = r#"
- agent: improvement
  reply:
    tools:
      - name: review
        input:
          divergences:
            - { class: missed-requirement, task: T-001, requirement: FR-6, planned: "help tells both", actual: "it tells one" }
            - { class: deviation, task: T-001, requirement: the first, planned: "a loop", actual: "a table" }
"#;
    let workshop = Workshop::open(missed).await;
    workshop.built(&[landed(1)]).await;
    let told = workshop.review().await;
    let [
        Payload::ReviewCompleted(ReviewCompleted {
            requirements_missed: 1,
            deviations: 1,
            ..
        }),
    ] = told.as_slice()
    else {
        panic!("{told:?}");
    };
    let review = workshop.only_review().await;
    let objections: Vec<String> = review.objections().map(Divergence::place).collect();
    assert_eq!(objections, ["FR-6 of T-001", "T-001"]);
    let unnamed = review.divergences.last().unwrap();
    assert_eq!(
        (unnamed.place(), &unnamed.requirement),
        ("T-001".to_owned(), &None)
    );
}

#[tokio::test]
async fn who_reviews_a_build_is_told_what_no_check_shows() {
    let unverified = "unverified, since their checks pass without the work: FR-1";
    // The model answers who tells it so, and nobody else.
    let script = FINDINGS.replace("  reply:", &format!("  contains: '{unverified}'\n  reply:"));
    for (reason, reviewed) in [(Some(unverified), true), (None, false)] {
        let workshop = Workshop::open(&script).await;
        let task = workshop.built(&[landed(1)]).await;
        let told = Build {
            reason: reason.map(str::to_owned),
            ..workshop.world.list::<Build>().await.remove(0)
        };
        workshop.world.lay(&told, &[task]).await;
        workshop.review().await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        assert_ne!(review.notes.iter().any(by_rules), reviewed);
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_loses_no_review() {
    let workshop = Workshop::open("[]").await;
    workshop.built(&[landed(1)]).await;
    assert_eq!(types(&workshop.review().await), ["review.completed"]);
    let review = workshop.only_review().await;
    assert!(
        review
            .notes
            .iter()
            .any(|note| note.contains("by rules alone")),
        "{:?}",
        review.notes
    );
    assert_eq!(review.divergences.len(), 1);
}

#[tokio::test]
async fn a_build_without_commits_is_reviewed_too() {
    let workshop = Workshop::open("[]").await;
    let tasks = [Task {
        state: TaskState::Failed,
        reason: Some("no try passed".to_owned()),
        ..migration()
    }];
    workshop
        .world
        .lay(
            &Build {
                state: BuildState::Failed,
                ..build(1)
            },
            &tasks,
        )
        .await;
    let failed = completed(BuildState::Failed);
    workshop.world.give(&workshop.improvement, failed).await;
    let review = workshop.only_review().await;
    assert!(
        review
            .notes
            .contains(&"the build made no commits".to_owned())
    );
    let [omission] = review.divergences.as_slice() else {
        panic!("{:?}", review.divergences);
    };
    assert_eq!(omission.class, DivergenceClass::MissedRequirement);
    assert!(near(review.metrics["first_pass_success"], 0.0));
}

#[tokio::test]
async fn a_self_correction_is_confirmed_when_its_task_lands_and_counted_in_the_review() {
    let workshop = Workshop::open("[]").await;
    let failed = attempt_at(&migration(), 1, "loop-1");
    let task = workshop.built(&[failed.clone(), landed(2)]).await;
    let gotcha = workshop.candidate(&build_id(1).to_string(), &failed).await;
    let landing = Payload::TaskCompleted(TaskCompleted {
        counts: TaskCounts::default(),
        build_id: task.build,
        task_id: task.id.clone(),
        idea_slug: build(1).idea,
        attempts: 2,
        duration_seconds: 9,
        commit_sha: None,
        unblocked: Vec::new(),
    });
    let told = workshop.world.give(&workshop.improvement, landing).await;
    assert_eq!(types(&told), ["knowledge.reinforced"]);
    let item = workshop.item(gotcha).await;
    assert_eq!(item.state, KnowledgeState::Confirmed);
    assert!(near(item.confidence, 0.7));
    workshop.review().await;
    let review = workshop.only_review().await;
    assert_eq!(review.gotchas, [gotcha]);
    assert!(near(review.metrics["first_pass_success"], 0.0));
    assert!(near(review.metrics["failed_attempts"], 1.0));
}

#[tokio::test]
async fn a_lesson_seen_in_two_builds_is_confirmed_at_more() {
    let workshop = Workshop::open("[]").await;
    let failed = attempt_at(&migration(), 1, "loop-1");
    workshop.built(&[failed.clone(), landed(2)]).await;
    let gotcha = workshop.candidate("another build", &failed).await;
    workshop.candidate(&build_id(1).to_string(), &failed).await;
    assert_eq!(
        types(&workshop.review().await),
        ["knowledge.reinforced", "review.completed"]
    );
    assert!(near(workshop.item(gotcha).await.confidence, 0.85));
}

#[tokio::test]
async fn a_try_that_a_person_allowed_afterwards_is_no_failed_one() {
    for (class, failed) in [
        (FailureClass::Tampered, 0.0),
        (FailureClass::ValidationFailed, 1.0),
    ] {
        // A yes takes the failure from the row of its task.
        let mut allowed = attempt_at(&migration(), 1, "loop-1");
        if let Some(failure) = &mut allowed.failure {
            failure.class = class;
        }
        let workshop = Workshop::open("[]").await;
        workshop.built(&[allowed, landed(2)]).await;
        workshop.review().await;
        let metrics = workshop.only_review().await.metrics;
        assert!(near(metrics["failed_attempts"], failed), "{metrics:?}");
        assert!(
            near(metrics["first_pass_success"], 1.0 - failed),
            "{metrics:?}"
        );
    }
}

#[tokio::test]
async fn a_lesson_is_weighed_by_the_failure_that_taught_it() {
    let failed = attempt_at(&migration(), 1, "loop-1");
    let mut other = failed.clone();
    if let Some(failure) = &mut other.failure {
        failure.error = "assertion failed: three columns were expected here".to_owned();
    }
    let rows = [
        (false, true, true, vec![landed(2)], 0.95, Some(true)),
        (false, false, true, vec![landed(2)], 0.7, None),
        // A later revision left it out, so that no prompt held it.
        (false, true, false, vec![landed(2)], 0.7, None),
        (
            false,
            true,
            true,
            vec![failed.clone(), landed(2)],
            0.6,
            Some(false),
        ),
        (false, true, true, vec![other, landed(2)], 0.7, None),
        (true, true, true, vec![landed(2)], 0.7, None),
    ];
    for (held_out, taught, told, attempts, confidence, helped) in rows {
        let workshop = Workshop::open("[]").await;
        let task = workshop.built(&attempts).await;
        let source = Attempt {
            build: build_id(7),
            ..attempt_at(&migration(), 99, "loop-9")
        };
        if taught {
            workshop.world.put(&source).await;
        }
        let gotcha = workshop.candidate("an earlier build", &source).await;
        if told {
            workshop.tell(&attempts, gotcha).await;
        }
        let injection = Injection {
            item: gotcha,
            build: None,
            spec: build(1).spec,
            task: task.id,
            held_out,
            helped: None,
            at: noon(),
        };
        workshop.world.put(&injection).await;
        workshop.review().await;
        let found = workshop.item(gotcha).await.confidence;
        assert!(near(found, confidence), "{held_out} {helped:?} {found}");
        let prevented = f64::from(u8::from(helped == Some(true)));
        let review = workshop.only_review().await;
        assert!(near(review.metrics["gotcha_prevented_failure"], prevented));
        let names = |note: &String| {
            note.contains(&gotcha.to_string())
                && note.contains(&source.id.to_string())
                && note.contains("T-001")
        };
        assert_eq!(
            review.notes.iter().any(names),
            prevented > 0.5,
            "{:?}",
            review.notes
        );
        let [written] = workshop.world.list::<Injection>().await.try_into().unwrap();
        assert_eq!((written.helped, written.build), (helped, Some(build_id(1))));
    }
}

#[tokio::test]
async fn a_file_that_was_of_another_task_is_no_failure_that_a_lesson_prevents() {
    let workshop = Workshop::open("[]").await;
    let task = workshop.built(&[landed(2)]).await;
    let mut source = Attempt {
        build: build_id(7),
        ..attempt_at(&migration(), 99, "loop-9")
    };
    if let Some(failure) = &mut source.failure {
        failure.class = FailureClass::OutOfScope;
        failure.error = "`notes.txt` is not a file of this task".to_owned();
    }
    workshop.world.put(&source).await;
    let gotcha = workshop.candidate("an earlier build", &source).await;
    workshop.tell(&[landed(2)], gotcha).await;
    let injection = Injection {
        item: gotcha,
        build: None,
        spec: build(1).spec,
        task: task.id,
        held_out: false,
        helped: None,
        at: noon(),
    };
    workshop.world.put(&injection).await;
    workshop.review().await;
    let found = workshop.item(gotcha).await.confidence;
    assert!(near(found, 0.7), "{found}");
    let [written] = workshop.world.list::<Injection>().await.try_into().unwrap();
    assert_eq!(written.helped, None);
}

#[tokio::test]
async fn a_task_that_taught_a_lesson_is_told_it_and_is_no_use_of_it() {
    let workshop = Workshop::open("[]").await;
    let taught = attempt_at(&migration(), 1, "loop-1");
    workshop.built(&[taught.clone(), landed(2)]).await;
    let gotcha = workshop.candidate("this build", &taught).await;
    let store = &workshop.world.store;
    let row = store.get(&gotcha.to_string()).await.unwrap().unwrap();
    let tasks = ["T-001", "T-002"].map(id);
    let plan = tasks.clone().map(|task| PlannedInjection {
        item: Versioned::clone(&row),
        task,
    });
    let (spec, now) = (build(1).spec, noon());
    let injected = inject(store, spec, &plan, true, now).await.unwrap();
    assert_eq!(injected.carried, tasks.clone().map(|task| (task, gotcha)));
    workshop.world.commit(injected.changes).await;
    let uses = workshop.world.list::<Injection>().await;
    let uses: Vec<_> = uses.iter().map(|used| used.task.clone()).collect();
    assert_eq!(uses, [id("T-002")]);
    assert_eq!(workshop.item(gotcha).await.injections, 1);
}

#[tokio::test]
async fn a_build_that_went_on_after_its_review_is_reviewed_again_and_weighs_no_use_twice() {
    let missed = r#"
- agent: improvement
  contains: "stopped"
  reply:
    tools:
      - name: review
        input:
          divergences:
            - { class: missed-requirement, requirement: FR-1, planned: "habits", actual: "none" }
          patterns: [{ content: "One migration for each table keeps them apart and small." }]
- agent: improvement
  contains: "- missed-requirement, FR-1: planned habits; done none"
  reply: { tools: [{ name: review, input: { notes: ["All of it is there."] } }] }
"#;
    let failed = attempt_at(&migration(), 1, "loop-1");
    let workshop = Workshop::open(missed).await;
    let world = &workshop.world;
    let task = workshop.built(&[failed.clone(), landed(2)]).await;
    let done = world.list::<Build>().await.remove(0);
    let stopped = Build {
        state: BuildState::Stopped,
        completed_at: Some(noon()),
        ..done.clone()
    };
    world.lay(&stopped, std::slice::from_ref(&task)).await;
    let source = Attempt {
        build: build_id(7),
        ..attempt_at(&migration(), 99, "loop-9")
    };
    world.put(&source).await;
    let gotcha = workshop.candidate("an earlier build", &source).await;
    workshop.tell(&[failed.clone(), landed(2)], gotcha).await;
    let injection = Injection {
        item: gotcha,
        build: None,
        spec: build(1).spec,
        task: task.id.clone(),
        held_out: false,
        helped: None,
        at: noon(),
    };
    world.put(&injection).await;
    workshop.review().await;
    assert_eq!(workshop.only_review().await.missed(), 1);
    assert_eq!(workshop.review().await, [], "each end once");
    let weighed = workshop.item(gotcha).await.confidence;
    assert!(near(weighed, 0.6), "{weighed}");
    world.lay(&done, &[task]).await;
    workshop.review().await;
    let mut reviews = world.list::<Review>().await;
    reviews.sort_by_key(|review| review.ended_at);
    let missed = reviews.iter().map(Review::missed);
    assert_eq!(missed.collect::<Vec<_>>(), [1, 0]);
    assert!(
        reviews[1]
            .notes
            .iter()
            .any(|note| note == "All of it is there.")
    );
    assert_eq!(reviews[1].patterns, reviews[0].patterns);
    assert_eq!(reviews[1].patterns.len(), 1);
    assert!(near(workshop.item(gotcha).await.confidence, weighed));
    assert_eq!(workshop.review().await, [], "each end once");
}

#[tokio::test]
async fn a_failure_that_nobody_mended_is_remembered_once() {
    let workshop = Workshop::open("[]").await;
    let mut task = migration();
    for number in 1..=3_u128 {
        workshop
            .world
            .put(&attempt_at(&task, number, "loop-1"))
            .await;
        task.attempts += 1;
    }
    workshop
        .world
        .lay(
            &build(1),
            &[Task {
                state: TaskState::Failed,
                ..task.clone()
            }],
        )
        .await;
    let failed = |will_retry| {
        Payload::TaskFailed(TaskFailed {
            build_id: task.build,
            task_id: task.id.clone(),
            idea_slug: build(1).idea,
            attempt: 3,
            category: FailureClass::ValidationFailed,
            error: String::new(),
            will_retry,
            blocked: 0,
            continuing: 0,
            recommended: None,
        })
    };
    let give = |payload| workshop.world.give(&workshop.improvement, payload);
    assert_eq!(give(failed(true)).await, []);
    assert_eq!(types(&give(failed(false)).await), ["knowledge.recorded"]);
    assert_eq!(give(failed(false)).await, []);
    let skipped = Payload::TaskSkipped(TaskSkipped {
        build_id: task.build,
        task_id: task.id.clone(),
        idea_slug: build(1).idea,
        skipped_by: "ada".to_owned(),
        reason: String::new(),
    });
    assert_eq!(give(skipped).await, []);
    let [item] = workshop
        .world
        .list::<KnowledgeItem>()
        .await
        .try_into()
        .unwrap();
    assert_eq!(
        (item.state, item.evidence.len()),
        (KnowledgeState::Candidate, 3)
    );
    assert!(item.content.contains("JSONB"), "{}", item.content);
    assert!(near(item.confidence, 0.6));
}

#[tokio::test]
async fn each_revision_of_a_specification_is_reviewed_once() {
    let workshop = Workshop::open("[]").await;
    let requirement = |id: &str, priority: &str| Requirement {
        id: RequirementId::parse(id).unwrap(),
        text: "Habits are kept".to_owned(),
        priority: priority.to_owned(),
        acceptance: String::new(),
        source: String::new(),
        replaces: None,
    };
    let made = |revision| SpecGenerated {
        spec_id: build(1).spec,
        idea_slug: build(1).idea,
        user_slug: None,
        revision,
        hash: build(1).hash,
        task_count: 1,
        estimated_complexity: Complexity::Simple,
        gotchas_injected: 2,
    };
    for number in [1, 2] {
        workshop
            .world
            .put(&Revision {
                spec: build(1).spec,
                number,
                hash: build(1).hash,
                document: Document {
                    requirements: vec![requirement("FR-1", "must"), requirement("FR-2", "could")],
                    ..Document::default()
                },
                tasks: vec![migration().block],
                dry_run: None,
                kept: Vec::new(),
                validation: Vec::new(),
                answers: Vec::new(),
                at: noon(),
            })
            .await;
        for expected in [vec!["review.completed"], vec![]] {
            let told = workshop
                .world
                .give(&workshop.improvement, Payload::SpecGenerated(made(number)));
            assert_eq!(types(&told.await), expected);
        }
    }
    let reviews = workshop.world.list::<Review>().await;
    assert_eq!(reviews.len(), 2);
    for review in reviews {
        assert_eq!(
            (review.kind, review.spec),
            (ReviewKind::Specification, Some(build(1).spec))
        );
        let classes: Vec<DivergenceClass> =
            review.divergences.iter().map(|one| one.class).collect();
        assert_eq!(
            classes,
            [
                DivergenceClass::MissedRequirement,
                DivergenceClass::IntentionalSkip
            ]
        );
        assert!(near(review.metrics["gotchas_injected"], 2.0));
    }
}

#[tokio::test]
async fn a_week_is_summed_up_when_it_taught_something() {
    let workshop = Workshop::open("[]").await;
    let due = || workshop.world.due(&workshop.improvement, WEEKLY, "");
    assert_eq!(due().await, []);
    workshop
        .candidate("a build", &attempt_at(&migration(), 1, "loop-1"))
        .await;
    assert_eq!(types(&due().await), ["question.asked"]);
    let question = workshop.world.open_question().await.unwrap();
    assert!(
        question.text.contains("**New gotchas:** 1") && question.text.contains("JSONB"),
        "{}",
        question.text
    );
}
