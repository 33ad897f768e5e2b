//! Building a data page anew, with its rows by column.
//!
//! Invariants:
//! - every slot keeps its number, and its row or ghost; forward pointers, rows that are away from home, and ghosts that lie by themselves keep their bytes;
//! - slots of the area that have no row there repeat one nearby, or, where that would take more, a map says which slots have one;
//! - a page that would have no room for its rows by column, as one of those that lie by themselves is unlike all others, leaves these by themselves.

use super::column_part::{ColumnPart, Entry, State, map_bytes, state_bytes};
use super::forms::{RecordDecoder, area_form};
use super::page::{DataPage, StoredKind};
use super::place::ColumnImage;
use super::ranges::{SlotRange, put_ranges};
use super::slot_reader::SlotReader;
use super::stored::{Body, Stored};
use crate::FormatError;
use pagefold_codec::page::{CarriedRows, PageEncoder};
use pagefold_codec::row::RowDictionary;

/// What a row that repeats another one takes, about.
const REPEATED_BYTES: usize = 2;

/// Rows of an area are carried over together if at least one in so many of it is.
const CARRIED_PART: usize = 8;

/// A row or ghost that comes to lie in a slot of a page that is built.
#[derive(Clone, Copy, Debug)]
pub struct PlacedRow<'p> {
    /// The slot.
    pub slot: u16,
    /// The page it comes from.
    pub page: DataPage<'p>,
    /// Its slot there. There may be nothing.
    pub at: u16,
}

/// A row that is new to a page that is built, or a pointer to where it is.
#[derive(Clone, Copy, Debug)]
pub enum SingleRow<'p> {
    /// By itself.
    Alone {
        /// The slot, in which no other row comes to lie.
        slot: u16,
        /// How it is stored; see [`Stored::build`].
        kind: StoredKind,
        /// The stored row.
        bytes: &'p [u8],
    },
    /// In the area.
    ByColumn {
        /// The slot.
        slot: u16,
        /// The row.
        body: Body<'p>,
    },
}

impl SingleRow<'_> {
    /// The slot.
    #[must_use]
    pub fn slot(&self) -> u16 {
        match self {
            SingleRow::Alone { slot, .. } | SingleRow::ByColumn { slot, .. } => *slot,
        }
    }
}

/// The page that is built anew.
#[derive(Clone, Copy, Debug)]
pub struct OwnPage<'p> {
    /// As it is.
    pub page: DataPage<'p>,
    /// Bytes that it may take then.
    pub bytes: usize,
}

/// Builds pages anew; reused from page to page.
#[derive(Debug)]
pub struct ColumnBuilder {
    encoder: PageEncoder,
    dictionary_version: u16,
    /// Rows of later layouts may be brought into that of the pages that are built.
    takes_later: bool,
    area: Vec<u8>,
    rows: Vec<u8>,
    directory: Vec<u8>,
    record: Vec<u8>,
    #[cfg(test)]
    held_rows: usize,
}

impl ColumnBuilder {
    /// `encoder` has string codes of the dictionary of this version; 0: it has none.
    #[must_use]
    pub fn new(encoder: PageEncoder, dictionary_version: u16) -> ColumnBuilder {
        ColumnBuilder {
            encoder,
            dictionary_version,
            takes_later: false,
            area: Vec::new(),
            rows: Vec::new(),
            directory: Vec::new(),
            record: Vec::new(),
            #[cfg(test)]
            held_rows: 0,
        }
    }

    /// May rows of later layouts be brought into that of the pages that are built, from now on? Without that a page with such rows is not built; those of earlier ones always are.
    pub fn set_takes_later(&mut self, takes_later: bool) {
        self.takes_later = takes_later;
    }

    /// The version of the dictionary it uses.
    #[must_use]
    pub fn dictionary_version(&self) -> u16 {
        self.dictionary_version
    }

