//! Decisions read what is typed, never what is written for people: who rewords a reason or a label changes no behaviour.

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

/// The fields that hold words for people.
const PROSE: [&str; 8] = [
    "answer", "detail", "label", "reason", "text", "told", "why", "words",
];

/// The words of these that are held apart are the same words.
const HELD: [&str; 3] = ["answer", "label", "reason"];

/// The types that carry such words, with what is asked or answered.
const CARRIERS: [&str; 3] = ["QuestionAnswered", "QuestionDraft", "QuestionTemplates"];

/// The methods that judge a text.
const JUDGES: [&str; 9] = [
    "contains",
    "ends_with",
    "eq",
    "eq_ignore_ascii_case",
    "find",
    "is_match",
    "matches",
    "starts_with",
    "strip_prefix",
];

/// Functions that may, with the reason.
const EXCUSED: [(&str, &str, &str); 2] = [
    (
        "agents/builder/src/machine/build.rs",
        "cause_of",
        "rows of before had their cause in words alone",
    ),
    (
        "agents/builder/src/decide/counts.rs",
        "with_addition",
        "it writes words, and none of them twice",
    ),
];

/// The places in a file of decisions at which words for people decide.
pub(crate) fn violations(path: &str, text: &str) -> Result<Vec<String>> {
    if !is_of_decisions(path) {
        return Ok(Vec::new());
    }
    let file = syn::parse_file(text).with_context(|| format!("cannot parse `{path}`"))?;
    let mut search = Search::default();
    search.visit_file(&file);
    let excused = |function: &str| {
        let mut rows = EXCUSED.iter();
        rows.any(|(file, name, _)| *file == path && *name == function)
    };
    Ok(search
        .found
        .into_iter()
        .filter(|(function, _)| !excused(function))
        .map(|(function, what)| {
            format!("`{path}`: `{function}` {what}; give it a typed field to decide by")
        })
        .collect())
}

fn is_of_decisions(path: &str) -> bool {
    let is_room =
        |room: &str| path.ends_with(&format!("/{room}.rs")) || path.contains(&format!("/{room}/"));
    let is_test = path.ends_with("/tests.rs") || path.ends_with("/fixture.rs");
    path.contains("/src/") && !is_test && (is_room("decide") || is_room("machine"))
}

#[derive(Default)]
struct Search {
    function: String,
    /// The function, and what it does.
    found: Vec<(String, String)>,
}

impl Search {
    fn add(&mut self, what: String) {
        self.found.push((self.function.clone(), what));
    }

    fn compare(&mut self, sides: [&syn::Expr; 2]) {
        let [left, right] = sides.map(Words::of);
        if let Some(name) = left.field.or(right.field)
            && (left.has_text || right.has_text)
        {
            self.add(format!("compares `{name}`"));
        }
    }
}

/// What an expression reads of words for people.
#[derive(Default)]
struct Words {
    field: Option<String>,
    has_text: bool,
}

impl Words {
    fn of(expression: &syn::Expr) -> Self {
        let mut words = Self::default();
        words.visit_expr(expression);
        words
    }
}

impl<'ast> Visit<'ast> for Words {
    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let syn::Member::Named(name) = &field.member
            && PROSE.contains(&name.to_string().as_str())
        {
            self.field = Some(name.to_string());
        }
        visit::visit_expr_field(self, field);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let held = HELD.into_iter().find(|name| path.path.is_ident(name));
        self.field = held.map(str::to_owned).or_else(|| self.field.take());
    }

    fn visit_lit_str(&mut self, _: &'ast syn::LitStr) {
        self.has_text = true;
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.function = signature.ident.to_string();
        visit::visit_signature(self, signature);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        for segment in &path.segments {
            let name = segment.ident.to_string();
            if CARRIERS.contains(&name.as_str()) {
                self.add(format!("takes a `{name}`"));
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if JUDGES.contains(&call.method.to_string().as_str())
            && let Some(name) = Words::of(&call.receiver).field
        {
            self.add(format!("judges `{name}` by `{}`", call.method));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if matches!(binary.op, syn::BinOp::Eq(_) | syn::BinOp::Ne(_)) {
            self.compare([&binary.left, &binary.right]);
        }
        visit::visit_expr_binary(self, binary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, body: &str) -> Vec<String> {
        let text = format!("fn decide(task: &Task) -> bool {{ {body} }}");
        violations(path, &text).unwrap()
    }

    #[test]
    fn a_decision_by_words_is_found_and_one_by_types_is_not() {
        let path = "agents/src/pm/decide.rs";
        for (body, what) in [
            (
                "task.reason.as_deref().unwrap_or_default().starts_with(\"time limit\")",
                "judges `reason`",
            ),
            ("choice.label == \"Accept the risk\"", "compares `label`"),
            (
                "let reason = of(task); reason.contains(\"x\")",
                "judges `reason`",
            ),
            (
                "QuestionAnswered::default().is_empty()",
                "takes a `QuestionAnswered`",
            ),
        ] {
            let found = check(path, body);
            assert!(
                found.len() == 1 && found[0].contains(what),
                "{body}: {found:?}"
            );
        }
        for body in [
            "task.state == State::Failed",
            "{ self.reason = Some(told); true }",
            "task.files.contains(file)",
        ] {
            assert_eq!(check(path, body), Vec::<String>::new(), "{body}");
        }
        let judges = "task.reason.contains(\"x\")";
        assert_eq!(check("agents/src/pm/act.rs", judges), Vec::<String>::new());
        assert_eq!(
            check("agents/src/pm/decide/tests.rs", judges),
            Vec::<String>::new()
        );
    }
}
