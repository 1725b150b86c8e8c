//! Holds a picture that a model gets to see, and reads what it is from its bytes.
//!
//! Nothing is decoded: what is looked at is the kind, the size in pixels, and whether the file is whole, since a provider
//! refuses the whole request for a picture that is not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ropewalk_schemas::image::ImageKind;
use serde::{Deserialize, Serialize};

/// The most bytes of a file that is shown: several of them fit into one request of every provider.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// The longest side, in pixels, that providers take however many pictures a conversation holds.
const LONGEST_SIDE: u32 = 2_000;
/// So many pixels are a token, about.
const PIXELS_PER_TOKEN: u64 = 750;

/// Says why a picture is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It has too many bytes.
    #[error("it has {bytes} bytes, and at most {MOST_BYTES} are shown")]
    Bytes {
        /// How many.
        bytes: usize,
    },
    /// It is too wide or too high.
    #[error(
        "it has {width} × {height} pixels, and at most {LONGEST_SIDE} × {LONGEST_SIDE} are shown"
    )]
    Pixels {
        /// How wide.
        width: u32,
        /// How high.
        height: u32,
    },
    /// It breaks off, or is none.
    #[error("it is broken")]
    Broken,
}

/// Is a picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// How it is written.
    pub kind: ImageKind,
    /// How wide it is, in pixels.
    pub width: u32,
    /// How high it is, in pixels.
    pub height: u32,
    /// The file, as base64.
    pub data: String,
}

impl Image {
    /// Reads a picture of this kind, whole and within bounds.
    pub fn read(kind: ImageKind, bytes: &[u8]) -> Result<Self, ImageError> {
        let size = match kind {
            ImageKind::Png => png(bytes),
            ImageKind::Jpeg => jpeg(bytes),
            ImageKind::Gif => gif(bytes),
            ImageKind::Webp => webp(bytes),
        };
        let (width, height) = size.ok_or(ImageError::Broken)?;
        if width == 0 || height == 0 {
            return Err(ImageError::Broken);
        }
        if width > LONGEST_SIDE || height > LONGEST_SIDE {
            return Err(ImageError::Pixels { width, height });
        }
        if bytes.len() > MOST_BYTES {
            let bytes = bytes.len();
            return Err(ImageError::Bytes { bytes });
        }
        Ok(Self {
            kind,
            width,
            height,
            data: STANDARD.encode(bytes),
        })
    }

    /// Estimates the tokens that it costs.
    pub fn tokens(&self) -> u64 {
        (u64::from(self.width) * u64::from(self.height)).div_ceil(PIXELS_PER_TOKEN)
    }

    /// Returns it as an address that holds it.
    pub(crate) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.kind.media_type(), self.data)
    }
}

/// Reads width and height of a PNG that has its end.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut size = None;
    let mut at = 8;
    loop {
        let length = usize::try_from(big(bytes, at, 4)?).ok()?;
        let kind = bytes.get(at + 4..at + 8)?;
        match kind {
            b"IHDR" if size.is_none() => {
                size = Some((big(bytes, at + 8, 4)?, big(bytes, at + 12, 4)?));
            }
            // Behind it comes its checksum.
            b"IEND" => return bytes.get(at + 8..at + 12).and(size),
            _ if size.is_none() => return None,
            _ => {}
        }
        at = at.checked_add(length)?.checked_add(12)?;
    }
}

/// Reads width and height of a JPEG that has its end.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut size = None;
    let mut at = 2;
    loop {
        let marker = match bytes.get(at..at + 2)? {
            // Markers may be filled up.
            [0xff, 0xff] => {
                at += 1;
                continue;
            }
            [0xff, marker] => *marker,
            _ => return None,
        };
        let length = usize::try_from(big(bytes, at + 2, 2)?).ok()?;
        match marker {
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => size = Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?)),
            // The picture itself, up to the mark of its end.
            0xda => {
                let ends = bytes[at..].windows(2).any(|pair| pair == [0xff, 0xd9]);
                return size.filter(|_| ends);
            }
            0xd9 => return None,
            _ => {}
        }
        at += 2 + length.max(2);
    }
}

/// Reads width and height of a GIF that has its end.
fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = (little(bytes, 6, 2)?, little(bytes, 8, 2)?);
    (bytes.len() > 13 && bytes.ends_with(&[0x3b])).then_some(size)
}

/// Reads width and height of a WebP file that has as many bytes as it says.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let length = usize::try_from(little(bytes, 4, 4)?).ok()?;
    if bytes.len() < length.checked_add(8)? {
        return None;
    }
    match bytes.get(12..16)? {
        b"VP8 " if bytes.get(23..26)? == [0x9d, 0x01, 0x2a] => Some((
            little(bytes, 26, 2)? & 0x3fff,
            little(bytes, 28, 2)? & 0x3fff,
        )),
        b"VP8L" if *bytes.get(20)? == 0x2f => {
            let packed = little(bytes, 21, 4)?;
            Some(((packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

/// Reads up to four bytes as a number, the highest first.
fn big(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let read = bytes.get(at..at.checked_add(count)?)?;
    Some(
        read.iter()
            .fold(0, |sum, byte| (sum << 8) | u32::from(*byte)),
    )
}

/// Reads up to four bytes as a number, the lowest first.
fn little(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let read = bytes.get(at..at.checked_add(count)?)?;
    let highest_first = read.iter().rev();
    Some(highest_first.fold(0, |sum, byte| (sum << 8) | u32::from(*byte)))
}

#[cfg(test)]
pub(crate) mod tests;
