//! A column that a query names is one of a record: a name that is wrong would be refused only where somebody runs it.
//!
//! Names are compared, not tables: the store refuses a column of another record when it is asked.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

use crate::workspace::Member;

/// Where the records name their columns.
const RECORDS: (&str, &str) = ("store", "src/records");

/// The columns that every record has.
const OF_ALL: [&str; 2] = ["key", "version"];

/// The methods of a query that name a column.
const NAMERS: [&str; 6] = [
    "at_least",
    "at_most",
    "equal",
    "not_equal",
    "one_of",
    "order_by",
];

/// The columns that queries of the product name and no record has.
pub(crate) fn violations(members: &[Member]) -> Result<Vec<String>> {
    let columns: BTreeSet<&str> = members
        .iter()
        .filter(|member| member.directory == RECORDS.0)
        .flat_map(|member| &member.files)
        .filter(|(path, _)| path.starts_with(RECORDS.1))
        .flat_map(|(_, text)| columns(text))
        .chain(OF_ALL)
        .collect();
    let mut found = Vec::new();
    for member in members {
        for (path, text) in &member.files {
            if path.starts_with("src/") && !path.ends_with("tests.rs") {
                let path = format!("{}/{path}", member.directory);
                found.extend(unknown(&path, text, &columns)?);
            }
        }
    }
    Ok(found)
}

/// Lists the columns of the macros that declare records.
fn columns(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (name, kind) = line.trim().strip_prefix('"')?.split_once("\": ")?;
        let kinds = ["text", "integer", "real"];
        kinds
            .iter()
            .any(|known| kind.starts_with(known))
            .then_some(name)
    })
}

fn unknown(path: &str, text: &str, columns: &BTreeSet<&str>) -> Result<Vec<String>> {
    let mut named = ColumnNames::default();
    let file = syn::parse_file(text).with_context(|| format!("cannot parse `{path}`"))?;
    named.visit_file(&file);
    let unknown = named.0.into_iter();
    Ok(unknown
        .filter(|name| !columns.contains(name.as_str()))
        .map(|name| format!("`{path}`: no record has a column `{name}`"))
        .collect())
}

#[derive(Default)]
struct ColumnNames(Vec<String>);

impl<'ast> Visit<'ast> for ColumnNames {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if NAMERS.contains(&call.method.to_string().as_str())
            && let Some(syn::Expr::Lit(literal)) = call.args.first()
            && let syn::Lit::Str(name) = &literal.lit
        {
            self.0.push(name.value());
        }
        visit::visit_expr_method_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_no_record_is_found() {
        let record = "record!(Alert, \"alerts\", |alert| alert.cause.clone(), {\n    \"raised_at\": integer = alert.raised_at,\n});";
        let columns: BTreeSet<&str> = columns(record).collect();
        assert_eq!(columns, BTreeSet::from(["raised_at"]));
        let query = |name: &str| {
            format!("fn f() {{ Query::new().equal(\"{name}\", 0).order_by(\"raised_at\") }}")
        };
        let check = |text: String| unknown("bus/src/lib.rs", &text, &columns).unwrap();
        assert_eq!(check(query("raised_at")), Vec::<String>::new());
        assert_eq!(
            check(query("raised")),
            ["`bus/src/lib.rs`: no record has a column `raised`"]
        );
        let in_tests = format!("mod tests {{ {} }}", query("raised"));
        assert_eq!(check(in_tests), Vec::<String>::new());
    }
}
