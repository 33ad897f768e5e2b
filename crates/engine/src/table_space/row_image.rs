//! The body of a row as versions in memory keep it: dictionary version, then the bytes; version 0 stands for a plain record. And as undo records keep it: by what differs.

use pagefold_codec::splice::Splice;
use pagefold_format::data::Body;
use pagefold_format::log::Earlier;

/// Bytes before the body.
const VERSION_BYTES: usize = 2;

/// A row's body with its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowImage(Vec<u8>);

impl RowImage {
    /// # Panics
    /// For a row of a column part: see [`Table::image`](super::Table).
    pub(crate) fn of(body: Body<'_>) -> RowImage {
        let (version, bytes) = body.parts();
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

    /// What a body was before a change of how it is stored; `None` when it was not changed so.
    pub(super) fn earlier(now: Body<'_>, before: Earlier<'_>) -> Option<RowImage> {
        match before {
            Earlier::Whole { version: 0, bytes } => Some(RowImage::of(Body::Plain(bytes))),
            Earlier::Whole { version, bytes } => Some(RowImage::of(Body::Compressed { version, codes: bytes })),
            // Such a change is logged by its record: another one is of a damaged log.
            Earlier::Spliced(_) if matches!(now, Body::Column { .. }) => None,
            Earlier::Spliced(splice) => {
                let (version, bytes) = now.parts();
                let mut image = version.to_le_bytes().to_vec();
                splice.apply(bytes, &mut image).ok()?;
                Some(RowImage(image))
            }
            Earlier::Record(_) => None,
        }
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

/// What takes a change from `before` to `after` back; `codes` is room for codes.
pub(super) fn earlier<'b>(after: Body<'_>, before: Body<'b>, codes: &'b mut Vec<u8>) -> Earlier<'b> {
    match (after, before) {
        (Body::Plain(after), Body::Plain(before)) => Earlier::Spliced(Splice::between(after, before)),
        (Body::Compressed { version, codes: after }, Body::Compressed { version: same, codes: before }) if version == same => {
            Earlier::Spliced(Splice::between_compressed(after, before, codes))
        }
        (_, before) => whole(before),
    }
}

/// What takes any change of a row back that was stored so, whatever form it has by then.
pub(super) fn whole(before: Body<'_>) -> Earlier<'_> {
    let (version, bytes) = before.parts();
    Earlier::Whole { version, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_format::data::ColumnPart;

    #[test]
    fn what_was_before_comes_back() {
        let bodies = [
            Body::Plain(b""),
            Body::Plain(b"abcabc"),
            Body::Plain(b"abc"),
            Body::Plain(b"aaaa"),
            Body::Compressed { version: 1, codes: b"abcabc" },
            Body::Compressed { version: 1, codes: b"abcabca\x0b" },
            Body::Compressed { version: 1, codes: b"no whole codes" },
            Body::Compressed { version: 513, codes: b"xabcabc" },
        ];
        for after in bodies {
            for before in bodies {
                let mut codes = Vec::new();
                let image = RowImage::earlier(after, earlier(after, before, &mut codes)).unwrap();
                assert_eq!(image, RowImage::of(before));
                assert_eq!(body_of(image.bytes()), before);
            }
        }
        assert!(RowImage::earlier(Body::Plain(b"ab"), Earlier::Spliced(Splice::of_bytes(3, 2, b""))).is_none());
        let column = Body::Column { part: ColumnPart::new(&[0; 20]), row: 0 };
        assert!(RowImage::earlier(column, Earlier::Spliced(Splice::of_bytes(0, 0, b"x"))).is_none());
    }
}
