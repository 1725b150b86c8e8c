//! A person answers what shall become of the branch of a finished build.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ropewalk_desk::builds::landing::{self, Landing};
use ropewalk_desk::people::Person;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::ReviewCompleted;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::review::{Divergence, DivergenceClass, Review, ReviewKind};
use ropewalk_schemas::{Payload, RequirementId, ReviewId, Subject, UserSlug};
use ropewalk_store::{ChangeSet, EventFilter, Query};
use serde_json::json;

use crate::plans::two_builds::land;
use crate::world::meeting::MeetingGate;
use crate::world::project::{OpenProject, Project, writes};

async fn built(open: &OpenProject) -> Build {
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
        }]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    build
}

/// Commits to the branch of the user what conflicts with what was built.
fn conflict(project: &Project, open: &OpenProject) {
    std::fs::write(project.repo().join("a.txt"), "mine\n").unwrap();
    open.git(&["add", "."]);
    open.git(&["commit", "-q", "-m", "mine"]);
}

/// Returns how many files are owned; that a build did own one is remembered after its end.
async fn owned(open: &OpenProject) -> usize {
    let rows = open.services.store.list::<Ownership>(Query::new()).await;
    rows.unwrap().iter().filter(|row| !row.ended).count()
}

async fn merges(open: &OpenProject) -> usize {
    let events = open.events().await;
    let merged = events.iter().filter(|(name, _)| name == "build.merged");
    merged.count()
}

