//! Which to choose: one or two sentences for an object.
//!
//! Rules for indexes, from `facts.md` section 3: compressible less than 2:1, never more than 8 KB; better than 4:1, not less than 16 KB; below 48 KB there is nothing to save; a
//! user who is short of memory does not fold below 40 % saving, and takes 16 KB only above 75 %.

use crate::index::IndexEstimate;
use crate::table::TableEstimate;

/// Below this an index is not worth folding.
const NOTHING_TO_SAVE_BYTES: u64 = 48 * 1024;
/// A saving below this is not worth the processor time.
const WORTH_SAVING: f64 = 0.05;
/// Sizes that differ by less than this are the same: the page size nearest to what is used wins.
const SAME: f64 = 0.02;

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

fn kb(bytes: usize) -> String {
    format!("{} KB", bytes / 1024)
}

/// Advice on an index whose leaves now take, or would take plain, `leaf_bytes_now`.
#[must_use]
pub fn index_advice(estimates: &[IndexEstimate], leaf_bytes_now: u64) -> String {
    let folded = |page_bytes: usize| {
        estimates.iter().find(|e| e.candidate.folds() && e.candidate.page_bytes == page_bytes && e.key_too_long.is_none())
    };
    let Some(wide) = folded(16384).or_else(|| folded(8192)).or_else(|| folded(32768)) else {
        return "Its keys are too long to fold.".to_owned();
    };
    if leaf_bytes_now < NOTHING_TO_SAVE_BYTES {
        return format!("Leave it plain: below {} there is nothing to save.", kb(NOTHING_TO_SAVE_BYTES as usize));
    }
    let ratio = wide.ratio();
    let page_bytes = match ratio {
        r if r > 0.5 => 8192,
        r if r > 0.125 => 16384,
        _ => 32768,
    };
    let choice = folded(page_bytes).unwrap_or(wide);
    let saved = choice.space_reduction(leaf_bytes_now);
    let compressible = if ratio > 0.0 { 1.0 / ratio } else { 1.0 };
    if saved < WORTH_SAVING {
        return format!(
            "Leave it plain: its keys compress {compressible:.1}:1, and folding would save {} of the leaf pages.",
            percent(saved.max(0.0))
        );
    }
    let mut advice = format!(
        "Fold it with buffers of {}: its keys compress {compressible:.1}:1, leaf pages shrink by {}.",
        kb(choice.candidate.page_bytes),
        percent(saved)
    );
    if saved < 0.4 {
        advice.push_str(" Not if memory is short: a saving under 40 % does not pay for the buffers.");
    } else if saved <= 0.75
        && choice.candidate.page_bytes > 8192
        && let Some(small) = folded(8192)
    {
        advice.push_str(&format!(
            " If memory is short take 8 KB: {} saved, {} of the buffer unused instead of {}.",
            percent(small.space_reduction(leaf_bytes_now)),
            percent(small.buffer_unused()),
            percent(choice.buffer_unused())
        ));
    }
    advice
}

/// Advice on a table that is used with pages of `page_bytes`. `estimates` has the method `none` among the others.
#[must_use]
pub fn table_advice(estimates: &[TableEstimate], page_bytes: usize) -> String {
    let at = |e: &&TableEstimate| e.options.page_bytes == page_bytes;
    let smallest = estimates.iter().filter(at).min_by_key(|e| e.size_bytes());
    let plain = estimates.iter().filter(at).find(|e| e.method == "none");
    let (Some(smallest), Some(plain)) = (smallest, plain) else { return String::new() };
    if plain.rows == 0 {
        return "It has no rows: nothing to advise.".to_owned();
    }
    let share = |e: &TableEstimate, of: &TableEstimate| 1.0 - e.size_bytes() as f64 / of.size_bytes().max(1) as f64;
    let saved = share(smallest, plain);
    let shorter = 1.0 - smallest.row_bytes as f64 / plain.row_bytes.max(1) as f64;
    let mut advice = if saved < WORTH_SAVING {
        let reason = if !estimates.iter().any(|e| e.dictionary) {
            "the dictionary would take more pages than it saves".to_owned()
        } else if shorter > 2.0 * WORTH_SAVING {
            "shorter rows save no pages here".to_owned()
        } else {
            format!("compression would save {}", percent(saved.max(0.0)))
        };
        format!("Leave it uncompressed: {reason}.")
    } else {
        format!("Compress it with method {}: {} smaller.", smallest.method, percent(saved))
    };
    let method = if saved < WORTH_SAVING { plain.method } else { smallest.method };
    let chosen = if saved < WORTH_SAVING { plain } else { smallest };
    let best = estimates.iter().filter(|e| e.method == method).min_by_key(|e| e.size_bytes());
    if let Some(best) = best.filter(|best| share(best, chosen) > SAME) {
        advice.push_str(&format!(
            " Pages of {} instead of {} would take {} less.",
            kb(best.options.page_bytes),
            kb(page_bytes),
            percent(share(best, chosen))
        ));
    }
    advice
}
