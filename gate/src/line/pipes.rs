//! Makes a pipeline fail when one of its members does, except by a reader that has seen enough.
//!
//! `pipefail` alone takes `git log | head -1` for a failure, since the writer dies of a closed pipe. So each pipeline is
//! followed by a function that looks at the status of every member and returns what holds for all of them.

use super::tokens::{Token, tokens};

/// Looks at the members of the pipeline before it: `$1` is its status, the others are those of its members.
///
/// A pipeline behind `!` is known by a status that differs from that of its last member.
const FUNCTION: &str = "ropewalk_pipe() { local status=$1 result=0 last; shift; [ $# -gt 1 ] || return $status; \
    last=${!#}; while [ $# -gt 1 ]; do case $1 in 0|141) ;; *) result=$1 ;; esac; shift; done; \
    [ $last -eq 0 ] || result=$last; \
    if { [ $last -eq 0 ] && [ $status -ne 0 ]; } || { [ $last -ne 0 ] && [ $status -eq 0 ]; }; \
    then [ $result -ne 0 ]; return; fi; return $result; }\n";
/// Stands behind every pipeline.
const CALL: &str = "; ropewalk_pipe $? \"${PIPESTATUS[@]}\"";

/// A line for bash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BashLine {
    /// It has no pipeline, or looks after them itself.
    AsIs,
    /// The line with a look at every pipeline.
    Line(String),
    /// What its pipelines belong to is not understood: `pipefail` has to do.
    Strict,
}

/// Says whether a line has a pipeline, which only bash tells all about; one in a substitution does not count.
pub fn has_pipeline(line: &str) -> bool {
    tokens(line).is_none_or(|tokens| tokens.iter().any(is_pipe))
}

fn is_pipe(token: &Token) -> bool {
    matches!(
        token,
        Token::Operator {
            text: "|" | "|&",
            ..
        }
    )
}

/// Rewrites a line so that it fails where a member of a pipeline failed.
pub fn rewritten(line: &str) -> BashLine {
    let Some(tokens) = tokens(line) else {
        return BashLine::Strict;
    };
    if !tokens.iter().any(is_pipe) || line.contains("pipefail") {
        return BashLine::AsIs;
    }
    let Some(places) = Walk::default().places(&tokens) else {
        return BashLine::Strict;
    };
    let mut text = FUNCTION.to_owned();
    let mut at = 0;
    for place in places {
        text.push_str(&line[at..place]);
        text.push_str(CALL);
        at = place;
    }
    text.push_str(&line[at..]);
    BashLine::Line(text)
}

/// Goes through a line and remembers which of the open groups are in a pipeline.
#[derive(Default)]
struct Walk {
    /// Whether each group, the line itself first, is in a pipeline.
    open: Vec<bool>,
    /// Where the last piece ended.
    end: usize,
    /// Whether the next word begins a command.
    begins: bool,
    places: Vec<usize>,
}

