//! What is built beside writers, step by step: an index, or the whole table anew. They never wait for it, but those who define something of the table.

use crate::model::Whole;
use crate::player::{Halt, Player};
use crate::world::{TABLES, index_page_bytes};
use pagefold_engine::database::{Change, Durability, IndexBuild, RowAt, TableBuild};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_engine::{Error, Result, Silent};
use pagefold_types::{Direction, Rid};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How far an index has come.
enum Stage {
    Begun,
    Scanned(Vec<(Vec<u8>, Rid)>),
    Filled,
    Defined,
    Switched,
    Complete,
}

/// How far a table has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Anew {
    Begun,
    Filled,
    Defined,
    Settled,
    Complete,
}

enum Build {
    Index(IndexBuild, Stage),
    Table(TableBuild, Anew),
}

/// A build.
pub(crate) struct Building<'d> {
    pub(crate) table: usize,
    // It goes before its change.
    build: Build,
    change: Change<'d>,
    /// Was the disk full at any time since? Somebody else may have met it then, and it says so later.
    pub(crate) was_full: bool,
}

impl Building<'_> {
    /// Do statements keep the index?
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.build, Build::Index(_, Stage::Switched | Stage::Complete))
    }

    fn is_complete(&self) -> bool {
        matches!(self.build, Build::Index(_, Stage::Complete) | Build::Table(_, Anew::Complete))
    }

    fn step(&mut self) -> Result<()> {
        match &mut self.build {
            Build::Index(build, stage) => index_step(build, &mut self.change, stage),
            Build::Table(build, stage) => {
                *stage = match *stage {
                    Anew::Begun => fill_table(build).map(|()| Anew::Filled)?,
                    Anew::Filled => self.change.define_table(build, &Silent).map(|()| Anew::Defined)?,
                    Anew::Defined => build.settle(&Silent).map(|()| Anew::Settled)?,
                    Anew::Settled | Anew::Complete => {
                        self.change.finish_table(build, Some(Duration::ZERO), &Silent).map(|_| Anew::Complete)?
                    }
                };
                Ok(())
            }
        }
    }
}

fn index_step(build: &mut IndexBuild, change: &mut Change<'_>, stage: &mut Stage) -> Result<()> {
    match stage {
        Stage::Begun => {
            let mut entries = Vec::new();
            build.scan(|key, rid| {
                entries.push((key.to_vec(), rid));
                Ok::<_, Error>(())
            })?;
            entries.sort_unstable();
            *stage = Stage::Scanned(entries);
        }
        Stage::Scanned(entries) => {
            let mut filler = build.fill(entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0));
            entries.iter().try_for_each(|(key, rid)| filler.push(key, *rid))?;
            if !entries.is_empty() {
                filler.finish()?;
            }
            *stage = Stage::Filled;
        }
        Stage::Filled => {
            change.define_index(build)?;
            *stage = Stage::Defined;
        }
        Stage::Defined if build.switch(&Silent)? => *stage = Stage::Switched,
        Stage::Switched if build.complete(&Silent)? => *stage = Stage::Complete,
        Stage::Defined | Stage::Switched | Stage::Complete => {}
    }
    Ok(())
}

/// The rows, and the indexes of what they have come to be.
fn fill_table(build: &mut TableBuild) -> Result<()> {
    let (table, indexes) = (Arc::clone(&build.targets()[0].table), build.targets()[0].indexes.clone());
    let mut entries: Vec<Vec<(Vec<u8>, Rid)>> = vec![Vec::new(); indexes.len()];
    let mut placed = |row: RowAt, record: &[u8]| {
        for (index, entries) in indexes.iter().zip(&mut entries) {
            let mut key = Vec::new();
            let encoded = index.key_layout().encode_from_record(table.layout(), record, &mut key);
            encoded.map_err(|e| Error::Value(e.to_string()))?;
            entries.push((key, row.rid));
        }
        Ok::<_, Error>(())
    };
    if build.olds()[0].row_count().is_multiple_of(2) {
        build.fill(placed)?;
    } else {
        // In another order than that in which they lie.
        let (mut rows, mut places) = (Vec::new(), Vec::new());
        build.visit_rows(|row, record| {
            rows.push((row, record.to_vec()));
            Ok::<_, Error>(())
        })?;
        rows.sort_unstable_by(|a, b| b.1.cmp(&a.1));
        build.fill_with(
            |push| rows.iter().try_for_each(|(row, record)| push(*row, record)),
            |old, new, record| {
                places.push((old, new));
                placed(new, record)
            },
        )?;
        places.sort_unstable();
        build.place::<Error>(|push| places.iter().try_for_each(|(old, new)| push(*old, *new)))?;
    }
    for (index, mut entries) in indexes.iter().zip(entries) {
        entries.sort_unstable();
        let mut builder = index.build(entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0));
        entries.iter().try_for_each(|(key, rid)| builder.push_any(key, *rid))?;
        if !entries.is_empty() {
            builder.finish()?;
        }
    }
    Ok(())
}

