//! Cuts a shell line into words and operators.

/// The operators, longer ones before their beginnings.
const OPERATORS: &[&str] = &[
    ";;&", "<<<", "<<-", "&>>", "&&", "||", "|&", ";;", ";&", "<<", ">>", "<&", ">&", "<>", ">|",
    "&>", "|", "&", ";", "(", ")", "<", ">", "\n",
];

/// So deep quotes and substitutions may lie in each other: whoever follows them needs stack for each.
pub(super) const DEEPEST_NESTING: usize = 64;
/// So many substitutions of a word may be left open, or lie in each other: each is looked through to its end.
const MOST_OPEN: usize = 64;

/// A piece of a shell line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, its quotes taken off.
    Word {
        text: String,
        /// Whether a part of it was quoted, so that it is no word of the shell itself.
        quoted: bool,
        /// Where it ends.
        end: usize,
    },
    /// An operator or a line end.
    Operator { text: &'static str, end: usize },
}

/// Cuts a line; none when a quote or a bracket is not closed.
pub(super) fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = line[at..].chars().next() {
        if letter == '\n' || !letter.is_whitespace() {
            if letter == '#' {
                at += line[at..].find('\n').unwrap_or(line.len() - at);
                continue;
            }
            if line[at..].starts_with("\\\n") {
                at += 2;
                continue;
            }
            let (token, end) = token(line, at)?;
            found.push(token);
            at = end;
        } else {
            at += letter.len_utf8();
        }
    }
    Some(found)
}

fn token(line: &str, at: usize) -> Option<(Token, usize)> {
    let rest = &line[at..];
    let substitution = rest.starts_with("<(") || rest.starts_with(">(");
    let operator = OPERATORS
        .iter()
        .find(|operator| rest.starts_with(**operator));
    if let Some(text) = operator.filter(|_| !substitution) {
        let end = at + text.len();
        return Some((Token::Operator { text, end }, end));
    }
    let word = word(line, at)?;
    // The number of a redirected stream belongs to the redirection.
    let next = line[word.end..].chars().next();
    let numbered =
        word.text.chars().all(|letter| letter.is_ascii_digit()) && matches!(next, Some('<' | '>'));
    if numbered && !word.quoted {
        return token(line, word.end);
    }
    let Word { text, quoted, end } = word;
    Some((Token::Word { text, quoted, end }, end))
}

struct Word {
    text: String,
    quoted: bool,
    end: usize,
}

fn word(line: &str, start: usize) -> Option<Word> {
    let mut word = Word {
        text: String::new(),
        quoted: false,
        end: start,
    };
    while let Some(letter) = line[word.end..].chars().next() {
        let rest = &line[word.end..];
        match letter {
            '\'' => {
                let inner = rest[1..].find('\'')?;
                word.text.push_str(&rest[1..=inner]);
                word.quoted = true;
                word.end += inner + 2;
            }
            '"' => {
                let length = double_quoted(&rest[1..], &mut word.text, 0)?;
                word.quoted = true;
                word.end += length + 1;
            }
            '\\' => {
                let next = rest[1..].chars().next()?;
                if next != '\n' {
                    word.text.push(next);
                }
                word.quoted = true;
                word.end += 1 + next.len_utf8();
            }
            '$' | '`' | '<' | '>' if opens(rest) => {
                let length = enclosed(rest, 0)?;
                word.text.push_str(&rest[..length]);
                word.end += length;
            }
            _ if letter.is_whitespace() || "|&;()<>".contains(letter) => break,
            _ => {
                word.text.push(letter);
                word.end += letter.len_utf8();
            }
        }
    }
    Some(word)
}

/// Says whether a substitution begins here.
fn opens(rest: &str) -> bool {
    ["$(", "${", "`", "<(", ">("]
        .iter()
        .any(|opening| rest.starts_with(opening))
}

/// A part of a word that a shell makes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Substitution<'a> {
    /// What a line tells that the shell runs.
    Line(&'a str),
    /// What stands in the braces of `${…}`.
    Value(&'a str),
}

/// Lists the substitutions of a word in order, each with where it begins and ends. One that lies in the value of another one comes
/// behind that.
pub(super) fn parts(word: &str) -> Vec<(usize, usize, Substitution<'_>)> {
    let mut found = Vec::new();
    let (mut at, mut open) = (0, 0);
    // Where the values end that this place lies in.
    let mut ends: Vec<usize> = Vec::new();
    while let Some(next) = word[at..].find(['$', '`', '<', '>']) {
        at += next;
        let rest = &word[at..];
        ends.retain(|end| *end > at);
        let is_looked_at = opens(rest) && open + ends.len() < MOST_OPEN;
        let length = is_looked_at.then(|| enclosed(rest, 0)).flatten();
        let Some(length) = length else {
            open += usize::from(is_looked_at);
            at += 1;
            continue;
        };
        let begin = if rest.starts_with('`') { 1 } else { 2 };
        let inner = &rest[begin..length - 1];
        if rest.starts_with("${") {
            found.push((at, at + length, Substitution::Value(inner)));
            ends.push(at + length);
            at += begin;
        } else {
            found.push((at, at + length, Substitution::Line(inner)));
            at += length;
        }
    }
    found
}

/// Lists the lines that the shell runs to make a word; a value may be made of such a line, too.
pub(crate) fn substitutions(word: &str) -> Vec<&str> {
    let parts = parts(word).into_iter();
    let lines = parts.filter_map(|(_, _, part)| match part {
        Substitution::Line(line) => Some(line),
        Substitution::Value(_) => None,
    });
    lines.collect()
}

/// Takes what stands in double quotes, whose opening is gone; returns how long it is with the closing one.
fn double_quoted(rest: &str, text: &mut String, depth: usize) -> Option<usize> {
    let mut at = 0;
    loop {
        let letter = rest[at..].chars().next()?;
        match letter {
            '"' => return Some(at + 1),
            '\\' => {
                let next = rest[at + 1..].chars().next()?;
                if !"\"\\$`\n".contains(next) {
                    text.push('\\');
                }
                if next != '\n' {
                    text.push(next);
                }
                at += 1 + next.len_utf8();
            }
            '$' | '`' if opens(&rest[at..]) => {
                let length = enclosed(&rest[at..], depth + 1)?;
                text.push_str(&rest[at..at + length]);
                at += length;
            }
            _ => {
                text.push(letter);
                at += letter.len_utf8();
            }
        }
    }
}

/// Returns how long a substitution is, its brackets included; none where it is not closed, or lies too deep in others.
fn enclosed(rest: &str, nesting: usize) -> Option<usize> {
    if nesting > DEEPEST_NESTING {
        return None;
    }
    if let Some(inner) = rest.strip_prefix('`') {
        return inner.find('`').map(|end| end + 2);
    }
    let (open, close) = if rest[1..].starts_with('(') {
        ('(', ')')
    } else {
        ('{', '}')
    };
    let mut depth = 0_usize;
    let mut at = 1;
    loop {
        let letter = rest[at..].chars().next()?;
        match letter {
            '\'' if open == '(' => at += rest[at + 1..].find('\'')? + 1,
            '"' => at += double_quoted(&rest[at + 1..], &mut String::new(), nesting + 1)?,
            '\\' => at += rest[at + 1..].chars().next()?.len_utf8(),
            _ if letter == open => depth += 1,
            _ if letter == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += letter.len_utf8();
    }
}
