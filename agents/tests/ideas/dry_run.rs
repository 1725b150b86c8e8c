//! The checks of a plan are tried on the repository before anybody approves it.

use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::specification::SpecState;
use serde_json::{Value, json};

use super::specification::{BRIEF, README, rule, small_plan};
use super::world::IdeaWorld;

/// Returns the small plan with other checks in the place of its first ones.
fn checked_by(commands: &[&str]) -> Value {
    let mut plan = small_plan("Pets");
    for (index, command) in commands.iter().enumerate() {
        plan["tasks"][index]["validation"]["command"] = json!(command);
    }
    plan
}

#[tokio::test]
async fn a_check_that_passes_before_the_work_goes_back_to_the_model_and_is_mended() {
    let script = rule("attempt: 1", &checked_by(&["test -f README.md"]))
        + &rule(
            "attempt: 2, contains: ['check of task `T-001`, `test -f README.md`, passes before the work']",
            &small_plan("Pets"),
        );
    let world = IdeaWorld::with(&script, &[("README.md", "# Pets\n")], false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    assert_eq!(world.calls(), 2);
    let revision = world.revision(spec, 1).await;
    assert_eq!(revision.validation, [""; 0]);
    assert_eq!(
        revision.tasks[0].validation.command,
        "grep -qs 'made by T-001' src/a.rs"
    );
}

#[tokio::test]
async fn what_does_not_fit_and_what_trying_the_checks_shows_is_told_at_once() {
    let mut faulty = checked_by(&["test -f README.md"]);
    faulty["tasks"][1]["depends_on"] = json!(["T-099"]);
    // What has a fault of its own is not tried.
    faulty["tasks"][2]["priority"] = json!(11);
    faulty["tasks"][2]["validation"]["command"] = json!("touch ../../tried; true");
    let script = rule("attempt: 1", &faulty)
        + &rule(
            "attempt: 2, contains: ['T-099', '`T-003` has a priority', 'check of task `T-001`, `test -f README.md`, passes before the work'], \
             absent: 'check of task `T-003`'",
            &small_plan("Pets"),
        );
    let world = IdeaWorld::with(&script, &[("README.md", "# Pets\n")], false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    assert_eq!(world.calls(), 2);
    assert_eq!(world.revision(spec, 1).await.validation, [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_read_hides_nothing_of_what_is_wrong_beside_it() {
    let mut faulty = small_plan("Pets");
    faulty["tasks"][0].as_object_mut().unwrap().remove("file");
    faulty["tasks"][0]["priority"] = json!(11);
    faulty["tasks"][1]["validation"]["expected"] = json!("green");
    faulty["tasks"][1]["estimate_minutes"] = json!("long");
    faulty["document"]["title"] = json!(3);
    let requirement = &mut faulty["document"]["requirements"][0];
    requirement.as_object_mut().unwrap().remove("acceptance");
    let mut told = vec![
        "`task T-001`: missing field `file`; add it".to_owned(),
        "`T-001` has a priority that is not 1 to 10".to_owned(),
        "`task T-002`, `validation.expected`: `green` is not an expectation; write `exit 0`"
            .to_owned(),
        "`task T-002`, `estimate_minutes`: ".to_owned(),
        "`document`, `title`: ".to_owned(),
        "`document`, `requirements[0]`: missing field `acceptance`; add it".to_owned(),
    ];
    let tasks = faulty["tasks"].as_array_mut().unwrap();
    for number in 10..22 {
        tasks.push(json!({
            "id": format!("T-0{number}"), "action": "CREATE", "validation": { "command": "false", "expected": "exit 0" },
        }));
        told.push(format!("`task T-0{number}`: missing field `file`; add it"));
    }
    let told: Vec<String> = told.iter().map(|fault| format!("'{fault}'")).collect();
    let mended = format!("attempt: 1, turn: 2, contains: [{}]", told.join(", "));
    let script = rule("attempt: 1, turn: 1", &faulty) + &rule(&mended, &small_plan("Pets"));
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let record = world.spec(spec).await;
    assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn who_plans_is_told_what_people_are_beside_what_has_to_be_mended() {
    let mut large = small_plan("Pets");
    let more: Vec<String> = (1..=8).map(|number| format!("docs/{number}.md")).collect();
    large["tasks"][1]["more_files"] = json!(more);
    let faulty = |field: &str, value: Value| {
        let mut faulty = large.clone();
        faulty["tasks"][2][field] = value;
        faulty
    };
    let told = "may stay where there is a reason for it: task `T-002` has 9 files; more than 8";
    let mended =
        |key: &str, fault: &str| rule(&format!("{key}, contains: ['{fault}', '{told}']"), &large);
    for (script, calls) in [
        // Nobody has to hand it in again for that.
        (rule("attempt: 1", &large), 1),
        (
            rule("attempt: 1", &faulty("priority", json!(11)))
                + &mended("attempt: 2", "`T-003` has a priority"),
            2,
        ),
        (
            rule("turn: 1", &faulty("estimate_minutes", json!("long")))
                + &mended("turn: 2", "`estimate_minutes`: "),
            2,
        ),
    ] {
        let world = IdeaWorld::new(&script).await;
        let idea = world.idea("pets", &[README, BRIEF]).await;
        let spec = world.specify(&idea).await;
        let record = world.spec(spec).await;
        assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
        assert_eq!(world.calls(), calls);
        let warnings = world.revision(spec, 1).await.validation.join("\n");
        assert!(warnings.contains("`T-002` has 9 files"), "{warnings}");
    }
}

#[tokio::test]
async fn a_plan_whose_checks_stay_unproven_is_approved_by_nobody_unseen() {
    let checks = ["true", "nosuchtool --all", "sh tests/of-this-plan.sh"];
    let world = IdeaWorld::new(&rule("idea: pets", &checked_by(&checks))).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    let revision = world.revision(spec, 1).await;
    let open = world.open_questions().await;
    let asked = open
        .iter()
        .find(|question| question.state == QuestionState::Pending && question.consequential);
    let asked = &asked.unwrap().context;
    assert!(
        revision.validation[0].contains("`true`, passes before the work"),
        "{revision:?}"
    );
    assert!(asked.contains("dry-run: of 3 checks: "), "{asked}");
    for told in [
        "`true`, passes before the work",
        "there is no `nosuchtool` on this machine",
    ] {
        let mut warnings = revision.validation.iter();
        assert!(
            warnings.any(|warning| warning.contains(told)),
            "{revision:?}"
        );
        assert!(asked.contains(told), "{asked}");
    }
    // A script that the plan itself brings fails before the work, as it should; it is shown as what a yes lets run.
    let (noted, checks) = asked.split_once("What a yes lets run").unwrap();
    assert!(
        !noted.contains("of-this-plan") && checks.contains("of-this-plan"),
        "{asked}"
    );
    // Once, and four repairs.
    assert_eq!(world.calls(), 5);
}

#[tokio::test]
async fn a_check_that_can_never_run_is_no_check_that_fails_as_it_should() {
    let checks = ["python3 -m nosuchmodule", "./closed.sh", "python3 -m a"];
    let mut plan = checked_by(&checks);
    plan["tasks"][2]["file"] = json!("src/a.py");
    let files = [("closed.sh", "exit 1\n")];
    let world = IdeaWorld::with(&rule("idea: pets", &plan), &files, false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let revision = world.revision(spec, 1).await;
    let told = revision.validation.join("\n");
    for fault in [
        "Python has no module `nosuchmodule` on this machine",
        "what it starts is there, but may not be executed",
    ] {
        assert!(told.contains(fault), "{told}");
    }
    assert!(!told.contains("T-003"), "{told}");
    let dry = revision.dry_run.unwrap();
    assert_eq!((dry.tasks, dry.failed, dry.could_not_run), (3, 0, 1));
}

#[tokio::test]
async fn tests_that_nobody_can_count_reach_no_approval_unnoticed() {
    let checks = ["sh tests/all.sh", "sh tests/fails.sh", "sh tests/tells.sh"];
    let mut plan = checked_by(&checks);
    for task in plan["tasks"].as_array_mut().unwrap() {
        task["validation"]["expected"] = json!("tests >= 5");
    }
    let mended = rule(
        "attempt: 2, contains: ['check of task `T-001`, `sh tests/all.sh`, is not counted', 'name the runner itself']",
        &small_plan("Pets"),
    );
    let files = [
        ("tests/all.sh", "echo all is well\n"),
        ("tests/fails.sh", "echo nothing is well; exit 1\n"),
        (
            "tests/tells.sh",
            "echo 'Ran 4 tests in 0.1s'; echo; echo OK\n",
        ),
    ];
    for (script, is_mended) in [
        (rule("attempt: 1", &plan) + &mended, true),
        (rule("idea: pets", &plan), false),
    ] {
        let world = IdeaWorld::with(&script, &files, false).await;
        let idea = world.idea("pets", &[README, BRIEF]).await;
        let spec = world.specify(&idea).await;
        let revision = world.revision(spec, 1).await;
        let told = revision.validation.join("\n");
        if is_mended {
            assert_eq!(told, "");
            continue;
        }
        let open = world.open_questions().await;
        let asked = open.iter().find(|question| question.consequential);
        let asked = &asked.unwrap().context;
        for warning in [
            "`sh tests/all.sh`, is not counted",
            "`sh tests/fails.sh`, is not counted",
        ] {
            assert!(told.contains(warning), "{told}");
            assert!(asked.contains(warning), "who approves reads: {asked}");
        }
        let dry = revision.dry_run.unwrap();
        assert_eq!((dry.failed, dry.too_few_tests, dry.open()), (0, 1, 2));
    }
}

#[tokio::test]
async fn a_plan_is_mended_four_times_in_one_conversation_whatever_its_faults_are() {
    let mut misformed = small_plan("Pets");
    misformed["tasks"][0]["action"] = json!("INVENT");
    let mut unknown = small_plan("Pets");
    unknown["tasks"][1]["depends_on"] = json!(["T-099"]);
    let passing = checked_by(&["test -f README.md"]);
    for (last, calls) in [(small_plan("Pets"), 5), (unknown.clone(), 5)] {
        let is_mended = last != unknown;
        let script = [
            rule("attempt: 1, turn: 1", &misformed),
            rule("attempt: 1, turn: 2, contains: INVENT", &unknown),
            rule("attempt: 2, contains: T-099", &passing),
            rule("attempt: 3, contains: passes before the work", &unknown),
            rule("attempt: 4, contains: INVENT", &last),
            rule("attempt: 5", &small_plan("A fifth")),
        ]
        .concat();
        let world = IdeaWorld::with(&script, &[("README.md", "# Pets\n")], false).await;
        let idea = world.idea("pets", &[README, BRIEF]).await;
        let spec = world.specify(&idea).await;
        assert_eq!(world.calls(), calls);
        assert_eq!(world.spec(spec).await.state, SpecState::Generated);
        // What fitted together once goes to people with what was found, where nothing better came.
        let told = world.revision(spec, 1).await.validation.join("\n");
        assert_eq!(
            told.contains("passes before the work"),
            !is_mended,
            "{told}"
        );
    }
}

#[tokio::test]
async fn checks_that_nobody_can_try_are_told_as_not_dry_run() {
    let checks = ["true", "nosuchtool --all"];
    let files = [("ropewalk.toml", "[gate]\nnosuch = 1\n")];
    let world = IdeaWorld::with(&rule("idea: pets", &checked_by(&checks)), &files, false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let revision = world.revision(spec, 1).await;
    assert_eq!(revision.dry_run, None);
    let told = revision.validation.join("\n");
    for warning in [
        "the checks were not dry-run: the gate of base commit",
        "there is no `nosuchtool` on this machine",
    ] {
        assert!(told.contains(warning), "{told}");
    }
    let open = world.open_questions().await;
    let asked = open.iter().find(|question| question.consequential);
    let asked = &asked.unwrap().context;
    assert!(
        asked.contains("\nnot dry-run: nobody has tried its checks\n"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_check_that_takes_too_long_goes_back_to_the_model() {
    let mended = "attempt: 2, contains: ['`sleep 60`, was stopped at its time limit; name one that ends sooner']";
    let script =
        rule("attempt: 1", &checked_by(&["sleep 60"])) + &rule(mended, &small_plan("Pets"));
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.calls(), 2);
    assert_eq!(world.revision(spec, 1).await.validation, [""; 0]);
}
