//! Shows Markdown that somebody else wrote: as text with structure, never as anything that acts or asks elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use ammonia::Builder;
use comrak::nodes::NodeValue;
use comrak::{Arena, Options, format_html, parse_document};

/// What may stand on a page: structure, no picture, no style, no script.
static CLEAN: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::empty();
    builder
        .add_tags([
            "p",
            "br",
            "hr",
            "em",
            "strong",
            "del",
            "code",
            "pre",
            "blockquote",
            "ul",
            "ol",
            "li",
            "a",
            "h3",
            "h4",
            "h5",
            "h6",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
        ])
        .add_tag_attributes("a", ["href"])
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"));
    builder
});

/// What was rendered, by its text: the same messages are shown again with each one that comes.
static SHOWN: LazyLock<Mutex<HtmlCache>> = LazyLock::new(Mutex::default);
/// So much text and HTML is kept, in bytes; then all of it goes.
const MOST_BYTES: usize = 4 * 1024 * 1024;

#[derive(Default)]
struct HtmlCache {
    by_text: HashMap<String, String>,
    bytes: usize,
}

impl HtmlCache {
    fn keep(&mut self, text: &str, html: &str) {
        let bytes = text.len() + html.len();
        if bytes > MOST_BYTES || self.by_text.contains_key(text) {
            return;
        }
        if self.bytes + bytes > MOST_BYTES {
            *self = Self::default();
        }
        self.by_text.insert(text.to_owned(), html.to_owned());
        self.bytes += bytes;
    }
}

/// Returns Markdown as clean HTML. HTML in it is shown as text, a picture as a link.
pub(super) fn html(text: &str) -> String {
    let rendered = || SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = rendered().by_text.get(text).cloned() {
        return known;
    }
    let html = render(text);
    rendered().keep(text, &html);
    html
}

fn render(text: &str) -> String {
    let mut options = Options::default();
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.extension.autolink = true;
    options.render.escape = true;
    options.render.hardbreaks = true;
    let arena = Arena::new();
    let root = parse_document(&arena, text, &options);
    for node in root.descendants() {
        let mut node = node.data.borrow_mut();
        // A picture would be asked for elsewhere; whoever wants it follows the link.
        if let NodeValue::Image(link) = &node.value {
            node.value = NodeValue::Link(link.clone());
        }
    }
    let mut whole = String::new();
    // Writing to a String cannot fail.
    format_html(root, &options, &mut whole).ok();
    // A heading of a text lies below those of the page.
    let deeper = whole
        .replace("<h1>", "<h3>")
        .replace("</h1>", "</h3>")
        .replace("<h2>", "<h3>")
        .replace("</h2>", "</h3>");
    // A long one scrolls, and has to by keys as well.
    let clean = CLEAN.clean(&deeper).to_string();
    clean.replace("<pre>", "<pre tabindex=\"0\">")
}

#[cfg(test)]
mod tests {
    use super::{HtmlCache, MOST_BYTES, html};

    #[test]
    fn what_was_rendered_is_kept_up_to_a_bound_and_told_alike() {
        let mut rendered = HtmlCache::default();
        let half = "x".repeat(MOST_BYTES / 4);
        for text in ["a", "b", "b"] {
            rendered.keep(&format!("{text}{half}"), &half[text.len()..]);
        }
        assert_eq!((rendered.by_text.len(), rendered.bytes), (2, MOST_BYTES));
        rendered.keep("c", "<p>c</p>");
        assert_eq!(rendered.by_text.len(), 1);
        rendered.keep(&half.repeat(5), "");
        assert_eq!((rendered.by_text.len(), rendered.bytes), (1, 9));
        assert_eq!(html("*a*"), html("*a*"));
    }

    #[test]
    fn what_is_hostile_is_shown_as_text() {
        for (text, without) in [
            ("<script>alert(1)</script>", "<script"),
            ("<img src=x onerror=alert(1)>", "<img"),
            ("![x](http://evil.example/x.png)", "<img"),
            ("[x](javascript:alert(1))", "javascript:\""),
            ("[x](javascript:alert(1))", "href=\"javascript"),
            ("[x](data:text/html,x)", "href=\"data"),
            ("[x](/specifications/1/approve)", "href"),
            ("<a href=\"http://a\" onclick=\"x\">y</a>", "<a"),
            ("</document>", "</document>"),
            ("<style>*{}</style>", "<style"),
            ("<form action=/leave>", "<form"),
        ] {
            let shown = html(text);
            assert!(!shown.contains(without), "{text}: {shown}");
        }
        let shown = html("<script>alert(1)</script>\n\n![of x](http://evil.example/x.png)");
        assert!(shown.contains("&lt;script&gt;alert(1)"), "{shown}");
        assert!(shown.contains(">of x</a>"), "{shown}");
    }

    #[test]
    fn structure_stays() {
        let shown = html(
            "# Walks\n\n- **one**\n- `two`\n\n```\nlet x = 1;\n```\n\n[a](https://example.org)",
        );
        for part in [
            "<h3>Walks</h3>",
            "<strong>one</strong>",
            "<code>two</code>",
            "<pre tabindex=\"0\"><code>let x = 1;",
            "href=\"https://example.org\"",
            "rel=\"noopener noreferrer nofollow\"",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
