//! PRINT: any page decoded, damaged ones too; dictionaries.
//!
//! Pages come straight from the files, as in CHECK; what there is beside them, where a database was not closed in order, the log says. What a page says is shown as far as it makes sense; where it does not, its bytes are.
//!
//! * `object`: what a name stands for
//! * `page`: header, checksum, and the content by page type
//! * `index_page`, `data_page`: the larger ones of those
//! * `dictionary`: tokens
//! * `render`, `columns`: text

pub(crate) mod columns;
mod data_page;
mod dictionary;
mod index_page;
mod object;
mod page;
mod render;

use crate::check::{Context, read_control_slots};
use crate::{Result, Silent};
use pagefold_engine::database::Settings;
use pagefold_format::control::SlotState;
use pagefold_io::{Clock, Storage};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// What to print of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintWhat {
    /// Its header page.
    Header,
    /// A page by number.
    Page(u32),
    /// Its dictionaries.
    Dictionary,
}

/// A database whose files are read.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseFiles<'a> {
    /// Where it lies.
    pub storage: &'a Arc<dyn Storage>,
    /// The time.
    pub clock: &'a Arc<dyn Clock>,
    /// Its directory.
    pub directory: &'a Path,
    /// For applying its log, to files of a reader's own.
    pub settings: Settings,
}

/// What was printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed(Value);

impl Printed {
    /// As `--json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.0.clone()
    }

    /// As a person reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        render::render(&self.0)
    }
}

/// Prints a page or the dictionaries of a partition of an object: the name of a table or index, `catalog`, `control`, or a file id in eight hexadecimal digits.
///
/// # Errors
/// When there is no such object, page or dictionary, or the file cannot be read. A damaged page is no error.
pub fn print(database: &DatabaseFiles<'_>, object: &str, partition: u16, what: PrintWhat) -> Result<Printed> {
    let (storage, directory) = (database.storage.as_ref(), database.directory);
    if object == "control" {
        return control(storage, directory);
    }
    let mut object = object::find(database, object, partition)?;
    Ok(Printed(match what {
        PrintWhat::Header => page::print(&mut object, 0)?,
        PrintWhat::Page(number) => page::print(&mut object, number)?,
        PrintWhat::Dictionary => dictionary::print(storage, directory, &mut object)?,
    }))
}

fn control(storage: &dyn Storage, directory: &Path) -> Result<Printed> {
    let control = read_control_slots(storage, directory, &mut Context::new(&Silent))?;
    let slots: Vec<Value> = control
        .slots
        .iter()
        .enumerate()
        .map(|(number, slot)| match slot {
            SlotState::Valid(state) => json!({
                "slot": number,
                "state": if control.current == Some(*state) { "current" } else { "previous" },
                "sequence": state.sequence,
                "database_id": format!("{:032x}", state.database_id),
                "log_id": format!("{:032x}", state.log_id),
                "catalog_file": format!("{:08x}", state.catalog_file_id),
                "catalog_header_writes": state.catalog_writes,
                "next_file": format!("{:08x}", state.next_file_id),
                "next_object_id": state.next_object_id,
            }),
            SlotState::Empty => json!({ "slot": number, "state": "empty" }),
            SlotState::Damaged(reason) => json!({ "slot": number, "state": format!("damaged: {reason}") }),
            SlotState::Newer(version) => json!({ "slot": number, "state": format!("of format version {version}") }),
        })
        .collect();
    Ok(Printed(json!({ "object": "control file", "slots": slots })))
}
