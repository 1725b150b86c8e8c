//! What sort of picture a file is, told by how it begins and by nothing that anybody says of it.

use serde::{Deserialize, Serialize};

/// Says how a picture is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl ImageKind {
    /// Returns the type as HTTP names it.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::Webp => "WebP",
        }
    }

    /// Tells the kind by how the bytes begin; none for what is no picture that models and browsers see.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ if is_webp => Some(Self::Webp),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_how_it_begins() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], Some(ImageKind::Png)),
            (b"\xff\xd8\xff\xe0", Some(ImageKind::Jpeg)),
            (b"GIF89a", Some(ImageKind::Gif)),
            (b"RIFF....WEBP", Some(ImageKind::Webp)),
            (b"RIFF....WAVE", None),
            (b"<svg onload='alert(1)'>", None),
            (b"\x89PN", None),
            (b"", None),
        ] {
            assert_eq!(ImageKind::of(bytes), kind, "{bytes:?}");
        }
    }
}
