//! Finds the parts of a command in the tree of a text, and where they begin.

use tree_sitter::Node;

/// Returns where the command at `node` begins, behind the redirections that stand in front of it.
pub(super) fn own_start(node: Node<'_>) -> usize {
    let name = node.child_by_field_name("name");
    name.unwrap_or(node).start_byte()
}

/// Returns where the file of a redirection is opened: that of a group before what is in it.
pub(super) fn opened_at(redirect: Node<'_>) -> usize {
    let group = redirect
        .parent()
        .and_then(|around| around.child_by_field_name("body"))
        .filter(|body| body.start_byte() < redirect.start_byte())
        .filter(|body| {
            matches!(
                body.kind(),
                "compound_statement" | "if_statement" | "case_statement"
            )
        });
    group.unwrap_or(redirect).start_byte()
}

/// Returns the statement whose redirections are those of the command at `node`: of several commands the last has them.
pub(super) fn redirected(node: Node<'_>) -> Option<Node<'_>> {
    let mut inner = node;
    loop {
        let around = inner.parent()?;
        match around.kind() {
            "redirected_statement" => {
                let body = around.child_by_field_name("body");
                return Some(around).filter(|_| body == Some(inner));
            }
            "list" | "pipeline" | "negated_command" if around.end_byte() == inner.end_byte() => {
                inner = around;
            }
            _ => return None,
        }
    }
}

/// Returns the arguments of the command at `node` that stand behind its redirections, which the grammar takes for parts of
/// those.
pub(super) fn arguments_behind(node: Node<'_>) -> Vec<Node<'_>> {
    let around = redirected(node);
    let mut redirects = around.map_or_else(Vec::new, |around| named(around, "redirect"));
    redirects.reverse();
    let mut arguments = Vec::new();
    while let Some(redirect) = redirects.pop() {
        arguments.extend(named(redirect, "destination").into_iter().skip(1));
        // Those of a document.
        arguments.extend(named(redirect, "argument"));
        redirects.extend(named(redirect, "redirect"));
    }
    arguments
}

/// Returns the children of `node` in a field.
pub(super) fn named<'tree>(node: Node<'tree>, field: &str) -> Vec<Node<'tree>> {
    let mut cursor = node.walk();
    let found = node.children_by_field_name(field, &mut cursor);
    found.collect()
}
