//! Utilities as statements: what [`pagefold_utility`] does, and its reports as rows.

use pagefold_advisor::Interval;
use pagefold_engine::Progress;
use pagefold_engine::backup::CopyReader;
use pagefold_engine::database::{Database, Settings};
use pagefold_sql::{Portion, ReorgWishes, SqlError, SqlResult, Utilities, Utility, UtilityAnswer, Wanted};
use pagefold_types::{DataType, Direction, Value};
use pagefold_utility::{
    AdviseOptions, Advised, Costs, EstimateOptions, EstimateReport, Incremental, IndexesEstimate, ObjectKind, PartitionText, Proposal,
    ReorgOptions, RunstatsOptions, RunstatsReport, Sample, Setting,
};
use std::io::ErrorKind;
use std::path::Path;

const TEXT: DataType = DataType::Varchar(None);
const NUMBER: DataType = DataType::BigInt;
/// What an index is compared with that is not there.
const PLAIN: (&str, usize) = ("plain", 8192);
/// Memory for sorting keys.
const SORT_BYTES: usize = 64 << 20;

/// All of them.
#[derive(Debug)]
pub(super) struct AllUtilities;

impl Utilities for AllUtilities {
    fn run(&self, database: &Database, utility: &Utility, progress: &dyn Progress) -> SqlResult<UtilityAnswer> {
        match utility {
            Utility::Analyze { tables, portion, is_verbose } => {
                let sample = match portion {
                    Portion::All => Sample::All,
                    Portion::Percent(percent) => Sample::Percent(*percent),
                    Portion::Pages(pages) => Sample::Pages(*pages),
                };
                let options = RunstatsOptions { sample, ..RunstatsOptions::default() };
                let report = pagefold_utility::runstats(database, tables, &options, progress).map_err(failed)?;
                Ok(if *is_verbose { figures(&report) } else { UtilityAnswer::default() })
            }
            Utility::Reorg { object, wishes } => reorg(database, object, wishes, progress),
            Utility::Reindex { indexes } => reindex(database, indexes, progress),
            Utility::Check => check(database, progress),
            Utility::EstimateTable { table, portion } => {
                let options = estimate_options(*portion, table_pages(database, table));
                let report = pagefold_utility::estimate_table(database, table, &options, progress).map_err(failed)?;
                Ok(methods(&report))
            }
            Utility::EstimateIndex { index, portion } => {
                let options = estimate_options(*portion, index_pages(database, index));
                let report = pagefold_utility::estimate_index(database, index, &options, progress).map_err(failed)?;
                Ok(formats(&report))
            }
            Utility::EstimateNewIndex { table, columns, unique, portion } => {
                let column = |(name, direction): &(String, Direction)| match direction {
                    Direction::Ascending => name.clone(),
                    Direction::Descending => format!("{name} DESC"),
                };
                let names: Vec<String> = columns.iter().map(column).collect();
                let name = format!("{table} ({})", names.join(", "));
                let proposals = vec![Proposal { name, columns: columns.clone(), unique: *unique }];
                let options = EstimateOptions { proposals, ..estimate_options(*portion, table_pages(database, table)) };
                let report = pagefold_utility::estimate_table(database, table, &options, progress).map_err(failed)?;
                Ok(formats(&report))
            }
            Utility::SplitPartition { table, partition, at, into: [lower, upper] } => {
                let below = PartitionText { name: Some(lower.clone()), limit: at.clone(), ..PartitionText::default() };
                pagefold_utility::split_partition(database, table, partition, &below, Some(upper), progress).map_err(failed)?;
                Ok(UtilityAnswer::default())
            }
            Utility::MergePartitions { table, partitions, into } => {
                pagefold_utility::merge_partitions(database, table, partitions, into, progress).map_err(failed)?;
                Ok(UtilityAnswer::default())
            }
            Utility::Advise { objects, portion } => advise(database, objects, *portion, progress),
            Utility::Backup { file, tables, base } => backup(database, (file, base.as_deref()), tables, progress),
            other => Err(SqlError::new("0A000", format!("{} is not part of this build", other.name()))),
        }
    }
}

