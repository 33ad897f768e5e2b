//! Attributes: pieces of bytes with a tag.
//!
//! | Size | Field of an attribute |
//! |---|---|
//! | varint | tag |
//! | varint | length |
//! | length | bytes |
//!
//! Invariants:
//! - tags ascend; attributes of one tag are a list, in their order;
//! - a reader that does not know an even tag keeps the attribute as it is, and goes on without;
//! - a reader that does not know an odd one refuses what has it: without it, it would do something wrong.

use crate::FormatError;
use crate::wire::{Reader, put_varint};

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// What it is.
    pub tag: u32,
    /// Its value.
    pub bytes: &'a [u8],
}

/// Must a reader know this tag?
#[must_use]
pub fn must_be_known(tag: u32) -> bool {
    tag & 1 == 1
}

/// What a reader says of an attribute of this tag, which it must know and does not.
#[must_use]
pub fn unknown(tag: u32) -> FormatError {
    FormatError::new(format!("attribute {tag}, which a later version has written: this version cannot use what has it"))
}

/// Appends an attribute.
pub fn put(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    put_varint(out, tag.into());
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends an attribute that is a number.
pub fn put_number(out: &mut Vec<u8>, tag: u32, number: u64) {
    let mut bytes = Vec::with_capacity(10);
    put_varint(&mut bytes, number);
    put(out, tag, &bytes);
}

impl<'a> Attribute<'a> {
    /// The value as a number.
    ///
    /// # Errors
    /// When it is none of so many bits.
    pub fn number<T: TryFrom<u64>>(&self) -> Result<T, FormatError> {
        let mut reader = Reader::new(self.bytes);
        let number = reader.varint()?;
        self.ends(&reader)?;
        T::try_from(number).map_err(|_| FormatError::new(format!("attribute {}: the number {number} is out of range", self.tag)))
    }

    /// The value as text.
    ///
    /// # Errors
    /// When it is no UTF-8.
    pub fn text(&self) -> Result<&'a str, FormatError> {
        std::str::from_utf8(self.bytes).map_err(|_| FormatError::new(format!("attribute {} is no text", self.tag)))
    }

    /// The value as numbers, one behind the other.
    ///
    /// # Errors
    /// When it is none.
    pub fn numbers(&self) -> Result<Vec<u32>, FormatError> {
        let mut reader = Reader::new(self.bytes);
        let mut numbers = Vec::new();
        while !reader.is_empty() {
            numbers.push(reader.varint32()?);
        }
        Ok(numbers)
    }

    /// The value as a mark that has none.
    ///
    /// # Errors
    /// When it has bytes.
    pub fn mark(&self) -> Result<bool, FormatError> {
        self.ends(&Reader::new(self.bytes)).map(|()| true)
    }

    /// Refuses bytes behind what was read of the value.
    ///
    /// # Errors
    /// When there are any.
    pub fn ends(&self, reader: &Reader<'_>) -> Result<(), FormatError> {
        if reader.is_empty() { Ok(()) } else { Err(FormatError::new(format!("attribute {} is longer than its value", self.tag))) }
    }
}

/// Bytes of a list of numbers.
#[must_use]
pub fn numbers(numbers: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() + 4);
    numbers.iter().for_each(|number| put_varint(&mut bytes, u64::from(*number)));
    bytes
}

/// Attributes, one after the other. After an error there are no more.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    reader: Reader<'a>,
    last: u32,
}

impl<'a> Attributes<'a> {
    /// The attributes in these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Attributes<'a> {
        Attributes { reader: Reader::new(bytes), last: 0 }
    }

    fn read(&mut self) -> Result<Attribute<'a>, FormatError> {
        let tag = self.reader.varint32()?;
        let length = self.reader.varint32()?;
        let bytes = self.reader.take(length as usize)?;
        if tag < self.last {
            return Err(FormatError::new(format!("attribute {tag} behind attribute {}", self.last)));
        }
        self.last = tag;
        Ok(Attribute { tag, bytes })
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.reader.rest();
        }
        Some(read)
    }
}

/// Attributes of even tags that a reader does not know, as they are: whoever writes puts them back in their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(Vec<(u32, Box<[u8]>)>);

impl Kept {
    /// Keeps an attribute.
    ///
    /// # Errors
    /// When it is one that must be known.
    pub fn keep(&mut self, attribute: Attribute<'_>) -> Result<(), FormatError> {
        if must_be_known(attribute.tag) {
            return Err(unknown(attribute.tag));
        }
        self.0.push((attribute.tag, attribute.bytes.into()));
        Ok(())
    }

    /// Attributes that were written by tag, in `bytes`, with those that are kept among them.
    #[must_use]
    pub fn merge(&self, bytes: Vec<u8>) -> Vec<u8> {
        if self.0.is_empty() {
            return bytes;
        }
        let own = Attributes::new(&bytes).filter_map(Result::ok).map(|attribute| (attribute.tag, attribute.bytes));
        let mut all: Vec<(u32, &[u8])> = own.chain(self.0.iter().map(|(tag, bytes)| (*tag, &**bytes))).collect();
        all.sort_by_key(|(tag, _)| *tag);
        let mut merged = Vec::with_capacity(bytes.len() + 16);
        all.into_iter().for_each(|(tag, bytes)| put(&mut merged, tag, bytes));
        merged
    }
}
