//! Turns the pages of a long list.

use serde::Deserialize;

/// Which page of a list is wanted, from 1; the first where nothing is said.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageQuery {
    page: Option<u32>,
}

impl PageQuery {
    /// Returns its number as lists count them, from 0.
    pub(super) fn number(&self) -> u32 {
        self.page.unwrap_or(1).saturating_sub(1)
    }

    /// Returns what leads from it to the pages beside it; `has_older` says whether one comes after it.
    pub(super) fn pager(&self, path: &'static str, has_older: bool) -> Pager {
        let shown = self.number().saturating_add(1);
        Pager {
            path,
            newer: (shown > 1).then(|| shown - 1),
            older: has_older.then(|| shown.saturating_add(1)),
        }
    }
}

/// The pages beside the one that is shown.
pub(super) struct Pager {
    pub(super) path: &'static str,
    pub(super) newer: Option<u32>,
    pub(super) older: Option<u32>,
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
            assert_eq!((pager.newer, pager.older), expected, "{page:?}");
        }
    }
}
