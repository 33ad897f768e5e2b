//! `pagefold partition`

use crate::arguments::{PartitionArguments, PartitionCommand};
use crate::failure::Result;
use crate::session::Session;
use crate::size::{grouped, size_text};
use pagefold::engine::{Database, OpenMode, partition_name};
use pagefold::utility::{self, MovedRows, PartitionLine, PartitionText};
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &PartitionArguments) -> Result<()> {
    let open = |mode| {
        let (PartitionCommand::List(whole)
        | PartitionCommand::Add { whole, .. }
        | PartitionCommand::Drop { whole, .. }
        | PartitionCommand::Rotate { whole, .. }
        | PartitionCommand::Exchange { whole, .. }
        | PartitionCommand::Split { whole, .. }
        | PartitionCommand::Merge { whole, .. }) = &arguments.command;
        Ok::<(Database, &str), crate::failure::Failure>((session.open(&whole.database, mode)?, whole.table.as_str()))
    };
    match &arguments.command {
        PartitionCommand::List(_) => {
            let (database, table) = open(OpenMode::Read)?;
            list(session, table, &utility::list_partitions(&database, table)?)
        }
        PartitionCommand::Add { limit, compress, .. } => {
            let (database, table) = open(OpenMode::Write)?;
            let name = utility::add_partition(&database, table, &PartitionText { method: *compress, ..limit.clone() })?;
            done(session, table, "added", &name, &format!("Partition \"{name}\" added to \"{table}\""))
        }
        PartitionCommand::Drop { whole, partition } => {
            let table = whole.table.as_str();
            let freed = match session.try_to_open(&whole.database, OpenMode::Write)? {
                Ok(database) => {
                    let freed = utility::drop_partition(&database, table, partition)?;
                    format!("; {} are free again", size_text(freed))
                }
                // The log has something for it that it is too damaged to get: without it the others are there again.
                Err(refused) if refused.is_damage() => {
                    match session.open_giving_up(&whole.database, &[partition_name(table, partition)])? {
                        Some(_) => String::new(),
                        None => return Err(refused.into()),
                    }
                }
                Err(refused) => return Err(refused.into()),
            };
            done(session, table, "dropped", partition, &format!("Partition \"{partition}\" of \"{table}\" dropped{freed}"))
        }
        PartitionCommand::Rotate { limit, .. } => {
            let (database, table) = open(OpenMode::Write)?;
            let (dropped, added) = utility::rotate_partition(&database, table, limit)?;
            if session.global.json {
                let told = json!({ "table": table, "dropped": dropped, "added": added, "elapsed_s": session.elapsed_s() });
                return session.told(session.print_json(&told));
            }
            session.told(session.print(&format!("Partition \"{dropped}\" of \"{table}\" dropped, \"{added}\" added")))
        }
        PartitionCommand::Exchange { partition, with, .. } => {
            let (database, table) = open(OpenMode::Write)?;
            utility::exchange_partition(&database, table, partition, with)?;
            if session.global.json {
                let told = json!({ "table": table, "partition": partition, "exchanged_with": with, "elapsed_s": session.elapsed_s() });
                return session.told(session.print_json(&told));
            }
            session.told(session.print(&format!("Partition \"{partition}\" of \"{table}\" and table \"{with}\" have changed places")))
        }
        PartitionCommand::Split { partition, limit, .. } => {
            let (database, table) = open(OpenMode::Write)?;
            let moved = utility::split_partition(&database, table, partition, limit, None, &session.bars)?;
            moved_rows(session, table, &moved)
        }
        PartitionCommand::Merge { partitions, into, .. } => {
            let (database, table) = open(OpenMode::Write)?;
            let into = into.as_ref().unwrap_or(&partitions[0]);
            let moved = utility::merge_partitions(&database, table, partitions, into, &session.bars)?;
            moved_rows(session, table, &moved)
        }
    }
}

fn done(session: &Session, table: &str, what: &str, partition: &str, text: &str) -> Result<()> {
    if session.global.json {
        return session.told(session.print_json(&json!({ "table": table, what: partition, "elapsed_s": session.elapsed_s() })));
    }
    session.told(session.print(text))
}

fn moved_rows(session: &Session, table: &str, moved: &MovedRows) -> Result<()> {
    session.bars.clear();
    let (elapsed_s, partitions) = (session.elapsed_s(), &moved.partitions);
    if session.global.json {
        let now: Vec<_> = partitions.iter().map(|(name, rows)| json!({ "name": name, "rows": rows })).collect();
        return session.told(session.print_json(&json!({
            "table": table,
            "partitions": now,
            "size_bytes_before": moved.size_bytes_before,
            "size_bytes": moved.size_bytes,
            "elapsed_s": elapsed_s,
        })));
    }
    let now: Vec<String> = partitions.iter().map(|(name, rows)| format!("\"{name}\" ({} rows)", grouped(*rows))).collect();
    session.told(session.print(&format!(
        "\"{table}\" now has {} in {elapsed_s:.2} s: {} instead of {}",
        now.join(" and "),
        size_text(moved.size_bytes),
        size_text(moved.size_bytes_before)
    )))
}

fn list(session: &Session, table: &str, lines: &[PartitionLine]) -> Result<()> {
    if session.global.json {
        let partitions: Vec<_> = lines
            .iter()
            .map(|line| {
                json!({
                    "name": line.name,
                    "table": line.table,
                    "limit": line.limit,
                    "gap_from": line.gap_before,
                    "method": line.method.name(),
                    "page_size_bytes": line.page_bytes,
                    "rows": line.rows,
                    "size_bytes": line.size_bytes,
                    "index_bytes": line.index_bytes,
                })
            })
            .collect();
        return session.print_json(&json!({ "table": table, "partitions": partitions }));
    }
    let mut rows = vec![["PARTITION", "ROWS BELOW", "METHOD", "PAGE", "ROWS", "SIZE", "INDEXES"].map(str::to_owned)];
    for line in lines {
        rows.push([
            line.name.clone(),
            line.limit.clone().unwrap_or_else(|| "MAXVALUE".into()),
            line.method.to_string(),
            size_text(line.page_bytes as u64),
            grouped(line.rows),
            size_text(line.size_bytes),
            size_text(line.index_bytes),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(gap) = at.checked_sub(1).and_then(|at| lines[at].gap_before.as_ref()) {
            text += &format!("  (no partition has the keys from the limit above up to {gap})\n");
        }
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            // Words to the left, numbers to the right.
            let padded = if column < 3 { format!("{cell}{pad}  ") } else { format!("{pad}{cell}  ") };
            text += &padded;
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    session.print(&text)
}
