//! Bringing the rows of a page into the form of the newest dictionary, so that an older version, or having none, comes to an end.
//!
//! How a row is stored is not part of what it says, so nobody is asked: no lock is taken, no version kept, nothing is there to be taken back. But a change that may have to be taken back says what is to
//! be put back by the stored form. So a page is left alone while any of its rows has versions, and ghosts are left to who removes them. Where rows lie by column, changes say that by records: there a page only has to be one that may be built anew.
//!
//! Invariants:
//! - a page is rewritten with one mini-transaction, in the log as an empty page and its rows: slots keep their numbers;
//! - a change that a running transaction may take back has versions in memory, entered while its pages were latched.

use super::super::row_image::RowImage;
use super::super::table::Table;
use crate::data_set::DataSet;
use crate::pool::{Access, By, MiniTransaction, PageHandle};
use crate::table_space::RowBuffer;
use crate::{Error, Result};
use pagefold_format::data::forms;
use pagefold_format::data::{Body, DataOp, DataPage, Stored, StoredKind};
use pagefold_format::op::PageOp;
use pagefold_types::Rid;

/// So often a page is looked at again that could not be rewritten at once.
const ATTEMPTS: usize = 8;

/// What has come of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewritten {
    /// Nothing of the version is on it.
    Clean,
    /// It was rewritten; nothing is now.
    Done,
    /// Somebody may need it as it is.
    Busy,
}

/// A row as it will lie.
struct NewRow {
    slot: u16,
    kind: StoredKind,
    bytes: Vec<u8>,
}

impl Table {
    /// Brings a page into the form of the newest dictionary if something of version `retired` is on it; 0: rows of no dictionary.
    pub(crate) fn rewrite_page(&self, partition: u16, data_set: &DataSet, number: u32, retired: u16) -> Result<Rewritten> {
        if !self.refers_there(data_set, number, retired)? {
            return Ok(Rewritten::Clean);
        }
        for _ in 0..ATTEMPTS {
            let mut mtr = MiniTransaction::begin(self.manager());
            let Some(handle) = self.latch_home(&mut mtr, data_set, number)? else { return Ok(Rewritten::Clean) };
            let view = DataPage::new(mtr.bytes(handle));
            if !self.refers(&view, retired) {
                return Ok(Rewritten::Clean);
            }
            if self.by_column() {
                match self.rewrite_columns(mtr, data_set, handle, retired)? {
                    Some(rewritten) => return Ok(rewritten),
                    None => continue,
                }
            }
            if !self.is_quiet(&view, partition, number)? {
                return Ok(Rewritten::Busy);
            }
            if self.rewrite_rows(&mut mtr, data_set, handle, retired)? {
                mtr.commit()?;
                return Ok(Rewritten::Done);
            }
            drop(mtr);
            if retired == 0 || !self.replace_rows(data_set, partition, number, retired)? {
                return Ok(Rewritten::Busy);
            }
        }
        Ok(Rewritten::Busy)
    }

    /// Are there rows on a page from before the first dictionary?
    pub(super) fn has_plain_rows(&self, data_set: &DataSet, number: u32) -> Result<bool> {
        self.refers_there(data_set, number, 0)
    }

    fn refers_there(&self, data_set: &DataSet, number: u32, retired: u16) -> Result<bool> {
        let page = self.data_page(data_set, number, Access::Random)?;
        Ok(page.is_some_and(|page| self.refers(&DataPage::new(&page), retired)))
    }

    /// Is something of the version on the page?
    fn refers(&self, view: &DataPage<'_>, retired: u16) -> bool {
        if self.by_column() {
            return match view.column_part() {
                Some(part) => part.rows() > 0 && part.dictionary() == retired,
                None => retired == 0 && view.row_count() > 0,
            };
        }
        let form = view.dictionary_version();
        forms::dictionary_of(form).unwrap_or(0) == retired
            || retired != 0
                && (0..view.slot_count()).filter_map(|slot| view.row(slot).or_else(|| view.ghost(slot, StoredKind::Special))).any(|row| {
                    match Stored::parse(row, form) {
                        Ok(Stored::Home(body) | Stored::Away { body, .. }) => body.dictionary() == Some(retired),
                        _ => false,
                    }
                })
    }

