//! Loads configurations from real files.

use std::path::Path;

use anyhow::Context as _;
use ropewalk_config::settings::{SandboxMode, Transport};
use ropewalk_config::{Config, ConfigError, Environment, Origin};
use ropewalk_schemas::advice::Words;

/// The files of a user and of a project.
struct Files {
    root: tempfile::TempDir,
}

impl Files {
    fn new() -> std::io::Result<Self> {
        let root = tempfile::tempdir()?;
        std::fs::create_dir_all(root.path().join("home/.config/ropewalk"))?;
        std::fs::create_dir_all(root.path().join("project/deep/down"))?;
        Ok(Self { root })
    }

    fn user(self, text: &str) -> std::io::Result<Self> {
        let path = self.root.path().join("home/.config/ropewalk/config.toml");
        std::fs::write(path, text)?;
        Ok(self)
    }

    fn project(self, text: impl AsRef<[u8]>) -> std::io::Result<Self> {
        std::fs::write(self.root.path().join("project/ropewalk.toml"), text)?;
        let environment = self.environment(&[]);
        let loaded = Config::load_whoever_wrote_it(&self.directory(), &environment, &[]);
        // Whatever is broken is told when it is loaded.
        if let Some(request) = loaded.ok().and_then(|loaded| loaded.trust) {
            request
                .trust(&environment, "now")
                .map_err(std::io::Error::other)?;
        }
        Ok(self)
    }

    fn environment(&self, more: &[(&str, &str)]) -> Environment {
        let home = self.root.path().join("home");
        let home = home.to_string_lossy();
        Environment::from_pairs([("HOME", &*home)].iter().chain(more).copied())
    }

    fn directory(&self) -> std::path::PathBuf {
        self.root.path().join("project/deep/down")
    }

    fn load(
        &self,
        more: &[(&str, &str)],
        flags: &[&str],
    ) -> Result<ropewalk_config::LoadedConfig, ConfigError> {
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        Config::load(&self.directory(), &self.environment(more), &flags)
    }

    fn refusal(&self, more: &[(&str, &str)], flags: &[&str]) -> String {
        match self.load(more, flags) {
            Ok(_) => String::from("no refusal"),
            Err(error) => Words::of(&error).to_string(),
        }
    }
}

#[test]
fn each_layer_wins_over_the_one_below() -> anyhow::Result<()> {
    let files = Files::new()?
        .user("[build]\nloops = 11\ntries = 11\ninstalls = 11\nrebases = 11\n")?
        .project("[build]\ntries = 12\ninstalls = 12\nrebases = 12\n")?;
    let loaded = files.load(
        &[
            ("ROPEWALK_BUILD__INSTALLS", "13"),
            ("ROPEWALK_BUILD__REBASES", "13"),
        ],
        &["build.rebases=14"],
    )?;
    let build = &loaded.config.build;
    assert_eq!(
        (
            build.turns,
            build.loops,
            build.tries,
            build.installs,
            build.rebases
        ),
        (50, 11, 12, 13, 14)
    );
    assert_eq!(loaded.origin("build.turns"), Origin::Default);
    assert!(
        loaded
            .origin("build.loops")
            .to_string()
            .ends_with("config.toml:2")
    );
    assert!(
        loaded
            .origin("build.tries")
            .to_string()
            .ends_with("ropewalk.toml:2")
    );
    assert_eq!(
        loaded.origin("build.installs").to_string(),
        "$ROPEWALK_BUILD__INSTALLS"
    );
    assert_eq!(loaded.origin("build.rebases"), Origin::Flag);
    Ok(())
}

