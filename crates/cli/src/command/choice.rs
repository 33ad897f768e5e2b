//! What was chosen with `auto`, in both forms of output.

use pagefold::advisor::{Alternative, Choice};
use serde_json::{Value as Json, json};

/// What was chosen, why, and everything that was considered.
pub(super) fn json(choice: Option<&Choice>) -> Json {
    let Some(choice) = choice else { return Json::Null };
    let considered = |a: &Alternative| {
        json!({
            "name": a.name,
            "page_size_bytes": a.page_bytes,
            "pages": a.pages.value,
            "pages_low": a.pages.low,
            "pages_high": a.pages.high,
            "size_bytes": a.size_bytes.value,
            "read_ns": a.cost.map(|cost| cost.read_ns),
            "write_ns": a.cost.map(|cost| cost.write_ns),
        })
    };
    let chosen = choice.chosen();
    json!({
        "name": chosen.name,
        "page_size_bytes": chosen.page_bytes,
        "reason": choice.reason,
        "considered": choice.considered.iter().map(considered).collect::<Vec<Json>>(),
    })
}

/// The reason alone.
pub(super) fn reason(choice: Option<&Choice>) -> Json {
    choice.map_or(Json::Null, |choice| choice.reason.as_str().into())
}

/// A line of its own, when something was chosen.
pub(super) fn text(choice: Option<&Choice>) -> String {
    choice.map_or_else(String::new, |choice| format!("  chosen {}\n", choice.reason))
}
