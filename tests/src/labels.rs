//! Rewords every label of the question files.
//!
//! Labels are for eyes: whoever decides by an answer reads the id of its choice. The worlds that tests of agents stand in read their
//! templates so, and each of those tests shows by passing that nothing reads a label.

/// Returns the text of a question file with every label replaced by nonsense.
pub fn reworded(text: &str) -> String {
    let mut number = 0_u32;
    let mut lines = String::new();
    for line in text.lines() {
        if let Some((before, _)) = line.split_once("label: ") {
            number += 1;
            lines.push_str(before);
            lines.push_str("label: qx ");
            lines.push_str(&number.to_string());
        } else {
            lines.push_str(line);
        }
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_replaced_and_nothing_else() {
        let text = "  choices:\n    - id: merge\n      label: Merge it\n    - id: leave\n      label: Leave it\n";
        let expected =
            "  choices:\n    - id: merge\n      label: qx 1\n    - id: leave\n      label: qx 2\n";
        assert_eq!(reworded(text), expected);
    }
}
