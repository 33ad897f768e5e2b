//! What LOAD, CREATE INDEX and REORG take where they are told `auto`: what ESTIMATE would advise, from a sample where there is much.

use super::costs::Costs;
use super::index::estimate_index;
use super::options::{EstimateOptions, Proposal, Scratch};
use super::source::estimate_source;
use super::table::{estimate_proposal, estimate_table};
use crate::{Error, LoadOptions, Progress, Result, Setting};
use pagefold_advisor::Choice;
use pagefold_engine::database::Database;
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_interchange::Source;
use pagefold_types::{Direction, Schema};

/// Pages of a sample: for an interval of a few percent.
const SAMPLE_PAGES: u64 = 400;

/// A method, and why.
type ChosenMethod = (Method, Choice);
/// A format and page size, and why.
type ChosenFormat = (IndexFormat, usize, Choice);

/// What of a table or index is asked for.
fn options(costs: Costs) -> EstimateOptions {
    EstimateOptions { page_sizes: Vec::new(), sample_pages: Some(SAMPLE_PAGES), costs, ..EstimateOptions::default() }
}

fn method_of(choice: Option<Choice>, of: &str) -> Result<ChosenMethod> {
    let choice = choice.ok_or_else(|| Error::Data(format!("{of}: there is nothing to choose a compression from")))?;
    Ok((choice.chosen().name.parse()?, choice))
}

fn format_of(choice: Option<Choice>, index: &str) -> Result<ChosenFormat> {
    let choice = choice.ok_or_else(|| Error::Data(format!("index \"{index}\": its keys are too long for every page size")))?;
    Ok((choice.chosen().name.parse()?, choice.chosen().page_bytes, choice))
}

/// Refuses a page size that an index cannot have, before anything is measured with it.
fn check_index_pages(name: &str, page_bytes: Option<usize>, schema: &Schema) -> Result<()> {
    let Some(page_bytes) = page_bytes else { return Ok(()) };
    Ok(IndexAttributes::new(name, vec![(0, Direction::Ascending)], false).with_format(IndexFormat::Plain, page_bytes).check(schema)?)
}

/// For a table that files become: its method, and the format and page size of its primary key's index, as far as they are to be chosen.
pub(crate) fn choose_for_load(
    database: &Database,
    table: &str,
    source: &mut dyn Source,
    load: &LoadOptions,
    progress: &dyn Progress,
) -> Result<(Option<ChosenMethod>, Option<ChosenFormat>)> {
    let of_key = load.key_format == Setting::Auto && !load.primary_key.is_empty();
    if load.method != Setting::Auto && !of_key {
        return Ok((None, None));
    }
    let (schema, key_name) = (source.table().schema(), format!("{table}_pk"));
    TableAttributes::new(table, schema.clone()).with_page_bytes(load.page_bytes).check()?;
    check_index_pages(&key_name, load.key_page_bytes, schema)?;
    let estimate = EstimateOptions {
        page_bytes: load.page_bytes,
        method: load.method.given().unwrap_or(Method::Page),
        pctfree: load.pctfree,
        maxrows: load.maxrows,
        primary_key: load.primary_key.clone(),
        primary_key_index: of_key,
        index_page_bytes: load.key_page_bytes,
        sort_bytes: load.sort_bytes,
        ..options(load.costs)
    };
    let scratch = Scratch { storage: database.storage().clone(), directory: database.temporary_directory() };
    let mut report = estimate_source(source, &scratch, &estimate, progress)?;
    let method = (load.method == Setting::Auto).then(|| method_of(report.choice.take(), table)).transpose()?;
    let key = of_key.then(|| format_of(report.indexes.pop().and_then(|index| index.choice), &key_name)).transpose()?;
    Ok((method, key))
}

/// For a table that is written anew with this page size and percent left free.
pub(crate) fn choose_method(
    database: &Database,
    table: &str,
    (page_bytes, pctfree): (usize, u8),
    costs: Costs,
    progress: &dyn Progress,
) -> Result<ChosenMethod> {
    database.table(table)?.attributes().clone().with_page_bytes(page_bytes).check()?;
    let estimate = EstimateOptions { page_bytes_anew: Some(page_bytes), pctfree_anew: Some(pctfree), ..options(costs) };
    method_of(estimate_table(database, table, &estimate, progress)?.choice, table)
}

/// For an index that is written anew, with this page size or any.
pub(crate) fn choose_format(
    database: &Database,
    index: &str,
    page_bytes: Option<usize>,
    pctfree: u8,
    costs: Costs,
    progress: &dyn Progress,
) -> Result<ChosenFormat> {
    let table = database.table_of(&*database.index(index)?)?;
    check_index_pages(index, page_bytes, &table.attributes().schema)?;
    let estimate = EstimateOptions { index_page_bytes: page_bytes, pctfree_anew: Some(pctfree), ..options(costs) };
    let mut report = estimate_index(database, index, &estimate, progress)?;
    format_of(report.indexes.pop().and_then(|index| index.choice), index)
}

/// For an index that a table is to have, with the page size of the estimate's options or any.
pub(crate) fn choose_format_of(
    database: &Database,
    table: &str,
    proposal: &Proposal,
    (page_bytes, pctfree): (Option<usize>, u8),
    (costs, sort_bytes): (Costs, usize),
    progress: &dyn Progress,
) -> Result<ChosenFormat> {
    check_index_pages(&proposal.name, page_bytes, &database.table(table)?.attributes().schema)?;
    let estimate = EstimateOptions { index_page_bytes: page_bytes, index_pctfree: pctfree, sort_bytes, ..options(costs) };
    format_of(estimate_proposal(database, table, proposal, &estimate, progress)?.choice, &proposal.name)
}
