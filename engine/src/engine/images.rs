//! Bounds the pictures of a conversation to what a provider takes, and to models that see them.

use ropewalk_llm::{Block, Message};

/// So many pictures a request carries, the newest.
const MOST: usize = 20;
/// So many bytes of pictures, as base64, that the newest fit into the smallest request of a provider.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Stands where a picture was.
const TOLD_ONCE: &str = "\n[the picture is shown no more; read it again to see it]";
/// Stands where a picture would be.
const UNSEEN: &str = "\n[this model sees no pictures]";

/// Leaves the newest pictures in `messages`, as many as a request may carry; none for a model that sees none.
pub(super) fn fit(messages: &mut [Message], sees_images: bool) {
    let (mut count, mut bytes) = (0, 0);
    let blocks = messages.iter_mut().rev();
    for block in blocks.flat_map(|message| message.blocks.iter_mut().rev()) {
        let Block::ToolResult {
            content, images, ..
        } = block
        else {
            continue;
        };
        if images.is_empty() {
            continue;
        }
        count += images.len();
        bytes += images.iter().map(|image| image.data.len()).sum::<usize>();
        if !sees_images {
            images.clear();
            content.push_str(UNSEEN);
        } else if count > MOST || bytes > MOST_BYTES {
            images.clear();
            content.push_str(TOLD_ONCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_llm::Image;
    use ropewalk_schemas::image::ImageKind;

    use super::*;

    fn result(bytes: usize) -> Message {
        Message::results(vec![Block::ToolResult {
            tool_use_id: "t".to_owned(),
            content: "a.png".to_owned(),
            is_error: false,
            images: vec![Image {
                kind: ImageKind::Png,
                width: 30,
                height: 50,
                data: "x".repeat(bytes),
            }],
        }])
    }

    /// Says of each result whether its picture is shown, and what it tells.
    fn shown(messages: &[Message]) -> Vec<(bool, &str)> {
        let blocks = messages.iter().flat_map(|message| &message.blocks);
        let results = blocks.filter_map(|block| match block {
            Block::ToolResult {
                content, images, ..
            } => Some((!images.is_empty(), content.as_str())),
            _ => None,
        });
        results.collect()
    }

    #[test]
    fn the_newest_pictures_are_shown_as_many_as_a_request_carries() {
        let mut messages: Vec<Message> = (0..=MOST).map(|_| result(1)).collect();
        fit(&mut messages, true);
        let found = shown(&messages);
        assert_eq!(found[0], (false, format!("a.png{TOLD_ONCE}").as_str()));
        assert!(found[1..].iter().all(|one| *one == (true, "a.png")));

        let mut messages = vec![result(1), result(MOST_BYTES / 2), result(MOST_BYTES / 2)];
        fit(&mut messages, true);
        let told: Vec<bool> = shown(&messages).iter().map(|(shown, _)| *shown).collect();
        assert_eq!(told, [false, true, true]);
    }

    #[test]
    fn who_sees_no_pictures_is_sent_none_and_told_so() {
        let mut messages = vec![result(1)];
        fit(&mut messages, false);
        let told = format!("a.png{UNSEEN}");
        assert_eq!(shown(&messages), [(false, told.as_str())]);
    }
}
