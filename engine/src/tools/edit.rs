//! Replaces a piece of a file.

mod replace;

use async_trait::async_trait;
use ropewalk_config::settings::Permission;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use similar::{DiffTag, TextDiff};

use super::workbench::Workbench;
use super::{arguments, path, path_of, plain_schema_of};
use crate::tool::{Effect, FileChange, Tool, ToolContext, ToolFailure, ToolOutput};
use replace::{Place, ReplaceError, replace};

/// So many places are named at once.
const PLACES: usize = 10;

/// Replaces a piece of a file.
pub(super) struct Edit {
    workbench: Workbench,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// the file, relative to the repository
    path: String,
    /// the text as it stands in the file
    #[serde(default)]
    #[schemars(length(min = 1))]
    old_text: Option<String>,
    /// the text that takes its place
    #[serde(default)]
    new_text: Option<String>,
    /// where the new text goes: `instead` of the old one, or right `before` or `after` it, which then stays and need not
    /// be written again: `after` `depth=1` comes `, width=2`; for a line of its own it has a line break
    #[serde(default)]
    place: Place,
    /// replace every occurrence
    #[serde(default)]
    replace_all: bool,
    /// several replacements, in the place of `old_text` and `new_text`
    #[serde(default)]
    #[schemars(length(min = 1, max = 50))]
    edits: Vec<Replacement>,
}

// One text in the place of another.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replacement {
    #[schemars(length(min = 1))]
    old_text: String,
    new_text: String,
    #[serde(default)]
    place: Place,
    #[serde(default)]
    replace_all: bool,
}

impl Arguments {
    /// Returns the replacements, in whichever of the two forms they were given.
    fn replacements(self) -> Result<Vec<Replacement>, ToolFailure> {
        match (self.old_text, self.new_text, self.edits) {
            (Some(old_text), Some(new_text), edits) if edits.is_empty() => Ok(vec![Replacement {
                old_text,
                new_text,
                place: self.place,
                replace_all: self.replace_all,
            }]),
            (None, None, edits)
                if !edits.is_empty() && !self.replace_all && self.place == Place::Instead =>
            {
                Ok(edits)
            }
            _ => Err(ToolFailure::refused(
                "give either `old_text` and `new_text`, or `edits` with both, and what else holds for one, in each",
            )),
        }
    }
}

impl Edit {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }
}

#[async_trait]
impl Tool for Edit {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn description(&self) -> &'static str {
        "Replaces a text in a file by another, or puts one before or after it, or several with `edits`, one after the \
         other, all or none. An old text must occur exactly once, unless `replace_all` is set: give enough of it. The \
         file has to be read first and be one of the task's."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Arguments>()
    }

    fn permission(&self) -> Option<Permission> {
        Some(Permission::Write)
    }

    fn subjects(&self, arguments: &Value) -> Vec<String> {
        path_of(arguments)
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let path = path(&wanted.path)?;
        let _turn = self.workbench.turn([&path]);
        self.workbench.admit_write(&path)?;
        let Some(content) = self.workbench.read(&path)? else {
            return Err(ToolFailure::refused(format!(
                "there is no file `{path}`; make it with `write`"
            )));
        };
        let before = String::from_utf8(content)
            .map_err(|_| ToolFailure::refused(format!("`{path}` is not UTF-8 text")))?;
        let replacements = wanted.replacements()?;
        let mut after = before.clone();
        for (index, replacement) in replacements.iter().enumerate() {
            let Replacement {
                old_text,
                new_text,
                place,
                replace_all,
            } = replacement;
            let put = replace(&after, old_text, (new_text, *place), *replace_all);
            after = put.map_err(|error| {
                let reason = refusal(path.as_str(), &error);
                ToolFailure::refused(if replacements.len() == 1 {
                    reason
                } else {
                    format!("edit {}: {reason}; nothing was changed", index + 1)
                })
            })?;
        }
        let is_new = self.workbench.write(&path, after.as_bytes())?;
        let diff = TextDiff::from_lines(&before, &after);
        let (effect, changes) = if is_new {
            let change = FileChange::between(&path, &before, &after);
            (Effect::Changed, vec![change])
        } else {
            (Effect::Nothing, Vec::new())
        };
        Ok(ToolOutput::text(summary(path.as_str(), &diff))
            .with_effect(effect)
            .with_changes(changes))
    }
}

/// Says where a file changed: the model knows the new text, having written it.
fn summary(path: &str, diff: &TextDiff<'_, '_, str>) -> String {
    let mut places = Vec::new();
    let (mut added, mut removed) = (0, 0);
    for change in diff
        .ops()
        .iter()
        .filter(|change| change.tag() != DiffTag::Equal)
    {
        let (old, new) = (change.old_range(), change.new_range());
        added += new.len();
        removed += old.len();
        places.push(match new.len() {
            0 => format!("after line {}", new.start),
            1 => format!("line {}", new.start + 1),
            _ => format!("lines {} to {}", new.start + 1, new.end),
        });
    }
    let more = places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    if more > 0 {
        places.push(format!("{more} more places"));
    }
    format!(
        "edited `{path}`: {} (+{added} -{removed} lines)",
        places.join(", ")
    )
}

