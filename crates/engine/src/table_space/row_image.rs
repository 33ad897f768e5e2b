//! The body of a row as versions and undo records keep it: dictionary version, then the bytes; version 0 stands for a plain record.

use pagefold_codec::bytes;
use pagefold_format::data::Body;

/// Bytes before the body.
const VERSION_BYTES: usize = 2;

/// A row's body with its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowImage(Vec<u8>);

impl RowImage {
    pub(crate) fn of(body: Body<'_>) -> RowImage {
        let (version, bytes) = match body {
            Body::Plain(record) => (0, record),
            Body::Compressed { version, codes } => (version, codes),
        };
        let mut image = Vec::with_capacity(VERSION_BYTES + bytes.len());
        image.extend_from_slice(&version.to_le_bytes());
        image.extend_from_slice(bytes);
        RowImage(image)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn body(&self) -> Body<'_> {
        body_of(&self.0)
    }

    /// The image with `removed` bytes from `at` on replaced; `None` when it has none such.
    pub(crate) fn spliced(&self, at: u16, removed: u16, bytes: &[u8]) -> Option<RowImage> {
        let (at, end) = (usize::from(at), usize::from(at) + usize::from(removed));
        let image = [self.0.get(..at)?, bytes, self.0.get(end..)?].concat();
        (image.len() >= VERSION_BYTES).then_some(RowImage(image))
    }
}

/// The body that an image's bytes stand for.
pub(crate) fn body_of(image: &[u8]) -> Body<'_> {
    match image.split_first_chunk::<VERSION_BYTES>() {
        Some((version, bytes)) => match u16::from_le_bytes(*version) {
            0 => Body::Plain(bytes),
            version => Body::Compressed { version, codes: bytes },
        },
        None => Body::Plain(&[]),
    }
}

/// What turns `from` into `to`: where, how many bytes go, which come.
pub(super) fn difference<'t>(from: &RowImage, to: &'t RowImage) -> (u16, u16, &'t [u8]) {
    let (at, removed, bytes) = bytes::difference(&from.0, &to.0);
    (at as u16, removed as u16, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_lead_back() {
        let bodies = [
            Body::Plain(b""),
            Body::Plain(b"abcabc"),
            Body::Plain(b"abc"),
            Body::Plain(b"aaaa"),
            Body::Plain(b"aaa"),
            Body::Compressed { version: 1, codes: b"abcabc" },
            Body::Compressed { version: 513, codes: b"xabcabc" },
        ];
        for from in bodies {
            for to in bodies {
                let (from, to) = (RowImage::of(from), RowImage::of(to));
                let (at, removed, bytes) = difference(&from, &to);
                assert_eq!(from.spliced(at, removed, bytes).unwrap(), to);
                assert_eq!(body_of(to.bytes()), to.body());
            }
        }
        assert!(RowImage::of(Body::Plain(b"ab")).spliced(3, 2, b"").is_none());
    }
}
