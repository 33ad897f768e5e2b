//! The structural check of an area from disk: linear in columns and exceptions.
//!
//! After it every part that the directory names lies in the area. Not looked at: ends of strings and numbers of dictionaries, which are as many as rows.

use super::bits::{load, load_u16, packed_len};
use super::ints::Exceptions;
use super::layout::{ENTRY_BYTES, EXCEPTION_HEADER_BYTES, EXCEPTIONS, Entry, HEADER_BYTES, Kind, LARGE, NULLS, OUTSIDE, ROWS_MAX};
use super::schema::{Class, PageSchema};
use crate::CodecError;

pub(super) fn check(schema: &PageSchema, has_dictionary: bool, area: &[u8]) -> Result<(), CodecError> {
    let error = |reason| Err(CodecError::Page(reason));
    let (rows, columns) = (usize::from(load_u16(area, 0)), schema.columns.len());
    if !(1..=ROWS_MAX).contains(&rows) || usize::from(load_u16(area, 2)) != columns {
        return error("number of rows or columns");
    }
    if usize::from(load_u16(area, 4)) != area.len() || area.len() < HEADER_BYTES + ENTRY_BYTES * columns {
        return error("length of the area");
    }
    for (number, column) in schema.columns.iter().enumerate() {
        let bits = area[HEADER_BYTES + ENTRY_BYTES * number + 1];
        let entry = Entry::read(area, number);
        let Some(kind) = entry.known_kind() else { return error("unknown encoding") };
        if (matches!(column.class, Class::Int { .. }) == kind.is_string() && kind != Kind::Null) || u32::from(bits) != entry.width {
            return error("encoding of a column");
        }
        let nullable = column.null_bit.is_some();
        if !nullable && (entry.has(NULLS) || kind == Kind::Null) {
            return error("NULL in a column without");
        }
        if entry.has(LARGE) && (!matches!(column.class, Class::Variable { .. }) || !kind.is_string()) {
            return error("large values in a column without");
        }
        if kind.has_codes() && !has_dictionary {
            return error("string codes without a dictionary");
        }
        Column { area, rows, number, kind, entry }.check()?;
    }
    Ok(())
}

struct Column<'a> {
    area: &'a [u8],
    rows: usize,
    number: usize,
    kind: Kind,
    entry: Entry,
}

impl Column<'_> {
    fn check(&self) -> Result<(), CodecError> {
        let (area, entry) = (self.area, self.entry);
        self.lies_inside(entry.at, packed_len(self.rows, entry.width))?;
        let bitmap = self.rows.div_ceil(8);
        let bitmaps = bitmap * (usize::from(entry.has(NULLS)) + usize::from(entry.has(LARGE)));
        self.lies_inside(entry.at.wrapping_sub(bitmaps), bitmaps)?;
        // Those without parameters in the entry.
        let inline = matches!(self.kind, Kind::Null | Kind::Frame | Kind::Difference);
        if entry.has(OUTSIDE) {
            self.lies_inside(entry.outside(), self.kind.outside_bytes())?;
        } else if !inline {
            return Err(CodecError::Page("no parameters"));
        }
        match self.kind {
            Kind::Dictionary => {
                let word = load(area, entry.outside() + 8);
                let (at, count, width) = (usize::from(word as u16), usize::from((word >> 16) as u16), (word >> 32) as u8);
                if count == 0 || count > self.rows || width > 64 {
                    return Err(CodecError::Page("dictionary of a column"));
                }
                self.lies_inside(at, packed_len(count, width.into()))?;
            }
            Kind::Difference => self.check_partner()?,
            kind if kind.is_string() => self.check_heap()?,
            _ => {}
        }
        if entry.has(EXCEPTIONS) {
            if !matches!(self.kind, Kind::Frame | Kind::Linear | Kind::Difference) {
                return Err(CodecError::Page("exceptions in an encoding without"));
            }
            self.check_exceptions()?;
        }
        Ok(())
    }

    fn lies_inside(&self, at: usize, len: usize) -> Result<(), CodecError> {
        let inside = at.checked_add(len).is_some_and(|end| end <= self.area.len());
        if inside { Ok(()) } else { Err(CodecError::Page("part of a column outside the area")) }
    }

    fn check_partner(&self) -> Result<(), CodecError> {
        let at = self.entry.outside() + 8;
        let partner = if self.entry.has(OUTSIDE) { load_u16(self.area, at) } else { (self.entry.parameters >> 16) as u16 };
        let partner = usize::from(partner);
        let fits = partner < self.number
            && matches!(Entry::read(self.area, partner).known_kind(), Some(Kind::Frame | Kind::Multiple | Kind::Linear | Kind::Dictionary));
        if fits { Ok(()) } else { Err(CodecError::Page("partner of a difference")) }
    }

    fn check_heap(&self) -> Result<(), CodecError> {
        let outside = self.entry.outside();
        let place = load(self.area, outside + 8);
        let (heap, prefix) = (usize::from(place as u16), usize::from((place >> 16) as u16));
        self.lies_inside(heap.wrapping_sub(prefix), prefix)?;
        if self.kind.is_string_dictionary() {
            let (ends, count) = (usize::from((place >> 32) as u16), usize::from((place >> 48) as u16));
            let width = self.area[outside + 16];
            // No more values than rows: reads that look through them take time by the area, not by what it claims.
            if count == 0 || count > self.rows || width > 64 {
                return Err(CodecError::Page("dictionary of a column"));
            }
            self.lies_inside(ends, packed_len(count, width.into()))?;
        }
        Ok(())
    }

    fn check_exceptions(&self) -> Result<(), CodecError> {
        let at = self.entry.at + packed_len(self.rows, self.entry.width);
        self.lies_inside(at, EXCEPTION_HEADER_BYTES)?;
        let exceptions = Exceptions::read(self.area, at);
        if exceptions.bytes != usize::from(self.area[at + 2]) {
            return Err(CodecError::Page("exceptions of a column"));
        }
        self.lies_inside(exceptions.at, exceptions.count * (2 + exceptions.bytes))?;
        let rows = (0..exceptions.count).map(|index| exceptions.row(self.area, index));
        if rows.is_sorted_by(|a, b| a < b) && exceptions.count > 0 && exceptions.row(self.area, exceptions.count - 1) < self.rows {
            Ok(())
        } else {
            Err(CodecError::Page("exceptions of a column"))
        }
    }
}
