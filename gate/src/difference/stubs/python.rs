//! Finds Python functions whose body is `...` and nothing else.

/// Says whether line `position` is the whole body of a function that should have one.
///
/// An overload, an abstract method and a protocol have none; a stub file is made of them.
pub(super) fn is_empty_body(file: &str, lines: &[&str], position: usize) -> bool {
    if file.rsplit_once('.').map(|(_, extension)| extension) != Some("py") {
        return false;
    }
    let code = code_of(lines[position]);
    let head = if is_function(code) {
        code.ends_with(": ...").then_some(position)
    } else {
        (code == "...").then(|| head_of(lines, position)).flatten()
    };
    head.is_some_and(|head| !is_declaration(lines, head))
}

fn code_of(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim()
}

fn is_function(code: &str) -> bool {
    code.starts_with("def ") || code.starts_with("async def ")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns where the function begins that has this line alone for a body.
fn head_of(lines: &[&str], position: usize) -> Option<usize> {
    let own = indent(lines[position]);
    let blank = |line: &str| line.trim().is_empty() || line.trim().starts_with('#');
    let next = lines[position + 1..].iter().find(|line| !blank(line));
    if next.is_some_and(|next| indent(next) >= own) {
        return None;
    }
    let mut text_ends = None;
    let mut at = position;
    // A text about the function may stand before the body, and its head may take several lines.
    while at > 0 {
        at -= 1;
        let line = lines[at];
        if blank(line) {
            continue;
        }
        let quotes = line.matches("\"\"\"").count() + line.matches("'''").count();
        if quotes == 1 {
            text_ends = if text_ends.is_none() { Some(at) } else { None };
            continue;
        }
        if text_ends.is_some() || (quotes == 2 && indent(line) == own) {
            continue;
        }
        if indent(line) >= own {
            return None;
        }
        let closes = code_of(line);
        if is_function(closes) {
            return Some(at);
        }
        if !closes.starts_with(')') {
            return None;
        }
        let level = indent(line);
        let begin = lines[..at]
            .iter()
            .rposition(|line| !blank(line) && indent(line) <= level)?;
        return is_function(lines[begin].trim()).then_some(begin);
    }
    None
}

/// Says whether a function only declares.
fn is_declaration(lines: &[&str], head: usize) -> bool {
    let level = indent(lines[head]);
    let above = lines[..head].iter().rev();
    let decorated = above
        .take_while(|line| line.trim().starts_with('@'))
        .any(|line| line.contains("overload") || line.contains("abstract"));
    let mut outer = lines[..head]
        .iter()
        .rev()
        .filter(|line| !line.trim().is_empty());
    let class = outer.find(|line| indent(line) < level);
    decorated
        || class
            .is_some_and(|class| class.trim().starts_with("class ") && class.contains("Protocol"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        let lines: Vec<&str> = text.lines().collect();
        (0..lines.len())
            .filter(|position| is_empty_body("a.py", &lines, *position))
            .collect()
    }

    #[test]
    fn a_function_without_a_body_is_told_from_a_declaration() {
        let stubs: [(&str, &[usize]); 6] = [
            ("def a():\n    ...\n", &[1]),
            (
                "def a(\n    b,\n):\n    \"\"\"Adds.\"\"\"\n    ...  # later\n\nx = 1\n",
                &[4],
            ),
            (
                "class A:\n    async def a(self):\n        \"\"\"Adds\n        more.\n        \"\"\"\n        ...\n",
                &[5],
            ),
            ("def a(): ...\ndef b():\n    return 1\n", &[0]),
            ("def a():\n    ...\n    return 1\n", &[]),
            ("def a():\n    x = 1\n    ...\n", &[]),
        ];
        for (text, expected) in stubs {
            assert_eq!(found(text), expected, "{text}");
        }
        let declarations = [
            "@overload\ndef a(x: int) -> int: ...\n",
            "class A(ABC):\n    @abstractmethod\n    def a(self):\n        ...\n",
            "class A(Protocol):\n    def a(self) -> int: ...\n",
            "class A(Exception):\n    ...\n",
            "x = a[...]\n",
        ];
        for text in declarations {
            assert_eq!(found(text), [0_usize; 0], "{text}");
        }
    }
}
