//! How a text file is written, from its beginning.
//!
//! Each delimiter (comma, semicolon, tab, bar) is tried with each way of quoting on the first 256 KB (more where lines are longer), as far as the user has not said it. Best is
//! 1. what gives more than one column, as many in nine lines of ten;
//! 2. what can be read to its end;
//! 3. what needs no backslash before quotes, and no blank before them passed over;
//! 4. what gives the same number of columns in the most lines;
//! 5. what has fields between quotes: in half of the lines, or around a delimiter or line end;
//! 6. what gives the most columns that are numbers, dates or the like, as a share of all;
//! 7. what gives the most columns;
//! 8. what comes first: the delimiter that goes with the file's name, double quotes.
//!
//! A line ends with LF or CR LF; with CR where there is no LF.

use super::dialect::{CsvOptions, Dialect};
use super::split::Splitter;
use crate::InterchangeError;
use crate::text::{Guess, Kind};
use pagefold_io::{File, MemoryStorage, OpenOptions, Storage};
use std::path::Path;
use std::sync::Arc;

/// Bytes and records that are looked at.
const SAMPLE_BYTES: usize = 256 << 10;
/// As long as fewer lines than these end there, more is looked at, up to so many bytes.
const LINES_MIN: usize = 3;
const SAMPLE_BYTES_MAX: usize = 64 << 20;
const RECORDS_MAX: usize = 1_000;

/// One record of the beginning.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) fields: Vec<Option<String>>,
    pub(super) line: u64,
}

/// How the file is written, and its first records: of more than one column those that are not blank.
#[derive(Clone, Debug)]
pub(super) struct Sniffed {
    pub(super) dialect: Dialect,
    pub(super) records: Vec<Record>,
    /// Lines end with CR LF.
    pub(super) is_crlf: bool,
}

/// What a dialect makes of the sample.
struct Trial {
    dialect: Dialect,
    records: Vec<Record>,
    is_clean: bool,
    has_quotes: bool,
}

impl Trial {
    fn new(sample: &Arc<dyn File>, dialect: Dialect, is_cut: bool) -> Trial {
        let mut splitter = Splitter::new(Arc::clone(sample), Path::new(""), dialect.clone(), 0, 1, Arc::default());
        let (mut records, mut is_clean, mut has_quotes, mut quoted_records) = (Vec::new(), true, false, 0);
        while records.len() < RECORDS_MAX {
            match splitter.next() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    // Of a sample that ends within quotes the rest is not known.
                    is_clean = is_cut && error.to_string().contains("is not closed") && !records.is_empty();
                    break;
                }
            }
            let quoted = (0..splitter.len()).filter(|i| splitter.is_quoted(*i));
            let special = |b: &u8| *b == dialect.delimiter || *b == dialect.line_end;
            let needs = |i: usize| splitter.field(i).is_some_and(|bytes| bytes.iter().any(special));
            quoted_records += usize::from(quoted.clone().next().is_some());
            has_quotes |= quoted.clone().any(needs);
            let field = |i| splitter.field(i).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            records.push(Record { fields: (0..splitter.len()).map(field).collect(), line: splitter.record_line() });
        }
        let is_blank = |record: &Record| matches!(record.fields.as_slice(), [None]) || record.fields.as_slice() == [Some(String::new())];
        if records.iter().any(|record| record.fields.len() > 1) {
            records.retain(|record| !is_blank(record));
        }
        has_quotes |= quoted_records > 0 && 2 * quoted_records >= records.len();
        Trial { dialect, records, is_clean, has_quotes }
    }

    /// The number of fields that most records have, and the share of those.
    fn columns(&self) -> (usize, f64) {
        columns(&self.records)
    }

    /// The share of columns that are no text; a number may have a decimal comma here.
    fn typed(&self, columns: usize) -> f64 {
        let mut guesses = vec![Guess::new(None, None); columns];
        let mut scratch = Vec::new();
        for record in self.records.iter().skip(1).filter(|record| record.fields.len() == columns) {
            for (field, guess) in record.fields.iter().zip(&mut guesses) {
                let comma = field.as_deref().map(|f| if f.matches(',').count() == 1 { f.replace(',', ".") } else { f.to_owned() });
                guess.add(comma.as_deref(), Kind::Any, &mut scratch);
            }
        }
        let typed = guesses.iter().filter(|g| g.data_type().is_ok_and(|t| !t.is_text()) || g.is_ambiguous()).count();
        typed as f64 / columns.max(1) as f64
    }

    /// The better, the larger.
    fn rank(&self) -> Rank {
        let (columns, share) = self.columns();
        let thousandths = |share: f64| (share * 1000.0) as u32;
        let is_table = columns > 1 && share >= 0.9;
        let typed = if is_table { thousandths(self.typed(columns)) } else { 0 };
        // Without a second column there is nothing to compare.
        let share = if columns > 1 { thousandths(share) } else { 0 };
        let Dialect { escape, skip_blanks, .. } = self.dialect;
        (is_table, self.is_clean, escape.is_none(), !skip_blanks, share >= 500, share, self.has_quotes, typed, columns)
    }
}

type Rank = (bool, bool, bool, bool, bool, u32, bool, u32, usize);

