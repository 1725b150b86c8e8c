//! Makes messages of text: marks become spans counted in UTF-16, and what is too long is cut between blocks. Secrets are
//! struck out here, for everything that is said comes by.

use std::borrow::Cow;

use ropewalk_runtime::secrets;

/// The most UTF-16 units of one message.
const MOST: usize = 4_096;

/// How a span looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Code,
    Block,
}

/// A part of a text, in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) style: Style,
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// A text without marks, and how its parts look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StyledText {
    pub(crate) plain: String,
    pub(crate) spans: Vec<Span>,
}

/// The marks, the longest first.
const MARKS: [(&str, Style); 3] = [
    ("```", Style::Block),
    ("**", Style::Bold),
    ("`", Style::Code),
];

impl StyledText {
    /// Reads the marks of a text; one without an end is left as it is.
    pub(crate) fn of(text: &str) -> Self {
        let text = secrets::strike(text);
        let mut styled = Self::default();
        let mut rest = text.as_ref();
        while let Some((before, mark, style, inner, after)) = next(rest) {
            styled.plain.push_str(before);
            let offset = units(&styled.plain);
            // The name of a language stands behind the mark of a block.
            let inner = match (style, inner.split_once('\n')) {
                (Style::Block, Some((_, code))) => code.trim_end_matches('\n').into(),
                // Telegram knows no code that is bold.
                (Style::Bold, _) => inner.replace('`', "").into(),
                _ => Cow::Borrowed(inner),
            };
            if inner.is_empty() {
                styled.plain.push_str(mark);
                styled.plain.push_str(mark);
            } else {
                styled.plain.push_str(&inner);
                styled.spans.push(Span {
                    style,
                    offset,
                    length: units(&inner),
                });
            }
            rest = after;
        }
        styled.plain.push_str(rest);
        styled
    }
}

/// Finds the next part between two marks: what is before, the mark, what is inside, what is after.
fn next(text: &str) -> Option<(&str, &'static str, Style, &str, &str)> {
    let found = MARKS.iter().filter_map(|(mark, style)| {
        let (before, rest) = text.split_once(mark)?;
        let (inner, after) = rest.split_once(mark)?;
        let whole = *style == Style::Block || !inner.contains('\n');
        whole.then_some((before, *mark, *style, inner, after))
    });
    // The first wins, and of two at one place the longer mark, which comes first.
    found.min_by_key(|(before, ..)| before.len())
}

/// Counts a text as Telegram does.
pub(crate) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Cuts a text to messages: between paragraphs where that does, else between lines, else anywhere.
pub(crate) fn messages(text: &str) -> Vec<StyledText> {
    let mut pieces = Vec::new();
    // Before a cut leaves a part of one.
    pack(&secrets::strike(text), &["\n\n", "\n"], &mut pieces);
    pieces.iter().map(|piece| StyledText::of(piece)).collect()
}

fn pack(text: &str, separators: &[&str], pieces: &mut Vec<String>) {
    let Some((separator, finer)) = separators.split_first() else {
        let mut piece = String::new();
        for letter in text.chars() {
            if units(&piece) + letter.len_utf16() > MOST {
                pieces.push(std::mem::take(&mut piece));
            }
            piece.push(letter);
        }
        pieces.push(piece);
        return;
    };
    let mut piece = String::new();
    for part in text.split(separator) {
        let joined = units(&piece) + units(separator) + units(part);
        if !piece.is_empty() && joined > MOST {
            pieces.push(std::mem::take(&mut piece));
        }
        if units(part) > MOST {
            pack(part, finer, pieces);
            piece = pieces.pop().unwrap_or_default();
            continue;
        }
        if !piece.is_empty() {
            piece.push_str(separator);
        }
        piece.push_str(part);
    }
    pieces.push(piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_spans_in_utf_16_and_nothing_has_to_be_escaped() {
        let text = StyledText::of("😀 **Yes** _no_ <b> `a*b` **open\n```diff\n+ä\n-b\n```");
        assert_eq!(text.plain, "😀 Yes _no_ <b> a*b **open\n+ä\n-b");
        let spans: Vec<_> = text
            .spans
            .iter()
            .map(|span| (span.style, span.offset, span.length))
            .collect();
        assert_eq!(
            spans,
            [
                (Style::Bold, 3, 3),
                (Style::Code, 16, 3),
                (Style::Block, 27, 5)
            ]
        );
        assert_eq!(StyledText::of("a **** b").plain, "a **** b");
        let title = StyledText::of("**The build of `walks` ended**");
        assert_eq!(title.plain, "The build of walks ended");
        assert_eq!(title.spans.len(), 1);
    }

    #[test]
    fn what_is_too_long_is_cut_between_blocks_and_nothing_is_lost() {
        let paragraph = "x".repeat(3_000);
        let cut = messages(&format!("{paragraph}\n\n{paragraph}\n\nend"));
        let lengths: Vec<usize> = cut.iter().map(|piece| units(&piece.plain)).collect();
        assert_eq!(lengths, [3_000, 3_005]);
        // Each takes two units.
        let faces = "😀".repeat(2_049);
        let cut = messages(&faces);
        let lengths: Vec<usize> = cut.iter().map(|piece| units(&piece.plain)).collect();
        assert_eq!(lengths, [4_096, 2]);
        let joined: String = cut.into_iter().map(|piece| piece.plain).collect();
        assert_eq!(joined, faces);
        assert_eq!(messages("").len(), 1);
    }
}
