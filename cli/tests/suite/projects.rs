//! `init`, `doctor` and `config`: the beginning of a project.

mod archives;
mod belonging;
mod copies;
mod helping;

use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::{FileExt, PermissionsExt};

use crate::world::World;

#[test]
fn init_writes_a_project_that_every_verb_finds() {
    let world = World::bare_of_project();
    let made = world.json("init");
    assert_eq!(made["name"], "app");
    assert_eq!(
        made["notice"],
        Value::Null,
        "a clean repository has nothing unusual"
    );
    let text = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    assert!(
        text.contains("name = \"app\"") && text.contains("repo = \".\""),
        "{text}"
    );
    std::fs::create_dir(world.repository().join("deep")).unwrap();
    assert_eq!(world.json("-C deep idea list"), Value::Array(Vec::new()));
    assert!(
        world
            .home()
            .join(".local/state/ropewalk/app/ropewalk.db")
            .is_file()
    );
    assert_eq!(
        world.git(&["log", "--oneline"]).lines().count(),
        1,
        "nothing is committed"
    );
}

#[test]
fn init_never_overwrites() {
    let world = World::bare_of_project();
    world.write("ropewalk.toml", "# mine\n");
    let said = world.refused("init", 1);
    assert!(said.contains("there already"), "{said}");
    let kept = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    assert_eq!(kept, "# mine\n");
}

#[test]
fn init_wants_a_repository() {
    let world = World::bare_of_project();
    let elsewhere = world.root().join("plain");
    std::fs::create_dir(&elsewhere).unwrap();
    let said = world.refused("-C ../plain init", 1);
    assert!(said.contains("git init"), "{said}");
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(world.home()).unwrap().count(), 0);
}

#[test]
fn a_dirty_and_a_bare_repository_get_one_notice() {
    let world = World::bare_of_project();
    world.write("draft.txt", "not committed");
    let notice = world.json("init")["notice"].to_string();
    assert!(notice.contains("not committed"), "{notice}");
    world.git(&["clone", "--quiet", "--bare", ".", "../shared.git"]);
    let made = world.json("-C ../shared.git init");
    assert_eq!(made["name"], "shared");
    assert!(made["notice"].to_string().contains("bare"), "{made}");
}

#[test]
fn a_repository_without_a_commit_gets_one_advice() {
    let world = World::bare_of_project();
    world.git(&["checkout", "--quiet", "--orphan", "without-commits"]);
    let made = world.ropewalk(["init"]).assert().success();
    let made = made.get_output();
    let noted = String::from_utf8_lossy(&made.stderr);
    assert!(noted.contains("has no commit"), "{noted}");
    assert!(!noted.contains("git commit"), "{noted}");
    let told = String::from_utf8_lossy(&made.stdout);
    // Each works once those before it were done: a provider of one's own is nothing before it is trusted.
    let mut rest = &*told;
    for next in [
        "\nnext        after an edit that adds what runs commands or loosens rules",
        "`ropewalk trust` allows it\n",
        "commit `ropewalk.toml`",
        "`ropewalk doctor` checks",
        "`ropewalk idea new ",
    ] {
        let found = rest.split_once(next);
        assert!(found.is_some(), "{next}: {told}");
        rest = found.unwrap().1;
    }
    assert!(
        !told.contains("has the gate"),
        "no gate was written: {told}"
    );
}

#[test]
fn a_second_project_of_one_name_gets_a_state_of_its_own() {
    let world = World::bare_of_project();
    world.git(&["clone", "--quiet", ".", "../other/app"]);
    let first = world.json("init");
    let second = world.json("-C ../other/app init");
    assert_eq!(
        (&first["name"], &second["name"]),
        (&"app".into(), &"app-2".into())
    );
    assert_ne!(first["state"], second["state"]);
    let named = world.refused("-C ../other init --name app", 1);
    assert!(
        named.contains("git init") || named.contains("another name"),
        "{named}"
    );
}

#[test]
fn a_project_whose_file_is_made_anew_goes_on_where_it_was() {
    let world = World::bare_of_project();
    let first = world.json("init");
    assert_eq!(first["goes_on"], false);
    let kept = std::path::Path::new(first["state"].as_str().unwrap()).join("kept");
    std::fs::write(&kept, "work").unwrap();
    std::fs::remove_file(world.repository().join("ropewalk.toml")).unwrap();
    let again = world.json("init");
    assert_eq!(
        (&again["name"], &again["state"]),
        (&first["name"], &first["state"])
    );
    assert_eq!(again["goes_on"], true);
    assert!(kept.exists(), "what was there is gone");
}

