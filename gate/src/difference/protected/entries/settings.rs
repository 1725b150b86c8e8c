//! Reads the settings of test runners in manifests that hold other things too, as the tools read them.

use serde_json::Value;

/// Runners whose settings a package.json holds below their names.
const RUNNERS: [&str; 6] = ["jest", "mocha", "ava", "vitest", "c8", "nyc"];
/// The beginnings of sections of a setup.cfg.
const SECTIONS: [&str; 2] = ["[tool:pytest", "[coverage:"];
/// So deep no manifest is nested, and whatever is gets read here.
const DEEPEST: usize = 40;

/// Returns the settings of test runners in a file that holds other things too.
pub(in super::super) fn settings(path: &str, content: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let content = plain(content);
    let found = match name {
        "package.json" => json(content).as_ref().map(of_package),
        "pyproject.toml" => toml(content).as_ref().map(of_python),
        "Cargo.toml" => toml(content).as_ref().map(of_cargo),
        "setup.cfg" => Some(of_sections(content)),
        _ => return String::new(),
    };
    found.map_or_else(|| unreadable(content), |lines| lines.join("\n"))
}

/// Returns a text without the mark that some editors put before it.
pub(super) fn plain(content: &str) -> &str {
    content.strip_prefix('\u{feff}').unwrap_or(content)
}

fn json(content: &str) -> Option<Value> {
    serde_json::from_str(content).ok()
}

fn toml(content: &str) -> Option<Value> {
    toml_edit::de::from_str(content).ok()
}

/// What cannot be read is no tool's to read either, and fails there; where it is only nested too deep for this program, all
/// of it may be settings.
fn unreadable(content: &str) -> String {
    let mut depth = 0_usize;
    for line in content.lines() {
        // Keys with dots are tables, too.
        let mut dots = 0;
        for letter in line.chars() {
            match letter {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                '.' => dots += 1,
                _ => {}
            }
            if depth + dots > DEEPEST {
                return content.to_owned();
            }
        }
    }
    String::new()
}

fn of_package(manifest: &Value) -> Vec<String> {
    let found = RUNNERS
        .iter()
        .filter_map(|key| Some((key, manifest.get(key)?)));
    found
        .map(|(key, value)| format!("{key} = {value}"))
        .collect()
}

fn of_python(manifest: &Value) -> Vec<String> {
    let tools = manifest.get("tool").and_then(Value::as_object);
    let steers = |key: &str| key.starts_with("pytest") || key.starts_with("coverage");
    let mut found: Vec<String> = tools
        .into_iter()
        .flatten()
        .filter(|(key, _)| steers(key))
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    found.sort_unstable();
    found
}

/// Lists what a package leaves out of its tests, or runs otherwise.
fn of_cargo(manifest: &Value) -> Vec<String> {
    let is_off = |table: &Value, key: &str| table.get(key) == Some(&Value::Bool(false));
    let mut found = Vec::new();
    if manifest
        .get("package")
        .is_some_and(|package| is_off(package, "autotests"))
    {
        found.push("autotests".to_owned());
    }
    for kind in ["lib", "bin", "test"] {
        let targets = match manifest.get(kind) {
            Some(Value::Array(targets)) => targets.iter().collect(),
            Some(target) => vec![target],
            None => Vec::new(),
        };
        for target in targets {
            let name = target.get("name").unwrap_or(&Value::Null);
            let off = ["test", "harness"].into_iter();
            let off = off.filter(|key| is_off(target, key));
            found.extend(off.map(|key| format!("{kind} {name} {key}")));
        }
    }
    found.sort_unstable();
    found
}

fn of_sections(content: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in content.lines() {
        let begins = |line: &str| SECTIONS.iter().any(|section| line.starts_with(section));
        // Some readers take a heading that is set in for one, and others for more of the line above.
        if line.starts_with('[') {
            inside = begins(line);
        }
        inside |= begins(line.trim_start());
        if inside && !line.trim().is_empty() {
            found.push(line.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::settings;

    /// A file, what it held, what it holds, and whether its settings change.
    const ROWS: &[(&str, &str, &str, bool)] = &[
        // One and the same, however it is written.
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = \"-q\"\n",
            "[ tool . \"pytest\" . ini_options ] # how\n  addopts = '-q'\n",
            false,
        ),
        (
            "pyproject.toml",
            "[project]\nname = \"a\"\n",
            "[project]\nname = \"b\"\ndescription = \"\"\"\n[tool.pytest.ini_options]\naddopts = 1\n\"\"\"\n",
            false,
        ),
        // Whichever way they come in.
        (
            "pyproject.toml",
            "",
            "tool.pytest.ini_options.addopts = '--co'\n",
            true,
        ),
        (
            "pyproject.toml",
            "",
            "[tool]\npytest = { ini_options = { addopts = '--co' } }\n",
            true,
        ),
        (
            "pyproject.toml",
            "",
            "[\"tool\".\"py\\u0074est\".ini_options]\naddopts = '--co'\n",
            true,
        ),
        (
            "pyproject.toml",
            "",
            " [tool.coverage.run]\nomit = ['a']\n",
            true,
        ),
        (
            "pyproject.toml",
            "",
            "\u{feff}[tool.pytest.ini_options]\na = 1\n",
            true,
        ),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = [\n  '-q',\n]\n",
            "[tool.pytest.ini_options]\naddopts = [\n  '-q',\n  '--co',\n]\n",
            true,
        ),
        // What no tool reads fails there.
        (
            "pyproject.toml",
            "",
            "[tool.pytest.ini_options\naddopts = '--co'\n",
            false,
        ),
        (
            "Cargo.toml",
            "[lib]\nname = 'a'\n",
            "lib = { name = 'a', test = false }\n",
            true,
        ),
        ("Cargo.toml", "", "package.autotests = false\n", true),
        (
            "Cargo.toml",
            "",
            "[[test]]\nname = 'a'\nharness = false\n",
            true,
        ),
        (
            "Cargo.toml",
            "",
            "[[bench]]\nname = 'a'\nharness = false\n[[test]]\nname = 'b'\n",
            false,
        ),
        (
            "setup.cfg",
            "",
            "[metadata]\na =\n  [tool:pytest]\naddopts = --co\n",
            true,
        ),
        (
            "package.json",
            "{}",
            "\u{feff}{ \"jest\": { \"testMatch\": [] } }",
            true,
        ),
        ("package.json", "{}", "{ \"jest\": ", false),
    ];

    #[test]
    fn settings_are_read_as_the_tools_read_them() {
        for (path, before, after, expected) in ROWS {
            let changes = settings(path, before) != settings(path, after);
            assert_eq!(changes, *expected, "{path}: {after}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_to_be_read_is_told_whole() {
        let (open, close) = ("[".repeat(500), "]".repeat(500));
        let toml = format!("[tool.pytest.ini_options]\na = {open}{close}\n");
        assert_eq!(settings("pyproject.toml", &toml), toml);
        let json = format!("{{ \"jest\": {open}{close} }}");
        assert_eq!(settings("package.json", &json), json);
    }
}
