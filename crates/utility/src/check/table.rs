//! A table: its data pages and everything that hangs on them.
//!
//! Checked, in one pass over each data set: structure of every data page; its free-space class against its true free space; every slot's tag; that records decode and are
//! records of the table; that their dictionaries exist; that their large values are whole and belong to one row; that each forward pointer has its row away from home and
//! each such row its forward pointer (as sets of pairs, see `difference`): so a row is at most one hop away; counts in the header; pages that nothing names.

use super::chain::{find_dictionaries, read_dictionaries};
use super::data_set::{DataSetFile, Expected};
use super::difference::{Buckets, Element, Side, Sum, hash};
use super::findings::Context;
use super::large::read_large;
use crate::Result;
use pagefold_codec::page::ColumnArea;
use pagefold_codec::row::RowDictionary;
use pagefold_engine::catalog::TableEntry;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_format::data::forms::{self, RecordDecoder};
use pagefold_format::data::{Body, DataPage, Stored};
use pagefold_format::data_set_header::ObjectKind;
use pagefold_format::page::PageType;
use pagefold_format::space_map::{CLASS_FULL, CLASS_NO_ROWS, class_not_empty, class_of, is_map_page};
use pagefold_io::Storage;
use pagefold_types::{RID_BYTES, Rid, RowLayout};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What a pass over the data pages comes across.
pub(crate) enum Visit<'r> {
    /// A row, under its home RID, at the page where it lies.
    Row { rid: Rid, partition: u16, page: u32, record: &'r [u8] },
    /// A home slot that points to where the row is.
    Forward { home: Rid, target: Rid },
    /// A row away from home.
    Away { home: Rid, at: Rid },
}

/// A table's files.
pub(crate) struct TableFiles<'a> {
    pub(crate) entry: &'a TableEntry,
    pub(crate) layout: RowLayout,
    /// By partition; `None`: no file, or none that can be read.
    pub(crate) sets: Vec<Option<DataSetFile>>,
    decoder: RecordDecoder,
    dictionaries: Vec<BTreeMap<u16, Arc<RowDictionary>>>,
    /// Every partition that should be there is.
    pub(crate) complete: bool,
    /// Rows that were delivered in the first pass.
    pub(crate) rows: u64,
}

/// What errors call a table.
pub(crate) fn table_object(entry: &TableEntry) -> String {
    // The catalog is a table space, too.
    if entry.object_id == 0 { "catalog".into() } else { format!("table \"{}\"", entry.attributes.name) }
}

/// What is expected of a table's partition that has a file.
pub(crate) fn table_expected(entry: &TableEntry, partition: usize) -> Option<Expected> {
    let data_set = entry.data_sets.get(partition)?;
    let mut object = table_object(entry);
    if entry.data_sets.len() > 1 {
        object.push_str(&format!(", partition {partition}"));
    }
    Some(Expected {
        object,
        file_id: data_set.file_id,
        object_id: entry.object_id,
        kind: ObjectKind::Table,
        partition: data_set.partition,
        page_bytes: entry.attributes.page_bytes,
        leaf_bytes: entry.attributes.page_bytes,
        header_writes: data_set.header_writes?,
    })
}

