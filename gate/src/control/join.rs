//! Sees what two branches made of a file that a commit of both joins, beside what it was where they parted.
//!
//! What one of them took out or rewrote, and the other one left as it was, is so by the history of the first: who joins them need not
//! bring it back. Git asks about such lines, too, where others beside them changed, so that files are joined here line by line.

use std::ops::Range;

use ropewalk_schemas::CommitId;
use ropewalk_workspace::LocalClone;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

use crate::error::GateError;

/// Two branches that a commit joins.
pub(crate) struct Join {
    /// Their heads, in the order of the commit.
    pub(crate) heads: [CommitId; 2],
    /// Where they parted, if that is one place.
    base: Option<CommitId>,
}

impl Join {
    /// Finds what a commit joins; none where it does not have two parents.
    pub(crate) async fn of(
        clone: &LocalClone,
        commit: &CommitId,
    ) -> Result<Option<Self>, GateError> {
        let first = clone.resolve(&format!("{commit}^1")).await?;
        let second = clone.resolve(&format!("{commit}^2")).await?;
        let (Some(first), Some(second)) = (first, second) else {
            return Ok(None);
        };
        let base = clone.merge_base(&first, &second).await?;
        let heads = [first, second];
        Ok(Some(Self { heads, base }))
    }

    /// Reads files, in the order of `paths`: none for one that is not a text on both branches. What is not known to have been there
    /// where they parted, neither of them took out.
    pub(crate) async fn read(
        &self,
        clone: &LocalClone,
        paths: &[&str],
    ) -> Result<Vec<Option<JoinedText>>, GateError> {
        let [first, second] = &self.heads;
        let first = clone.read_files(first, paths).await?;
        let second = clone.read_files(second, paths).await?;
        let base = match &self.base {
            Some(base) => clone.read_files(base, paths).await?,
            None => vec![None; paths.len()],
        };
        let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes?).ok();
        let heads = first.into_iter().zip(second);
        let texts = heads.zip(base).map(|((first, second), base)| {
            Some(JoinedText {
                base: text(base).unwrap_or_default(),
                heads: [text(first)?, text(second)?],
            })
        });
        Ok(texts.collect())
    }
}

/// A text as it was where two branches parted, and as each of them has it.
pub(crate) struct JoinedText {
    base: String,
    heads: [String; 2],
}

impl JoinedText {
    /// Returns all that either branch has, but for what only one of them took out or rewrote.
    pub(crate) fn of_both(&self) -> String {
        self.joined(
            |place, [first, second]| match place.edits.each_ref().map(Vec::is_empty) {
                [false, true] => first,
                [true, false] => second,
                _ => union(&first, &second),
            },
        )
    }

    /// Returns what one branch has, but for what only the other one took out or rewrote; what that added is not there.
    pub(crate) fn of_branch(&self, number: usize) -> String {
        self.joined(|place, [first, second]| {
            let (own, others) = if number == 0 {
                (first, second)
            } else {
                (second, first)
            };
            let is_own = place.base.is_empty() || !place.edits[number].is_empty();
            if is_own { own } else { others }
        })
    }

    /// Joins the lines: those of each place that changed are what is chosen of what the two branches have there.
    fn joined(&self, choose: impl for<'a> Fn(&Place, [Vec<&'a str>; 2]) -> Vec<&'a str>) -> String {
        let base = lines(&self.base);
        let heads = self.heads.each_ref().map(|text| lines(text));
        let mut joined: Vec<&str> = Vec::new();
        let mut at = 0;
        for place in places(&base, &heads) {
            joined.extend_from_slice(&base[at..place.base.start]);
            let there = [0, 1].map(|number| place.lines_of(number, &base, &heads[number]));
            joined.extend(choose(&place, there));
            at = place.base.end;
        }
        joined.extend_from_slice(&base[at..]);
        joined.iter().flat_map(|line| [*line, "\n"]).collect()
    }
}

/// Lines that one branch has in the place of others.
struct Edit {
    /// Which they were where the branches parted.
    base: Range<usize>,
    /// Which they are.
    now: Range<usize>,
}

/// Lines that changed on one branch, or on both of them, which nothing parts that both left.
struct Place {
    base: Range<usize>,
    edits: [Vec<Edit>; 2],
}

impl Place {
    /// Says whether lines are changed that are changed here, too; what only lies beside them is another place.
    fn meets(&self, edit: &Edit) -> bool {
        edit.base.start < self.base.end || edit.base == self.base
    }

    fn take(&mut self, number: usize, edit: Edit) {
        self.base.end = self.base.end.max(edit.base.end);
        self.edits[number].push(edit);
    }

