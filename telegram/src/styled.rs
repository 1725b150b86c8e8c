//! Makes messages of text: marks become spans counted in UTF-16, and what is too long is cut between blocks. Secrets are
//! struck out here, and letters that a phone would obey are shown, for everything that is said comes by.

use std::borrow::Cow;

use ropewalk_runtime::{secrets, terminal};
use ropewalk_schemas::clip;

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

/// The marks within a line, the longest first.
const MARKS: [(&str, Style); 3] = [
    ("```", Style::Code),
    ("**", Style::Bold),
    ("`", Style::Code),
];
/// How many of these begin and end a block of lines, at least.
const FENCE: &str = "```";

impl StyledText {
    /// Reads the marks of a text; one without an end is left as it is. In a block nothing is a mark.
    pub(crate) fn of(text: &str) -> Self {
        let text = line(text);
        let mut styled = Self::default();
        let mut rest = text.as_ref();
        while let Some((before, code, after)) = block(rest) {
            styled.read(before);
            styled.push(code, Style::Block);
            rest = after;
        }
        styled.read(rest);
        styled
    }

    /// Reads the marks within lines.
    fn read(&mut self, mut rest: &str) {
        while let Some((before, mark, style, inner, after)) = next(rest) {
            self.plain.push_str(before);
            // Telegram knows no code that is bold.
            let inner = match style {
                Style::Bold => inner.replace('`', "").into(),
                Style::Code | Style::Block => Cow::Borrowed(inner),
            };
            if inner.is_empty() {
                self.plain.push_str(mark);
                self.plain.push_str(mark);
            }
            self.push(&inner, style);
            rest = after;
        }
        self.plain.push_str(rest);
    }

    fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        self.spans.push(Span {
            style,
            offset: units(&self.plain),
            length: units(text),
        });
        self.plain.push_str(text);
    }

    /// Returns the piece of it that begins at a unit, with how its parts look.
    fn piece(&self, begin: usize, plain: &str) -> Self {
        let end = begin + units(plain);
        let spans = self.spans.iter().filter_map(|span| {
            let offset = span.offset.max(begin);
            let length = (span.offset + span.length).min(end).checked_sub(offset)?;
            (length > 0).then_some(Span {
                style: span.style,
                offset: offset - begin,
                length,
            })
        });
        Self {
            plain: plain.to_owned(),
            spans: spans.collect(),
        }
    }

    /// Returns whether a unit lies in a block of lines.
    fn is_block(&self, unit: usize) -> bool {
        self.spans.iter().any(|span| {
            span.style == Style::Block && (span.offset..span.offset + span.length).contains(&unit)
        })
    }

    /// Says where `rest`, which begins at a unit, is cut: how many bytes of it go into one message, and how many behind them
    /// stand for the cut. No paragraph is seen in a block, whose empty lines are a part of it.
    fn cut(&self, begin: usize, rest: &str) -> (usize, usize) {
        let most = fitting(rest);
        if most == rest.len() {
            return (most, 0);
        }
        let last = |separator: &str, may: &dyn Fn(usize) -> bool| {
            let places = rest.match_indices(separator).map(|(place, _)| place);
            let places = places.take_while(|place| *place <= most);
            places.filter(|place| *place > 0 && may(*place)).last()
        };
        let is_paragraph = |place: usize| !self.is_block(begin + units(&rest[..place]));
        if let Some(place) = last("\n\n", &is_paragraph) {
            return (place, 2);
        }
        match last("\n", &|_| true) {
            Some(place) => (place, 1),
            None => (most, 0),
        }
    }
}

/// Strikes out secrets of what is shown as it is, and shows what a phone would obey.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    match secrets::strike(text) {
        Cow::Borrowed(text) => terminal::visible(text),
        Cow::Owned(text) => Cow::Owned(terminal::visible(&text).into_owned()),
    }
}

/// Finds the first block of lines: what is before, its lines, what is behind the line that ends it. One without an end goes
/// on to the end of the text, which may be a part of a longer one.
fn block(text: &str) -> Option<(&str, &str, &str)> {
    let mut place = 0;
    let mut begun: Option<(usize, usize, usize)> = None;
    for line in text.split_inclusive('\n') {
        let ticks = line.len() - line.trim_start_matches('`').len();
        let behind = &line[ticks..];
        match begun {
            None if ticks >= FENCE.len() && !behind.contains('`') => {
                begun = Some((place, place + line.len(), ticks));
            }
            Some((before, code, fence)) if ticks >= fence && behind.trim().is_empty() => {
                let lines = text[code..place].trim_end_matches('\n');
                return Some((&text[..before], lines, &text[place + ticks..]));
            }
            _ => {}
        }
        place += line.len();
    }
    let (before, code, _) = begun?;
    Some((&text[..before], text[code..].trim_end_matches('\n'), ""))
}

/// Finds the next part between two marks: what is before, the mark, what is inside, what is after.
fn next(text: &str) -> Option<(&str, &'static str, Style, &str, &str)> {
    let found = MARKS.iter().filter_map(|(mark, style)| {
        let (before, rest) = text.split_once(mark)?;
        let (inner, after) = rest.split_once(mark)?;
        (!inner.contains('\n')).then_some((before, *mark, *style, inner, after))
    });
    // The first wins, and of two at one place the longer mark, which comes first.
    found.min_by_key(|(before, ..)| before.len())
}