#[test]
fn a_refused_file_is_named_with_line_key_and_expectation() -> anyhow::Result<()> {
    let cases: [(&[u8], &[&str]); 33] = [
        (b"[build]\nlops = 2\n", &["ropewalk.toml:2", "`build.lops`", "unknown field `lops`, expected one of `loops`"]),
        (b"[build]\npackage_managers = [\"npm\", \"curl\"]\n", &["ropewalk.toml:2", "`build.package_managers", "unknown variant `curl`, expected `npm` or `pip`"]),
        (b"[buld]\n", &["ropewalk.toml:1", "`buld`", "expected one of `sandbox`"]),
        (b"[build]\nloops = \"two\"\n", &["ropewalk.toml:2", "`build.loops`", "expected u32"]),
        (b"build = 3\n", &["ropewalk.toml:1", "`build`", "invalid type: integer"]),
        (b"[build]\nloops = 0\n", &["ropewalk.toml:2", "`build.loops`", "at least 1"]),
        (b"[bus]\ntransport = \"kafka\"\n", &["ropewalk.toml:2", "`bus.transport`", "write `embedded`, `nats`"]),
        (b"sandbox = \"maybe\"\n", &["ropewalk.toml:1", "`sandbox.mode`", "expected `required` or `off`"]),
        (b"[sandbox]\nvariables = [\n\"RUST_LOG\",\n\"A=1\"]\n", &["ropewalk.toml:4", "`sandbox.variables[1]`", "`A=1` names no variable", "`RUST_LOG`"]),
        (b"[sandbox]\nhosts = [\"https://packages.test\"]\n", &["ropewalk.toml:2", "`sandbox.hosts[0]`", "without scheme and path"]),
        (b"[sandbox]\nhosts = [\n\"h.org\",\n\"*.org\"]\n", &["ropewalk.toml:4", "`sandbox.hosts[1]`", "`*.org` has a wildcard", "`*.example.org`"]),
        (b"[sandbox]\nvariables = [\"LD_PRELOAD\"]\n", &["ropewalk.toml:2", "`sandbox.variables[0]`", "drop it"]),
        (b"[server]\ntrusted_proxies = [\n\"::1\",\n\"proxy.test\"]\n", &["ropewalk.toml:4", "`server.trusted_proxies[1]`", "`proxy.test` names no addresses", "`10.0.0.0/8`"]),
        (b"[server]\nenabled = false\nadmin_address = \"127.0.0.1:1\"\n", &["ropewalk.toml:3", "`server.admin_address`", "needs `server.enabled = true`"]),
        (b"[telegram]\ntopic = 0\n", &["ropewalk.toml:2", "`telegram.topic`", "number of no topic", "last number of the link"]),
        (b"[notices]\nsummary = \"noon\"\n", &["ropewalk.toml:2", "`notices.summary`", "`noon` names no time", "`07:00`"]),
        (b"[build\nloops = 2\n", &["ropewalk.toml:1", "not valid TOML"]),
        (b"[build]\nloops = 2\nloops = 3\n", &["ropewalk.toml:3", "not valid TOML", "duplicate key"]),
        (b"\xef\xbb\xbf[build]\r\nloops = true\r\n", &["ropewalk.toml:2", "`build.loops`"]),
        (b"\xff\xfe", &["ropewalk.toml", "not UTF-8"]),
        (b"[[gate.commands]]\nname = \"a\"\ncommand = \"true\"\n[[gate.commands]]\nname = \"b\"\ncommand = \"\"\n", &["ropewalk.toml:4", "`gate.commands[1].command`", "empty"]),
        (b"[gate.counts]\npassed = \"(\"\n", &["ropewalk.toml:2", "`gate.counts.passed`", "regular expression"]),
        (b"[gate]\nprotected = [\"a{\"]\n", &["ropewalk.toml:2", "gate.protected", "glob"]),
        (b"[people.ada]\nrights = [\"merge\"]\n", &["ropewalk.toml:2", "`people.ada.rights", "unknown variant `merge`, expected one of `approve`, `land`"]),
        (b"[people.ada]\nuser = \"x\"\n[people.bob]\nuser = \"x\"\n", &["ropewalk.toml:4", "`people.bob.user`", "that of `ada` too"]),
        (b"[people.ada]\ntelegram_user = 7\n", &["ropewalk.toml:2", "`people.ada.telegram_user`", "needs `telegram_chats`"]),
        (b"[people.ada]\ntelegram_chats = [7]\n", &["ropewalk.toml:2", "`people.ada.telegram_chats", "needs `telegram_user`"]),
        (
            b"[people.ada]\ntelegram_user = 7\ntelegram_chats = [7]\n[people.bob]\ntelegram_user = 7\ntelegram_chats = [-1, 7]\n",
            &["ropewalk.toml:5", "`people.bob.telegram_user`", "that of `ada` too, in the same chat"],
        ),
        (b"[telegram]\napi_url = \"mailto:ada@example.org\"\n", &["ropewalk.toml:2", "`telegram.api_url`", "no address of HTTP"]),
        (b"[telegram]\nwebhook = \"http://example.org/hooks/telegram\"\n", &["ropewalk.toml:2", "`telegram.webhook`", "has to be an HTTPS address"]),
        (b"[telegram]\nwebhook = \"https://ada:word@example.org/\"\n", &["ropewalk.toml:2", "`telegram.webhook`", "without a password"]),
        (
            b"[telegram]\nwebhook = \"https://example.org/hooks/telegram\"\n[server]\nenabled = false\n",
            &["ropewalk.toml:2", "`telegram.webhook`", "nobody listens for what Telegram brings"],
        ),
        (b"[pm]\nask_minutes = 31\n", &["ropewalk.toml:2", "`pm.ask_minutes`"]),
    ];
    for (text, expected) in cases {
        let refusal = Files::new()?.project(text)?.refusal(&[], &[]);
        for part in expected {
            assert!(refusal.contains(part), "{refusal}\n  lacks: {part}");
        }
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
    Ok(())
}

#[test]
fn variables_and_flags_are_refused_like_files() -> anyhow::Result<()> {
    let files = Files::new()?;
    for (variable, value, expected) in [
        (
            "ROPEWALK_BUILD__LOOPS",
            "many",
            "$ROPEWALK_BUILD__LOOPS: `build.loops`",
        ),
        ("ROPEWALK_BUILD__LOPS", "1", "unknown field `lops`"),
        (
            "ROPEWALK_SANDBOX",
            "maybe",
            "$ROPEWALK_SANDBOX: `sandbox.mode`",
        ),
    ] {
        let refusal = files.refusal(&[(variable, value)], &[]);
        assert!(refusal.contains(expected), "{refusal}");
    }
    for (flag, expected) in [
        ("build.loops=-1", "flag: `build.loops`"),
        ("build.loops", "write `section.key=value`"),
        ("=3", "write `section.key=value`"),
        ("build=3", "flag: `build`"),
        ("biuld.loops=3", "flag: `biuld`"),
        ("build.loops=100000000", "1000 is the most"),
        ("bus.tries=0", "must be at least 1"),
        (
            "monitor.component_down_seconds=29",
            "sign of life each 15 s, so 30 is the least",
        ),
    ] {
        let refusal = files.refusal(&[], &[flag]);
        assert!(refusal.contains(expected), "{refusal}");
    }
    Ok(())
}

#[test]
fn what_the_machine_says_holds_over_all_and_a_flag_against_it_is_refused() -> anyhow::Result<()> {
    let files = Files::new()?
        .user("[build]\nloops = 11\n[sandbox]\nmode = \"off\"\n")?
        .project("[build]\ntries = 12\n")?;
    let path = files.root.path().join("managed.toml");
    let load = |text: &str, flags: &[&str]| -> Result<ropewalk_config::LoadedConfig, ConfigError> {
        std::fs::write(&path, text).unwrap();
        let variables = [("ROPEWALK_BUILD__INSTALLS", "13")];
        let environment = files.environment(&variables).managed_by(&path);
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        Config::load(&files.directory(), &environment, &flags)
    };
    let rule =
        "[[policy.rules]]\npermission = \"bash\"\npattern = \"git push *\"\naction = \"deny\"\n";
    let numbers = "[build]\nloops = 1\ntries = 2\ninstalls = 3\nrebases = 4\n";
    let managed = format!("sandbox = \"required\"\n{numbers}{rule}");
    // A flag that says the same, and rules of flags, are nothing to refuse.
    let own =
        "policy.rules=[{ permission = \"bash\", pattern = \"git push *\", action = \"allow\" }]";
    let loaded = load(&managed, &["build.rebases=4", "build.turns=7", own])?;
    let (build, rules) = (&loaded.config.build, &loaded.config.policy.rules);
    let held = (
        build.loops,
        build.tries,
        build.installs,
        build.rebases,
        build.turns,
    );
    assert_eq!(held, (1, 2, 3, 4, 7));
    assert_eq!(loaded.config.sandbox.mode, SandboxMode::Required);
    assert_eq!((rules.managed.len(), rules.flags.len()), (1, 1));
    for (key, line) in [
        ("sandbox.mode", 1),
        ("build.installs", 5),
        ("policy.rules.managed[0]", 7),
    ] {
        assert_eq!(
            loaded.origin(key).to_string(),
            format!("{}:{line}", path.display()),
            "{key}"
        );
    }
    let refused =
        |text: &str, flags: &[&str]| Words::of(&load(text, flags).unwrap_err()).to_string();
    let told = refused(&managed, &["build.turns=7", "build.loops=9"]);
    let place = format!("by {}:3; leave it out", path.display());
    assert!(
        told.starts_with("flag: `build.loops`: is set") && told.contains(&place),
        "{told}"
    );
    // The gate is the repository's, and a file that cannot be read holds nobody free.
    let told = refused("[gate]\ntask_level = \"quick\"\n", &[]);
    assert!(
        told.contains("managed.toml:1: `gate`: is decided by"),
        "{told}"
    );
    assert!(refused("[build]\nlops = 1\n", &[]).contains("managed.toml:2: `build.lops`"));
    std::fs::remove_file(&path)?;
    std::fs::create_dir(&path)?;
    let environment = files.environment(&[]).managed_by(&path);
    assert!(Config::load(&files.directory(), &environment, &[]).is_err());
    Ok(())
}

#[test]
fn the_variables_of_opentelemetry_stand_above_files_and_below_our_own() -> anyhow::Result<()> {
    let files = Files::new()?.user("[telemetry]\nendpoint = \"http://file:1\"\n")?;
    let otel = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:2");
    let headers = (
        "OTEL_EXPORTER_OTLP_HEADERS",
        "authorization=Bearer%20canary-of-otel",
    );
    let endpoint = |more: &[(&str, &str)]| -> anyhow::Result<(Option<String>, String)> {
        let loaded = files.load(more, &[])?;
        let endpoint = loaded
            .config
            .telemetry
            .endpoint
            .as_ref()
            .map(ToString::to_string);
        Ok((endpoint, loaded.origin("telemetry.endpoint").to_string()))
    };
    let (url, origin) = endpoint(&[otel])?;
    assert_eq!(url.as_deref(), Some("http://otel:2/"));
    assert_eq!(origin, "$OTEL_EXPORTER_OTLP_ENDPOINT");
    let (url, _) = endpoint(&[otel, ("ROPEWALK_TELEMETRY__ENDPOINT", "http://own:3")])?;
    assert_eq!(url.as_deref(), Some("http://own:3/"));
    let refusal = files.refusal(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "no address")], &[]);
    assert!(
        refusal.starts_with("$OTEL_EXPORTER_OTLP_ENDPOINT: `telemetry.endpoint`"),
        "{refusal}"
    );
    let environment = files.environment(&[headers]);
    let secrets = Config::load(&files.directory(), &environment, &[])?.secrets(&environment);
    assert!(
        secrets.contains(&"Bearer canary-of-otel".to_owned()),
        "{secrets:?}"
    );
    Ok(())
}

