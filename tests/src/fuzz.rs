//! Feeds a function with what parsers meet: kept samples, as they are and altered, for as long as a variable says.
//!
//! It runs on the stable toolchain and sees no coverage. What guides it is what the function says of an input: one with an
//! outcome that was not seen before is altered further. An input that makes the function panic, or takes too long, is
//! made smaller and kept among the samples, so that it fails until it is mended and is tried first ever after.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::soak::count;

/// How long a target is tried, in seconds.
const SECONDS: &str = "ROPEWALK_FUZZ_SECONDS";
/// How long where nothing is said.
const USUALLY: u32 = 1;
/// An input is no longer than that.
const LONGEST_BYTES: usize = 16 * 1024;
/// No input may take longer, on a busy machine without optimisation.
const SLOWEST: Duration = Duration::from_secs(10);
/// How long a failing input is made smaller.
const SHRINKING: Duration = Duration::from_secs(5);
/// The most inputs that are altered further.
const MOST: usize = 4_096;

/// What is tried: a function that says what came of an input, and panics where that may not be.
pub struct Target<'a> {
    /// The folder of samples below `tests/corpora`.
    pub name: &'a str,
    /// Words that matter to it.
    pub words: &'a [&'a str],
    /// Tries an input; returns what came of it in few words, such as the kind of an error.
    pub check: &'a dyn Fn(&[u8]) -> String,
}

/// An input that failed.
#[derive(Debug)]
pub struct FailingInput {
    /// The input.
    pub input: Vec<u8>,
    /// How many inputs were tried before.
    pub tried: u64,
}

impl Target<'_> {
    /// Tries the samples and what comes of altering them.
    ///
    /// # Panics
    ///
    /// Panics when an input fails, and names the file that it is kept in.
    #[expect(clippy::print_stdout, reason = "`./check` tells how much was tried")]
    pub fn run(&self) {
        let folder = folder(self.name);
        let samples = samples(&folder);
        let seconds = count(SECONDS, USUALLY).unwrap_or_else(|error| panic!("{error}"));
        let limit = Duration::from_secs(seconds.into());
        match self.search(samples, limit, seed()) {
            Ok(tried) => println!("fuzz {}: {tried} inputs in {limit:?}", self.name),
            Err(found) => {
                let path = folder.join(format!("found-{:016x}", digest(&found.input)));
                let kept = fs::write(&path, &found.input);
                panic!(
                    "`{}` fails after {} inputs; it is kept as `{}` ({kept:?}): {:?}",
                    self.name,
                    found.tried,
                    path.display(),
                    String::from_utf8_lossy(&found.input)
                );
            }
        }
    }

    /// Tries for so long; returns how many inputs held, or one that did not.
    pub fn search(
        &self,
        samples: Vec<Vec<u8>>,
        limit: Duration,
        seed: u64,
    ) -> Result<u64, Box<FailingInput>> {
        let began = Instant::now();
        let mut dice = Dice(seed);
        let mut outcomes = BTreeSet::new();
        let mut inputs = Vec::new();
        let mut tried = 0;
        for input in samples {
            outcomes.insert(self.outcome(&input, tried)?);
            tried += 1;
            inputs.push(input);
        }
        inputs.push(Vec::new());
        while began.elapsed() < limit {
            let input = self.altered(&inputs, &mut dice);
            let outcome = self.outcome(&input, tried)?;
            tried += 1;
            if inputs.len() < MOST && outcomes.insert(outcome) {
                inputs.push(input);
            }
        }
        Ok(tried)
    }

    fn outcome(&self, input: &[u8], tried: u64) -> Result<String, Box<FailingInput>> {
        self.holds(input).ok_or_else(|| {
            let input = self.smaller(input.to_vec());
            Box::new(FailingInput { input, tried })
        })
    }

    fn holds(&self, input: &[u8]) -> Option<String> {
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.check)(input))).ok()?;
        (began.elapsed() < SLOWEST).then_some(outcome)
    }

    /// Leaves out of a failing input what it fails without.
    fn smaller(&self, mut input: Vec<u8>) -> Vec<u8> {
        let began = Instant::now();
        let mut size = input.len() / 2;
        while size > 0 && began.elapsed() < SHRINKING {
            let mut from = 0;
            while from < input.len() && began.elapsed() < SHRINKING {
                let mut less = input.clone();
                less.drain(from..(from + size).min(input.len()));
                if self.holds(&less).is_none() {
                    input = less;
                } else {
                    from += size;
                }
            }
            size /= 2;
        }
        input
    }

    fn altered(&self, inputs: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
        let mut input = dice.one_of(inputs).cloned().unwrap_or_default();
        for _ in 0..=dice.below(4) {
            self.alter(&mut input, inputs, dice);
        }
        input.truncate(LONGEST_BYTES);
        input
    }

    fn alter(&self, input: &mut Vec<u8>, inputs: &[Vec<u8>], dice: &mut Dice) {
        let at = dice.below(input.len() + 1);
        let end = at + dice.below((input.len() - at).min(64) + 1);
        match dice.below(8) {
            0 if at < input.len() => input[at] ^= 1 << dice.below(8),
            1 if at < input.len() => input[at] = u8::try_from(dice.below(256)).unwrap_or_default(),
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                insert(input, at, &piece);
            }
            4 => {
                let other = dice.one_of(inputs).cloned().unwrap_or_default();
                let from = dice.below(other.len() + 1);
                let until = from + dice.below(other.len() - from + 1);
                insert(input, at, &other[from..until]);
            }
            5 => {
                let piece: Vec<u8> = input.drain(at..end).collect();
                let to = dice.below(input.len() + 1);
                insert(input, to, &piece);
            }
            6 => {
                let letters = ["é", "\u{feff}", "\u{202e}", "\0", "\r\n", "\u{10ffff}"];
                let letter = dice.one_of(&letters).copied().unwrap_or_default();
                insert(input, at, letter.as_bytes());
            }
            _ => {
                let word = dice.one_of(self.words).copied().unwrap_or_default();
                insert(input, at, word.as_bytes());
            }
        }
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpora")
        .join(name)
}

