//! An index that is built beside writers, step by step: they never wait for it, but those who define something of the table.

use crate::model::Whole;
use crate::player::{Halt, Player};
use crate::world::{TABLES, index_page_bytes};
use pagefold_engine::database::{Change, Durability, IndexBuild};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::{Error, Result, Silent};
use pagefold_types::{Direction, Rid};
use std::time::Duration;

/// How far it has come.
enum Stage {
    Begun,
    Scanned(Vec<(Vec<u8>, Rid)>),
    Filled,
    Defined,
    Switched,
    Complete,
}

/// A build.
pub(crate) struct Building<'d> {
    pub(crate) table: usize,
    // It goes before its change.
    build: IndexBuild,
    change: Change<'d>,
    stage: Stage,
}

impl Building<'_> {
    /// Do statements keep the index?
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.stage, Stage::Switched | Stage::Complete)
    }

    fn step(&mut self) -> Result<()> {
        let Building { build, change, stage, .. } = self;
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
    pub(crate) fn beside(&mut self, table: usize, shape: usize, format: IndexFormat) -> std::result::Result<(), Halt> {
        let Some(mut building) = self.building.take() else { return self.begin_beside(table, shape, format) };
        if let Err(error) = building.step() {
            drop(building);
            return self.expect_trouble(&error, "a step of a build");
        }
        if !matches!(building.stage, Stage::Complete) {
            self.building = Some(building);
            return Ok(());
        }
        let Building { build, change, .. } = building;
        let done = change.commit();
        drop(build);
        if done.is_ok() {
            self.trouble.meet("an index built beside writers");
            self.promise.lock().settle(Durability::Durable);
        }
        self.allow(done, "the commit of a build")
    }

    fn begin_beside(&mut self, table: usize, shape: usize, format: IndexFormat) -> std::result::Result<(), Halt> {
        let name = format!("{}_beside", TABLES[table]);
        let is_there = self.database.index(&name).is_ok();
        let mut change = self.database.change_within(Duration::ZERO);
        let done = if is_there {
            change.drop_index(&name).and_then(|_| change.commit()).map(|()| None)
        } else {
            let begun = change.begin_index(TABLES[table], attributes(name, shape, format));
            begun.map(|build| Some(Building { table, build, change, stage: Stage::Begun }))
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
