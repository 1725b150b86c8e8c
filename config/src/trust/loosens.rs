//! Says which keys of a project's file give a run more than it has without them.

use std::path::{Component, Path};

use serde_json::Value;

/// When a value that differs from the one below it loosens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Never: it is a matter of taste, or of the repository alone.
    Never,
    /// When it is not this value.
    Unless(&'static str),
    /// When it is true.
    WhenTrue,
    /// When it is true where false stands below.
    WhenTurnedOn,
    /// When it is a larger number than the one below; where there is none below, there is no limit to loosen.
    WhenMore,
    /// When it is a smaller number than the one below.
    WhenLess,
    /// When it names something that is not named below.
    WhenMoreNames,
    /// When it does not name all that is named below.
    WhenFewerNames,
    /// When it leads out of the directory of the file.
    WhenOutside,
    /// When it comes later in this list than the one below.
    WhenLater(&'static [&'static str]),
    /// When one of its rules does anything but deny and ask.
    WhenAllowing,
    /// Always.
    Always,
}

/// Keys of sections that otherwise loosen.
const HARMLESS: [&str; 31] = [
    "project.name",
    "person.name",
    "bus.tries",
    "bus.replicas",
    "bus.max_megabytes",
    "store.events_days",
    "models.chat",
    "models.spec",
    "models.build",
    "models.small",
    "models.fallbacks.chat",
    "models.fallbacks.spec",
    "models.fallbacks.build",
    "models.fallbacks.small",
    "models.efforts.chat",
    "models.efforts.spec",
    "models.efforts.build",
    "models.efforts.small",
    "build.critical_phases",
    "build.lease_seconds",
    "build.check_cycles",
    "notices.escalate_minutes",
    "notices.batch_minutes",
    "notices.quiet",
    "notices.summary",
    "build.squash",
    "build.without_ideas",
    "telemetry.sample_percent",
    "tools.cache.enabled",
    "tools.cache.results",
    "tools.cache.search_seconds",
];

/// Returns the rule of `key`; what nobody thought of loosens.
fn rule(key: &str) -> Rule {
    let (section, _) = key.split_once('.').unwrap_or((key, ""));
    match key {
        "sandbox.mode" => Rule::Unless("required"),
        "bus.transport" => Rule::Unless("embedded"),
        "store.location" => Rule::Unless("sqlite"),
        "server.enabled" | "notices.terminal" => Rule::WhenTurnedOn,
        "server.address" => Rule::Unless("127.0.0.1:7440"),
        "telegram.api_url" => Rule::Unless("https://api.telegram.org/"),
        "project.repo" => Rule::WhenOutside,
        "models.max_output_tokens" | "specification.repairs" => Rule::WhenMore,
        // So long a question waits for a person before silence is taken for an answer.
        "questions.confirming_hours" | "questions.clarifying_hours" => Rule::WhenLess,
        "gate.protected" => Rule::WhenFewerNames,
        "specification.auto_generate" => Rule::WhenTrue,
        "policy.mode" => Rule::WhenLater(&["plan", "edit", "full-auto"]),
        "policy.rules.project" => Rule::WhenAllowing,
        "build.package_managers"
        | "sandbox.hosts"
        | "sandbox.package_hosts"
        | "sandbox.variables"
        | "server.hosts"
        | "server.trusted_proxies" => Rule::WhenMoreNames,
        // Commands run on this machine, whatever confines them.
        "gate.commands" | "build.setup" => Rule::Always,
        _ if HARMLESS.contains(&key) => Rule::Never,
        _ => match section {
            "build" | "budget" => Rule::WhenMore,
            "compaction" | "gate" | "validation" | "questions" | "knowledge" | "monitor" | "pm"
            | "log" => Rule::Never,
            _ => Rule::Always,
        },
    }
}