    /// Returns what a branch has here.
    fn lines_of<'a>(&self, number: usize, base: &[&'a str], head: &[&'a str]) -> Vec<&'a str> {
        let mut lines = Vec::new();
        let mut at = self.base.start;
        for edit in &self.edits[number] {
            lines.extend_from_slice(&base[at..edit.base.start]);
            lines.extend_from_slice(&head[edit.now.clone()]);
            at = edit.base.end;
        }
        lines.extend_from_slice(&base[at..self.base.end]);
        lines
    }
}

/// Lists the places that changed, in their order.
fn places(base: &[&str], heads: &[Vec<&str>; 2]) -> Vec<Place> {
    let mut all: Vec<(usize, Edit)> = Vec::new();
    for (number, head) in heads.iter().enumerate() {
        all.extend(edits(base, head).into_iter().map(|edit| (number, edit)));
    }
    all.sort_by_key(|(number, edit)| (edit.base.start, edit.base.end, *number));
    let mut places: Vec<Place> = Vec::new();
    for (number, edit) in all {
        match places.last_mut() {
            Some(place) if place.meets(&edit) => place.take(number, edit),
            _ => {
                let mut place = Place {
                    base: edit.base.clone(),
                    edits: [Vec::new(), Vec::new()],
                };
                place.take(number, edit);
                places.push(place);
            }
        }
    }
    places
}

/// Lists what a branch changed, in its order; between two of them is a line that it left.
fn edits(base: &[&str], head: &[&str]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let all = differences(base, head).into_iter();
    for (_, base, now) in all.filter(|(tag, ..)| *tag != DiffTag::Equal) {
        match edits.last_mut() {
            Some(last) if last.base.end == base.start && last.now.end == now.start => {
                last.base.end = base.end;
                last.now.end = now.end;
            }
            _ => edits.push(Edit { base, now }),
        }
    }
    edits
}

/// Returns a text in which the lines of both stand, in the order of each; what both have stands there once.
fn union<'a>(first: &[&'a str], second: &[&'a str]) -> Vec<&'a str> {
    let mut all = Vec::new();
    for (tag, own, others) in differences(first, second) {
        all.extend_from_slice(&first[own]);
        if tag != DiffTag::Equal {
            all.extend_from_slice(&second[others]);
        }
    }
    all
}

fn differences(one: &[&str], other: &[&str]) -> Vec<(DiffTag, Range<usize>, Range<usize>)> {
    let all = capture_diff_slices(Algorithm::Myers, one, other);
    all.iter().map(DiffOp::as_tag_tuple).collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_terminator('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a word on each line.
    fn text(words: &str) -> String {
        words
            .split_whitespace()
            .flat_map(|word| [word, "\n"])
            .collect()
    }

    #[test]
    fn what_one_branch_took_out_and_the_other_one_left_is_not_lost_by_who_joins_them() {
        // Where they parted, and what each made of it; then what both have, and what is held against each.
        let rows = [
            ["a b c", "a b c", "a c", "a c", "a c", "a c"],
            // It has another name on the second branch, and something was added there beside it on both.
            ["a b", "a b d", "a x y", "a x y d", "a x y d", "a x y"],
            ["a b", "d a b", "x b", "d x b", "d x b", "x b"],
            // What both added in one place is all there, and that of each where it is asked for what it has.
            ["a", "a b", "a c", "a b c", "a b", "a c"],
            ["a", "a b c", "a b d", "a b c d", "a b c", "a b d"],
            // What both changed, neither of them left.
            ["a b c", "a x c", "a y c", "a x y c", "a x c", "a y c"],
            ["a b c", "a x c", "a c", "a x c", "a x c", "a c"],
            [
                "a b c d",
                "a b x c d",
                "a y d",
                "a b x c y d",
                "a b x c d",
                "a y d",
            ],
            ["a b c", "a x c", "a x c", "a x c", "a x c", "a x c"],
            ["a b c", "a c", "a c", "a c", "a c", "a c"],
            // Nobody knows what was there.
            ["", "a b", "a c", "a b c", "a b", "a c"],
        ];
        for [base, first, second, both, of_first, of_second] in rows {
            let joined = JoinedText {
                base: text(base),
                heads: [text(first), text(second)],
            };
            let told = format!("{base}: {first}, {second}");
            assert_eq!(joined.of_both(), text(both), "{told}");
            assert_eq!(joined.of_branch(0), text(of_first), "{told}");
            assert_eq!(joined.of_branch(1), text(of_second), "{told}");
        }
    }
}
