//! Shows Markdown that somebody else wrote: as text with structure, never as anything that acts or asks elsewhere.

use std::collections::HashSet;
use std::sync::LazyLock;

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

/// Returns Markdown as clean HTML. HTML in it is shown as text, a picture as a link.
pub(super) fn html(text: &str) -> String {
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
    use super::html;

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