/// Reads the samples of a target, in the order of their names.
fn samples(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("no `{}`: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        fs::read(path).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()))
    };
    let samples: Vec<Vec<u8>> = paths.iter().map(read).collect();
    assert!(!samples.is_empty(), "`{}` is empty", folder.display());
    samples
}

/// Another one for each run: what one run does not find, the next may.
fn seed() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_nanos() % u128::from(u64::MAX)).unwrap_or(1)
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Throws numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 where there is none.
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(1).max(1);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let index = self.below(all.len());
        all.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails for what no sample holds: three words of a form in their order, each on a line of its own.
    fn planted(input: &[u8]) -> String {
        let text = String::from_utf8_lossy(input);
        let lines: Vec<&str> = text.lines().collect();
        let at = |word: &str| lines.iter().position(|line| *line == word);
        let found = [at("begin"), at("middle"), at("end")];
        let known = found.iter().flatten().count();
        assert!(
            !(known == 3 && found.is_sorted()),
            "the bug that was planted"
        );
        format!("{known}")
    }

    fn target<'a>(words: &'a [&'a str]) -> Target<'a> {
        Target {
            name: "planted",
            words,
            check: &planted,
        }
    }

    #[test]
    fn a_bug_that_was_planted_is_found_and_made_small() {
        let words = ["begin\n", "middle\n", "end\n", "other "];
        let samples = vec![b"something else\n".to_vec()];
        let found = target(&words).search(samples, Duration::from_mins(1), 7);
        let found = found.unwrap_err();
        assert_eq!(found.input, b"begin\nmiddle\nend", "{found:?}");
    }

    #[test]
    fn what_fails_at_once_is_a_sample() {
        let samples = vec![b"begin\nmiddle\nend\n".to_vec()];
        let found = target(&[]).search(samples, Duration::ZERO, 1).unwrap_err();
        assert_eq!(found.tried, 0);
    }

    #[test]
    fn what_holds_is_tried_until_the_time_is_over() {
        let holds = Target {
            name: "holds",
            words: &["x"],
            check: &|input| input.len().to_string(),
        };
        let tried = holds.search(vec![b"a".to_vec()], Duration::from_millis(50), 1);
        assert!(tried.unwrap() > 10);
    }
}