#[test]
fn what_is_said_of_an_address_that_cannot_be_read_holds_no_login() -> anyhow::Result<()> {
    for (key, address, shown) in [
        (
            "bus.transport",
            "nat://ada:canary@h:1",
            "`nat://ada:***@h:1`",
        ),
        (
            "store.location",
            "postgress://db/rope?password=canary",
            "`postgress://db/rope?password=***`",
        ),
        (
            "notices.webhook_url",
            "http://canary-of-twenty-letters@h:99999/x",
            "http://***@h:99999/x",
        ),
        ("telegram.api_url", "http://a\"b:canary@", "***@"),
    ] {
        let (section, name) = key.split_once('.').context("a key is dotted")?;
        let text = format!("[{section}]\n{name} = '{address}'\n");
        let refusal = Files::new()?.user(&text)?.refusal(&[], &[]);
        assert!(refusal.contains(shown), "{refusal}");
        assert!(!refusal.contains("canary"), "{refusal}");
    }
    Ok(())
}

#[test]
fn a_hook_is_as_secret_as_its_path() -> anyhow::Result<()> {
    let address = "https://hooks.test/services/canary-of-twenty-letters";
    let files = Files::new()?.user(&format!("[notices]\nwebhook_url = \"{address}\"\n"))?;
    let secrets = files.load(&[], &[])?.secrets(&files.environment(&[]));
    assert_eq!(secrets, ["canary-of-twenty-letters"]);
    Ok(())
}

