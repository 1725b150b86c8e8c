//! Turns the pages of a long list.

use serde::Deserialize;

/// Which page of a list is wanted, from 1; the first where nothing is said.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageQuery {
    page: Option<u32>,
}

impl PageQuery {
    /// Wants the page with this number.
    pub(super) const fn at(page: Option<u32>) -> Self {
        Self { page }
    }

    /// Returns its number as lists count them, from 0.
    pub(super) fn number(&self) -> u32 {
        self.page.unwrap_or(1).saturating_sub(1)
    }

    /// Returns what leads from it to the pages beside it, newest first; `has_older` says whether one comes after it.
    pub(super) fn pager(&self, path: &str, has_older: bool) -> Pager {
        self.pager_of(path, has_older, ["newer ones", "older ones"])
    }

    /// As [`PageQuery::pager`], of a list in an order that `words` name: what comes before, and what comes after.
    pub(super) fn pager_of(&self, path: &str, has_next: bool, words: [&'static str; 2]) -> Pager {
        let shown = self.number().saturating_add(1);
        let [before, after] = words;
        Pager {
            link: format!("{path}{}page=", if path.contains('?') { '&' } else { '?' }),
            shown,
            beyond: None,
            before: (shown > 1).then(|| (shown - 1, before)),
            after: has_next.then(|| (shown.saturating_add(1), after)),
        }
    }
}

/// The pages beside the one that is shown.
pub(super) struct Pager {
    /// The address of a page but for its number.
    pub(super) link: String,
    /// The number of the page before, and how it is called.
    pub(super) before: Option<(u32, &'static str)>,
    /// The same of the page after.
    pub(super) after: Option<(u32, &'static str)>,
    /// The number of the last page, where the one that is shown lies beyond it.
    pub(super) beyond: Option<u32>,
    /// The number of the page that is shown.
    shown: u32,
}

impl Pager {
    /// Returns this for a list of so many pages; one without entries has a page too.
    pub(super) fn ending_at(self, pages: u32) -> Self {
        let last = pages.max(1);
        let beyond = (self.shown > last).then_some(last);
        Self {
            before: self.before.filter(|_| beyond.is_none()),
            beyond,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_leads_to_older_ones_alone_and_the_last_to_newer_ones() {
        let cases = [
            (None, true, (None, Some(2))),
            (Some(0), true, (None, Some(2))),
            (Some(1), false, (None, None)),
            (Some(3), true, (Some(2), Some(4))),
            (Some(u32::MAX), false, (Some(u32::MAX - 1), None)),
        ];
        for (page, has_older, expected) in cases {
            let pager = PageQuery { page }.pager("/", has_older);
            let [before, after] = [pager.before, pager.after].map(|beside| beside.map(|at| at.0));
            assert_eq!((before, after), expected, "{page:?}");
        }
    }

    #[test]
    fn a_page_beyond_the_last_leads_to_that_alone() {
        for (page, pages, beyond) in [(1, 0, None), (2, 2, None), (3, 2, Some(2)), (2, 0, Some(1))]
        {
            let pager = PageQuery::at(Some(page)).pager("/", false).ending_at(pages);
            assert_eq!(pager.beyond, beyond, "{page} of {pages}");
            assert_eq!(pager.before.is_some(), page > 1 && beyond.is_none());
        }
    }
}
