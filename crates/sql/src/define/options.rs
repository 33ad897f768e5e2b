//! Storage parameters: `WITH (compress = 'page', page_size = '16K', pctfree = 5)`.

use crate::settings::text_of;
use crate::{SqlError, SqlResult};
use pagefold_engine::database::TableChange;
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use sqlparser::ast;

/// Names and values of parameters.
pub(super) fn pairs(options: &[ast::SqlOption]) -> SqlResult<Vec<(String, String)>> {
    let pair = |option: &ast::SqlOption| match option {
        ast::SqlOption::KeyValue { key, value } => Ok((key.value.to_lowercase(), text_of(value))),
        other => Err(SqlError::syntax(format!("{other} is no storage parameter"))),
    };
    options.iter().map(pair).collect()
}

/// The same, of an index, where they are parsed as comparisons.
pub(super) fn index_pairs(options: &[ast::Expr]) -> SqlResult<Vec<(String, String)>> {
    let pair = |option: &ast::Expr| match option {
        ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Eq, right } => Ok((left.to_string().to_lowercase(), text_of(right))),
        other => Err(SqlError::syntax(format!("{other} is no storage parameter"))),
    };
    options.iter().map(pair).collect()
}

pub(crate) fn unknown(name: &str, known: &str) -> SqlError {
    SqlError::new("22023", format!("unrecognized parameter \"{name}\"")).with_hint(format!("There are: {known}."))
}

pub(crate) fn wrong(name: &str, value: &str, what: &str) -> SqlError {
    SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\"")).with_hint(what.to_owned())
}

pub(crate) fn page_bytes(name: &str, value: &str) -> SqlResult<usize> {
    let what = "Page sizes are 2K to 32K, in steps of 2K.";
    let digits = value.trim().trim_end_matches(['b', 'B']).trim_end_matches(['k', 'K']);
    let number: usize = digits.trim().parse().map_err(|_| wrong(name, value, what))?;
    let bytes = if digits.len() < value.trim().len() { number.checked_mul(1024) } else { Some(number) };
    bytes.filter(|bytes| (2048..=32_768).contains(bytes) && bytes % 2048 == 0).ok_or_else(|| wrong(name, value, what))
}

pub(crate) fn percent(name: &str, value: &str) -> SqlResult<u8> {
    value.parse().ok().filter(|percent| *percent <= 99).ok_or_else(|| wrong(name, value, "0 to 99 percent are left free."))
}

/// What PostgreSQL says of how full pages are.
fn fillfactor(name: &str, value: &str) -> SqlResult<u8> {
    value.parse().ok().filter(|full| (1..=100).contains(full)).ok_or_else(|| wrong(name, value, "1 to 100 percent."))
}

/// Is it a parameter that a partition may have of its own?
pub(super) fn is_of_partition(name: &str) -> bool {
    matches!(name, "compress" | "compression" | "method" | "page_size")
}

/// How a table is stored.
pub(super) fn of_table(mut attributes: TableAttributes, options: &[(String, String)]) -> SqlResult<TableAttributes> {
    for (name, value) in options {
        match name.as_str() {
            "compress" | "compression" | "method" => attributes.method = method(name, value)?,
            "page_size" => attributes = attributes.with_page_bytes(page_bytes(name, value)?),
            "pctfree" => attributes.pctfree = percent(name, value)?,
            "fillfactor" => attributes.pctfree = 100 - fillfactor(name, value)?,
            "maxrows" => attributes.maxrows = value.parse().map_err(|_| wrong(name, value, "1 to 4096 rows on a page."))?,
            // Of the indexes of its keys.
            "pool" | "key_format" | "key_page_size" | "key_pctfree" => {}
            _ => return Err(unknown(name, "compress, page_size, pctfree, maxrows, pool, key_format, key_page_size, key_pctfree")),
        }
    }
    // The pool goes with the page size, unless it is named.
    for (_, value) in options.iter().filter(|(name, _)| name == "pool") {
        attributes.pool.clone_from(value);
    }
    Ok(attributes)
}

/// What of a table that is there changes.
pub(super) fn changes(options: &[(String, String)]) -> SqlResult<Vec<TableChange>> {
    let change = |(name, value): &(String, String)| match name.as_str() {
        "pctfree" => percent(name, value).map(TableChange::Pctfree),
        "fillfactor" => fillfactor(name, value).map(|full| TableChange::Pctfree(100 - full)),
        "maxrows" => value.parse().map(TableChange::Maxrows).map_err(|_| wrong(name, value, "1 to 4096 rows on a page.")),
        "pool" => Ok(TableChange::Pool(value.clone())),
        "compress" | "compression" | "method" | "page_size" => {
            let error = SqlError::unsupported(format!("ALTER TABLE ... SET ({name})"));
            Err(error.with_hint("REORG TABLE ... WITH (compress = ..., page_size = ...) writes the table anew while others use it."))
        }
        _ => Err(unknown(name, "pctfree, maxrows, pool")),
    };
    options.iter().map(change).collect()
}

pub(crate) fn method(name: &str, value: &str) -> SqlResult<Method> {
    match value.to_lowercase().as_str() {
        "yes" | "true" | "on" => Ok(Method::Page),
        "no" | "false" | "off" => Ok(Method::None),
        value => value.parse().map_err(|_| wrong(name, value, "Methods are none, row, page, fixed and huffman.")),
    }
}

pub(crate) fn format(name: &str, value: &str) -> SqlResult<IndexFormat> {
    let known = IndexFormat::ALL.into_iter().find(|format| format.name() == value.to_lowercase());
    known.ok_or_else(|| wrong(name, value, "Formats are plain, fold and prefix."))
}

/// The parameters of the indexes of keys that come with a table begin so.
const OF_KEY: &str = "key_";

/// How the index of a key is stored that comes with a table which has these parameters.
pub(super) fn of_key(attributes: IndexAttributes, options: &[(String, String)]) -> SqlResult<IndexAttributes> {
    let of_keys: Vec<(String, String)> = options.iter().filter(|(name, _)| name.starts_with(OF_KEY)).cloned().collect();
    of_index(attributes, &of_keys, OF_KEY)
}

/// How an index is stored. Names of parameters begin with `prefix`.
pub(super) fn of_index(mut attributes: IndexAttributes, options: &[(String, String)], prefix: &str) -> SqlResult<IndexAttributes> {
    let (mut format, mut bytes) = (attributes.format, attributes.page_bytes);
    for (name, value) in options {
        match name.strip_prefix(prefix).unwrap_or_default() {
            "format" => format = self::format(name, value)?,
            "page_size" => bytes = page_bytes(name, value)?,
            "pctfree" => attributes.pctfree = percent(name, value)?,
            "fillfactor" => attributes.pctfree = 100 - fillfactor(name, value)?,
            "pool" => {}
            _ => return Err(unknown(name, "format, page_size, pctfree, pool")),
        }
    }
    attributes = attributes.with_format(format, bytes);
    for (_, value) in options.iter().filter(|(name, _)| name == "pool") {
        attributes.pool.clone_from(value);
    }
    Ok(attributes)
}
