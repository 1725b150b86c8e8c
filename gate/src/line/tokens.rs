//! Cuts a shell line into words and operators.

/// The operators, longer ones before their beginnings.
const OPERATORS: &[&str] = &[
    ";;&", "<<<", "<<-", "&>>", "&&", "||", "|&", ";;", ";&", "<<", ">>", "<&", ">&", "<>", ">|",
    "&>", "|", "&", ";", "(", ")", "<", ">", "\n",
];

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
                let length = double_quoted(&rest[1..], &mut word.text)?;
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
                let length = enclosed(rest)?;
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

/// Lists the lines that the shell runs to make a word.
pub(crate) fn substitutions(word: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = word[at..].find(['$', '`', '<', '>']) {
        at += next;
        let rest = &word[at..];
        let length = opens(rest).then(|| enclosed(rest)).flatten();
        match length {
            // A value may be made of such a line, too.
            Some(length) if !rest.starts_with("${") => {
                let begin = if rest.starts_with('`') { 1 } else { 2 };
                found.push(&rest[begin..length - 1]);
                at += length;
            }
            _ => at += 1,
        }
    }
    found
}

/// Takes what stands in double quotes, whose opening is gone; returns how long it is with the closing one.
fn double_quoted(rest: &str, text: &mut String) -> Option<usize> {
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
                let length = enclosed(&rest[at..])?;
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

/// Returns how long a substitution is, its brackets included.
fn enclosed(rest: &str) -> Option<usize> {
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
            '"' => at += double_quoted(&rest[at + 1..], &mut String::new())?,
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