    /// The rows of a page, by column. `None` when that is not possible: they would be too long for any page, there are ghosts of unknown kind, or rows of a layout that are to stay as they are.
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn rebuild<'d>(
        &mut self,
        page: &DataPage<'_>,
        decoder: &RecordDecoder,
        dictionary: impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Option<ColumnImage<'_>>, FormatError> {
        let ranges: Vec<SlotRange> = page.ranges().iter().collect();
        self.build((0..page.slot_count()).map(|slot| PlacedRow { slot, page: *page, at: slot }), None, (&ranges, None), decoder, dictionary)
    }

    /// A page with these rows, which ascend by slot, one more, and ranges. What lies in a slot of a forwarded range on its page comes along by its entry only. If it takes more than its own page may, rows that lie there by
    /// themselves stay so. `None` as for [`Self::rebuild`].
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn build<'p, 'd>(
        &mut self,
        rows: impl Iterator<Item = PlacedRow<'p>>,
        single: Option<SingleRow<'p>>,
        (ranges, own_page): (&[SlotRange], Option<OwnPage<'p>>),
        decoder: &RecordDecoder,
        dictionary: impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Option<ColumnImage<'_>>, FormatError> {
        let Some(mut placement) = Placement::of(rows, single)? else { return Ok(None) };
        let mut outline = self.lay_out(&placement, ranges, decoder, &dictionary)?;
        if let Some(own) = own_page
            && outline.as_ref().is_none_or(|outline| self.image(outline).len() > own.bytes)
            && placement.leave_alone(own.page)
        {
            outline = self.lay_out(&placement, ranges, decoder, &dictionary)?;
        }
        Ok(outline.map(|outline| self.image(&outline)))
    }

    fn image(&self, outline: &Outline) -> ColumnImage<'_> {
        let Outline { slots, dictionary_version, ranges, sparse } = *outline;
        ColumnImage { slots, dictionary_version, area: &self.area, rows: &self.rows, directory: &self.directory, ranges, sparse }
    }

    /// Lays rows out in the parts of a page.
    fn lay_out<'d>(
        &mut self,
        placement: &Placement<'_>,
        ranges: &[SlotRange],
        decoder: &RecordDecoder,
        dictionary: &impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Option<Outline>, FormatError> {
        let Placement { rows, sources, slots, in_area, area_slots } = placement;
        let (in_area, area_slots) = (*in_area, *area_slots);
        let own = decoder.layout();
        let is_taken = |layout: u8| layout <= own || self.takes_later;
        let in_areas = sources.iter().filter(|source| source.rows > 0).map(|source| source.part.layout());
        let by_themselves = rows.iter().filter_map(|(_, lies)| if let Lies::Body { body, .. } = lies { Some(body.layout()) } else { None });
        if !in_areas.chain(by_themselves).all(is_taken) {
            return Ok(None);
        }
        let slots = (*slots).max(ranges.last().map_or(0, SlotRange::end));
        // A row that repeats another takes some bytes, a slot of the map a bit.
        let sparse = (area_slots - in_area) * REPEATED_BYTES > map_bytes(area_slots);
        let mut states = vec![State::Free; usize::from(slots)];
        let mut map = vec![0u8; area_slots.div_ceil(8)];
        let mut entries = Vec::new();
        self.rows.clear();
        let held = self.held(sources, rows, sparse, own);
        #[cfg(test)]
        (self.held_rows = held);
        self.area.clear();
        let mut carried = Vec::new();
        if held == 0 {
            self.encoder.clear();
            let unpacked = sources.iter().map(|source| source.unpack(self.dictionary_version, decoder, dictionary));
            carried = unpacked.collect::<Result<_, _>>()?;
        }
        let mut run = Run::default();
        let mut area_rows = 0;
        for &(slot, lies) in rows {
            let at = usize::from(slot);
            let (body, ghost) = match lies {
                Lies::Alone { kind, bytes, ghost } => {
                    let offset = self.rows.len();
                    self.rows.extend_from_slice(bytes);
                    entries.push(Entry { slot, kind, ghost, offset: offset as u16, length: bytes.len() as u16 });
                    states[at] = State::Entry;
                    continue;
                }
                Lies::InArea { source, row, ghost } => (Body::Column { part: sources[source].part, row }, ghost),
                Lies::Body { body, .. } => (body, false),
            };
            // Slots before the row repeat it, unless the map says that they have none.
            let times = if sparse { 1 } else { at + 1 - area_rows };
            match lies {
                _ if area_rows < held => {}
                Lies::InArea { source, row, .. } if carried[source].is_some() => {
                    if run.source != source {
                        run.end(&mut self.encoder, &mut carried)?;
                        run.source = source;
                    }
                    run.rows.extend(std::iter::repeat_n(row, times));
                }
                _ => {
                    run.end(&mut self.encoder, &mut carried)?;
                    let record = decoder.decode(body, body.dictionary().and_then(dictionary), &mut self.record)?;
                    if record.len() > decoder.record_bytes_max() {
                        // In this layout it is longer than a page.
                        return Ok(None);
                    }
                    let pushed = (0..times).try_for_each(|_| self.encoder.push(record));
                    pushed.map_err(|e| FormatError::new(format!("slot {slot}: {e}")))?;
                }
            }
            area_rows += times;
            map[at / 8] |= 1 << (at % 8);
            states[at] = if ghost { State::Ghost } else { State::Area };
        }
        run.end(&mut self.encoder, &mut carried)?;
        if area_rows > 0 && self.encoder.encode(area_rows, &mut self.area).is_none() {
            return Ok(None);
        }
        let start = super::column_part::AREA + self.area.len();
        self.directory.clear();
        for mut entry in entries {
            let Ok(offset) = u16::try_from(start + usize::from(entry.offset)) else { return Ok(None) };
            entry.offset = offset;
            self.directory.extend_from_slice(&entry.to_bytes());
        }
        let at = self.directory.len();
        self.directory.resize(at + state_bytes(area_slots), 0);
        for (slot, state) in states[..area_slots].iter().enumerate() {
            self.directory[at + slot / 4] |= (*state as u8) << (slot % 4 * 2);
        }
        if sparse {
            self.directory.extend_from_slice(&map);
            self.directory.extend_from_slice(&(area_slots as u16).to_le_bytes());
        }
        put_ranges(ranges, &mut self.directory);
        let dictionary_version = if self.area.is_empty() { 0 } else { area_form(own, self.dictionary_version) };
        Ok(Some(Outline { slots, dictionary_version, ranges: ranges.len() as u16, sparse }))
    }

    /// So many rows were not taken in the last time, as they were known.
    #[cfg(test)]
    pub(super) fn held_rows(&self) -> usize {
        self.held_rows
    }

    /// Rows that the encoder has already: all of the area of the page, which it made, when nothing has come but rows behind them. So a page that fills takes in each of its rows once.
    fn held(&self, sources: &[Source<'_>], placed: &[(u16, Lies<'_>)], sparse: bool, layout: u8) -> usize {
        let [Source { part, rows, .. }] = sources else { return 0 };
        let is_own = *rows > 0
            && (*rows, *rows) == (part.rows(), self.encoder.rows())
            && (part.dictionary(), part.layout()) == (self.dictionary_version, layout)
            && part.area() == self.area;
        let in_area = placed.iter().filter(|(_, lies)| !matches!(lies, Lies::Alone { .. })).take(*rows);
        let is_row = |(at, (slot, lies)): (usize, &(u16, Lies<'_>))| {
            matches!(lies, Lies::InArea { row, .. } if usize::from(*row) == at) && (sparse || usize::from(*slot) == at)
        };
        if is_own && in_area.enumerate().all(is_row) { *rows } else { 0 }
    }
}