#[test]
fn a_value_may_be_quoted_as_in_a_file() -> anyhow::Result<()> {
    let flags = [
        "project.name=\"walks\"",
        "sandbox='off'",
        "models.chat=\"a/b\"",
    ];
    let loaded = Files::new()?.load(&[], &flags)?;
    let name = loaded.config.project.name.map(|name| name.to_string());
    assert_eq!(name.as_deref(), Some("walks"));
    assert_eq!(loaded.config.sandbox.mode, SandboxMode::Off);
    assert_eq!(loaded.config.models.chat.to_string(), "a/b");
    Ok(())
}

#[test]
fn texts_that_look_like_numbers_stay_texts() -> anyhow::Result<()> {
    let loaded = Files::new()?.load(
        &[
            ("ROPEWALK_PROJECT__NAME", "2048"),
            ("ROPEWALK_SANDBOX", "off"),
        ],
        &[
            "bus.transport=nats://127.0.0.1:1",
            "build.critical_phases=[\"api\"]",
        ],
    )?;
    let config = &loaded.config;
    assert_eq!(
        config.project.name.as_ref().map(AsRef::as_ref),
        Some("2048")
    );
    assert_eq!(
        config.bus.transport,
        Transport::NatsAt("nats://127.0.0.1:1".into())
    );
    assert_eq!(config.build.critical_phases, ["api"]);
    Ok(())
}