/// The number of fields that most records have (the larger one, of those that as many have), and their share.
pub(super) fn columns(records: &[Record]) -> (usize, f64) {
    let mut counts = std::collections::BTreeMap::<usize, usize>::new();
    records.iter().for_each(|record| *counts.entry(record.fields.len()).or_default() += 1);
    let most = counts.iter().max_by_key(|(columns, count)| (**count, **columns));
    most.map_or((0, 1.0), |(columns, count)| (*columns, *count as f64 / records.len() as f64))
}

/// The beginning of a file, to its last line end if it goes on, in memory; and whether it goes on.
fn sample(file: &Arc<dyn File>, start: u64, line_end: impl Fn(&[u8]) -> u8) -> Result<(Vec<u8>, bool, u8), InterchangeError> {
    let there = file.len()?.saturating_sub(start);
    let mut bytes = Vec::new();
    let (end, is_cut) = loop {
        let wanted = (bytes.len() * 4).max(SAMPLE_BYTES).min(usize::try_from(there).unwrap_or(usize::MAX));
        bytes.resize(wanted, 0);
        pagefold_io::read_exact_at(&**file, &mut bytes, start)?;
        let (end, is_cut) = (line_end(&bytes), there > wanted as u64);
        // Lines so long that too few end here say nothing of each other.
        if !is_cut || wanted >= SAMPLE_BYTES_MAX || bytes.iter().filter(|b| **b == end).count() >= LINES_MIN {
            break (end, is_cut);
        }
    };
    if is_cut && let Some(last) = bytes.iter().rposition(|b| *b == end) {
        bytes.truncate(last + 1);
    }
    Ok((bytes, is_cut, end))
}

/// Finds how a file is written that begins at `start`.
///
/// # Errors
/// When it cannot be read, or the options contradict each other.
pub(super) fn sniff(file: &Arc<dyn File>, start: u64, extension: &str, options: &CsvOptions) -> Result<Sniffed, InterchangeError> {
    let (bytes, is_cut, line_end) = sample(file, start, |b| if b.contains(&b'\r') && !b.contains(&b'\n') { b'\r' } else { b'\n' })?;
    let usual = Dialect { line_end, ..Dialect::of_extension(options, extension)? };
    let is_crlf = bytes.windows(2).any(|pair| pair == b"\r\n");
    let storage = MemoryStorage::new();
    let memory = storage.open(Path::new("sample"), &OpenOptions::create())?;
    memory.write_at(&bytes, 0)?;
    let mut delimiters = vec![usual.delimiter];
    if options.delimiter.is_none() && !usual.is_tbl {
        delimiters.extend(b",;\t|".iter().filter(|d| **d != usual.delimiter && options.quote != Some(Some(**d))));
    }
    let has = |pair: [u8; 2]| bytes.windows(2).any(|found| found == pair);
    let mut quotings = vec![(usual.quote, usual.escape)];
    if options.quote.is_none() && !usual.is_tbl {
        let escape = if options.escape.is_none() && has(*b"\\\"") { Some(b'\\') } else { None };
        quotings.extend(escape.map(|escape| (Some(b'"'), Some(escape))));
        if bytes.contains(&b'\'') && options.escape != Some(b'\'') {
            quotings.push((Some(b'\''), usual.escape));
        }
    } else if let (Some(Some(quote)), None, true) = (options.quote, options.escape, has([b'\\', usual.quote.unwrap_or(b'"')])) {
        quotings.push((Some(quote), Some(b'\\')));
    }
    let mut best: Option<(Trial, _)> = None;
    for (quote, escape) in quotings {
        for delimiter in &delimiters {
            let is_special = Some(*delimiter) == quote || Some(*delimiter) == escape || usual.null.contains(delimiter);
            if is_special && *delimiter != usual.delimiter {
                continue;
            }
            // A blank behind the delimiter hides a quote.
            let hidden = quote.is_some_and(|quote| bytes.windows(3).any(|found| found == [*delimiter, b' ', quote]));
            for skip_blanks in if hidden { &[false, true][..] } else { &[false] } {
                let dialect = Dialect { delimiter: *delimiter, quote, escape, skip_blanks: *skip_blanks, ..usual.clone() };
                let trial = Trial::new(&memory, dialect, is_cut);
                let rank = trial.rank();
                if best.as_ref().is_none_or(|(_, before)| rank > *before) {
                    best = Some((trial, rank));
                }
            }
        }
    }
    let Some((mut trial, _)) = best else { return Ok(Sniffed { dialect: usual, records: Vec::new(), is_crlf }) };
    // A delimiter may end each line of a `.tbl` file.
    let is_nothing = |f: &Option<String>| f.as_deref().is_none_or(str::is_empty);
    let ends_empty = |r: &Record| r.fields.len() > 1 && r.fields.last().is_some_and(is_nothing);
    trial.dialect.trailing = usual.is_tbl && trial.records.first().is_some_and(ends_empty);
    if trial.dialect.trailing {
        trial.records.iter_mut().filter(|r| ends_empty(r)).for_each(|r| drop(r.fields.pop()));
    }
    Ok(Sniffed { dialect: trial.dialect, records: trial.records, is_crlf })
}