/// Says whether `value` of `key` loosens what stands `below`; `base` is the directory of the file.
pub(super) fn does(key: &str, value: &Value, below: Option<&Value>, base: &Path) -> bool {
    // A table without a key sets nothing.
    let sets_nothing = value.as_object().is_some_and(serde_json::Map::is_empty);
    if below == Some(value) || sets_nothing {
        return false;
    }
    match rule(key) {
        Rule::Never => false,
        Rule::Always => true,
        Rule::Unless(tight) => value != tight,
        Rule::WhenTrue => value != &Value::Bool(false),
        Rule::WhenTurnedOn => value != &Value::Bool(false) && below == Some(&Value::Bool(false)),
        Rule::WhenMore => is_more(value, below),
        Rule::WhenLess => below.is_some_and(|below| value != below && !is_more(value, Some(below))),
        Rule::WhenMoreNames => names_more(value, below),
        Rule::WhenFewerNames => below.is_some_and(|below| names_more(below, Some(value))),
        Rule::WhenLater(order) => {
            let place =
                |value: Option<&Value>| order.iter().position(|one| value == Some(&(*one).into()));
            match (place(Some(value)), below.map(|below| place(Some(below)))) {
                (Some(_), None) => false,
                (Some(here), Some(Some(there))) => here > there,
                // No such name; whoever reads the file refuses it.
                _ => true,
            }
        }
        Rule::WhenAllowing => value.as_array().is_none_or(|rules| {
            let tightens = |rule: &Value| matches!(rule["action"].as_str(), Some("deny" | "ask"));
            !rules.iter().all(tightens)
        }),
        Rule::WhenOutside => value.as_str().is_none_or(|path| leads_out(path, base)),
    }
}

fn is_more(value: &Value, below: Option<&Value>) -> bool {
    match (value.as_f64(), below.map(Value::as_f64)) {
        (Some(_), None) => false,
        (Some(number), Some(Some(limit))) => number > limit,
        // No number at all; whoever reads the file refuses it.
        _ => true,
    }
}

fn names_more(value: &Value, below: Option<&Value>) -> bool {
    let known = below.and_then(Value::as_array);
    value.as_array().is_none_or(|names| {
        names
            .iter()
            .any(|name| !known.is_some_and(|known| known.contains(name)))
    })
}