/// What a page that has been laid out says beside its parts.
#[derive(Debug)]
struct Outline {
    slots: u16,
    dictionary_version: u16,
    ranges: u16,
    sparse: bool,
}

/// How a row lies on the page that it comes from, or is to lie where it is new.
#[derive(Clone, Copy, Debug)]
enum Lies<'p> {
    /// In the area of this page of those that rows come from.
    InArea { source: usize, row: u16, ghost: bool },
    /// Otherwise: it comes into the area. `alone`: it lies by itself on the page that it comes from, in this way.
    Body { body: Body<'p>, alone: Option<(usize, StoredKind, &'p [u8])> },
    /// By itself, and stays so.
    Alone { kind: StoredKind, bytes: &'p [u8], ghost: bool },
}

/// What comes to lie where.
#[derive(Debug)]
struct Placement<'p> {
    /// By slot, ascending.
    rows: Vec<(u16, Lies<'p>)>,
    /// The pages that rows come from.
    sources: Vec<Source<'p>>,
    /// Slots up to the last of them.
    slots: u16,
    /// How many of them come into the area, and slots up to the last of those.
    in_area: usize,
    area_slots: usize,
}

impl<'p> Placement<'p> {
    /// Of these rows, and one more. `None` when there is a ghost of unknown kind.
    fn of(rows: impl Iterator<Item = PlacedRow<'p>>, single: Option<SingleRow<'p>>) -> Result<Option<Placement<'p>>, FormatError> {
        let mut placement = Placement { rows: Vec::new(), sources: Vec::new(), slots: 0, in_area: 0, area_slots: 0 };
        let mut from = 0;
        for PlacedRow { slot, page, at } in rows {
            let sources = &mut placement.sources;
            if !sources.get(from).is_some_and(|source| source.slots.reads(page)) {
                from = sources.iter().position(|source| source.slots.reads(page)).unwrap_or(sources.len());
                if from == sources.len() {
                    sources.push(Source::new(page));
                }
            }
            let source = &mut sources[from];
            if let Some((row, ghost)) = source.slots.area_row(at) {
                source.rows += 1;
                placement.put(slot, Lies::InArea { source: from, row, ghost });
                continue;
            }
            let (row, ghost) = match source.slots.row(at) {
                Some(row) => (Some(row), false),
                None => (source.slots.ghost(at, StoredKind::Special), true),
            };
            let Some(row) = row.filter(|row| row.kind != StoredKind::Forwarded) else { continue };
            if ghost && !page.has_columns() {
                return Ok(None);
            }
            let lies = match Stored::parse(row, page.dictionary_version())? {
                Stored::Home(body) | Stored::Hosted { body, .. } if !ghost => Lies::Body { body, alone: Some((from, row.kind, row.bytes)) },
                _ => Lies::Alone { kind: row.kind, bytes: row.bytes, ghost },
            };
            placement.put(slot, lies);
        }
        match single {
            Some(SingleRow::Alone { slot, kind, bytes }) => placement.put(slot, Lies::Alone { kind, bytes, ghost: false }),
            Some(SingleRow::ByColumn { slot, body }) => placement.put(slot, Lies::Body { body, alone: None }),
            None => {}
        }
        Ok(Some(placement))
    }

    /// Rows that lie by themselves on this page stay so. False when there are none.
    fn leave_alone(&mut self, page: DataPage<'_>) -> bool {
        let mut some = false;
        for (_, lies) in &mut self.rows {
            if let Lies::Body { alone: Some((from, kind, bytes)), .. } = *lies
                && self.sources[from].slots.reads(page)
            {
                *lies = Lies::Alone { kind, bytes, ghost: false };
                some = true;
            }
        }
        let in_area = self.rows.iter().filter(|(_, lies)| !matches!(lies, Lies::Alone { .. }));
        (self.in_area, self.area_slots) = in_area.fold((0, 0), |(rows, _), (slot, _)| (rows + 1, usize::from(*slot) + 1));
        some
    }

    fn put(&mut self, slot: u16, lies: Lies<'p>) {
        self.slots = self.slots.max(slot + 1);
        if !matches!(lies, Lies::Alone { .. }) {
            (self.in_area, self.area_slots) = (self.in_area + 1, self.area_slots.max(usize::from(slot) + 1));
        }
        // Nearly always behind all others.
        let at = if self.rows.last().is_none_or(|(last, _)| *last < slot) {
            self.rows.len()
        } else {
            self.rows.partition_point(|(other, _)| *other < slot)
        };
        self.rows.insert(at, (slot, lies));
    }
}

