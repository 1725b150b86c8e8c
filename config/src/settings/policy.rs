//! Defines what models may do with their tools, beside what their work bounds anyway.

use std::fmt;

use regex::{Regex, RegexBuilder};
use ropewalk_schemas::GlobPattern;
use ropewalk_schemas::advice::Words;
use serde::{Deserialize, Serialize};

/// What models may do; by default all that the work bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// What is done without asking where no rule says anything.
    pub mode: PermissionMode,
    /// The rules by where they were set.
    pub rules: ScopedRules,
}

/// What is done without asking where no rule says anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Looking: nothing is written and no command runs, whatever a rule allows.
    Plan,
    /// Looking and writing; commands are asked about.
    Edit,
    /// Everything.
    #[default]
    FullAuto,
}

/// The rules by where they were set, each list in its order. A file names its own alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopedRules {
    /// What ships: the beginning of the user's list.
    #[serde(default)]
    pub shipped: Vec<Rule>,
    /// Of the user's file.
    #[serde(default)]
    pub user: Vec<Rule>,
    /// Of the project's file.
    #[serde(default)]
    pub project: Vec<Rule>,
    /// Of the environment and of flags.
    #[serde(default)]
    pub flags: Vec<Rule>,
    /// Of whoever manages the machine.
    #[serde(default)]
    pub managed: Vec<Rule>,
}

/// Says whether something may be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RuleText", into = "RuleText")]
pub struct Rule {
    permission: Permission,
    pattern: RulePattern,
    action: RuleAction,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Permission {
    /// All of the others.
    #[serde(rename = "*")]
    Any,
    /// Looking at files, by their paths.
    #[serde(rename = "read")]
    Read,
    /// Writing files, by their paths.
    #[serde(rename = "write")]
    Write,
    /// Running commands, by their words.
    #[serde(rename = "bash")]
    Bash,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleAction {
    /// It is done.
    Allow,
    /// It is refused.
    Deny,
    /// A person is asked; where nobody is there it is refused, and a person hears of it.
    Ask,
}

/// A rule as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    permission: Permission,
    pattern: String,
    action: RuleAction,
}

/// Says why a rule cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern of a rule {0}")]
pub struct InvalidRule(String);

/// The most bytes of a pattern.
const PATTERN_BYTES: usize = 500;
/// The most memory of a compiled pattern.
const COMPILED_BYTES: usize = 1 << 20;

/// A pattern, read for what its rule is about.
#[derive(Clone)]
struct RulePattern {
    text: String,
    paths: Option<GlobPattern>,
    commands: Option<Regex>,
}

impl Permission {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "*",
            Self::Read => "read",
            Self::Write => "write",
            Self::Bash => "bash",
        }
    }
}

impl RuleAction {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

impl Rule {
    /// Returns what it says.
    pub const fn action(&self) -> RuleAction {
        self.action
    }

    /// Says whether it is about `permission` at all.
    pub fn concerns(&self, permission: Permission) -> bool {
        matches!(self.permission, Permission::Any) || self.permission == permission
    }

    /// Says whether it leaves out nothing of what it is about.
    pub fn is_universal(&self) -> bool {
        self.pattern.text == "**"
            || (self.permission == Permission::Bash && self.pattern.text == "*")
    }

    /// Says whether it is about `path`, relative to the repository.
    pub fn matches_path(&self, path: &str) -> bool {
        let paths = self.pattern.paths.as_ref();
        paths.is_some_and(|glob| glob.matches(path))
    }

    /// Says whether it may be about a path of which only the end is known; that is empty where nothing is.
    pub fn may_match_path_ending(&self, end: &str) -> bool {
        self.pattern.paths.is_some() && may_end(&self.pattern.text, end)
    }

    /// Says whether it is about a command of these words, joined by single spaces.
    pub fn matches_command(&self, words: &str) -> bool {
        let commands = self.pattern.commands.as_ref();
        commands.is_some_and(|pattern| pattern.is_match(words))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (action, permission) = (self.action.as_str(), self.permission.as_str());
        write!(formatter, "{action} {permission} `{}`", self.pattern.text)
    }
}

impl TryFrom<RuleText> for Rule {
    type Error = InvalidRule;

