//! Takes out of an output what orders a terminal about.

use std::iter::Peekable;
use std::str::Chars;

/// Takes out colours, which runners keep when they are told to, and all else that is no text.
///
/// What is written over a line is a line of its own: whatever stood there before, a runner begins its lines anew.
pub(super) fn plain(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut letters = output.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\r' if letters.peek() != Some(&'\n') => plain.push('\n'),
            _ if letter.is_control() && !matches!(letter, '\n' | '\t') => {}
            _ => plain.push(letter),
        }
    }
    plain
}

/// Leaves of each line that is written over what was written last, and takes out what `plain` takes out. A carriage return with nothing
/// behind it writes over nothing.
pub(super) fn shown(output: &str) -> String {
    let lines = output.split('\n').map(|line| {
        let mut pieces = line.rsplit('\r');
        pieces.find(|piece| !piece.is_empty()).unwrap_or_default()
    });
    plain(&lines.collect::<Vec<_>>().join("\n"))
}

/// Skips what follows an escape, in the forms of ECMA-48; none of them takes a line end, so that no line is lost to one that is cut.
fn skip_sequence(letters: &mut Peekable<Chars<'_>>) {
    match letters.peek() {
        Some('[') => {
            letters.next();
            skip_all(letters, |letter| matches!(letter, ' '..='?'));
            skip_one(letters, |letter| matches!(letter, '@'..='~'));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            letters.next();
            skip_string(letters);
        }
        _ => {
            // The others are hardly in use, and a line may begin with them: it is whole behind an escape that is cut off.
            skip_all(letters, |letter| {
                matches!(letter, '(' | ')' | '*' | '+' | '#')
            });
            skip_one(letters, |letter| matches!(letter, '0'..='~'));
        }
    }
}

fn skip_all(letters: &mut Peekable<Chars<'_>>, is_part: impl Fn(char) -> bool) {
    while letters.next_if(|letter| is_part(*letter)).is_some() {}
}

fn skip_one(letters: &mut Peekable<Chars<'_>>, is_part: impl Fn(char) -> bool) {
    letters.next_if(|letter| is_part(*letter));
}

/// Skips a title, a link or the like up to its end; one that never ends is text.
fn skip_string(letters: &mut Peekable<Chars<'_>>) {
    let mut ahead = letters.clone();
    while let Some(letter) = ahead.next() {
        let ends = match letter {
            '\u{7}' => true,
            '\u{1b}' => ahead.next() == Some('\\'),
            '\n' => false,
            _ => continue,
        };
        if ends {
            *letters = ahead;
        }
        return;
    }
}
