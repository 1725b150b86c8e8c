use std::path::Path;

use super::*;
use crate::message::Block;

/// What a tool told of a picture, for whoever writes it to a provider.
pub(crate) fn picture() -> Block {
    Block::ToolResult {
        tool_use_id: "t1".to_owned(),
        content: "a.png".to_owned(),
        is_error: false,
        images: vec![Image {
            kind: ImageKind::Png,
            width: 3,
            height: 2,
            data: "iVBOR".to_owned(),
        }],
    }
}

/// Reads a sample; none where it is no picture.
fn sample(name: &str) -> Option<Result<Image, ImageError>> {
    let bytes = bytes(name);
    Some(Image::read(ImageKind::of(&bytes)?, &bytes))
}

fn bytes(name: &str) -> Vec<u8> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpora/image");
    std::fs::read(corpora.join(name)).unwrap()
}

#[test]
fn a_picture_is_known_by_its_bytes_with_its_size() {
    use ImageKind::{Gif, Jpeg, Png, Webp};
    let rows = [
        ("red.png", Some(Ok((Png, 3, 2)))),
        ("small.jpg", Some(Ok((Jpeg, 3, 2)))),
        ("red.gif", Some(Ok((Gif, 3, 2)))),
        ("lossy.webp", Some(Ok((Webp, 1, 1)))),
        ("lossless.webp", Some(Ok((Webp, 1, 1)))),
        ("extended.webp", Some(Ok((Webp, 1, 1)))),
        ("cut.png", Some(Err(ImageError::Broken))),
        ("text", None),
    ];
    for (name, expected) in rows {
        let read = sample(name);
        let found = read.map(|image| image.map(|image| (image.kind, image.width, image.height)));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_picture_that_breaks_off_anywhere_is_broken() {
    for name in [
        "red.png",
        "small.jpg",
        "red.gif",
        "lossy.webp",
        "lossless.webp",
        "extended.webp",
    ] {
        let whole = bytes(name);
        let kind = ImageKind::of(&whole).unwrap();
        for end in 0..whole.len() {
            let cut = Image::read(kind, &whole[..end]);
            assert_eq!(cut, Err(ImageError::Broken), "{name} {end}");
        }
    }
}

#[test]
fn a_picture_is_bounded_in_bytes_and_pixels() {
    let mut wide = bytes("red.png");
    wide[16..20].copy_from_slice(&2_001_u32.to_be_bytes());
    let (width, height) = (2_001, 2);
    let read = Image::read(ImageKind::Png, &wide);
    assert_eq!(read, Err(ImageError::Pixels { width, height }));
    wide[16..20].copy_from_slice(&2_000_u32.to_be_bytes());
    let image = Image::read(ImageKind::Png, &wide).unwrap();
    assert_eq!(image.tokens(), 6);

    let mut long = bytes("red.gif");
    long.resize(MOST_BYTES - 1, 0);
    long.push(0x3b);
    assert!(Image::read(ImageKind::Gif, &long).is_ok());
    long.push(0x3b);
    let bytes = long.len();
    assert_eq!(
        Image::read(ImageKind::Gif, &long),
        Err(ImageError::Bytes { bytes })
    );
}

#[test]
fn fuzz_image() {
    let check = |input: &[u8]| match ImageKind::of(input).map(|kind| Image::read(kind, input)) {
        None => "none".to_owned(),
        Some(Ok(image)) => {
            assert!(
                image.tokens() > 0 && image.width <= LONGEST_SIDE && image.height <= LONGEST_SIDE
            );
            image.kind.name().to_owned()
        }
        Some(Err(error)) => format!("{error:?}").chars().take(6).collect(),
    };
    ropewalk_tests::fuzz::Target {
        name: "image",
        words: &["IHDR", "IEND", "VP8X", "VP8L", "\u{1}\u{2a}"],
        check: &check,
    }
    .run();
}