/// Shapes of the index: keys that are unique and such that are not.
fn attributes(name: String, shape: usize, format: IndexFormat) -> IndexAttributes {
    let (columns, unique) = match shape {
        0 => (vec![(0, Direction::Descending)], true),
        1 => (vec![(6, Direction::Ascending)], true),
        _ => (vec![(6, Direction::Ascending), (2, Direction::Descending)], false),
    };
    IndexAttributes::new(name, columns, unique).with_format(format, index_page_bytes(format))
}

impl Player<'_> {
    pub(crate) fn beside(
        &mut self,
        table: usize,
        index: (usize, IndexFormat),
        anew: Option<(Method, usize)>,
    ) -> std::result::Result<(), Halt> {
        let Some(mut building) = self.building.take() else {
            return match anew {
                Some(anew) => self.begin_anew(table, anew),
                None => self.begin_beside(table, index),
            };
        };
        match building.step() {
            // Who writes a table anew waits for all who have changed rows of it.
            Err(Error::Lock(_)) if matches!(building.build, Build::Table(..)) && self.is_used(Whole::Table(building.table)) => {
                self.trouble.meet("a table that is written anew, and others have changed");
            }
            Err(error) if building.was_full && error.is_no_room() => {
                self.trouble.meet("a build for which there was no room");
                return Ok(());
            }
            Err(error) => {
                drop(building);
                return self.expect_trouble(&error, "a step of a build");
            }
            Ok(()) => {}
        }
        if !building.is_complete() {
            self.building = Some(building);
            return Ok(());
        }
        let Building { table, build, change, .. } = building;
        let done = change.commit();
        let is_table = matches!(build, Build::Table(..));
        drop(build);
        if done.is_ok() {
            self.promise.lock().settle(Durability::Durable);
            if is_table {
                self.trouble.meet("a table written anew beside writers");
                self.committed.count += 1;
                self.committed.defined(Whole::Table(table));
            } else {
                self.trouble.meet("an index built beside writers");
            }
        }
        self.allow(done, "the commit of a build")
    }

    fn begin_anew(&mut self, table: usize, (method, page_bytes): (Method, usize)) -> std::result::Result<(), Halt> {
        let mut change = self.database.change_within(Duration::ZERO);
        let begin = |change: &mut Change<'_>| {
            let old = self.database.table(TABLES[table])?;
            let build = change.begin_table_again(&old, TableAttributes { method, ..old.attributes_now().with_page_bytes(page_bytes) })?;
            if method.dictionary_type().is_some() {
                let (sample, table) = (old.sample_records()?, &build.targets()[0].table);
                if let Some(dictionary) = sample.train(method, table.layout(), old.row_count(), table.attributes().page_fill()) {
                    table.set_dictionary(dictionary)?;
                }
            }
            if old.attributes_now().layouts.number() > 0 {
                self.trouble.meet("altered: then written anew beside writers");
            }
            Ok(build)
        };
        match begin(&mut change) {
            Ok(build) => {
                self.building = Some(Building {
                    table,
                    build: Build::Table(build, Anew::Begun),
                    change,
                    was_full: self.trouble.full.load(Ordering::Relaxed),
                });
                Ok(())
            }
            Err(Error::Lock(_)) if self.is_held_as_a_whole(Whole::Table(table)) => Ok(()),
            Err(error) => self.expect_trouble(&error, "the begin of a table that is written anew"),
        }
    }

    fn begin_beside(&mut self, table: usize, (shape, format): (usize, IndexFormat)) -> std::result::Result<(), Halt> {
        let name = format!("{}_beside", TABLES[table]);
        let is_there = self.database.index(&name).is_ok();
        let mut change = self.database.change_within(Duration::ZERO);
        let done = if is_there {
            change.drop_index(&name).and_then(|_| change.commit()).map(|()| None)
        } else {
            let begun = change.begin_index(TABLES[table], attributes(name, shape, format));
            begun.map(|build| {
                Some(Building {
                    table,
                    build: Build::Index(build, Stage::Begun),
                    change,
                    was_full: self.trouble.full.load(Ordering::Relaxed),
                })
            })
        };
        match done {
            Ok(building) => {
                if is_there {
                    self.promise.lock().settle(Durability::Durable);
                    self.committed.count += 1;
                    self.committed.defined(Whole::Table(table));
                }
                self.building = building;
                Ok(())
            }
            // Who drops an index waits for all who have changed rows of its table.
            Err(Error::Lock(_))
                if if is_there { self.is_used(Whole::Table(table)) } else { self.is_held_as_a_whole(Whole::Table(table)) } =>
            {
                Ok(())
            }
            Err(error) => self.expect_trouble(&error, "the begin of a build"),
        }
    }
}
