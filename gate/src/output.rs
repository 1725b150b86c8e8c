//! Bounds what commands wrote.

/// Keeps head and tail of a text: compilers say first what is wrong, test runners last.
pub fn bounded(text: &str, limit_bytes: usize) -> String {
    if text.len() <= limit_bytes {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit_bytes / 4);
    let tail = text.ceil_char_boundary(text.len() - (limit_bytes * 3 / 4).saturating_sub(32));
    format!("{}\n[… left out …]\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_head_and_its_tail() {
        let text = format!("first é{}last é", "x".repeat(20_000));
        let kept = bounded(&text, 8 * 1024);
        assert!(kept.len() <= 8 * 1024);
        assert!(kept.starts_with("first") && kept.ends_with("last é"));
        assert_eq!(bounded("short", 10), "short");
    }
}