#[test]
fn the_configuration_shows_where_each_value_was_set() {
    let world = World::scripted();
    let entries = world.json("config show --set build.loops=3");
    let origin = |key: &str| {
        let entries = entries.as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["key"] == key).unwrap();
        (
            entry["value"].clone(),
            entry["origin"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(origin("build.loops"), (3.into(), "flag".to_owned()));
    assert_eq!(origin("build.tries"), (3.into(), "default".to_owned()));
    assert!(origin("project.name").1.contains("ropewalk.toml:3"));
    assert_eq!(world.json("config check")["ok"], true);
}

#[test]
fn a_configuration_that_no_run_could_use_is_not_sound() {
    let world = World::scripted();
    for (setting, wanted) in [
        ("models.chat=nope/x", "[providers.nope]"),
        ("store.location=postgres://h:port/d", "port"),
        ("project.repo=../nowhere", "name your repository"),
        ("providers.script.script=nowhere.yaml", "check the path"),
    ] {
        let said = world.refused(&format!("config check --set {setting}"), 1);
        assert!(said.contains(wanted), "{setting}: {said}");
    }
    // A key that is not there today may be there tomorrow.
    let checked = world.json("config check --set models.small=anthropic/x --set sandbox=off");
    let warnings = checked["warnings"].as_array().unwrap();
    let names_key = |warning: &Value| warning.as_str().unwrap().contains("ANTHROPIC_API_KEY");
    assert!(warnings.iter().any(names_key), "{checked}");
}

#[test]
fn the_way_into_a_broker_is_looked_at_before_it_is_gone() {
    let world = World::scripted();
    let broker = "--set bus.transport=nats://127.0.0.1:1";
    for (setting, wanted) in [
        ("bus.nkey_file=../nowhere.nk", "nowhere.nk"),
        ("bus.credentials_file=..", "bus.credentials_file"),
        ("bus.root_certificates=../ca.pem", "ca.pem"),
    ] {
        let said = world.refused(&format!("config check {broker} --set {setting}"), 1);
        assert!(said.contains(wanted), "{setting}: {said}");
        let found = doctor(&world, &format!("{broker} --set {setting}"));
        let login = found.iter().find(|finding| finding["check"] == "bus login");
        let login = login.unwrap();
        assert_eq!(login["verdict"], "fail", "{login}");
        assert!(login["detail"].to_string().contains(wanted), "{login}");
    }
    // A token that is not there today may be there tomorrow.
    let token = format!("{broker} --set bus.token_variable=WALKS_TOKEN");
    let checked = world.json(&format!("config check {token}"));
    assert!(
        checked["warnings"][0].to_string().contains("WALKS_TOKEN"),
        "{checked}"
    );
    let found = doctor(&world, &token);
    let fails = |finding: &Value| finding["check"] == "bus login" && finding["verdict"] == "fail";
    assert!(found.iter().any(fails), "{found:#?}");
    world.write("../up.nk", "a seed\n");
    let key = world.root().join("up.nk");
    for (mode, close) in [(0o644, false), (0o600, true), (0o640, true)] {
        std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        let found = doctor(&world, &format!("{broker} --set bus.nkey_file=../up.nk"));
        assert_eq!(!found.iter().any(fails), close, "{mode:o}: {found:#?}");
        let told = found.iter().find(|finding| fails(finding));
        let told = told.map(Value::to_string).unwrap_or_default();
        assert_eq!(told.contains("everybody on this machine"), !close, "{told}");
    }
}

#[test]
fn a_login_in_a_file_that_everybody_may_read_is_told_with_the_line_and_never_shown() {
    let world = World::scripted();
    let address = "postgres://ropewalk:geheim@127.0.0.1:1/ropewalk";
    let text = project_file(&world) + &format!("\n[store]\nlocation = \"{address}\"\n");
    world.write("ropewalk.toml", &text);
    let file = world.repository().join("ropewalk.toml");
    for (mode, close) in [(0o644, false), (0o640, true), (0o600, true)] {
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let checked = world.json("config check");
        let findings = doctor(&world, "");
        let of_config = |found: &&Value| found["check"] == "config" && found["verdict"] == "warn";
        let found = findings.iter().find(of_config);
        for told in [checked["warnings"].get(0), found] {
            let told = told.map(Value::to_string).unwrap_or_default();
            assert!(!told.contains("geheim"), "{told}");
            for wanted in [
                "`store.location` holds a login",
                "ropewalk.toml:",
                "chmod o=",
                "$ROPEWALK_STORE__LOCATION",
            ] {
                assert_eq!(told.contains(wanted), !close, "{mode:o}: {told}");
            }
        }
    }
}

#[test]
fn what_only_a_broker_elsewhere_uses_is_said_to_be_unused() {
    let world = World::scripted();
    let line = "config check --set bus.inbox_prefix=_INBOX_up --set bus.root_certificates=ca.pem";
    let checked = world.json(line);
    let warnings = checked["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{checked}");
    for wanted in ["bus.root_certificates", "bus.inbox_prefix", "embedded"] {
        assert!(warnings[0].to_string().contains(wanted), "{checked}");
    }
}

/// What the doctor finds with these further arguments.
fn doctor(world: &World, arguments: &str) -> Vec<Value> {
    let line = format!("doctor --json {arguments}");
    let output = world.ropewalk(line.split_whitespace()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_doctor_says_what_is_missing_and_how_to_mend_it() {
    let world = World::scripted();
    world.write("ropewalk.toml", &(project_file(&world) + GATE));
    let verdicts = |findings: &Value| -> Vec<String> {
        let findings = findings.as_array().unwrap().iter();
        findings
            .map(|finding| finding["verdict"].as_str().unwrap().to_owned())
            .collect()
    };
    let well = world.json("doctor");
    assert!(
        verdicts(&well).iter().all(|verdict| verdict == "ok"),
        "{well}"
    );
    assert!(!world.state().exists(), "a check makes nothing");
    world.run("idea list");
    let well = world.json("doctor");
    assert!(
        verdicts(&well).iter().all(|verdict| verdict == "ok"),
        "{well}"
    );
    let line = "doctor --json --set models.chat=openai/x --set bus.transport=nats://127.0.0.1:1";
    let ill = world.ropewalk(line.split_whitespace()).assert().code(1);
    let ill: Value = serde_json::from_slice(&ill.get_output().stdout).unwrap();
    let failed: Vec<&Value> = ill
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["verdict"] == "fail")
        .collect();
    let text = serde_json::to_string(&failed).unwrap();
    assert_eq!(failed.len(), 2, "{text}");
    for wanted in ["OPENAI_API_KEY", "127.0.0.1:1"] {
        assert!(text.contains(wanted), "{text}");
    }
    world.git(&["checkout", "--quiet", "--orphan", "without-commits"]);
    let found = doctor(&world, "");
    let row = found
        .iter()
        .find(|finding| finding["check"] == "repository");
    let row = row.unwrap();
    assert_eq!(row["verdict"], "fail", "{row}");
    for wanted in ["no commit", "git commit --allow-empty -m start"] {
        assert!(row.to_string().contains(wanted), "{row}");
    }
}

const GATE: &str = "\n[[gate.commands]]\nname = \"tests\"\ncommand = \"true\"\n";

fn project_file(world: &World) -> String {
    std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap()
}

#[test]
fn the_doctor_says_whose_gate_judges_what_is_built() {
    let world = World::scripted();
    let gate = || -> (String, String) {
        let found = doctor(&world, "");
        let row = found.iter().find(|finding| finding["check"] == "gate");
        let said = |name: &str| row.unwrap()[name].as_str().unwrap().to_owned();
        (said("verdict"), said("detail"))
    };
    let (verdict, told) = gate();
    assert!(
        verdict == "warn" && told.contains("`[[gate.commands]]` takes"),
        "{told}"
    );
    let with_gate = project_file(&world) + GATE;
    world.write("ropewalk.toml", &with_gate);
    assert_eq!(gate(), ("ok".to_owned(), "1 command".to_owned()));
    world.git(&["add", "ropewalk.toml"]);
    world.git(&["commit", "--quiet", "-m", "A gate"]);
    assert_eq!(gate().0, "ok");
    world.write("ropewalk.toml", &with_gate.replace("\"true\"", "\"false\""));
    let (verdict, told) = gate();
    assert!(verdict == "warn" && told.ends_with("commit it"), "{told}");
}

#[test]
fn the_doctor_tries_what_no_trust_is_needed_for_and_says_that_it_could_not_try_all() {
    let world = World::scripted();
    let trusted = project_file(&world);
    let loose = format!("sandbox = \"off\"\n{trusted}\n[build]\nsetup = \"true\"\n");
    for text in [loose, format!("{trusted}\n= broken\n")] {
        world.write_untrusted("ropewalk.toml", &text);
        let looked = world.ropewalk(["doctor"]).assert().code(1);
        let said = String::from_utf8_lossy(&looked.get_output().stderr).into_owned();
        let wanted = " failed, and these were not tried: gate, bus, models; mend what failed, then try again\n";
        assert!(said.ends_with(wanted), "{said}");
        let found = doctor(&world, "");
        let of = |check: &str| found.iter().find(|finding| finding["check"] == check);
        for (check, verdict) in [("config", "fail"), ("repository", "ok"), ("state", "ok")] {
            assert_eq!(of(check).unwrap()["verdict"], verdict, "{text}: {found:#?}");
        }
        assert!(of("sandbox").is_some(), "{found:#?}");
        // What the file says of these holds nothing.
        assert!(of("gate").is_none() && of("bus").is_none(), "{found:#?}");
    }
    assert!(!world.state().exists(), "a check makes nothing");
}

#[test]
fn whatever_the_doctor_looks_at_is_tried_or_named_where_no_configuration_holds() {
    let world = World::scripted();
    world.run("idea list");
    let own = world.home().join(".config/ropewalk");
    std::fs::create_dir_all(&own).unwrap();
    let bot = "[telegram]\ntoken_variable = \"WALKS_BOT\"\n";
    std::fs::write(own.join("config.toml"), bot).unwrap();
    let checks = || -> Vec<String> {
        let found = doctor(&world, "").into_iter();
        found
            .map(|finding| finding["check"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = checks();
    assert!(
        all.iter().any(|check| check == "agents") && all.iter().any(|check| check == "telegram"),
        "{all:?}"
    );
    let broken = project_file(&world) + "\n= broken\n";
    world.write_untrusted("ropewalk.toml", &broken);
    let tried = checks();
    let looked = world.ropewalk(["doctor"]).assert().code(1);
    let said = String::from_utf8_lossy(&looked.get_output().stderr).into_owned();
    let named = said.split_once("these were not tried: ").unwrap().1;
    let named = named.split_once(';').unwrap().0;
    let named: Vec<&str> = named.split(", ").collect();
    let is_named = |check: &str| match check.split_once(' ') {
        // Of these there is one for each provider, and each model.
        Some(("model" | "price", _)) => named.contains(&"models"),
        _ => named.iter().any(|named| check.starts_with(named)),
    };
    for check in all {
        assert!(
            tried.contains(&check) || is_named(&check),
            "`{check}` is missing in `OF_CONFIG`: {said}"
        );
    }
}

#[test]
fn the_doctor_finds_a_store_that_takes_nothing() {
    let world = World::scripted();
    let database = world.state().join("ropewalk.db");
    let log = world.state().join("ropewalk.db-wal");
    world.run("idea list");
    // What a process that ended has left in the log would be read in place of the file.
    for _ in 0..20 {
        if !log.exists() {
            break;
        }
        world.run("idea list");
    }
    assert!(!log.exists());
    let file = std::fs::File::options().write(true).open(database);
    // This version of the form is only read, also by who may do everything.
    file.unwrap().write_all_at(&[3], 18).unwrap();
    let found = doctor(&world, "");
    let of = |check: &str| found.iter().find(|finding| finding["check"] == check);
    assert_eq!(of("state").unwrap()["verdict"], "ok", "{found:?}");
    let store = of("store").unwrap();
    assert_eq!(store["verdict"], "fail", "{store}");
    assert!(store["detail"].to_string().contains("read-only"), "{store}");
}

/// What the doctor says of prices: the model, the verdict and the words.
fn told_of_prices(found: &[Value]) -> Vec<(&str, &str, &str)> {
    let told = found.iter().filter_map(|finding| {
        let model = finding["check"].as_str()?.strip_prefix("price ")?;
        let verdict = finding["verdict"].as_str()?;
        Some((model, verdict, finding["detail"].as_str()?))
    });
    told.collect()
}

#[test]
fn the_doctor_says_when_and_where_a_price_of_ones_own_was_read() {
    let world = World::scripted();
    let own = r#"
[providers.openrouter]
prices = [{ model = "z-ai/*", input = 0.6, output = 2.2, cache_read = 0.11 }]
priced = { date = 2026-11-20, source = "https://openrouter.ai/models" }
"#;
    world.write("ropewalk.toml", &(project_file(&world) + own));
    let found = doctor(
        &world,
        "--set models.chat=openrouter/z-ai/glm-4.6 --set models.spec=openrouter/other/x",
    );
    let told = told_of_prices(&found);
    let known = "priced as of 2026-11-20 by https://openrouter.ai/models";
    assert_eq!(told[0], ("openrouter/z-ai/glm-4.6", "ok", known));
    assert_eq!((told[1].0, told[1].1), ("openrouter/other/x", "warn"));
}

#[test]
fn the_doctor_names_the_models_whose_price_is_unknown() {
    let world = World::scripted();
    let found = doctor(
        &world,
        "--set models.chat=openai/gpt-99 --set models.spec=anthropic/claude-sonnet-4-5",
    );
    let told = told_of_prices(&found);
    let known = "priced as of 2025-12-01 by https://docs.claude.com/en/docs/about-claude/pricing";
    let unknown = "unknown: budgets in dollars cannot count it, so bound it by tokens, or say what it costs by `prices` of its provider";
    let expected = [
        ("openai/gpt-99", "warn", unknown),
        ("anthropic/claude-sonnet-4-5", "ok", known),
        ("script/x", "ok", "scripted"),
    ];
    assert_eq!(told, expected);
}
