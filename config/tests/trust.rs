//! What a cloned repository may set by itself, and what needs the word of a person.

use std::path::{Path, PathBuf};

use ropewalk_config::settings::Rule;
use ropewalk_config::{Config, ConfigError, Environment, LoadedConfig};
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::advice::Words;

/// A clone and the home of whoever cloned it.
struct Clone {
    root: tempfile::TempDir,
}

impl Clone {
    fn with(text: &str) -> std::io::Result<Self> {
        let root = tempfile::tempdir()?;
        std::fs::create_dir_all(root.path().join("home/.config/ropewalk"))?;
        std::fs::create_dir_all(root.path().join("clone/src"))?;
        let clone = Self { root };
        clone.write(text)?;
        Ok(clone)
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        std::fs::write(self.directory().join("ropewalk.toml"), text)
    }

    fn user(&self, text: &str) -> std::io::Result<()> {
        let path = self.root.path().join("home/.config/ropewalk/config.toml");
        std::fs::write(path, text)
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join("clone")
    }

    fn environment(&self) -> Environment {
        let home = self.root.path().join("home");
        Environment::from_pairs([("HOME", home.as_path()), ("USER", Path::new("ada"))])
    }

    fn load(&self, directory: &Path) -> Result<LoadedConfig, ConfigError> {
        Config::load(directory, &self.environment(), &[])
    }

    fn trust(&self) -> anyhow::Result<()> {
        let environment = self.environment();
        let loaded = Config::load_whoever_wrote_it(&self.directory(), &environment, &[])?;
        match loaded.trust {
            Some(request) => Ok(request.trust(&environment, "now")?),
            None => anyhow::bail!("nothing to trust"),
        }
    }

    /// Returns the keys that are refused; none when the file is taken.
    fn refused(&self) -> Vec<String> {
        match self.load(&self.directory().join("src")) {
            Err(ConfigError::Untrusted { keys, .. }) => keys,
            Err(other) => vec![other.to_string()],
            Ok(_) => Vec::new(),
        }
    }
}

/// Asserts that a repository with `text` is refused in one line for `key`, until somebody trusts it.
fn assert_refused_until_trusted(text: &str, key: &str) -> anyhow::Result<()> {
    let clone = Clone::with(text)?;
    let refused = clone.refused();
    assert!(
        refused.iter().any(|refused| refused == key),
        "{text}: {refused:?}"
    );
    let Err(refused) = clone.load(&clone.directory()) else {
        anyhow::bail!("{text}: nobody trusted it");
    };
    let line = Words::of(&refused).to_string();
    assert_eq!(line.lines().count(), 1, "{line}");
    for wanted in ["clone/ropewalk.toml", "`ropewalk trust`"] {
        assert!(line.contains(wanted), "{line}");
    }
    clone.trust()?;
    assert_eq!(clone.refused(), [""; 0], "{text}");
    Ok(())
}

