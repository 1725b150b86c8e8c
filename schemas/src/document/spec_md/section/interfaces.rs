//! Reads and writes the interfaces of spec.md: signatures as code, each with the tasks that make and use it.

use super::super::super::DocumentError;
use super::super::super::escape::{Place, unescaped};
use super::super::super::front::Line;
use super::{bare, cell, indented, list_or_table, read_either, table, value, written_item};
use crate::ids::TaskId;
use crate::specification::Interface;

/// How a line begins that tells who makes a signature, and how it goes on with those who use it.
const MADE_BY: &str = "made by ";
const USED_BY: &str = "used by ";
/// The shortest fence of a block of code.
const FENCE: usize = 3;

/// Writes a list of blocks of code; a table where code would not come back as it is.
pub(super) fn written(interfaces: &[Interface]) -> String {
    let list: String = interfaces.iter().map(item).collect();
    list_or_table(interfaces, list, || rows(interfaces), read)
}

fn item(interface: &Interface) -> String {
    let signature = &interface.signature;
    if interface.made_by.is_none() && interface.used_by.is_empty() {
        return written_item("", signature);
    }
    let fence = "`".repeat(longest_run(signature).max(FENCE - 1) + 1);
    let code = indented(signature);
    format!("- {}:\n  {fence}\n{code}  {fence}\n", who(interface))
}

fn who(interface: &Interface) -> String {
    let made_by = interface.made_by.as_ref();
    let made_by = made_by.map(|task| format!("{MADE_BY}{task}"));
    let used_by: Vec<&str> = interface.used_by.iter().map(TaskId::as_str).collect();
    let used_by = Some(format!("{USED_BY}{}", used_by.join(", ")));
    let used_by = used_by.filter(|_| !interface.used_by.is_empty());
    let both: Vec<String> = made_by.into_iter().chain(used_by).collect();
    both.join("; ")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|letter| letter != '`');
    runs.map(str::len).max().unwrap_or_default()
}

fn rows(interfaces: &[Interface]) -> String {
    let rows = interfaces.iter().map(|interface| {
        let made_by = interface.made_by.as_ref().map(ToString::to_string);
        let used_by: Vec<&str> = interface.used_by.iter().map(TaskId::as_str).collect();
        [
            format!("`{}`", cell(&interface.signature)),
            made_by.unwrap_or_default(),
            used_by.join(", "),
        ]
    });
    table(["Signature", "Made by", "Used by"], rows)
}

/// Reads either form.
pub(super) fn read(lines: &[Line<'_>]) -> Result<Vec<Interface>, DocumentError> {
    read_either(lines, read_item, read_row)
}

fn read_row(
    line: usize,
    [signature, made_by, used_by]: [String; 3],
) -> Result<Interface, DocumentError> {
    Ok(Interface {
        signature: unescaped(bare(&signature), Place::Cell),
        made_by: ids(line, &made_by)?.pop(),
        used_by: ids(line, &used_by)?,
    })
}

fn read_item(line: usize, item: &str) -> Result<Interface, DocumentError> {
    let Some((who, signature)) = code(item) else {
        return Ok(Interface::plain(unescaped(item, Place::Item)));
    };
    let (made_by, used_by) = match who.split_once("; ") {
        Some((made_by, used_by)) => (made_by, used_by),
        None if who.starts_with(USED_BY) => ("", who),
        None => (who, ""),
    };
    let after = |text: &str, word| ids(line, text.strip_prefix(word).unwrap_or(text));
    Ok(Interface {
        signature: signature.to_owned(),
        made_by: after(made_by, MADE_BY)?.pop(),
        used_by: after(used_by, USED_BY)?,
    })
}

/// Parts an item into who makes and uses it, and its code; none where it holds no block of code.
fn code(item: &str) -> Option<(&str, &str)> {
    let (who, block) = item.split_once(":\n")?;
    let told = who.starts_with(MADE_BY) || who.starts_with(USED_BY);
    let (fence, rest) = block.split_once('\n').filter(|_| told)?;
    let is_fence = fence.len() >= FENCE && fence.bytes().all(|byte| byte == b'`');
    let signature = rest.strip_suffix(fence).filter(|_| is_fence)?;
    Some((who, signature.strip_suffix('\n')?))
}

fn ids(line: usize, text: &str) -> Result<Vec<TaskId>, DocumentError> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(|name| value::<TaskId>(line, name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_code_that_a_person_can_read() {
        let task = |name| TaskId::parse(name).unwrap();
        let interface = Interface {
            signature: "class Ledger:\n\n    def add(self, day) -> None".to_owned(),
            made_by: Some(task("T-001")),
            used_by: vec![task("T-002"), task("T-003")],
        };
        let there = Interface {
            signature: "def streak(days)".to_owned(),
            made_by: None,
            used_by: vec![task("T-001")],
        };
        assert_eq!(
            written(&[interface, there, Interface::plain("`main()` exits")]),
            "- made by T-001; used by T-002, T-003:\n  ```\n  class Ledger:\n\n      def add(self, day) -> None\n  ```\n\
             - used by T-001:\n  ```\n  def streak(days)\n  ```\n- `main()` exits\n"
        );
    }
}
