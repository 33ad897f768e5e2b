//! Arguments of `pagefold alter`.

use clap::{Args, Subcommand};
use pagefold::types::DataType;
use pagefold::utility::{Attributes, ColumnText};
use std::path::PathBuf;
use std::str::FromStr;

/// Names, columns and attributes change at once, whatever the size: rows stay as they are stored until they are changed or a REORG writes them anew. Compression, page size and the
/// format of an index are changed by a REORG beside those who use the table.
#[derive(Debug, Args)]
#[command(
    after_help = "A column is 'name TYPE [NOT NULL] [DEFAULT value]'; the value is what the rows that are there have.\n\nExamples:\n  pagefold alter shop.db orders add-column \"status VARCHAR(10) NOT NULL DEFAULT 'open'\"\n  pagefold alter shop.db orders set-type quantity BIGINT\n  pagefold alter shop.db orders rename-column qty quantity\n  pagefold alter shop.db orders drop-column remark\n  pagefold alter shop.db orders set pctfree=10,compress=page,page-size=16K\n  pagefold alter shop.db orders_by_day set format=prefix"
)]
pub(crate) struct AlterArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the table or index
    #[arg(value_name = "TABLE|INDEX")]
    pub(crate) object: String,
    #[command(subcommand)]
    pub(crate) command: AlterCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AlterCommand {
    /// Add a column behind the others
    AddColumn {
        /// The column
        #[arg(value_name = "COLUMN")]
        column: ColumnText,
    },
    /// Drop a column; what it took comes back as rows are changed, and with a REORG
    DropColumn {
        /// Its name
        column: String,
    },
    /// Give a column another name
    RenameColumn {
        /// Its name
        column: String,
        /// Its name from now on
        to: String,
    },
    /// Give the table or index another name
    Rename {
        /// Its name from now on
        to: String,
    },
    /// Give a column another type, which has all of its values exactly
    SetType {
        /// Its name
        column: String,
        /// Its type from now on
        #[arg(value_name = "TYPE", value_parser = data_type)]
        data_type: DataType,
    },
    /// Let a column not be NULL any more
    SetNotNull {
        /// Its name
        column: String,
    },
    /// Let a column be NULL
    DropNotNull {
        /// Its name
        column: String,
    },
    /// Set attributes: pctfree, maxrows, pool, compress, page-size, format
    Set {
        /// What they are to be
        #[arg(value_name = "NAME=VALUE,...")]
        attributes: AttributesText,
    },
}

fn data_type(text: &str) -> Result<DataType, String> {
    text.parse().map_err(|e: pagefold::types::SchemaError| e.to_string())
}

/// Attributes as text: `pctfree=10,compress=page`.
#[derive(Clone, Debug)]
pub(crate) struct AttributesText(pub(crate) Attributes);

impl FromStr for AttributesText {
    type Err = String;

    fn from_str(text: &str) -> Result<AttributesText, String> {
        let mut set = Attributes::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is no NAME=VALUE"))?;
            let number = |most: u16| {
                let number = value.trim().parse::<u16>().ok().filter(|number| *number <= most);
                number.ok_or_else(|| format!("{name}: \"{value}\" is no number up to {most}"))
            };
            match name.trim() {
                "pctfree" => set.pctfree = Some(number(99)? as u8),
                "maxrows" => set.maxrows = Some(number(4096)?),
                "pool" => set.pool = Some(value.trim().to_owned()),
                "compress" => set.anew.method = Some(super::setting(value.trim())?),
                "format" => set.anew.format = Some(super::setting(value.trim())?),
                "page-size" => {
                    let size: crate::size::ByteSize = value.trim().parse().map_err(|e| format!("{name}: {e}"))?;
                    set.anew.page_bytes = Some(crate::session::page_bytes(size));
                }
                other => {
                    return Err(format!("\"{other}\" is no attribute; there are: pctfree, maxrows, pool, compress, page-size, format"));
                }
            }
        }
        Ok(AttributesText(set))
    }
}