impl<'a> TableFiles<'a> {
    /// Opens all data sets and reads the dictionaries. `None` when the schema makes no records: reported.
    pub(crate) fn open(
        storage: &dyn Storage,
        directory: &Path,
        database_id: u128,
        entry: &'a TableEntry,
        context: &mut Context<'_>,
    ) -> Option<TableFiles<'a>> {
        let found = RowLayout::new(&entry.attributes.schema).and_then(|layout| Ok((layout, entry.attributes.decoder()?)));
        let (layout, decoder) = match found {
            Ok(found) => found,
            Err(error) => {
                context.error(&table_object(entry), 0, error);
                return None;
            }
        };
        let mut table = TableFiles { entry, decoder, layout, sets: Vec::new(), dictionaries: Vec::new(), complete: true, rows: 0 };
        for partition in 0..entry.data_sets.len() {
            let set = table_expected(entry, partition).and_then(|expected| {
                let set = DataSetFile::open(storage, directory, database_id, &expected, context);
                table.complete &= set.is_some();
                set
            });
            table.sets.push(set);
            let dictionaries = table.sets[partition].as_mut().map(|set| read_dictionaries(set, context)).unwrap_or_default();
            table.dictionaries.push(dictionaries);
        }
        table.compare_dictionaries(context);
        Some(table)
    }

    /// A version is the same dictionary in every partition.
    fn compare_dictionaries(&mut self, context: &mut Context<'_>) {
        for partition in 1..self.sets.len() {
            for (version, dictionary) in &self.dictionaries[partition] {
                let other = self.dictionaries[..partition].iter().find_map(|d| d.get(version));
                if other.is_some_and(|other| other.to_bytes() != dictionary.to_bytes())
                    && let Some(set) = &mut self.sets[partition]
                {
                    set.fault(0, format!("dictionary version {version} differs from that of another partition"), context);
                }
            }
        }
    }

    /// Delivers the rows of all pages that can be read, whatever header and map know of them; what cannot is reported.
    ///
    /// # Errors
    /// Only when the user wants to stop.
    pub(crate) fn salvage(&mut self, context: &mut Context<'_>, visit: &mut dyn FnMut(&mut Context<'_>, Visit<'_>)) -> Result<()> {
        for (set, dictionaries) in self.sets.iter_mut().zip(&mut self.dictionaries) {
            let Some(set) = set else { continue };
            set.salvage();
            for (version, dictionary) in find_dictionaries(set) {
                dictionaries.entry(version).or_insert(dictionary);
            }
        }
        (0..self.sets.len()).try_for_each(|partition| self.sweep(partition, true, false, context, visit))
    }

    /// Pages of all data sets.
    pub(crate) fn page_count(&self) -> u64 {
        self.sets.iter().flatten().map(|set| u64::from(set.page_count)).sum()
    }

    /// Is anything of this table damaged or missing?
    pub(crate) fn is_damaged(&self) -> bool {
        !self.complete || self.sets.iter().flatten().any(|set| set.damaged)
    }

    /// Can the row that should be there not be read, for a reason that was reported?
    pub(crate) fn is_unreadable(&self, rid: Rid) -> bool {
        match self.sets.get(usize::from(rid.partition())) {
            Some(Some(set)) => set.is_damaged(rid.page()) || !set.is_mapped(rid.page()),
            Some(None) => self.entry.data_sets[usize::from(rid.partition())].header_writes.is_some(),
            None => false,
        }
    }

    fn dictionary(&self, partition: usize, version: u16) -> std::result::Result<&Arc<RowDictionary>, String> {
        if let Some(dictionary) = self.dictionaries[partition].get(&version) {
            return Ok(dictionary);
        }
        let elsewhere = self.dictionaries.iter().find_map(|d| d.get(&version));
        let header_lost = self.sets[partition].as_ref().is_none_or(|set| set.header.is_none() || set.salvaged);
        match elsewhere {
            Some(dictionary) if header_lost => Ok(dictionary),
            _ => Err(format!("dictionary version {version} is not in this partition")),
        }
    }

    /// Checks all pages and delivers all rows.
    ///
    /// # Errors
    /// Only when the user wants to stop.
    pub(crate) fn check(&mut self, context: &mut Context<'_>, visit: &mut dyn FnMut(&mut Context<'_>, Visit<'_>)) -> Result<()> {
        let (mut forward, mut away) = (Sum::default(), Sum::default());
        let mut rows = 0;
        let mut scratch = Vec::new();
        let mut large_columns =
            (0..self.layout.column_count()).any(|c| self.entry.attributes.schema.columns()[c].data_type.fixed_width().is_none());
        large_columns &= self.entry.object_id != 0;
        for partition in 0..self.sets.len() {
            self.sweep(partition, true, large_columns, context, &mut |context, what| {
                match &what {
                    Visit::Row { .. } => rows += 1,
                    Visit::Forward { home, target } => forward.add(hash(&home.to_bytes(), *target, &mut scratch)),
                    Visit::Away { home, at } => away.add(hash(&home.to_bytes(), *at, &mut scratch)),
                }
                visit(context, what);
            })?;
        }
        if self.entry.object_id != 0 {
            context.count_rows(rows);
        }
        self.rows = rows;
        if forward != away {
            self.report_moves(forward.count().max(away.count()), context)?;
        }
        if !self.is_damaged() && self.sets.iter().flatten().all(DataSetFile::map_is_whole) {
            self.sets.iter_mut().flatten().for_each(|set| set.report_leaks(context));
        }
        Ok(())
    }

    /// Delivers all rows once more, without a word about what is wrong.
    ///
    /// # Errors
    /// Only when the user wants to stop.
    pub(crate) fn again(&mut self, context: &mut Context<'_>, visit: &mut dyn FnMut(Visit<'_>)) -> Result<()> {
        context.muted(|context| {
            (0..self.sets.len()).try_for_each(|partition| self.sweep(partition, false, false, context, &mut |_, what| visit(what)))
        })
    }

    fn sweep(
        &mut self,
        partition: usize,
        first: bool,
        large: bool,
        context: &mut Context<'_>,
        visit: &mut dyn FnMut(&mut Context<'_>, Visit<'_>),
    ) -> Result<()> {
        let Some(page_count) = self.sets[partition].as_ref().map(|set| set.page_count) else { return Ok(()) };
        let (mut page, mut record) = (Vec::new(), Vec::new());
        let (mut data_pages, mut rows) = (0u32, 0u64);
        for number in 1..page_count {
            let Some(set) = &mut self.sets[partition] else { break };
            let salvaged = set.salvaged;
            if is_map_page(number, set.page_bytes) || (set.is_free(number) && !salvaged) {
                continue;
            }
            context.tick()?;
            if set.may_be_unwritten(number, &mut page) {
                continue;
            }
            let found = if salvaged { set.load_to_salvage(number, &mut page, context) } else { set.load(number, &mut page, context) };
            let Some(found) = found else { continue };
            if salvaged && found == PageType::Data {
                if let Err(error) = DataPage::new(&page).validate() {
                    set.damage(number, error, context);
                }
            } else if first && !salvaged {
                check_class(set, number, found, &page, &self.entry.attributes, context);
            }
            if found != PageType::Data || DataPage::new(&page).validate().is_err() {
                continue;
            }
            data_pages += 1;
            let view = DataPage::new(&page);
            rows += self.rows_of_page(partition, number, view, first, large, &mut record, context, visit);
        }
        let Some(set) = &mut self.sets[partition] else { return Ok(()) };
        if first
            && !set.damaged
            && !set.salvaged
            && let Some(header) = set.header.clone()
        {
            if header.data_pages != data_pages {
                set.fault(0, format!("{data_pages} data pages, the header says {}", header.data_pages), context);
            }
            if header.rows != rows {
                set.fault(0, format!("{rows} rows, the header says {}", header.rows), context);
            }
        }
        Ok(())
    }

    /// Every slot of a valid data page. Returns the rows that are at home here, moved ones included.
    #[expect(clippy::too_many_arguments, reason = "one loop body, moved out of its loop")]
    fn rows_of_page(
        &mut self,
        partition: usize,
        number: u32,
        view: DataPage<'_>,
        first: bool,
        large: bool,
        buffer: &mut Vec<u8>,
        context: &mut Context<'_>,
        visit: &mut dyn FnMut(&mut Context<'_>, Visit<'_>),
    ) -> u64 {
        let mut rows = 0;
        let fault = |table: &mut Self, context: &mut Context<'_>, reason: String| {
            if let Some(set) = &mut table.sets[partition]
                && first
            {
                set.fault(number, reason, context);
            }
        };
        let version = view.dictionary_version();
        if let Some(version) = forms::dictionary_of(version)
            && let Err(reason) = self.dictionary(partition, version)
        {
            fault(self, context, reason);
            return u64::from(view.row_count());
        }
        if let Err(reason) = self.check_area(partition, view) {
            fault(self, context, reason);
            return u64::from(view.row_count());
        }
        for (range, slot) in view.ranges().iter().flat_map(|range| (range.first..range.end()).map(move |slot| (range, slot))) {
            let (here, there) = (Rid::new(partition as u16, number, slot), range.there(slot));
            visit(context, if range.hosted { Visit::Away { home: there, at: here } } else { Visit::Forward { home: here, target: there } });
        }
        for slot in 0..view.slot_count() {
            let Some(row) = view.row(slot) else { continue };
            let here = Rid::new(partition as u16, number, slot);
            let (rid, body) = match Stored::parse(row, version) {
                Ok(Stored::Home(body)) => {
                    rows += 1;
                    (here, body)
                }
                Ok(Stored::Away { home, body }) => {
                    visit(context, Visit::Away { home, at: here });
                    (home, body)
                }
                Ok(Stored::Forward(target)) => {
                    rows += 1;
                    visit(context, Visit::Forward { home: here, target });
                    continue;
                }
                Ok(Stored::HostedForward { home, target }) => {
                    rows += 1;
                    visit(context, Visit::Forward { home, target });
                    continue;
                }
                // Counted where it lies.
                Ok(Stored::Hosted { home, body }) => {
                    rows += 1;
                    (home, body)
                }
                Ok(Stored::Forwarded(_)) => continue,
                Err(error) => {
                    fault(self, context, format!("slot {slot}: {error}"));
                    continue;
                }
            };
            let record = match self.decode(partition, body, buffer) {
                Ok(record) => record,
                Err(reason) => {
                    fault(self, context, format!("slot {slot}: {reason}"));
                    continue;
                }
            };
            if let Err(error) = self.layout.validate(record) {
                fault(self, context, format!("slot {slot}: {error}"));
                continue;
            }
            if large {
                self.check_large(record, rid, (partition, number), context);
            }
            visit(context, Visit::Row { rid, partition: partition as u16, page: number, record });
        }
        rows
    }

    fn decode<'r>(&self, partition: usize, body: Body<'r>, buffer: &'r mut Vec<u8>) -> std::result::Result<&'r [u8], String> {
        let dictionary = body.dictionary().map(|version| self.dictionary(partition, version)).transpose()?;
        self.decoder.decode(body, dictionary.map(Arc::as_ref), buffer).map_err(|e| e.to_string())
    }

    /// The structure of a page's column part, if it has one.
    fn check_area(&self, partition: usize, view: DataPage<'_>) -> std::result::Result<(), String> {
        let Some(part) = view.column_part().filter(|part| !part.area().is_empty()) else { return Ok(()) };
        let dictionary = Some(part.dictionary()).filter(|version| *version != 0);
        let dictionary = dictionary.map(|version| self.dictionary(partition, version)).transpose()?;
        let tokens = dictionary.map(|dictionary| dictionary.tokens());
        let columns = self.decoder.columns_of(part.layout()).map_err(|e| format!("column part: {e}"))?;
        ColumnArea::parse(&columns, tokens, part.area()).map(drop).map_err(|e| format!("column part: {e}"))
    }

    fn check_large(&mut self, record: &[u8], rid: Rid, at: (usize, u32), context: &mut Context<'_>) {
        let Ok(values) = self.layout.large_values(record) else { return };
        for (column, reference) in values {
            let data_type = self.entry.attributes.schema.columns()[column].data_type;
            read_large(&mut self.sets, (rid, at), data_type, reference, context, &mut |_| {});
        }
    }

    /// Names the moved rows that are pointed to from nowhere, and the pointers to nowhere.
    fn report_moves(&mut self, count: u64, context: &mut Context<'_>) -> Result<()> {
        let mut scratch = Vec::new();
        let mut buckets = Buckets::new(count);
        self.again(context, &mut |what| match what {
            Visit::Forward { home, target } => buckets.add(Side::Left, hash(&home.to_bytes(), target, &mut scratch)),
            Visit::Away { home, at } => buckets.add(Side::Right, hash(&home.to_bytes(), at, &mut scratch)),
            Visit::Row { .. } => {}
        })?;
        let mut elements = buckets.elements();
        self.again(context, &mut |what| {
            let (side, home, other) = match what {
                Visit::Forward { home, target } => (Side::Left, home, target),
                Visit::Away { home, at } => (Side::Right, home, at),
                Visit::Row { .. } => return,
            };
            let found = if side == Side::Left { home } else { other };
            let hash = hash(&home.to_bytes(), other, &mut scratch);
            elements.add(side, hash, found.partition(), found.page(), &home.to_bytes(), other);
        })?;
        let Some((pointers, rows)) = elements.finish() else {
            context.error(&table_object(self.entry), 0, "more moved rows and forward pointers disagree than can be listed");
            return Ok(());
        };
        let fault = |table: &mut Self, element: &Element, reason: String, context: &mut Context<'_>| {
            if let Some(Some(set)) = table.sets.get_mut(usize::from(element.partition)) {
                set.fault(element.page, reason, context);
            }
        };
        // What is told of one page must not hide the other.
        let home_of = |row: &Element| <[u8; RID_BYTES]>::try_from(&*row.key).map_or(Rid::MIN, Rid::from_bytes);
        let pointers: Vec<Element> = pointers.into_iter().filter(|pointer| !self.is_unreadable(pointer.rid)).collect();
        let rows: Vec<Element> = rows.into_iter().filter(|row| !self.is_unreadable(home_of(row))).collect();
        for pointer in pointers {
            let reason = format!("the slot of row {} says that it is at {}, but it is not", home_of(&pointer), pointer.rid);
            fault(self, &pointer, reason, context);
        }
        for row in rows {
            let reason = format!("the row at {} says that its home is {}, which does not point to it", row.rid, home_of(&row));
            fault(self, &row, reason, context);
        }
        Ok(())
    }
}