    /// Can nobody need the page as it is?
    fn is_quiet(&self, view: &DataPage<'_>, partition: u16, number: u32) -> Result<bool> {
        let versions = &self.core.versions;
        if versions.page_may_have(self.object_id, Rid::new(partition, number, 0)) {
            return Ok(false);
        }
        for slot in 0..view.slot_count() {
            let Some(row) = view.row(slot) else {
                if view.ghost(slot, StoredKind::Special).is_some() {
                    return Ok(false);
                }
                continue;
            };
            let stored = Stored::parse(row, view.dictionary_version()).map_err(|e| Error::corrupt(self.object(), number, e))?;
            // Whoever changes a row that is away enters it under its home, with this page latched.
            if let Stored::Away { home, .. } = stored
                && versions.page_may_have(self.object_id, home)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts all rows of a page anew. False, and nothing has changed, when they would not fit.
    fn rewrite_rows(&self, mtr: &mut MiniTransaction<'_>, data_set: &DataSet, handle: PageHandle, retired: u16) -> Result<bool> {
        let number = mtr.number(handle);
        let Some(rows) = self.new_rows(&DataPage::new(mtr.bytes(handle)), data_set, number, retired)? else { return Ok(false) };
        let mut ops = vec![DataOp::Format { page_number: number, dictionary_version: self.page_form() }];
        let mut next = 0;
        for row in &rows {
            let free = next..row.slot;
            ops.extend(free.clone().map(|slot| DataOp::Insert { slot, kind: StoredKind::Raw, bytes: &[] }));
            ops.push(DataOp::Insert { slot: row.slot, kind: row.kind, bytes: &row.bytes });
            ops.extend(free.map(|slot| DataOp::Delete { slot }));
            next = row.slot + 1;
        }
        let mut page = mtr.bytes(handle).to_vec();
        if ops.iter().any(|op| op.apply(&mut page).is_err()) {
            return Ok(false);
        }
        ops.into_iter().try_for_each(|op| mtr.apply(handle, PageOp::Data(op)))?;
        self.note_space(mtr, handle);
        Ok(true)
    }

    /// The rows of a page, those of the version in the form of the newest. `None` when a new one has come meanwhile.
    fn new_rows(&self, view: &DataPage<'_>, data_set: &DataSet, number: u32, retired: u16) -> Result<Option<Vec<NewRow>>> {
        let (Some(encoder), form) = (self.encoder().filter(|_| self.dictionary().is_some()), view.dictionary_version()) else {
            return Ok(None);
        };
        let new_form = encoder.page_form();
        let mut buffer = RowBuffer::default();
        let mut rows = Vec::with_capacity(view.row_count().into());
        for slot in 0..view.slot_count() {
            let Some(row) = view.row(slot) else { continue };
            let stored = Stored::parse(row, form).map_err(|e| data_set.corrupt(number, e))?;
            let mut codes = Vec::new();
            let renewed = match stored {
                Stored::Home(body) | Stored::Away { body, .. } if body.dictionary().unwrap_or(0) == retired => {
                    if !self.takes_layout(body.layout()) {
                        return Ok(None);
                    }
                    Some(self.decode(data_set, number, body, &mut buffer, |record| {
                        let form = encoder.append(record, &mut codes);
                        if form == 0 {
                            codes.extend_from_slice(record)
                        };
                        form
                    })?)
                }
                _ => None,
            };
            let body = |old| match renewed {
                Some(0) => Body::Plain(&codes),
                Some(form) => Body::Compressed { version: form, codes: &codes },
                None => old,
            };
            let stored = match stored {
                Stored::Home(old) => Stored::Home(body(old)),
                Stored::Away { home, body: old } => Stored::Away { home, body: body(old) },
                forward @ Stored::Forward(_) => forward,
                // Only where rows lie by column.
                Stored::Hosted { .. } | Stored::HostedForward { .. } | Stored::Forwarded(_) => {
                    return Err(data_set.corrupt(number, "a range of slots on a page without columns"));
                }
            };
            let mut bytes = Vec::new();
            let kind = stored.build(new_form, &mut bytes);
            rows.push(NewRow { slot, kind, bytes });
        }
        Ok(Some(rows))
    }

    /// Brings the rows of the version on a page into the form of the newest one by one: some move. False when one is needed as it is.
    fn replace_rows(&self, data_set: &DataSet, partition: u16, number: u32, retired: u16) -> Result<bool> {
        let homes: Vec<Rid> = {
            let Some(page) = self.data_page(data_set, number, Access::Random)? else { return Ok(true) };
            let view = DataPage::new(&page);
            let rows = (0..view.slot_count()).filter_map(|slot| Some((slot, view.row(slot)?)));
            let of_version = rows.filter_map(|(slot, row)| match Stored::parse(row, view.dictionary_version()) {
                Ok(Stored::Home(body)) if body.dictionary() == Some(retired) => Some(Rid::new(partition, number, slot)),
                Ok(Stored::Away { home, body }) if body.dictionary() == Some(retired) => Some(home),
                _ => None,
            });
            of_version.collect()
        };
        for rid in homes {
            // Asked while the row is latched.
            let replaced = self.replace_body(By::Nobody, rid, |body| {
                if self.core.versions.page_may_have(self.object_id, rid) {
                    return Err(Error::Busy("a row that may be taken back".into()));
                }
                if !self.takes_layout(body.layout()) {
                    return Err(Error::Busy("a row of a layout that may be taken back".into()));
                }
                self.decode(data_set, number, body, &mut RowBuffer::default(), |record| {
                    let mut codes = Vec::new();
                    let form = self.encoder().map_or(0, |encoder| encoder.append(record, &mut codes));
                    RowImage::of(forms::body(form, record, &codes))
                })
            });
            match replaced {
                Err(Error::Busy(_)) | Ok(false) => return Ok(false),
                other => other.map(drop)?,
            }
        }
        Ok(true)
    }

    /// The same for a page by column: it is built anew. `None` when it has no room for that, and has fewer rows now.
    fn rewrite_columns<'a>(
        &'a self,
        mut mtr: MiniTransaction<'a>,
        data_set: &'a DataSet,
        handle: PageHandle,
        retired: u16,
    ) -> Result<Option<Rewritten>> {
        if data_set.is_kept(mtr.number(handle)) {
            return Ok(Some(Rewritten::Busy));
        }
        let smaller_only = retired == 0;
        if self.rebuild_if(&mut mtr, data_set, handle, |room, free| !smaller_only || room > free)? {
            mtr.commit()?;
            return Ok(Some(Rewritten::Done));
        }
        if smaller_only {
            return Ok(Some(Rewritten::Clean));
        }
        if self.forward_range(&mut mtr, handle, None, 0)? {
            mtr.commit()?;
            return Ok(None);
        }
        Ok(Some(Rewritten::Busy))
    }
}