/// Counts a text as Telegram does.
pub(crate) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns how many bytes of a text fit into one message, without half of what is read as one sign.
fn fitting(text: &str) -> usize {
    let mut taken = 0;
    let mut letters = text.char_indices();
    let over = letters.find(|(_, letter)| {
        taken += letter.len_utf16();
        taken > MOST
    });
    over.map_or(text.len(), |(place, _)| clip::sign_before(text, place))
}

/// Cuts a text to messages: between paragraphs where that does, else between lines, else anywhere. What is marked stays so
/// on both sides of a cut.
pub(crate) fn messages(text: &str) -> Vec<StyledText> {
    let whole = StyledText::of(text);
    let mut pieces = Vec::new();
    let (mut begin, mut rest) = (0, whole.plain.as_str());
    loop {
        let (length, gap) = whole.cut(begin, rest);
        let piece = &rest[..length];
        // Telegram takes no message in which there is nothing to see.
        if !piece.trim().is_empty() {
            pieces.push(whole.piece(begin, piece));
        }
        begin += units(piece) + gap;
        rest = &rest[length + gap..];
        if rest.is_empty() {
            break;
        }
    }
    if pieces.is_empty() {
        pieces.push(StyledText::default());
    }
    pieces
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
    fn in_a_block_nothing_is_a_mark_and_its_own_line_alone_ends_it() {
        let code = "+`a` **b** ```c```\n+```\n ```\n-<b>";
        for (fence, end) in [("```", "\n```\nend"), ("````", "\n````\nend"), ("```", "")] {
            let text = StyledText::of(&format!("a **b**\n{fence}diff\n{code}{end}"));
            let behind = end.rsplit('`').next().unwrap_or_default();
            assert_eq!(text.plain, format!("a b\n{code}{behind}"), "{fence}");
            let looks = |span: &Span| (span.style, span.offset, span.length);
            let spans: Vec<_> = text.spans.iter().map(looks).collect();
            assert_eq!(
                spans,
                [(Style::Bold, 2, 1), (Style::Block, 4, units(code))],
                "{fence}"
            );
        }
        assert_eq!(StyledText::of("see ```a*b``` there").plain, "see a*b there");
    }

    #[test]
    fn a_block_is_whole_on_both_sides_of_a_cut() {
        let lines: Vec<String> = (0..300)
            .map(|number| format!("+line {number} of `it` **is** 😀\n\n"))
            .collect();
        let code = lines.concat();
        let code = code.trim_end();
        let cut = messages(&format!("**Take it?**\n\n```diff\n{code}\n```\n\n• Yes"));
        assert!(cut.len() > 2);
        let mut read = Vec::new();
        for piece in &cut {
            assert!(units(&piece.plain) <= MOST);
            let letters: Vec<u16> = piece.plain.encode_utf16().collect();
            let blocks = piece.spans.iter().filter(|span| span.style == Style::Block);
            for span in blocks {
                let inside = &letters[span.offset..span.offset + span.length];
                read.push(String::from_utf16(inside).unwrap());
            }
        }
        assert_eq!(read.join("\n"), code);
    }

    #[test]
    fn what_a_phone_would_obey_is_shown() {
        let told = StyledText::of("rm \u{202e}txt\u{200b} \x1b[31m\n```sh\nrm \u{2066}x\n```");
        assert_eq!(told.plain, "rm <U+202E>txt<U+200B> ␛[31m\nrm <U+2066>x");
        assert_eq!(messages("a\u{202e}b")[0].plain, "a<U+202E>b");
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

    #[test]
    fn what_joins_letters_and_faces_stays_and_is_not_cut() {
        let family = "👨\u{200d}👩\u{200d}👧\u{200d}👦";
        let told = StyledText::of(&format!(
            "{family} می\u{200c}خواهم क्\u{200d}ष pay\u{200d}pal"
        ));
        assert_eq!(
            told.plain,
            format!("{family} می\u{200c}خواهم क्\u{200d}ष pay<U+200D>pal")
        );
        // Each takes eleven units, of which 4,096 is no multiple.
        let cut = messages(&family.repeat(400));
        let lengths: Vec<usize> = cut.iter().map(|piece| units(&piece.plain)).collect();
        assert_eq!(lengths, [4_092, 308]);
    }

    /// Every piece fits into a message, its spans are whole letters of it one behind the other, and nothing to see is lost.
    #[test]
    fn fuzz_telegram_marks() {
        let seen = |text: &str| text.split_whitespace().collect::<String>();
        let check = |input: &[u8]| {
            let text = String::from_utf8_lossy(input);
            let (whole, pieces) = (StyledText::of(&text), messages(&text));
            for piece in &pieces {
                let letters: Vec<u16> = piece.plain.encode_utf16().collect();
                assert!(letters.len() <= MOST);
                let mut end = 0;
                for span in &piece.spans {
                    assert!(span.length > 0 && span.offset >= end);
                    end = span.offset + span.length;
                    String::from_utf16(&letters[span.offset..end]).unwrap();
                }
            }
            let plain: String = pieces.iter().map(|piece| piece.plain.as_str()).collect();
            assert_eq!(seen(&plain), seen(&whole.plain));
            let blocks = whole.spans.iter().filter(|span| span.style == Style::Block);
            let spans = whole.spans.len().min(9);
            format!("{} {spans} {}", pieces.len(), blocks.count().min(3))
        };
        ropewalk_tests::fuzz::Target {
            name: "telegram-marks",
            words: &[
                "```\n", "\n```", "````", "`", "**", "\n\n", "😀", " ", "token: ",
            ],
            check: &check,
        }
        .run();
    }
}
