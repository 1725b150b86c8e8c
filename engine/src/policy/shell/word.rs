//! Reads one word of a shell line as far as it is known before the line runs.

use tree_sitter::Node;

/// Is a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// What the command gets; where that is not known, as it stands in the line.
    pub(super) text: String,
    /// Whether all of it is known.
    pub(super) is_fixed: bool,
    /// Whether the shell makes other words of it, by the names of files or by what stands in braces.
    pub(super) is_pattern: bool,
    /// Whether the shell may make other words of what it comes to: a part that is not known stands outside of quotes.
    pub(super) is_bare: bool,
    /// How many bytes at the beginning of `text` stand so in the line.
    pub(super) written_start: usize,
    /// How many bytes at the end of `text` are known.
    fixed_end: usize,
}

impl Default for Word {
    /// Returns the word without a letter.
    fn default() -> Self {
        Self {
            text: String::new(),
            is_fixed: true,
            is_pattern: false,
            is_bare: false,
            written_start: 0,
            fixed_end: 0,
        }
    }
}

impl Word {
    /// Reads the word at `node` of `source`.
    pub(super) fn read(node: Node<'_>, source: &str) -> Self {
        let mut word = Self::default();
        word.take(node, source);
        let written = source.get(node.byte_range()).unwrap_or_default();
        let written = written.trim_start_matches(['"', '\'']);
        let pairs = word.text.bytes().zip(written.bytes());
        word.written_start = pairs.take_while(|(text, written)| text == written).count();
        word
    }

    /// Returns a word of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self {
            is_fixed: false,
            ..Self::default()
        }
    }

    /// Returns the beginning, up to the last part that is not known, and the known rest.
    pub(super) fn split(&self) -> (&str, &str) {
        self.text.split_at(self.text.len() - self.fixed_end)
    }

    /// Returns what `target` comes to where its beginning is `prefix` and a variable of this value.
    pub(super) fn instead_of(&self, target: &Self, prefix: &str) -> Self {
        let mut word = self.clone();
        word.text.insert_str(0, prefix);
        if word.is_fixed {
            word.fixed_end = word.text.len();
        }
        word.fixed(target.split().1);
        word.is_bare = target.is_bare;
        word
    }

    /// Returns the last part of a path, where it is known and there is one.
    pub(super) fn base(&self) -> Option<&str> {
        let (_, known) = self.split();
        let base = match known.rsplit_once('/') {
            Some((_, base)) => base,
            None if self.is_fixed => known,
            None => return None,
        };
        Some(base).filter(|base| !base.is_empty())
    }

    /// Takes in the parts below `node`: words nest only where a substitution is, and that is not entered.
    fn take(&mut self, node: Node<'_>, source: &str) {
        let text = source.get(node.byte_range()).unwrap_or_default();
        match node.kind() {
            "word" | "number" | "test_operator" | "regex" => {
                self.is_pattern |= is_pattern(text);
                let text = self.home(text);
                self.fixed(&plain(text));
            }
            "raw_string" => self.fixed(text.trim_matches('\'')),
            "command_name" | "concatenation" | "string" => self.parts(node, source),
            "string_content" => self.fixed(&quoted(text)),
            _ => {
                let around = node.parent();
                self.is_bare |= around.is_none_or(|around| around.kind() != "string");
                self.text.push_str(text);
                self.is_fixed = false;
                self.fixed_end = 0;
            }
        }
    }

    fn parts(&mut self, node: Node<'_>, source: &str) {
        let quotes = usize::from(node.kind() == "string");
        let mut at = node.start_byte() + quotes;
        let end = node.end_byte() - quotes;
        let mut cursor = node.walk();
        for part in node.named_children(&mut cursor) {
            // Blanks between the parts of a string are no node of their own.
            self.between(&node, source.get(at..part.start_byte()));
            self.take(part, source);
            at = part.end_byte();
        }
        self.between(&node, source.get(at..end));
    }

    /// Takes in what stands between the parts of a word.
    fn between(&mut self, node: &Node<'_>, text: Option<&str>) {
        let text = text.unwrap_or_default();
        if node.kind() == "string" {
            self.fixed(text);
        } else {
            self.is_pattern |= is_pattern(text);
            let text = self.home(text);
            self.fixed(text);
        }
    }

    /// Takes in the `~` with which a word without quotes may begin, and returns the rest: where it leads is not known.
    fn home<'a>(&mut self, text: &'a str) -> &'a str {
        if !self.text.is_empty() || !text.starts_with('~') {
            return text;
        }
        let (home, rest) = text.split_at(text.find('/').unwrap_or(text.len()));
        self.text.push_str(home);
        self.is_fixed = false;
        self.fixed_end = 0;
        rest
    }

    fn fixed(&mut self, text: &str) {
        self.text.push_str(text);
        self.fixed_end += text.len();
    }
}

/// Says whether a text without quotes stands for other words.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// Takes the backslashes out of an unquoted word.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.extend(letters.next().filter(|next| *next != '\n')),
            letter => out.push(letter),
        }
    }
    out
}

/// Takes those backslashes out of a double-quoted text that mean something there.
fn quoted(text: &str) -> String {
    unescaped(text, &['"', '\\', '$', '`'])
}

/// Takes out the backslashes in front of these letters, and the ends of lines behind others.
fn unescaped(text: &str, meant: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek().copied()) {
            ('\\', Some('\n')) => {
                letters.next();
            }
            ('\\', Some(next)) if meant.contains(&next) => {
                letters.next();
                out.push(next);
            }
            _ => out.push(letter),
        }
    }
    out
}

/// Reads the text of the document with the body `node` whose end is marked by `mark`; none where the shell puts something in
/// that is not known.
pub(super) fn document(node: Node<'_>, mark: &str, source: &str) -> Option<String> {
    let text = source.get(node.byte_range())?;
    if mark.contains(['\'', '"', '\\']) {
        return Some(text.to_owned());
    }
    let mut cursor = node.walk();
    let mut parts = node.named_children(&mut cursor);
    let is_known = parts.all(|part| part.kind() == "heredoc_content");
    // The grammar does not look for these.
    let plain = text.replace("\\\\", "").replace("\\`", "");
    let is_known = is_known && !plain.contains('`');
    Some(unescaped(text, &['\\', '$', '`'])).filter(|_| is_known)
}