/// A page that rows come from.
#[derive(Debug)]
struct Source<'p> {
    slots: SlotReader<'p>,
    part: ColumnPart<'p>,
    /// Of its area come so many.
    rows: usize,
}

impl<'p> Source<'p> {
    fn new(page: DataPage<'p>) -> Source<'p> {
        Source { slots: SlotReader::new(page), part: page.column_part().unwrap_or(ColumnPart::new(&[])), rows: 0 }
    }

    /// The rows of its area, if enough of them come that it is worthwhile to unpack all. `version`: the dictionary of whoever takes them.
    fn unpack<'c, 'd: 'c>(
        &self,
        version: u16,
        decoder: &'c RecordDecoder,
        dictionary: &impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Option<CarriedRows<'c>>, FormatError>
    where
        'p: 'c,
    {
        if self.rows == 0 || self.rows * CARRIED_PART < self.part.rows() || self.part.layout() != decoder.layout() {
            return Ok(None);
        }
        let own = Body::Column { part: self.part, row: 0 }.dictionary();
        Ok(Some(CarriedRows::new(decoder.area(self.part, own.and_then(dictionary))?, own == Some(version))))
    }
}

/// Rows of one area, one behind the other: they are carried over together.
#[derive(Debug, Default)]
struct Run {
    source: usize,
    rows: Vec<u16>,
}

impl Run {
    fn end(&mut self, encoder: &mut PageEncoder, carried: &mut [Option<CarriedRows<'_>>]) -> Result<(), FormatError> {
        if let (Some(Some(from)), false) = (carried.get_mut(self.source), self.rows.is_empty()) {
            encoder.push_carried(from, &self.rows).map_err(|e| FormatError::new(format!("rows by column: {e}")))?;
            self.rows.clear();
        }
        Ok(())
    }
}