fn refusal(path: &str, error: &ReplaceError) -> String {
    match error {
        ReplaceError::Missing => {
            format!("the old text does not occur in `{path}`; read the file and copy it exactly")
        }
        ReplaceError::Ambiguous(lines) => {
            let shown: Vec<String> = lines.iter().take(PLACES).map(usize::to_string).collect();
            let more = if lines.len() > PLACES { " …" } else { "" };
            format!(
                "the old text occurs {} times in `{path}`, in lines {}{more}; give more lines around it or set `replace_all`",
                lines.len(),
                shown.join(", ")
            )
        }
        ReplaceError::Same => "the new text equals the old text".to_owned(),
        ReplaceError::Nothing => "there is no `new_text` to put there".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::read::Read;
    use crate::tools::workbench::tests::Bench;

    async fn edited(bench: &Bench, arguments: Value) -> ToolOutput {
        bench
            .run(&Read::new(bench.workbench.clone()), json!({ "path": "a" }))
            .await;
        bench
            .run(&Edit::new(bench.workbench.clone()), arguments)
            .await
    }

    #[tokio::test]
    async fn an_edit_changes_the_file_and_says_where() {
        let bench = Bench::new(&[("a", "one\ntwo\nthree\n")], &["a"]);
        let output = edited(
            &bench,
            json!({ "path": "a", "old_text": "two", "new_text": "2" }),
        )
        .await;
        assert_eq!(bench.content("a").as_deref(), Some("one\n2\nthree\n"));
        assert_eq!(output.text, "edited `a`: line 2 (+1 -1 lines)");
        let [change] = output.changes.as_slice() else {
            panic!("{:?}", output.changes);
        };
        assert_eq!(change.path.as_str(), "a");
        assert!(change.difference.contains("-two\n+2\n"), "{change:?}");
    }

    #[tokio::test]
    async fn several_replacements_are_made_one_after_the_other_or_none_is() {
        let bench = Bench::new(&[("a", "one\ntwo\nthree\n")], &["a"]);
        let call = |edits: [[&str; 2]; 2]| {
            let edits = edits.map(|[old, new]| json!({ "old_text": old, "new_text": new }));
            json!({ "path": "a", "edits": edits })
        };
        let refused = edited(&bench, call([["one", "1"], ["four", "4"]])).await;
        assert!(
            refused.is_error && refused.text.starts_with("edit 2: "),
            "{}",
            refused.text
        );
        assert!(
            refused.text.ends_with("nothing was changed"),
            "{}",
            refused.text
        );
        assert_eq!(bench.content("a").as_deref(), Some("one\ntwo\nthree\n"));
        let output = edited(&bench, call([["one", "two"], ["two\ntwo\n", "2\n"]])).await;
        assert_eq!(output.text, "edited `a`: line 1 (+1 -2 lines)");
        assert_eq!(bench.content("a").as_deref(), Some("2\nthree\n"));
        let beside = json!({ "path": "a", "edits": [
            { "old_text": "2", "new_text": "1\n", "place": "before" },
            { "old_text": "2", "new_text": "\n2a", "place": "after" },
        ] });
        let output = edited(&bench, beside).await;
        assert_eq!(output.text, "edited `a`: line 1, line 3 (+2 -0 lines)");
        assert_eq!(bench.content("a").as_deref(), Some("1\n2\n2a\nthree\n"));
        let both = json!({ "path": "a", "old_text": "2", "edits": [{ "old_text": "2", "new_text": "x" }] });
        assert!(edited(&bench, both).await.text.contains("give either"));
    }

    #[tokio::test]
    async fn a_text_that_occurs_twice_changes_nothing_unless_all_are_meant() {
        let bench = Bench::new(&[("a", "x\nx\n")], &["a"]);
        let once = json!({ "path": "a", "old_text": "x", "new_text": "y" });
        let output = edited(&bench, once).await;
        assert!(
            output.is_error && output.text.contains("2 times in `a`, in lines 1, 2;"),
            "{}",
            output.text
        );
        assert_eq!(bench.content("a").as_deref(), Some("x\nx\n"));
        let all = json!({ "path": "a", "old_text": "x", "new_text": "y", "replace_all": true });
        assert!(!edited(&bench, all).await.is_error);
        assert_eq!(bench.content("a").as_deref(), Some("y\ny\n"));
    }

    #[tokio::test]
    async fn a_file_that_was_not_read_or_is_not_of_the_task_is_not_edited() {
        let bench = Bench::new(&[("a", "x"), ("b", "x")], &["a"]);
        let edit = Edit::new(bench.workbench.clone());
        for path in ["a", "b", "c"] {
            let arguments = json!({ "path": path, "old_text": "x", "new_text": "y" });
            assert!(bench.run(&edit, arguments).await.is_error, "{path}");
        }
        assert_eq!(bench.content("a").as_deref(), Some("x"));
        assert_eq!(bench.content("b").as_deref(), Some("x"));
    }
}
