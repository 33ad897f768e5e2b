//! What stands behind WITH in a utility: which options each has, and what they mean.

use super::{Portion, ReorgWishes, Wanted};
use crate::define::options::{format, method, page_bytes, percent, unknown, wrong};
use crate::parse::At;
use crate::{SqlError, SqlResult};
use sqlparser::tokenizer::Span;

/// An option as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) name: String,
    /// A word alone is `true`.
    pub(crate) value: String,
    pub(crate) span: Span,
}

/// Hands each option to `take`, which says whether it knows it.
fn each(given: &[Given], known: &str, mut take: impl FnMut(&Given) -> SqlResult<bool>) -> SqlResult<()> {
    for (at, option) in given.iter().enumerate() {
        if given[..at].iter().any(|other| other.name == option.name) {
            return Err(SqlError::syntax(format!("option \"{}\" is given twice", option.name)).at_span(option.span));
        }
        if !take(option).at_span(option.span)? {
            return Err(unknown(&option.name, known).at_span(option.span));
        }
    }
    Ok(())
}

/// Of a utility that has none.
pub(crate) fn none(given: &[Given], utility: &str) -> SqlResult<()> {
    match given.first() {
        Some(option) => Err(SqlError::syntax(format!("{utility} has no options")).at_span(option.span)),
        None => Ok(()),
    }
}

/// `known`: those there are.
fn wanted<T>(given: &Given, read: impl Fn(&str, &str) -> SqlResult<T>, known: &str) -> SqlResult<Wanted<T>> {
    if given.value.eq_ignore_ascii_case("auto") {
        return Ok(Wanted::Auto);
    }
    let read = read(&given.name, &given.value).map(Wanted::Given);
    read.map_err(|_| wrong(&given.name, &given.value, &format!("There are {known} and auto.")))
}

fn truth(given: &Given) -> SqlResult<bool> {
    match given.value.to_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(wrong(&given.name, &given.value, "true or false.")),
    }
}

/// REORG of a table, or of an index.
pub(crate) fn reorg(given: &[Given], is_index: bool) -> SqlResult<ReorgWishes> {
    let mut wishes = ReorgWishes::default();
    let known =
        if is_index { "format, page_size, pctfree" } else { "compress, page_size, pctfree, order, keep_dictionary, incremental, max_rows" };
    each(given, known, |option| {
        match option.name.as_str() {
            "compress" | "compression" | "method" if !is_index => {
                wishes.method = Some(wanted(option, method, "none, row, page, fixed, huffman")?)
            }
            "order" if !is_index => wishes.order = Some(option.value.clone()),
            "keep_dictionary" if !is_index => wishes.keep_dictionary = truth(option)?,
            "incremental" if !is_index => wishes.incremental = truth(option)?,
            "max_rows" if !is_index => {
                let rows = option.value.trim().parse().ok().filter(|rows| *rows > 0);
                wishes.max_rows = Some(rows.ok_or_else(|| wrong(&option.name, &option.value, "A number of rows."))?);
            }
            "format" if is_index => wishes.format = Some(wanted(option, format, "plain, fold, prefix")?),
            "page_size" => wishes.page_bytes = Some(page_bytes(&option.name, &option.value)?),
            "pctfree" => wishes.pctfree = Some(percent(&option.name, &option.value)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let of_whole = ReorgWishes { incremental: false, max_rows: None, ..wishes.clone() };
    if wishes.incremental && of_whole != ReorgWishes::default() {
        return Err(SqlError::new("22023", "an incremental REORG leaves the table as it is stored: it has no other option than max_rows"));
    }
    if wishes.max_rows.is_some() && !wishes.incremental {
        return Err(SqlError::new("22023", "max_rows is an option of an incremental REORG"));
    }
    Ok(wishes)
}

/// How much a utility looks at, where `default` says what that is if nothing is said.
pub(crate) fn portion(given: &[Given], default: Portion) -> SqlResult<Portion> {
    let mut portion = None;
    each(given, "sample, sample_pages", |option| {
        let value = option.value.trim();
        let own = match option.name.as_str() {
            "sample" if value.eq_ignore_ascii_case("all") => Portion::All,
            "sample" => {
                let number =
                    value.trim_end_matches('%').trim_end().parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
                Portion::Percent(number.ok_or_else(|| wrong(&option.name, value, "More than 0 and at most 100 percent, or all."))?)
            }
            "sample_pages" => {
                let number = value.parse().ok().filter(|pages| *pages > 0);
                Portion::Pages(number.ok_or_else(|| wrong(&option.name, value, "A number of pages."))?)
            }
            _ => return Ok(false),
        };
        match portion.replace(own) {
            Some(_) => Err(SqlError::syntax("sample and sample_pages exclude each other")),
            None => Ok(true),
        }
    })?;
    Ok(portion.unwrap_or(default))
}

/// The copy that a BACKUP goes on from.
pub(crate) fn base(given: &[Given]) -> SqlResult<Option<String>> {
    let mut base = None;
    each(given, "base", |option| {
        let is_known = option.name == "base";
        if is_known {
            base = Some(option.value.clone());
        }
        Ok(is_known)
    })?;
    Ok(base)
}
