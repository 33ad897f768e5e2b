//! `pagefold alter`

use crate::arguments::{AlterArguments, AlterCommand};
use crate::failure::Result;
use crate::session::Session;
use crate::size::{grouped, size_text};
use pagefold::Database;
use pagefold::engine::{OpenMode, TableChange};
use pagefold::utility::{self, Alteration, Costs, ReorgOptions};
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &AlterArguments) -> Result<()> {
    let (what, alteration) = alteration(&arguments.command);
    let database = Database::from(session.open(&arguments.database, OpenMode::Write)?);
    if let Alteration::Table(changes) = &alteration {
        let mut sql = database.session();
        changes.iter().try_for_each(|change| sql.check_change(&arguments.object, change))?;
    }
    let done = utility::alter(database.engine(), &arguments.object, &alteration, &session.bars)?;
    session.bars.clear();
    let elapsed_s = session.elapsed_s();
    if session.global.json {
        let reorg = done.reorg.as_ref().map(|reorg| {
            json!({
                "rows": reorg.rows,
                "size_bytes_before": reorg.size_bytes_before,
                "size_bytes": reorg.size_bytes,
            })
        });
        return session.told(session.print_json(&json!({
            "kind": done.kind,
            "name": done.name,
            "name_before": arguments.object,
            "altered": what,
            "reorg": reorg,
            "elapsed_s": elapsed_s,
        })));
    }
    let mut text = match arguments.object == done.name {
        true => format!("{} \"{}\" altered in {elapsed_s:.2} s", capital(done.kind), done.name),
        false => format!("{} \"{}\" is called \"{}\" now", capital(done.kind), arguments.object, done.name),
    };
    if let Some(reorg) = &done.reorg {
        let (before, now) = (size_text(reorg.size_bytes_before), size_text(reorg.size_bytes));
        text += &format!("; {} rows written anew: {before} before, {now} now", grouped(reorg.rows));
    }
    session.told(session.print(&text))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// What is asked for, and its name.
fn alteration(command: &AlterCommand) -> (&'static str, Alteration) {
    let one = |change| Alteration::Table(vec![change]);
    match command {
        AlterCommand::AddColumn { column } => {
            ("add-column", one(TableChange::AddColumn { column: column.column.clone(), value: column.value.clone() }))
        }
        AlterCommand::DropColumn { column } => ("drop-column", one(TableChange::DropColumn(column.clone()))),
        AlterCommand::RenameColumn { column, to } => {
            ("rename-column", one(TableChange::RenameColumn { column: column.clone(), to: to.clone() }))
        }
        AlterCommand::Rename { to } => ("rename", Alteration::Rename(to.clone())),
        AlterCommand::SetType { column, data_type } => {
            ("set-type", one(TableChange::SetType { column: column.clone(), data_type: *data_type }))
        }
        AlterCommand::SetNotNull { column } => ("set-not-null", one(TableChange::SetNotNull(column.clone()))),
        AlterCommand::DropNotNull { column } => ("drop-not-null", one(TableChange::DropNotNull(column.clone()))),
        AlterCommand::Set { attributes } => {
            let mut set = attributes.0.clone();
            set.anew = ReorgOptions { costs: Costs::Measured, ..set.anew };
            ("set", Alteration::Set(set))
        }
    }
}