    fn try_from(text: RuleText) -> Result<Self, InvalidRule> {
        let pattern = RulePattern::parse(text.permission, text.pattern)?;
        Ok(Self {
            permission: text.permission,
            pattern,
            action: text.action,
        })
    }
}

impl From<Rule> for RuleText {
    fn from(rule: Rule) -> Self {
        Self {
            permission: rule.permission,
            pattern: rule.pattern.text,
            action: rule.action,
        }
    }
}

impl RulePattern {
    fn parse(permission: Permission, text: String) -> Result<Self, InvalidRule> {
        if text.is_empty() || text.len() > PATTERN_BYTES {
            let told = format!("must have 1 to {PATTERN_BYTES} bytes");
            return Err(InvalidRule(told));
        }
        let (mut paths, mut commands) = (None, None);
        if permission != Permission::Bash {
            let glob = GlobPattern::parse(&text);
            paths = Some(
                glob.map_err(|error| InvalidRule(format!("is wrong: {}", Words::of(&error))))?,
            );
        }
        if matches!(permission, Permission::Any | Permission::Bash) {
            commands = Some(words(&text)?);
        }
        Ok(Self {
            text,
            paths,
            commands,
        })
    }
}

/// Says whether a path that `glob` matches may end so. Of both the last part is looked at, and what is not a name in `glob` may
/// be any.
fn may_end(glob: &str, end: &str) -> bool {
    let last = glob.rsplit('/').next().unwrap_or_default();
    let literal = last.rsplit(['*', '?', '[', ']', '{', '}', '\\']).next();
    let literal = literal.unwrap_or_default();
    let is_name = literal.len() == last.len();
    match end.rsplit_once('/') {
        Some((_, name)) if is_name => name == last,
        Some((_, name)) => GlobPattern::parse(last)
            .ok()
            .is_none_or(|glob| glob.matches(name)),
        None if is_name => last.ends_with(end),
        None => literal.ends_with(end) || end.ends_with(literal),
    }
}

/// Reads a pattern of commands: each run of `*` stands for anything, a last ` *` also for nothing.
fn words(text: &str) -> Result<Regex, InvalidRule> {
    let (text, rest) = match text.strip_suffix(" *") {
        Some(text) => (text, "(?: .*)?"),
        None => (text, ""),
    };
    let parts: Vec<String> = text.split('*').map(regex::escape).collect();
    RegexBuilder::new(&format!("^{}{rest}$", parts.join(".*")))
        .dot_matches_new_line(true)
        .size_limit(COMPILED_BYTES)
        .build()
        .map_err(|_| InvalidRule("is too long to be compiled".to_owned()))
}

impl fmt::Debug for RulePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(formatter)
    }
}

impl PartialEq for RulePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RulePattern {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(permission: &str, pattern: &str) -> Rule {
        let written = json!({ "permission": permission, "pattern": pattern, "action": "deny" });
        serde_json::from_value(written).unwrap()
    }

    #[test]
    fn a_star_stops_at_a_slash_of_a_path_and_at_nothing_of_a_command() {
        let rows = [
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**", "src/deep/a.rs", true),
            ("src/**", "srcs/a.rs", false),
            ("**/.env", ".env", true),
            ("**/.env", "deep/.env", true),
            ("**/.env", "deep/x.env", false),
        ];
        for (pattern, path, expected) in rows {
            let found = rule("write", pattern).matches_path(path);
            assert_eq!(found, expected, "{pattern} {path}");
            assert!(!rule("write", pattern).matches_command(path));
        }
        let rows = [
            ("rm *", "rm -rf /tmp/x", true),
            ("rm *", "rm", true),
            ("rm *", "rmdir x", false),
            ("rm", "rm x", false),
            ("git * --force*", "git push --force-with-lease", true),
            ("*", "a\nb", true),
            ("a.c", "abc", false),
        ];
        for (pattern, words, expected) in rows {
            let found = rule("bash", pattern).matches_command(words);
            assert_eq!(found, expected, "{pattern} {words}");
            assert!(!rule("bash", pattern).matches_path(words));
        }
        let any = rule("*", "**");
        assert!(any.matches_path("src/a") && any.matches_command("rm -rf /"));
    }

    #[test]
    fn a_path_of_which_only_the_end_is_known_may_be_one_that_ends_so() {
        let rows = [
            ("**/.env", "", true),
            ("**/.env", "nv", true),
            ("**/.env", ".env", true),
            ("**/.env", "/.env", true),
            ("**/.env", "/deep/.env", true),
            ("**/.env", "x.env", false),
            ("**/.env", "/x.env", false),
            ("**/.env", "/.env/x", false),
            ("**/.env", ".txt", false),
            ("secrets/*.pem", "/a.pem", true),
            ("secrets/*.pem", "a.pem", true),
            ("secrets/*.pem", ".log", false),
            ("secrets/*.pem", "/a.log", false),
            ("**/*.{env,pem}", "/a.pem", true),
            ("**/*.{env,pem}", "/a.log", false),
            ("{a,b/.env}", "/.env", true),
            ("src/**", "/a.log", true),
            ("src/**", ".log", true),
        ];
        for (pattern, end, expected) in rows {
            let found = rule("write", pattern).may_match_path_ending(end);
            assert_eq!(found, expected, "{pattern} {end}");
        }
        assert!(!rule("bash", "*").may_match_path_ending(""));
    }

    #[test]
    fn a_rule_that_could_never_hold_is_refused() {
        let long = "x".repeat(PATTERN_BYTES + 1);
        for (permission, pattern, action) in [
            ("shell", "x", "deny"),
            ("bash", "x", "forbid"),
            ("bash", "", "deny"),
            ("write", "a[", "deny"),
            ("bash", long.as_str(), "deny"),
        ] {
            let written = json!({ "permission": permission, "pattern": pattern, "action": action });
            let read = serde_json::from_value::<Rule>(written);
            assert!(read.is_err(), "{permission} {pattern} {action}");
        }
        let more = json!({ "permission": "bash", "pattern": "x", "action": "deny", "scope": "u" });
        assert!(serde_json::from_value::<Rule>(more).is_err());
    }
}