#[test]
fn what_a_repository_loosens_is_refused_in_one_line_that_names_it() -> anyhow::Result<()> {
    let cases = [
        ("sandbox = \"off\"", "sandbox.mode"),
        ("[sandbox]\nmode = \"off\"", "sandbox.mode"),
        ("[sandbox]\nhosts = [\"packages.test\"]", "sandbox.hosts"),
        (
            "server.trusted_proxies = [\"0.0.0.0/0\"]",
            "server.trusted_proxies",
        ),
        (
            "[telemetry]\nendpoint = \"http://spans.test\"",
            "telemetry.endpoint",
        ),
        ("sandbox.variables = [\"RUST_LOG\"]", "sandbox.variables"),
        (
            "[providers.anthropic]\nbase_url = \"http://127.0.0.1:1\"",
            "providers.anthropic.base_url",
        ),
        (
            "[providers.anthropic]\nkey_variable = \"AWS_SECRET\"",
            "providers.anthropic.key_variable",
        ),
        (
            "[providers.x]\nkind = \"scripted\"\nscript = \"x.yaml\"",
            "providers.x.kind",
        ),
        (
            "[providers.anthropic]\nprices = [{ model = \"claude-*\", input = 0, output = 0 }]\n\
             priced = { date = \"2026-11-20\", source = \"nobody\" }",
            "providers.anthropic.prices",
        ),
        ("[rehearsal]\nperson = \"person.yaml\"", "rehearsal.person"),
        (
            "bus = { transport = \"nats://127.0.0.1:1\" }",
            "bus.transport",
        ),
        (
            "[bus]\ntransport = \"nats://h:1\"\ntoken_variable = \"ANTHROPIC_API_KEY\"",
            "bus.token_variable",
        ),
        ("[store]\nlocation = \"postgres://h/d\"", "store.location"),
        ("[project]\nstate = \"../elsewhere\"", "project.state"),
        ("[project]\nrepo = \"../other\"", "project.repo"),
        (
            "[build]\npackage_managers = [\"npm\"]",
            "build.package_managers",
        ),
        ("[build]\nsetup = \"make ready\"", "build.setup"),
        ("[build]\nturns = 5000", "build.turns"),
        (
            "[budget]\nattempt_tokens = 900000000",
            "budget.attempt_tokens",
        ),
        (
            "[[gate.commands]]\nname = \"t\"\ncommand = \"id\"",
            "gate.commands",
        ),
        (
            "[[policy.rules]]\npermission = \"bash\"\npattern = \"*\"\naction = \"allow\"",
            "policy.rules.project",
        ),
        (
            "[specification]\nauto_generate = true",
            "specification.auto_generate",
        ),
    ];
    for (text, key) in cases {
        assert_refused_until_trusted(text, key)?;
    }
    Ok(())
}

#[test]
fn what_a_repository_tightens_or_chooses_needs_nobody() -> anyhow::Result<()> {
    let clone = Clone::with(
        "sandbox = \"required\"\n[project]\nname = \"walks\"\nrepo = \".\"\n[models]\nbuild = \"openai/gpt-5\"\n\
         [build]\nturns = 5\ncritical_phases = []\n[budget]\nday_usd = 1.5\n[policy]\nmode = \"edit\"\n\
         [[policy.rules]]\npermission = \"bash\"\npattern = \"curl *\"\naction = \"deny\"\n[gate]\ntask_level = \"thorough\"\n",
    )?;
    assert_eq!(clone.refused(), [""; 0]);
    Ok(())
}

#[test]
fn each_place_gives_its_own_rules_and_none_takes_those_of_another_away() -> anyhow::Result<()> {
    let rule = |pattern: &str, action: &str| {
        format!(
            "[[policy.rules]]\npermission = \"bash\"\npattern = \"{pattern}\"\naction = \"{action}\"\n"
        )
    };
    let clone = Clone::with(&rule("curl *", "deny"))?;
    clone.user(&(rule("npm *", "ask") + &rule("sudo *", "allow")))?;
    let flags =
        ["policy.rules=[{ permission = \"bash\", pattern = \"make *\", action = \"deny\" }]"];
    let loaded = Config::load(
        &clone.directory(),
        &clone.environment(),
        &flags.map(String::from),
    )?;
    let rules = &loaded.config.policy.rules;
    let told = |rules: &[Rule]| -> Vec<String> { rules.iter().map(ToString::to_string).collect() };
    assert!(told(&rules.shipped).contains(&"deny bash `sudo *`".to_owned()));
    assert_eq!(
        told(&rules.user),
        ["ask bash `npm *`", "allow bash `sudo *`"]
    );
    assert_eq!(told(&rules.project), ["deny bash `curl *`"]);
    assert_eq!(told(&rules.flags), ["deny bash `make *`"]);
    let origin = loaded.origin("policy.rules.project[0]").to_string();
    assert!(origin.ends_with("clone/ropewalk.toml:1"), "{origin}");
    let wrong = |text: &str| -> anyhow::Result<String> {
        clone.write(text)?;
        let read = Config::load_whoever_wrote_it(&clone.directory(), &clone.environment(), &[]);
        Ok(read.map(|_| ()).unwrap_err().to_string())
    };
    // A project that names the list of somebody else has named its own, wrongly.
    for text in ["[policy.rules]\nuser = []\n", "[policy]\nrules = 1\n"] {
        let told = wrong(text)?;
        assert!(told.contains("`policy.rules.project`"), "{told}");
    }
    let told = wrong(&rule("a", "forbid"))?;
    assert!(
        told.contains("ropewalk.toml:1: `policy.rules.project[0]"),
        "{told}"
    );
    Ok(())
}

