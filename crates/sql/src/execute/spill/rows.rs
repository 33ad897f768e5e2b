//! Rows in a scratch file: written one behind the other, read in the same order.
//!
//! A row is its length and its values, each with a byte for its kind; rows go on from one block to the next. Nothing of it outlives the process, so it has no version.

use super::{BLOCK_BYTES, Block, Spill};
use crate::execute::{Context, Execution, Operator, Tuple};
use crate::{SqlError, SqlResult};
use pagefold_types::{Interval, Value};
use std::sync::Arc;

const LENGTH_BYTES: usize = 4;

/// Puts the values of a row behind bytes.
fn encode(row: &[Value], out: &mut Vec<u8>) {
    for value in row {
        match value {
            Value::Null => out.push(0),
            Value::Boolean(value) => out.extend([1, u8::from(*value)]),
            Value::Int(value) => {
                out.push(2);
                out.extend(value.to_le_bytes());
            }
            Value::Decimal(value) => {
                out.push(3);
                out.extend(value.to_le_bytes());
            }
            Value::Real(value) => {
                out.push(4);
                out.extend(value.to_le_bytes());
            }
            Value::Double(value) => {
                out.push(5);
                out.extend(value.to_le_bytes());
            }
            Value::Uuid(value) => {
                out.push(6);
                out.extend(value);
            }
            Value::Interval(value) => {
                out.push(9);
                out.extend(value.to_bytes());
            }
            Value::Text(text) => encode_long(7, text.as_bytes(), out),
            Value::Bytes(bytes) => encode_long(8, bytes, out),
        }
    }
}

fn encode_long(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    // Values are never so long that this cuts; a row whose bytes are is refused.
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// The values of such bytes. `None`: they are none.
fn decode(mut bytes: &[u8], row: &mut Tuple) -> Option<()> {
    fn array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (array, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*array)
    }
    fn long<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
        let length = u32::from_le_bytes(array(bytes)?) as usize;
        let (long, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(long)
    }
    row.clear();
    while let Some((kind, rest)) = bytes.split_first() {
        bytes = rest;
        row.push(match kind {
            0 => Value::Null,
            1 => Value::Boolean(array::<1>(&mut bytes)? == [1]),
            2 => Value::Int(i64::from_le_bytes(array(&mut bytes)?)),
            3 => Value::Decimal(i128::from_le_bytes(array(&mut bytes)?)),
            4 => Value::Real(f32::from_le_bytes(array(&mut bytes)?)),
            5 => Value::Double(f64::from_le_bytes(array(&mut bytes)?)),
            6 => Value::Uuid(array(&mut bytes)?),
            7 => Value::Text(std::str::from_utf8(long(&mut bytes)?).ok()?.to_owned()),
            8 => Value::Bytes(long(&mut bytes)?.to_vec()),
            9 => Value::Interval(Interval::from_bytes(array(&mut bytes)?)),
            _ => return None,
        });
    }
    Some(())
}

/// Takes rows.
#[derive(Debug)]
pub(crate) struct RowWriter {
    spill: Arc<Spill>,
    /// What has not been written yet: less than a block, but while a row is taken.
    bytes: Vec<u8>,
    blocks: Vec<Block>,
    rows: u64,
}

impl RowWriter {
    pub(crate) fn new(execution: &Execution) -> RowWriter {
        RowWriter { spill: Arc::clone(&execution.spill), bytes: Vec::new(), blocks: Vec::new(), rows: 0 }
    }

    /// Takes a row.
    pub(crate) fn push(&mut self, execution: &Execution, row: &[Value]) -> SqlResult<()> {
        let start = self.bytes.len();
        self.bytes.extend([0; LENGTH_BYTES]);
        encode(row, &mut self.bytes);
        let too_long = |_| SqlError::new("54000", "a row of more than 4 GB");
        let length = u32::try_from(self.bytes.len() - start - LENGTH_BYTES).map_err(too_long)?;
        self.bytes[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        self.rows += 1;
        let mut written = 0;
        while self.bytes.len() - written >= BLOCK_BYTES {
            execution.limits.check()?;
            let block = self.spill.write(execution.database.engine(), &self.bytes[written..written + BLOCK_BYTES])?;
            self.blocks.push(block);
            written += BLOCK_BYTES;
        }
        self.bytes.drain(..written);
        // One that was very long is not held on to.
        if written > 0 && self.bytes.capacity() > 4 * BLOCK_BYTES {
            self.bytes.shrink_to(BLOCK_BYTES);
        }
        Ok(())
    }

    /// The rows, to be read.
    pub(crate) fn finish(mut self, execution: &Execution) -> SqlResult<Rows> {
        let last = self.bytes.len();
        if last > 0 {
            self.blocks.push(self.spill.write(execution.database.engine(), &self.bytes)?);
        }
        let last = if last > 0 { last } else { BLOCK_BYTES };
        Ok(Rows { blocks: self.blocks.into_iter(), last, left: self.rows, bytes: Vec::new(), at: 0 })
    }
}

/// Rows that are read once, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Rows {
    blocks: std::vec::IntoIter<Block>,
    /// Bytes of the last block.
    last: usize,
    /// Rows that are to come.
    left: u64,
    /// What has been read and not been given yet, from a place on.
    bytes: Vec<u8>,
    at: usize,
}

impl Rows {
    /// Rows that are to come.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    /// Has so many bytes at hand.
    fn have(&mut self, wanted: usize) -> SqlResult<()> {
        while self.bytes.len() - self.at < wanted {
            let block = self.blocks.next().ok_or_else(damaged)?;
            self.bytes.drain(..self.at);
            self.at = 0;
            let (start, length) = (self.bytes.len(), if self.blocks.len() == 0 { self.last } else { BLOCK_BYTES });
            self.bytes.resize(start + length, 0);
            block.read(&mut self.bytes[start..])?;
        }
        Ok(())
    }

    /// Puts the next row in the place of another one; false at the end.
    pub(crate) fn read(&mut self, row: &mut Tuple) -> SqlResult<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.have(LENGTH_BYTES)?;
        let length = self.bytes[self.at..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
        self.at += LENGTH_BYTES;
        self.have(length)?;
        decode(&self.bytes[self.at..self.at + length], row).ok_or_else(damaged)?;
        self.at += length;
        Ok(true)
    }
}

impl Operator for Rows {
    fn fill(&mut self, _: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        self.read(row)
    }
}

fn damaged() -> SqlError {
    SqlError::new("58030", "rows in the scratch file of a statement are not what was written")
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn values_come_back_to_the_bit() {
        let row = vec![
            Value::Null,
            Value::Boolean(true),
            Value::Boolean(false),
            Value::Int(i64::MIN),
            Value::Decimal(i128::MAX),
            Value::Real(-0.0),
            Value::Double(f64::NEG_INFINITY),
            Value::Uuid([7; 16]),
            Value::Interval(Interval { months: 1, days: -2, micros: i64::MIN }),
            Value::Text(String::new()),
            Value::Text("grün".into()),
            Value::Bytes(vec![0, 255]),
        ];
        let (mut bytes, mut again) = (Vec::new(), Tuple::new());
        encode(&row, &mut bytes);
        decode(&bytes, &mut again).unwrap();
        assert_eq!(format!("{again:?}"), format!("{row:?}"));
        for length in 1..bytes.len() {
            // Cut anywhere it is another row, or none; never a panic.
            let _ = decode(&bytes[..length], &mut again);
        }
        assert!(decode(&[9], &mut again).is_none());
        assert!(decode(&[7, 255, 255, 255, 255, b'a'], &mut again).is_none());
    }
}