#[test]
fn an_empty_or_absent_file_changes_nothing() -> anyhow::Result<()> {
    let absent = Files::new()?.load(&[("ROPEWALK_FAILPOINTS", "x")], &[])?;
    let empty = Files::new()?.project("")?.load(&[], &[])?;
    assert_eq!(absent.config, empty.config);
    assert_eq!(absent.config, Config::shipped()?);
    assert!(absent.project_file.is_none() && empty.project_file.is_some());
    Ok(())
}

#[test]
fn a_directory_in_the_place_of_a_file_is_refused() -> anyhow::Result<()> {
    let files = Files::new()?;
    std::fs::create_dir(files.root.path().join("project/ropewalk.toml"))?;
    assert!(files.refusal(&[], &[]).ends_with("it is not a file"));
    Ok(())
}

#[test]
fn every_value_is_shown_with_its_origin_and_without_passwords() -> anyhow::Result<()> {
    let files = Files::new()?.project("[store]\nlocation = \"postgres://ada:canary@db/x\"\n")?;
    let entries = files.load(&[], &[])?.entries();
    let text = serde_json::to_string(&entries)?;
    assert!(!text.contains("canary"));
    let store = entries.iter().find(|entry| entry.key == "store.location");
    assert_eq!(
        store.map(|entry| entry.value.clone()),
        Some("postgres://ada:***@db/x".into())
    );
    assert!(entries.iter().any(|entry| entry.key == "gate.commands"));
    // What nobody set stands in its section all the same; what is an example stands nowhere.
    let bus: Vec<&str> = entries
        .iter()
        .filter(|entry| entry.key.starts_with("bus.") && entry.value.is_null())
        .map(|entry| &*entry.key)
        .collect();
    let expected = [
        "bus.max_megabytes",
        "bus.nkey_file",
        "bus.credentials_file",
        "bus.token_variable",
        "bus.root_certificates",
        "bus.inbox_prefix",
    ];
    assert_eq!(bus, expected);
    let (set, names): (_, Vec<&String>) = (
        files.load(&[], &["bus.inbox_prefix=\"x\""])?.entries(),
        entries.iter().map(|entry| &entry.key).collect(),
    );
    let prefixes = set.iter().filter(|entry| entry.key == "bus.inbox_prefix");
    let prefixes: Vec<_> = prefixes.map(|entry| entry.value.clone()).collect();
    assert_eq!(prefixes, ["x"]);
    for example in ["policy.permission", "models.base_url", "person.roles"] {
        assert!(!names.iter().any(|name| *name == example), "{example}");
    }
    Ok(())
}

#[test]
fn paths_of_a_file_are_relative_to_it() -> anyhow::Result<()> {
    let files = Files::new()?.project("[project]\nrepo = \"repo\"\nstate = \"./state\"\n")?;
    let locations = files.load(&[], &[])?.locations(&files.environment(&[]))?;
    let project = files.root.path().join("project");
    assert_eq!(locations.repository, project.join("repo"));
    assert_eq!(locations.state, project.join("state"));
    assert_eq!(locations.name.as_str(), "repo");
    Ok(())
}

#[test]
fn the_state_lies_in_the_state_directory_of_the_user_unless_told_otherwise() -> anyhow::Result<()> {
    let files = Files::new()?.project("")?;
    let environment = files.environment(&[]);
    let locations = files.load(&[], &[])?.locations(&environment)?;
    let home = files.root.path().join("home");
    assert_eq!(locations.state, home.join(".local/state/ropewalk/project"));
    let elsewhere = files.root.path().join("elsewhere");
    let flag = format!("project.state={}", elsewhere.display());
    let told = files.load(&[], &[&flag])?.locations(&environment)?;
    assert_eq!(told.state, elsewhere);
    let homeless = files.load(&[], &[])?.locations(&Environment::default());
    assert_eq!(homeless, Err(ConfigError::NoStateHome));
    Ok(())
}