#[test]
fn a_changed_byte_asks_again_and_another_clone_asks_for_itself() -> anyhow::Result<()> {
    let clone = Clone::with("[providers.anthropic]\nbase_url = \"http://127.0.0.1:1\"\n")?;
    clone.trust()?;
    // What does not loosen may change.
    clone.write("[providers.anthropic] # mine\nbase_url = \"http://127.0.0.1:1\"\n[pm]\nwatch_minutes = 1\n")?;
    assert_eq!(clone.refused(), [""; 0]);
    clone.write("[providers.anthropic]\nbase_url = \"http://127.0.0.1:2\"\n")?;
    assert_eq!(clone.refused(), ["providers.anthropic.base_url"]);
    clone.trust()?;
    clone.write(
        "[providers.anthropic]\nbase_url = \"http://127.0.0.1:2\"\nkey_variable = \"K\"\n",
    )?;
    // Only what changed is named.
    assert_eq!(clone.refused(), ["providers.anthropic.key_variable"]);
    clone.write("[providers.anthropic]\nbase_url = \"http://127.0.0.1:2\"\n")?;
    let other = clone.root.path().join("other");
    std::fs::create_dir(&other)?;
    std::fs::copy(
        clone.directory().join("ropewalk.toml"),
        other.join("ropewalk.toml"),
    )?;
    assert_eq!(clone.refused(), [""; 0]);
    assert!(matches!(
        clone.load(&other),
        Err(ConfigError::Untrusted { .. })
    ));
    // Nor does a link to the trusted file help: the paths in it would lead elsewhere.
    std::fs::remove_file(other.join("ropewalk.toml"))?;
    std::os::unix::fs::symlink(
        clone.directory().join("ropewalk.toml"),
        other.join("ropewalk.toml"),
    )?;
    assert!(matches!(
        clone.load(&other),
        Err(ConfigError::Untrusted { .. })
    ));
    Ok(())
}

#[test]
fn what_the_user_allows_anyway_is_not_asked() -> anyhow::Result<()> {
    let clone = Clone::with("sandbox = \"off\"\n[build]\nturns = 80\n")?;
    clone.user("sandbox = \"off\"\n[build]\nturns = 80\n")?;
    assert_eq!(clone.refused(), [""; 0]);
    clone.user("[build]\nturns = 79\n")?;
    assert_eq!(clone.refused(), ["build.turns", "sandbox.mode"]);
    Ok(())
}

#[test]
fn what_was_trusted_by_the_name_of_a_key_before_it_had_a_section_is_not_asked_again()
-> anyhow::Result<()> {
    let clone = Clone::with("sandbox = \"off\"\n[build]\nturns = 80\n")?;
    clone.trust()?;
    let words = clone.root.path().join("home/.config/ropewalk/trust");
    let word = std::fs::read_dir(words)?.next().transpose()?;
    let word = word.map(|entry| entry.path()).unwrap_or_default();
    let mut kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&word)?)?;
    let text = r#"{"build.turns":80,"sandbox":"off"}"#;
    kept["keys"] = serde_json::from_str(text)?;
    kept["hash"] = ContentHash::of(text.as_bytes()).to_string().into();
    std::fs::write(&word, kept.to_string())?;
    assert_eq!(clone.refused(), [""; 0]);
    clone.write("sandbox.mode = \"off\"\n[build]\nturns = 80\n")?;
    assert_eq!(clone.refused(), [""; 0]);
    clone.write("sandbox = \"off\"\n[build]\nturns = 81\n")?;
    assert_eq!(clone.refused(), ["build.turns"]);
    Ok(())
}

#[test]
fn without_a_home_nobody_is_trusted() -> anyhow::Result<()> {
    let clone = Clone::with("sandbox = \"off\"\n")?;
    let nobody = Environment::default();
    let refused = Config::load(&clone.directory(), &nobody, &[]);
    assert!(matches!(refused, Err(ConfigError::Untrusted { .. })));
    let loaded = Config::load_whoever_wrote_it(&clone.directory(), &nobody, &[])?;
    let kept = loaded.trust.map(|request| request.trust(&nobody, "now"));
    assert_eq!(kept, Some(Err(ConfigError::NoTrustHome)));
    Ok(())
}