/// An error with the SQLSTATE of its kind.
fn failed(error: pagefold_utility::Error) -> SqlError {
    use pagefold_utility::Error;
    match error {
        Error::Engine(error) => error.into(),
        Error::Interrupted => SqlError::new("57014", "canceling statement due to user request"),
        Error::Usage(reason) => SqlError::new("22023", reason),
        Error::KeyTwice { index, reason, .. } => {
            SqlError::new("23505", format!("could not build unique index \"{}\"", index.name())).with_detail(reason)
        }
        other => SqlError::new("XX001", other.to_string()),
    }
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A share as it is read: 0.25.
fn share(share: f64) -> Value {
    Value::Double((share * 1e4).round() / 1e4)
}

fn interval(pages: Interval) -> [Value; 3] {
    [number(pages.value), number(pages.low), number(pages.high)]
}

/// ANALYZE VERBOSE: a row for each figure.
fn figures(report: &RunstatsReport) -> UtilityAnswer {
    let columns = vec![
        ("object", TEXT),
        ("column_name", TEXT),
        ("figure", TEXT),
        ("value", DataType::Double),
        ("low", DataType::Double),
        ("high", DataType::Double),
    ];
    let row = |(object, column, name, figure): (&str, Option<&str>, &str, pagefold_utility::Figure)| {
        let ends = [figure.value, figure.low, figure.high].map(Value::Double);
        [text(object), column.map_or(Value::Null, text), text(name)].into_iter().chain(ends).collect()
    };
    UtilityAnswer { columns, rows: report.figures().map(row).collect() }
}

fn setting<T: Copy>(wanted: Wanted<T>) -> Setting<T> {
    match wanted {
        Wanted::Auto => Setting::Auto,
        Wanted::Given(given) => Setting::Given(given),
    }
}

fn reorg(database: &Database, object: &str, wishes: &ReorgWishes, progress: &dyn Progress) -> SqlResult<UtilityAnswer> {
    let options = ReorgOptions {
        method: wishes.method.map(setting),
        format: wishes.format.map(setting),
        page_bytes: wishes.page_bytes,
        pctfree: wishes.pctfree,
        keep_dictionary: wishes.keep_dictionary,
        order: wishes.order.as_deref().map(|order| order.parse().unwrap_or_else(|never: std::convert::Infallible| match never {})),
        costs: Costs::Measured,
        incremental: wishes.incremental.then_some(Incremental { rows_max: wishes.max_rows }),
        ..ReorgOptions::default()
    };
    let done = pagefold_utility::reorg(database, object, &options, progress).map_err(failed)?;
    let columns = vec![
        ("object", TEXT),
        ("rows", NUMBER),
        ("pages_before", NUMBER),
        ("bytes_before", NUMBER),
        ("pages", NUMBER),
        ("bytes", NUMBER),
        ("chosen", TEXT),
    ];
    let numbers = [done.rows, done.pages_before, done.size_bytes_before, done.pages, done.size_bytes].map(number);
    let moved = done.incremental.map(|by_parts| text(by_parts.to_string()));
    let chosen = done.choice.map(|choice| text(choice.reason)).or(moved).unwrap_or(Value::Null);
    Ok(UtilityAnswer { columns, rows: vec![[text(object)].into_iter().chain(numbers).chain([chosen]).collect()] })
}

fn reindex(database: &Database, indexes: &[String], progress: &dyn Progress) -> SqlResult<UtilityAnswer> {
    let mut rows = Vec::with_capacity(indexes.len());
    for index in indexes {
        let built = pagefold_utility::rebuild_index(database, index, SORT_BYTES, progress).map_err(failed)?;
        rows.push(vec![text(index), number(built.rids), number(built.pages)]);
    }
    Ok(UtilityAnswer { columns: vec![("index_name", TEXT), ("entries", NUMBER), ("pages", NUMBER)], rows })
}

/// What is wrong, and files that nothing needs; without a page number.
fn check(database: &Database, progress: &dyn Progress) -> SqlResult<UtilityAnswer> {
    let clock = database.manager().clock();
    let found = pagefold_utility::check(database.storage(), clock, database.directory(), Settings::default(), progress).map_err(failed)?;
    let errors = found.errors.iter().map(|error| vec![text(&error.object), number(error.page.into()), text(&error.reason)]);
    let leftovers = found.leftovers.iter().map(|file| vec![text(&file.path), Value::Null, text(format!("no error: {}", file.reason))]);
    Ok(UtilityAnswer { columns: vec![("object", TEXT), ("page", NUMBER), ("problem", TEXT)], rows: errors.chain(leftovers).collect() })
}

/// How many pages a portion of so many is; `None`: all.
fn pages_of(portion: Portion, pages: u64) -> Option<u64> {
    match portion {
        Portion::All => None,
        Portion::Percent(percent) => Some(((pages as f64 * percent / 100.0).ceil() as u64).max(1)),
        Portion::Pages(pages) => Some(pages),
    }
}

fn index_pages(database: &Database, index: &str) -> u64 {
    database.index(index).map_or(0, |index| index.data_set().page_count().into())
}

/// One that cannot be opened is told by who estimates it.
fn table_pages(database: &Database, table: &str) -> u64 {
    database.table(table).map_or(0, |table| table.data_sets().map(|data_set| u64::from(data_set.page_count())).sum())
}

fn estimate_options(portion: Portion, pages: u64) -> EstimateOptions {
    EstimateOptions { sample_pages: pages_of(portion, pages), ..EstimateOptions::default() }
}

/// A row for each method and page size.
fn methods(report: &EstimateReport) -> UtilityAnswer {
    let columns = vec![
        ("method", TEXT),
        ("page_size", NUMBER),
        ("pages", NUMBER),
        ("pages_low", NUMBER),
        ("pages_high", NUMBER),
        ("bytes", NUMBER),
        ("saving", DataType::Double),
        ("is_now", DataType::Boolean),
        ("advice", TEXT),
    ];
    let chosen = report.choice.as_ref().map(|choice| (choice.chosen().name, choice.chosen().page_bytes));
    let row = |method: &pagefold_utility::MethodEstimate| {
        let estimate = &method.estimate;
        let (name, page_bytes) = (estimate.method, estimate.options.page_bytes);
        let is_now = report.now.as_ref().is_some_and(|now| now.method == name && now.page_bytes == page_bytes);
        let before = report.now.as_ref().map_or(0, |now| now.size_bytes);
        let advice = if chosen == Some((name, page_bytes)) { text(&report.advice) } else { Value::Null };
        [text(name), number(page_bytes as u64)]
            .into_iter()
            .chain(interval(estimate.pages))
            .chain([number(estimate.size_bytes()), saved(before, estimate.size_bytes()), Value::Boolean(is_now), advice])
            .collect()
    };
    UtilityAnswer { columns, rows: report.methods.iter().map(row).collect() }
}

/// The part of what is there now that would be saved.
fn saved(before: u64, after: u64) -> Value {
    if before == 0 { Value::Null } else { share(1.0 - after as f64 / before as f64) }
}

/// A row for each format and page size.
fn formats(report: &EstimateReport) -> UtilityAnswer {
    let columns = vec![
        ("index_name", TEXT),
        ("format", TEXT),
        ("page_size", NUMBER),
        ("levels", NUMBER),
        ("leaf_pages", NUMBER),
        ("leaf_pages_low", NUMBER),
        ("leaf_pages_high", NUMBER),
        ("bytes", NUMBER),
        ("saving", DataType::Double),
        ("is_now", DataType::Boolean),
        ("advice", TEXT),
    ];
    UtilityAnswer { columns, rows: report.indexes.iter().flat_map(formats_of).collect() }
}

fn formats_of(index: &IndexesEstimate) -> Vec<Vec<Value>> {
    let chosen = index.choice.as_ref().map(|choice| (choice.chosen().name, choice.chosen().page_bytes));
    // One that is not there is compared with what it would be without compression.
    let plain = index.lines.iter().map(|line| &line.estimate).find(|e| (e.candidate.format(), e.candidate.page_bytes) == PLAIN);
    let before = index.now.as_ref().map(|now| now.size_bytes).or(plain.map(|plain| plain.size_bytes())).unwrap_or(0);
    let row = |line: &pagefold_utility::IndexReportLine| {
        let estimate = &line.estimate;
        let (format, page_bytes) = (estimate.candidate.format(), estimate.candidate.page_bytes);
        let is_now = index.now.as_ref().is_some_and(|now| now.method == format && now.page_bytes == page_bytes);
        let names = [text(&index.name), text(format), number(page_bytes as u64)];
        let figures: Vec<Value> = match estimate.key_too_long {
            Some(_) => vec![Value::Null; 6],
            None => {
                let size = [number(estimate.size_bytes()), saved(before, estimate.size_bytes())];
                [number(estimate.levels.len() as u64)].into_iter().chain(interval(estimate.leaf_pages)).chain(size).collect()
            }
        };
        let mut advice = if chosen == Some((format, page_bytes)) { index.advice.clone() } else { String::new() };
        if let Some(bytes) = estimate.key_too_long {
            advice = format!("a key of {bytes} bytes is too long");
        } else if index.duplicates > 0 {
            advice = format!("it would be refused: {} rows have a key that another row has", index.duplicates);
        }
        let advice = if advice.is_empty() { Value::Null } else { text(advice) };
        names.into_iter().chain(figures).chain([Value::Boolean(is_now), advice]).collect()
    };
    index.lines.iter().map(row).collect()
}

/// A row for each object, with the statement that carries the advice out.
fn advise(database: &Database, objects: &[String], portion: Portion, progress: &dyn Progress) -> SqlResult<UtilityAnswer> {
    let sample_pages = match portion {
        Portion::All => None,
        Portion::Pages(pages) => Some(pages),
        Portion::Percent(_) => return Err(SqlError::new("22023", "ADVISE takes sample_pages: so many pages of each object")),
    };
    let options = AdviseOptions { only: objects.to_vec(), sample_pages, ..AdviseOptions::default() };
    let plan = pagefold_utility::advise(database, &options, progress).map_err(failed)?;
    let columns = vec![
        ("object", TEXT),
        ("kind", TEXT),
        ("stored", TEXT),
        ("bytes", NUMBER),
        ("bytes_then", NUMBER),
        ("reason", TEXT),
        ("statement", TEXT),
    ];
    let rows = plan.objects.iter().map(|object| {
        let stored = object.now.as_ref().map_or(Value::Null, |now| text(format!("{}, {}K", now.method, now.page_bytes / 1024)));
        let now = object.now.as_ref().map(|now| now.size_bytes);
        let way = object.change();
        let then = way.map(|way| way.size_bytes.value).or(now.filter(|_| !matches!(object.advised, Advised::Damaged(_))));
        let statement = way.map(|way| {
            let (what, how) = if object.kind == ObjectKind::Table { ("TABLE", "compress") } else { ("INDEX", "format") };
            let name = pagefold_sql::quoted_name(&object.name);
            format!("REORG {what} {name} WITH ({how} = '{}', page_size = '{}K')", way.name, way.page_bytes / 1024)
        });
        vec![
            text(&object.name),
            text(object.kind.to_string()),
            stored,
            now.map_or(Value::Null, number),
            then.map_or(Value::Null, number),
            text(object.reason()),
            statement.map_or(Value::Null, text),
        ]
    });
    Ok(UtilityAnswer { rows: rows.collect(), columns })
}

fn backup(
    database: &Database,
    (file, base): (&Path, Option<&Path>),
    tables: &[String],
    progress: &dyn Progress,
) -> SqlResult<UtilityAnswer> {
    let copied = if tables.is_empty() {
        database.copy(file, base, progress)
    } else {
        let clock = database.manager().clock();
        database.prepare_copy().and_then(|()| {
            pagefold_engine::backup::copy_tables_to_file(database.storage(), clock, database.directory(), file, tables, base, progress)
        })
    };
    let report = copied.map_err(|error| not_copied(database, error, file, base))?;
    let columns = vec![("file", TEXT), ("pages", NUMBER), ("log_bytes", NUMBER), ("bytes", NUMBER)];
    let numbers = [report.pages, report.log_bytes, report.size_bytes].map(number);
    Ok(UtilityAnswer { columns, rows: vec![[text(file.display().to_string())].into_iter().chain(numbers).collect()] })
}

/// Why there is no copy: whether the base is at fault is looked at then.
fn not_copied(database: &Database, error: pagefold_engine::Error, file: &Path, base: Option<&Path>) -> SqlError {
    let is_missing = |error: &pagefold_engine::Error| matches!(error, pagefold_engine::Error::Io(io) if io.kind() == ErrorKind::NotFound);
    let of_base = base.and_then(|base| Some((CopyReader::open(database.storage().as_ref(), base).err()?, base)));
    let (error, path, is_base) = of_base.map_or((error, file, false), |(error, base)| (error, base, true));
    match error {
        error if is_missing(&error) => SqlError::new("58P01", format!("could not open file \"{}\": {error}", path.display())),
        // What is no copy is no damaged database.
        error if is_base && error.is_damage() => SqlError::new("22023", error.to_string()),
        error => error.into(),
    }
}