#[test]
fn a_state_directory_inside_a_working_tree_is_refused() -> anyhow::Result<()> {
    let files = Files::new()?.project("[project]\nstate = \"deep/state\"\n")?;
    std::fs::create_dir(files.root.path().join("project/.git"))?;
    let refused = files.load(&[], &[])?.locations(&files.environment(&[]));
    assert!(matches!(
        refused,
        Err(ConfigError::StateInWorkingTree { .. })
    ));
    Ok(())
}

#[test]
fn a_state_directory_that_a_link_leads_into_a_working_tree_is_refused() -> anyhow::Result<()> {
    let files = Files::new()?;
    let root = files.root.path();
    std::fs::create_dir_all(root.join("tree/.git"))?;
    std::os::unix::fs::symlink(root.join("tree"), root.join("link"))?;
    for state in ["../link", "../link/not-yet/state"] {
        let flag = format!(
            "project.state={}",
            root.join("project").join(state).display()
        );
        let refused = files
            .load(&[], &[&flag])?
            .locations(&files.environment(&[]));
        let is_refused = matches!(refused, Err(ConfigError::StateInWorkingTree { .. }));
        assert!(is_refused, "{state}: {refused:?}");
    }
    Ok(())
}

#[test]
fn the_gate_of_a_commit_is_read_from_its_text() -> anyhow::Result<()> {
    let config = Config::of_project_text(
        "[build]\nsetup = \"make ready\"\n\
         [[gate.commands]]\nname = \"tests\"\ncommand = \"cargo test\"\ntimeout_seconds = 60\n",
    )?;
    assert_eq!(config.build.setup.as_deref(), Some("make ready"));
    let gate = config.gate;
    assert_eq!(gate.commands.len(), 1);
    assert_eq!(
        gate.commands
            .first()
            .map(|command| gate.seconds_for(command)),
        Some(60)
    );
    Ok(())
}

#[test]
fn the_defaults_name_every_key() -> anyhow::Result<()> {
    // A key that only exists in the code would be found by nobody.
    let text = ropewalk_config::DEFAULTS;
    let config = serde_json::to_value(Config::shipped()?)?;
    let sections = config.as_object().map(serde_json::Map::keys);
    for section in sections.into_iter().flatten() {
        assert!(text.contains(&format!("[{section}")), "{section}");
    }
    for key in [
        "name =",
        "repo =",
        "state =",
        "person =",
        "user =",
        "token_sha256 =",
        "roles =",
        "rights =",
        "attempt_tokens =",
        "kind =",
        "base_url =",
        "key_variable =",
        "script =",
    ] {
        assert!(text.contains(key), "{key}");
    }
    assert!(Path::new(ropewalk_config::PROJECT_FILE).is_relative());
    Ok(())
}

/// Whatever a file holds is a configuration, or is refused in words that name what is wrong.
#[test]
fn fuzz_config() {
    let files = Files::new().unwrap_or_else(|error| panic!("{error}"));
    let file = files.root.path().join("project/ropewalk.toml");
    let environment = files.environment(&[]);
    let check = |input: &[u8]| {
        std::fs::write(&file, input).unwrap_or_else(|error| panic!("{error}"));
        match Config::load_whoever_wrote_it(&files.directory(), &environment, &[]) {
            Ok(loaded) => format!(
                "{} {}",
                loaded.trust.is_some(),
                loaded.config.providers.len()
            ),
            Err(error) => {
                let told = error.to_string();
                assert!(!told.trim().is_empty());
                told.split('`').next().unwrap_or_default().to_owned()
            }
        }
    };
    let words = [
        "[models]\n",
        "[providers.x]\n",
        "kind = \"openai\"\n",
        "base_url = \"http://h\"\n",
        "sandbox = \"off\"\n",
        "[[gate.commands]]\n",
        "name = \"a\"\n",
        "run = \"b\"\n",
        "[build]\n",
        "loops = 2\n",
        "true",
        "-1",
        "1e400",
        "\"\"\"",
        "'",
        "[",
        "]",
        "{",
        "}",
        "=",
        "#",
        ".",
        "inf",
        "1979-05-27",
    ];
    let (words, check) = (&words, &check);
    let name = "config";
    ropewalk_tests::fuzz::Target { name, words, check }.run();
}