#[test]
fn the_word_of_a_person_is_private() -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let clone = Clone::with("sandbox = \"off\"\n")?;
    clone.trust()?;
    let kept = clone.root.path().join("home/.config/ropewalk/trust");
    assert_eq!(kept.metadata()?.permissions().mode() & 0o777, 0o700);
    let files: Vec<_> = std::fs::read_dir(kept)?.collect::<Result<_, _>>()?;
    assert_eq!(files.len(), 1);
    let word: Option<serde_json::Value> = files
        .first()
        .map(|file| std::fs::read_to_string(file.path()))
        .transpose()?
        .map(|text| serde_json::from_str(&text))
        .transpose()?;
    let word = word.unwrap_or_default();
    for (field, value) in [("by", "ada"), ("at", "now")] {
        assert_eq!(word.get(field), Some(&value.into()), "{word}");
    }
    Ok(())
}

/// Returns where the project lies for what only tightens: its name, the state it sets, and its store.
fn last_trusted(clone: &Clone) -> Result<[String; 3], ConfigError> {
    let loaded = Config::load_as_last_trusted(&clone.directory(), &clone.environment(), &[])?;
    let (project, store) = (&loaded.config.project, &loaded.config.store);
    let name = project.name.as_ref().map(ToString::to_string);
    let state = project
        .state
        .as_ref()
        .map(|path| path.display().to_string());
    let location = String::from(store.location.clone());
    Ok([
        name.unwrap_or_default(),
        state.unwrap_or_default(),
        location,
    ])
}

#[test]
fn what_only_tightens_finds_the_project_where_it_was_trusted_last() -> anyhow::Result<()> {
    let trusted = "[project]\nname = \"walks\"\nstate = \"../state\"\n";
    let clone = Clone::with(trusted)?;
    assert_eq!(
        last_trusted(&clone)?,
        ["walks", "", "sqlite"],
        "nobody trusts it yet"
    );
    clone.trust()?;
    let here = ["walks", "../state", "sqlite"];
    let later = [
        "sandbox = \"off\"\n[project]\nname = \"walks\"\n".to_owned(),
        format!("{trusted}[store]\nlocation = \"postgres://h/d\"\n"),
        trusted.replace("state = \"..", "state = \"/elsewhere"),
        format!("{trusted}repo = \"../other\"\n"),
        format!("{trusted}[build]\nturns = \"many\"\n"),
        format!("{trusted}= broken\nstate = \"/elsewhere\"\n"),
        format!("{trusted}[models]\nchat = [\n\"a\",\nspec = 1\n"),
    ];
    for text in later {
        clone.write(&text)?;
        assert_eq!(last_trusted(&clone)?, here, "{text}");
    }
    clone.write("= broken\n[project]\nname = \"walks\"\n")?;
    let refused = last_trusted(&clone);
    assert!(
        matches!(refused, Err(ConfigError::Malformed { .. })),
        "{refused:?}"
    );
    Ok(())
}

#[test]
fn an_address_whose_password_is_not_kept_is_not_gone_to_before_it_is_trusted() -> anyhow::Result<()>
{
    for address in [
        "postgres://ada:pw@good.test/d",
        "postgres://good.test/d?user=ada&password=pw",
        "postgres://a-token-of-twenty-letters@good.test/d",
    ] {
        let trusted = format!("[store]\nlocation = \"{address}\"\n");
        let clone = Clone::with(&trusted)?;
        clone.trust()?;
        assert_eq!(last_trusted(&clone)?[2], address);
        for text in [
            "[store]\nlocation = \"postgres://ada:pw@bad.test?x=@good.test/d\"\n".to_owned(),
            "[store]\nlocation = \"postgres://bad.test/d\"\n".to_owned(),
            format!("sandbox = \"off\"\n{trusted}"),
        ] {
            clone.write(&text)?;
            let refused = last_trusted(&clone);
            assert!(
                matches!(refused, Err(ConfigError::Untrusted { .. })),
                "{text}: {refused:?}"
            );
        }
    }
    Ok(())
}