impl Walk {
    /// Returns where pipelines end; none when the line holds what is not understood.
    fn places(mut self, tokens: &[Token]) -> Option<Vec<usize>> {
        self.open.push(false);
        self.begins = true;
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word {
                    text,
                    quoted: false,
                    end,
                } if self.begins => {
                    self.word(text, &mut tokens)?;
                    self.end = self.end.max(*end);
                }
                Token::Word { end, .. } => {
                    self.begins = false;
                    self.end = *end;
                }
                Token::Operator { text, end } => {
                    self.operator(text)?;
                    self.end = *end;
                }
            }
        }
        self.ends();
        (self.open.len() == 1).then_some(self.places)
    }

    fn word<'a>(&mut self, text: &str, rest: &mut impl Iterator<Item = &'a Token>) -> Option<()> {
        match text {
            "if" | "while" | "until" | "{" => self.open.push(false),
            "then" | "do" | "else" | "elif" | "!" | "time" => {}
            "fi" | "done" | "}" => {
                self.open.pop()?;
                self.begins = false;
            }
            "for" | "select" => {
                self.open.push(false);
                let is_do = |token: &&Token| matches!(token, Token::Word { text, quoted: false, .. } if text == "do");
                rest.find(is_do)?;
            }
            "case" | "function" | "coproc" | "[[" => return None,
            _ => self.begins = false,
        }
        Some(())
    }

    fn operator(&mut self, text: &str) -> Option<()> {
        match text {
            "|" | "|&" => {
                *self.open.last_mut()? = true;
                self.begins = true;
            }
            // A line end behind an operator does not end anything.
            "\n" if self.begins => {}
            "&&" | "||" | ";" | "\n" => {
                self.ends();
                self.begins = true;
            }
            "&" => {
                *self.open.last_mut()? = false;
                self.begins = true;
            }
            "(" if self.begins => self.open.push(false),
            ")" => {
                self.ends();
                self.open.pop()?;
                self.begins = false;
            }
            "(" | "<<" | "<<-" | ";;" | ";&" | ";;&" => return None,
            _ => {}
        }
        Some(())
    }

    /// Notes the end of a command.
    fn ends(&mut self) {
        if let Some(piped) = self.open.last_mut()
            && std::mem::take(piped)
        {
            self.places.push(self.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs a line as a check is run and returns its exit code.
    fn code(line: &str) -> Option<i32> {
        let mut bash = Command::new("bash");
        let bash = match rewritten(line) {
            BashLine::AsIs => bash.args(["-c", line]),
            BashLine::Line(text) => bash.args(["-c", &text]),
            BashLine::Strict => bash.args(["-o", "pipefail", "-c", line]),
        };
        bash.output().unwrap().status.code()
    }

    #[test]
    fn a_pipeline_fails_where_one_of_its_members_does() {
        let rows = [
            ("nosuchtool | cat", 127),
            ("true | cat", 0),
            ("(exit 3) | cat && echo done", 3),
            ("(exit 3) | (exit 4)", 4),
            ("(exit 3) | (exit 4) | true", 4),
            ("! (exit 3) | cat", 0),
            ("! true | cat", 1),
            ("! true | false", 0),
            ("false | cat || true", 0),
            ("true || false | cat", 0),
            ("false; true | cat", 0),
            ("if false | cat; then exit 5; fi", 0),
            ("if true | cat; then exit 5; fi", 5),
            ("for x in a b; do echo $x | grep -q b; done", 0),
            ("for x in b a; do echo $x | grep -q b; done", 1),
            ("false | while read -r x; do true; done", 1),
            ("while false | cat; do exit 6; done", 0),
            ("{ false | cat; } && exit 7", 1),
            ("{ false | cat; } | cat", 1),
            ("( false | cat )", 1),
            ("set -e; false | cat; true", 1),
            ("false |\ncat", 1),
            ("false | cat # said\ntrue", 0),
            ("echo 'a | b' | grep -q 'a | b'", 0),
            ("echo \"$(echo a | cat)\" | grep -q a", 0),
            ("case a in a) true | cat ;; esac", 0),
            ("case a in a) false | cat ;; esac", 1),
            ("false |& cat", 1),
            ("set -o pipefail; ! false | cat", 0),
            ("[[ a =~ a|b ]] && true | cat", 0),
        ];
        for (line, expected) in rows {
            assert_eq!(code(line), Some(expected), "{line}: {:?}", rewritten(line));
        }
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_failure() {
        for line in [
            "yes | head -1",
            "yes | head -1 && echo done",
            "yes | head -1 | cat",
            "yes | grep -q y; yes | grep -q y",
            "if yes | grep -q y; then true; else exit 1; fi",
        ] {
            assert_eq!(code(line), Some(0), "{line}");
        }
        // The last member's own end counts.
        assert_eq!(code("true | sh -c 'kill -PIPE $$'"), Some(141));
    }

    #[test]
    fn only_a_line_with_a_pipeline_is_changed() {
        for line in [
            "cargo test",
            "a || b && c",
            "echo 'a|b'",
            "test \"$(a | b)\" = c",
            "a >| b",
        ] {
            assert_eq!(rewritten(line), BashLine::AsIs, "{line}");
            assert!(!has_pipeline(line), "{line}");
        }
        assert!(has_pipeline("a | b") && has_pipeline("a |& b"));
    }
}