fn leads_out(path: &str, base: &Path) -> bool {
    let path = Path::new(path);
    match base.join(path).canonicalize() {
        // A link that came with a clone may lead anywhere.
        Ok(real) => !real.starts_with(base),
        Err(_) => !path
            .components()
            .all(|part| matches!(part, Component::CurDir | Component::Normal(_))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layers::Layers;
    use crate::origin::Origin;

    fn check(key: &str, value: &Value, below: Option<&Value>, expected: bool) {
        let found = does(key, value, below, Path::new("/nowhere"));
        assert_eq!(found, expected, "{key} = {value} over {below:?}");
    }

    #[test]
    fn a_limit_loosens_only_where_it_gives_more_than_stands_below() {
        let (turns, day) = ("build.turns", "budget.day_usd");
        check(turns, &json!(51), Some(&json!(50)), true);
        check(turns, &json!(50), Some(&json!(50)), false);
        check(turns, &json!(49), Some(&json!(50)), false);
        check(day, &json!(1e9), None, false);
        check(day, &json!(5.5), Some(&json!(5)), true);
        check(day, &json!("much"), Some(&json!(5)), true);
        let managers = "build.package_managers";
        check(managers, &json!([]), Some(&json!(["npm"])), false);
        check(
            managers,
            &json!(["npm"]),
            Some(&json!(["npm", "pip"])),
            false,
        );
        check(managers, &json!(["pip"]), Some(&json!(["npm"])), true);
    }

    #[test]
    fn less_time_to_answer_and_fewer_protected_files_loosen() {
        let hours = "questions.confirming_hours";
        check(hours, &json!(1), Some(&json!(24)), true);
        check(hours, &json!(48), Some(&json!(24)), false);
        check(hours, &json!(1), None, false);
        let clarifying = "questions.clarifying_hours";
        check(clarifying, &json!(2), Some(&json!(4)), true);
        let (protected, below) = ("gate.protected", json!(["ci/**"]));
        check(protected, &json!([]), Some(&below), true);
        check(protected, &json!(["docs/**"]), Some(&below), true);
        check(protected, &json!(["docs/**", "ci/**"]), Some(&below), false);
        check(protected, &json!(["docs/**"]), Some(&json!([])), false);
    }

    #[test]
    fn who_searches_for_models_loosens_and_what_is_told_again_does_not() {
        let url = json!("https://search.example.org/search");
        check("tools.web_search.url", &url, None, true);
        check("tools.web_search.inside", &json!(true), None, true);
        check("tools.web_search.key_variable", &json!("HOME"), None, true);
        check("tools.cache.results", &json!(500), Some(&json!(200)), false);
    }

    #[test]
    fn a_choice_loosens_unless_it_is_the_tight_one() {
        let required = json!("required");
        check("sandbox.mode", &json!("off"), Some(&required), true);
        check("sandbox.mode", &json!("off"), Some(&json!("off")), false);
        check(
            "sandbox.mode",
            &json!("required"),
            Some(&json!("off")),
            false,
        );
        let generate = "specification.auto_generate";
        check(generate, &json!(true), Some(&json!(false)), true);
        check(generate, &json!(false), Some(&json!(true)), false);
        let served = "server.enabled";
        check(served, &json!(true), Some(&json!(false)), true);
        check(served, &json!(false), Some(&json!(true)), false);
        check("server.address", &json!("0.0.0.0:80"), None, true);
        check("server.admin_address", &json!("127.0.0.1:1"), None, true);
        let bus = json!("nats://h:1");
        check("bus.transport", &json!("embedded"), Some(&bus), false);
        check("bus.transport", &json!("nats"), None, true);
        check("store.location", &json!("postgres://h/d"), None, true);
    }

    #[test]
    fn what_names_a_place_a_secret_or_a_command_always_loosens() {
        for key in [
            "bus.token_variable",
            "bus.root_certificates",
            "providers.anthropic.base_url",
            "rehearsal.person",
            "project.state",
            "a.key.of.tomorrow",
        ] {
            check(key, &json!("x"), None, true);
        }
        let gate = json!([{ "name": "tests" }]);
        check("gate.commands", &gate, Some(&json!([])), true);
        check("gate.commands", &json!([]), Some(&gate), true);
        for key in ["project.name", "models.build", "gate.task_level"] {
            check(key, &json!("x"), Some(&json!("y")), false);
        }
        check("providers.x", &json!({}), None, false);
    }

    #[test]
    fn a_price_always_loosens_for_a_low_one_holds_no_budget() {
        let of = |output: u32| json!([{ "model": "a", "input": 1, "output": output }]);
        let key = "providers.openrouter.prices";
        check(key, &of(1), None, true);
        check(key, &of(1), Some(&of(2)), true);
        check(key, &of(3), Some(&of(2)), true);
        check(key, &json!([]), Some(&of(2)), true);
        check(key, &of(2), Some(&of(2)), false);
        let date = json!("2026-11-20");
        check("providers.openrouter.priced.date", &date, None, true);
    }

    #[test]
    fn a_repository_may_lie_below_its_file_and_nowhere_else() {
        let above = tempfile::tempdir().unwrap();
        let base = above.path().canonicalize().unwrap().join("clone");
        std::fs::create_dir_all(base.join("inner")).unwrap();
        std::os::unix::fs::symlink("/tmp", base.join("link")).unwrap();
        for (path, expected) in [
            (".", false),
            ("inner", false),
            ("inner/../inner", false),
            ("not-yet", false),
            ("..", true),
            ("../not-yet", true),
            ("link", true),
            ("/", true),
        ] {
            assert_eq!(leads_out(path, &base), expected, "{path}");
        }
    }

    #[test]
    fn every_shipped_key_but_these_may_be_set_by_a_repository_as_it_ships() {
        let mut shipped = Layers::default();
        shipped.add_toml(crate::DEFAULTS, &Origin::Default).unwrap();
        let nowhere = Path::new("/nowhere");
        let loosening: Vec<String> = shipped
            .leaves()
            .into_iter()
            .filter(|(key, value)| does(key, value, None, nowhere))
            .map(|(key, _)| key)
            .collect();
        assert_eq!(loosening, ["policy.rules.shipped", "gate.commands"]);
    }
}
