//! Compares what was to happen with what happened: nothing lost, nothing twice, nothing that nobody asked for.

use std::collections::BTreeMap;

use anyhow::ensure;

/// What does not agree; each id as often as it is missing or too many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) lost: Vec<String>,
    pub(crate) doubled: Vec<String>,
    pub(crate) strange: Vec<String>,
}

/// Compares the ids that were emitted with the ids that were handled, whatever their order.
pub(crate) fn compare(emitted: &[String], handled: &[String]) -> Findings {
    let mut times: BTreeMap<&str, usize> = emitted.iter().map(|id| (id.as_str(), 0)).collect();
    let mut findings = Findings::default();
    for id in handled {
        match times.get_mut(id.as_str()) {
            None => findings.strange.push(id.clone()),
            Some(times) => {
                *times += 1;
                if *times > 1 {
                    findings.doubled.push(id.clone());
                }
            }
        }
    }
    let lost = times.into_iter().filter(|(_, times)| *times == 0);
    findings.lost = lost.map(|(id, _)| id.to_owned()).collect();
    findings
}

/// Fails unless each of `emitted` was handled once and nothing else was.
pub(crate) fn check(what: &str, emitted: &[String], handled: &[String]) -> anyhow::Result<()> {
    let findings = compare(emitted, handled);
    ensure!(findings == Findings::default(), "{what}: {findings:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ids(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_lost_doubled_or_strange_is_found() {
        let cases = [
            ("a b c", "c a b", ("", "", "")),
            ("a b c", "a c", ("b", "", "")),
            ("a b", "a b b b", ("", "b b", "")),
            ("a", "a x", ("", "", "x")),
            ("a b", "b b x", ("a", "b", "x")),
            ("", "", ("", "", "")),
        ];
        for (emitted, handled, (lost, doubled, strange)) in cases {
            let expected = Findings {
                lost: ids(lost),
                doubled: ids(doubled),
                strange: ids(strange),
            };
            assert_eq!(
                compare(&ids(emitted), &ids(handled)),
                expected,
                "{emitted} | {handled}"
            );
        }
    }

    /// A subscriber whose deliveries come twice now and then, and which crashes once between effect and note.
    fn handled_by(remembers: bool, notes_first: bool) -> Findings {
        let emitted: Vec<String> = (0..100).map(|number| format!("event-{number}")).collect();
        let mut noted = BTreeSet::new();
        let mut effects = Vec::new();
        for (number, id) in emitted.iter().enumerate() {
            let times = if number % 5 == 0 { 2 } else { 1 };
            for _ in 0..times {
                if remembers && noted.contains(id) {
                    continue;
                }
                noted.insert(id.clone());
                if !(notes_first && number == 41) {
                    effects.push(id.clone());
                }
            }
        }
        compare(&emitted, &effects)
    }

    #[test]
    fn planted_bugs_are_caught() {
        assert_eq!(handled_by(true, false), Findings::default());
        assert_eq!(
            handled_by(false, false).doubled.len(),
            20,
            "without an inbox"
        );
        assert_eq!(
            handled_by(true, true).lost,
            ["event-41"],
            "acknowledged before the effect"
        );
    }
}