/// Is the page one that a table has, and does the space map say of it what is true?
fn check_class(set: &mut DataSetFile, number: u32, found: PageType, page: &[u8], table: &TableAttributes, context: &mut Context<'_>) {
    let class = set.is_mapped(number).then(|| set.word(number).class());
    let expected = match found {
        PageType::Data => {
            let view = DataPage::new(page);
            if let Err(error) = view.validate() {
                set.fault(number, error, context);
                return;
            }
            if view.is_full(table.maxrows) {
                (CLASS_FULL, CLASS_FULL)
            } else {
                // Where rows lie by column, the map may have what a rebuild is expected to give.
                let rebuilt = if table.method == Method::Page { class_of(view.room_when_rebuilt(), page.len()) } else { CLASS_FULL };
                let rebuilt = if view.slot_count() > 0 { rebuilt.min(class_not_empty(page.len())) } else { rebuilt };
                let own = class_of(view.free_bytes(), page.len());
                (own, own.max(rebuilt))
            }
        }
        PageType::Dictionary | PageType::LargeValue => (CLASS_NO_ROWS, CLASS_NO_ROWS),
        other => {
            set.fault(number, format!("a page of type {other:?} in a table space"), context);
            return;
        }
    };
    let (least, most) = expected;
    if let Some(class) = class.filter(|class| !(least..=most).contains(class)) {
        let of_page = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        set.fault(number, format!("the space map has free-space class {class}, the page is of class {of_page}"), context);
    }
}