async fn pending(open: &OpenProject) -> Vec<Question> {
    let query = Query::new().equal("state", QuestionState::Pending.as_str());
    let rows = open.services.store.list::<Question>(query).await.unwrap();
    rows.into_iter().map(|row| row.record).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merge_it_brings_the_branch_in_and_ends_the_ownership() {
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let build = built(&open).await;
    assert_eq!(owned(&open).await, 1);
    open.answer_about_build("merge").await;
    let (build, _) = open
        .until(build.spec, |build, _| build.merged.is_some())
        .await;
    let head = open.git(&["rev-parse", "main"]);
    assert_eq!(build.merged.as_ref().unwrap().as_str(), head);
    assert_eq!(head, open.git(&["rev-parse", "build/habits"]));
    assert_eq!(open.git(&["status", "--porcelain"]), "");
    assert_eq!(
        std::fs::read_to_string(project.repo().join("a.txt")).unwrap(),
        "good\n"
    );
    open.settled().await;
    assert_eq!((merges(&open).await, owned(&open).await), (1, 0));
    assert_eq!(pending(&open).await, []);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_build_of_an_idea_lands_with_its_own_plan() {
    let script = writes("T-1", "a.txt", "good\n", None) + &writes("T-2", "b.txt", "good\n", None);
    let project = Project::new(&script);
    // The plan in the folder is none, so that the branch of each gets its own.
    let folder = project.state().join("users/ada/ideas/habits/build");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tasks.md"), "# Something else\n").unwrap();
    let open = project.open().await;
    let one = built(&open).await;
    let second = open
        .approve(json!([{
            "id": "T-2", "phase": "api", "action": "CREATE", "file": "b.txt",
            "validation": { "command": "grep -q good b.txt", "expected": "exit 0" },
        }]))
        .await;
    let (two, _) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Succeeded, "{:?}", two.reason);
    land(&open, &project, &one).await;
    open.settled().await;
    let asked = open.questions("build_finished").await;
    open.answer_question(asked.last().unwrap().id, "merge")
        .await;
    open.until(second, |build, _| build.merged.is_some()).await;
    let plan = open.git(&["show", "main:ideas/habits/build/tasks.md"]);
    assert!(plan.contains("T-2") && !plan.contains("T-1"), "{plan}");
    assert_eq!(open.git(&["show", "main:a.txt"]), "good");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_that_conflicts_changes_nothing_and_asks_with_both_sides() {
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let build = built(&open).await;
    conflict(&project, &open);
    let main = open.git(&["rev-parse", "main"]);
    open.answer_about_build("merge").await;
    open.until(build.spec, |build, _| {
        let reason = build.reason.as_deref().unwrap_or_default();
        reason.starts_with("not landed") && build.question.is_some()
    })
    .await;
    let asked = pending(&open).await;
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].trigger, "landing_refused");
    // As code, since the marks mean something else in a text.
    let code = asked[0].text.split("```").nth(1).unwrap_or_default();
    for side in ["<<<<<<<", "good", "=======", "mine", "a.txt"] {
        assert!(code.contains(side), "{}", asked[0].text);
    }
    assert_eq!(open.git(&["rev-parse", "main"]), main);
    assert_eq!(open.git(&["status", "--porcelain"]), "");
    assert_eq!((merges(&open).await, owned(&open).await), (0, 1));
    // Once it is merged by hand, trying again only records it.
    open.git(&["merge", "-q", "-X", "ours", "--no-edit", "build/habits"]);
    open.answer_about_build("try-again").await;
    let (build, _) = open
        .until(build.spec, |build, _| build.merged.is_some())
        .await;
    let head = open.git(&["rev-parse", "main"]);
    assert_eq!(build.merged.as_ref().unwrap().as_str(), head);
    open.settled().await;
    assert_eq!((merges(&open).await, owned(&open).await), (1, 0));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_landing_that_is_refused_leaves_one_question_about_its_branch() {
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let build = built(&open).await;
    conflict(&project, &open);
    assert_eq!(pending(&open).await[0].trigger, "build_finished");
    let ada = Person {
        name: UserSlug::parse("ada").unwrap(),
        roles: BTreeSet::new(),
        rights: BTreeSet::from([Right::Land]),
    };
    landing::land(&open.context, &build, Landing::Land, &ada)
        .await
        .unwrap();
    open.until(build.spec, |build, _| {
        let reason = build.reason.as_deref().unwrap_or_default();
        reason.starts_with("not landed")
    })
    .await;
    let asked = pending(&open).await;
    let triggers: Vec<&str> = asked.iter().map(|asked| asked.trigger.as_str()).collect();
    assert_eq!(triggers, ["landing_refused"]);
    open.close().await;
}

/// A project in which a merge needs a gate of its own, which is held, and the build that is to be merged.
async fn held_at_its_gate() -> (Project, OpenProject, MeetingGate, Build) {
    let gate = MeetingGate::new();
    let project_file = gate.project_file("true", "true");
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None))
        .with_files(&[("ropewalk.toml", &project_file)]);
    let open = project.open().await;
    let build = built(&open).await;
    std::fs::write(project.repo().join("other.txt"), "other\n").unwrap();
    open.git(&["add", "."]);
    open.git(&["commit", "-q", "-m", "other work"]);
    gate.hold();
    open.answer_about_build("merge").await;
    gate.until_begun(1).await;
    (project, open, gate, build)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gate_of_a_merge_runs_while_no_delivery_is_open() {
    let (_project, open, gate, build) = held_at_its_gate().await;
    open.settled().await;
    let merged = open.build(build.spec).await.unwrap().merged;
    assert_eq!(merged, None, "its gate still runs");
    gate.release();
    open.until(build.spec, |build, _| build.merged.is_some())
        .await;
    let events = open.services.store.events(&EventFilter::default()).await;
    let events = events.unwrap();
    let of = |kind: &str| {
        events
            .iter()
            .rfind(|stored| stored.event.event_type == kind)
    };
    let (said, done) = (
        of("question.answered").unwrap(),
        of("build.merged").unwrap(),
    );
    assert_eq!(done.event.causationid, Some(said.event.id));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_that_a_person_wanted_outlives_a_crash_in_its_gate() {
    let (project, open, gate, build) = held_at_its_gate().await;
    open.crash().await;
    gate.release();
    let open = project.open().await;
    let (build, _) = open
        .until(build.spec, |build, _| build.merged.is_some())
        .await;
    let head = open.git(&["rev-parse", "main"]);
    assert_eq!(build.merged.unwrap().as_str(), head);
    open.settled().await;
    assert_eq!((merges(&open).await, owned(&open).await), (1, 0));
    assert_eq!(pending(&open).await, []);
    open.close().await;
}

/// Plays the review of a build that holds something against it, or nothing.
async fn review(open: &OpenProject, build: &Build, missed: bool) {
    let review = Review {
        id: ReviewId(open.context.ids.next()),
        kind: ReviewKind::Build,
        idea: build.idea.clone(),
        build: Some(build.id),
        spec: Some(build.spec),
        gotchas: Vec::new(),
        patterns: Vec::new(),
        divergences: Vec::from_iter(missed.then(|| Divergence {
            class: DivergenceClass::MissedRequirement,
            file: None,
            task: None,
            requirement: Some(RequirementId::parse("FR-1").unwrap()),
            planned: "habits are counted".to_owned(),
            actual: "the count is made up".to_owned(),
        })),
        metrics: BTreeMap::new(),
        notes: Vec::new(),
        ended_at: build.completed_at,
        head: None,
        at: open.context.now(),
    };
    let mut changes = ChangeSet::new();
    changes.insert(&review);
    changes.emit(open.context.event(
        Subject::build(build.id),
        Payload::ReviewCompleted(ReviewCompleted {
            review_id: review.id,
            kind: review.kind,
            idea_slug: review.idea.clone(),
            patterns_found: 0,
            gotchas_found: 0,
            improvements_made: 0,
            requirements_missed: u32::from(missed),
            deviations: 0,
        }),
    ));
    open.services.store.commit(changes).await.unwrap();
    open.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_decides_about_a_branch_is_told_where_the_project_has_no_gate() {
    let gate = "[[gate.commands]]\nname = \"tidy\"\ncommand = \"test ! -e stray\"\n";
    let line = format!("\n**Gate:** {}\n", landing::NO_GATE);
    for (files, is_told) in [
        (&[("b.txt", "b\n")], true),
        (&[("ropewalk.toml", gate)], false),
    ] {
        let project = Project::new(&writes("T-1", "a.txt", "good\n", None)).with_files(files);
        let open = project.open().await;
        let build = built(&open).await;
        let [asked] = open.questions("build_finished").await.try_into().unwrap();
        assert_eq!(asked.text.contains(&line), is_told, "{}", asked.text);
        let told = landing::prospect(&open.services.store, &build).await;
        let told = told.unwrap();
        assert_eq!(told.contains(&line), is_told, "{told}");
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_that_holds_something_against_a_build_asks_about_its_branch_anew() {
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
    let open = project.open().await;
    let build = built(&open).await;
    let before = pending(&open).await;
    let command = format!("`ropewalk review show {}` shows", build.id);
    let follows = "\n**Review:** follows where the improvement agent runs; while this is open, you are asked anew if it speaks \
                   against landing, and ";
    let wanted = format!("{follows}{command} it then\n");
    assert!(before[0].text.contains(&wanted), "{}", before[0].text);
    let unseen = "**But:** nobody has reviewed it as it stands\n";
    let told = landing::prospect(&open.services.store, &build).await;
    let told = told.unwrap();
    assert!(told.contains(unseen), "{told}");
    review(&open, &build, false).await;
    assert_eq!(pending(&open).await, before, "nothing speaks against it");
    review(&open, &build, true).await;
    let [asked] = pending(&open).await.try_into().unwrap();
    assert_eq!(asked.trigger, "build_finished");
    let but = "**But:** the review holds FR-1 for missed: planned habits are counted, done the count is made up\n";
    assert!(asked.text.contains(but), "{}", asked.text);
    let all = format!("\n**Review:** {command} all of it\n");
    assert!(asked.text.contains(&all), "{}", asked.text);
    let recommended = asked.choices.iter().filter(|choice| choice.recommended);
    let recommended: Vec<&str> = recommended.map(|choice| choice.id.as_str()).collect();
    assert_eq!(recommended, ["leave"]);
    // Of an end that it came to since, nothing is known until that is reviewed.
    let later = Build {
        completed_at: build
            .completed_at
            .map(|ended| ended + Duration::from_mins(1)),
        ..build.clone()
    };
    for (build, is_reviewed) in [(&build, true), (&later, false)] {
        let told = landing::prospect(&open.services.store, build).await;
        let told = told.unwrap();
        assert_eq!(told.contains(but), is_reviewed, "{told}");
        assert_eq!(told.contains(unseen), !is_reviewed, "{told}");
    }
    let stale = before[0].id;
    assert!(
        open.services
            .store
            .get::<Question>(&stale.to_string())
            .await
            .unwrap()
            .unwrap()
            .state
            == QuestionState::Superseded
    );
    // It is answered like the first one.
    open.answer_question(asked.id, "merge").await;
    let (build, _) = open
        .until(build.spec, |build, _| build.merged.is_some())
        .await;
    review(&open, &build, true).await;
    assert_eq!(
        pending(&open).await,
        [],
        "what has landed is not asked about"
    );
    open.close().await;
}
