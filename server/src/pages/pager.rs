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

    /// Returns what leads from it to the pages beside it, of so many, newest first.
    pub(super) fn pager(&self, path: &str, pages: u32) -> Pager {
        self.pager_of(path, pages, ["newer ones", "older ones"])
    }

    /// As [`PageQuery::pager`], of a list in an order that `words` name: what comes before, and what comes after.
    pub(super) fn pager_of(&self, path: &str, pages: u32, words: [&'static str; 2]) -> Pager {
        let shown = self.number().saturating_add(1);
        // One without entries has a page too.
        let last = pages.max(1);
        let [before, after] = words;
        Pager {
            link: format!("{path}{}page=", if path.contains('?') { '&' } else { '?' }),
            before: (shown > 1 && shown <= last).then(|| (shown - 1, before)),
            after: (shown < last).then(|| (shown + 1, after)),
            beyond: (shown > last).then_some(last),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_leads_to_older_ones_alone_and_the_last_to_newer_ones() {
        let cases = [
            (None, 2, (None, Some(2))),
            (Some(0), 2, (None, Some(2))),
            (Some(1), 1, (None, None)),
            (Some(3), 4, (Some(2), Some(4))),
            (Some(u32::MAX), u32::MAX, (Some(u32::MAX - 1), None)),
        ];
        for (page, pages, expected) in cases {
            let pager = PageQuery { page }.pager("/", pages);
            let [before, after] = [pager.before, pager.after].map(|beside| beside.map(|at| at.0));
            assert_eq!((before, after), expected, "{page:?}");
        }
    }

    #[test]
    fn a_page_beyond_the_last_leads_to_that_alone() {
        for (page, pages, beyond) in [(1, 0, None), (2, 2, None), (3, 2, Some(2)), (2, 0, Some(1))]
        {
            let pager = PageQuery::at(Some(page)).pager("/", pages);
            assert_eq!(pager.beyond, beyond, "{page} of {pages}");
            assert_eq!(pager.before.is_some(), page > 1 && beyond.is_none());
            assert_eq!(pager.after, None);
        }
    }
}
