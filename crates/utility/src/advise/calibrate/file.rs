//! A calibration as a JSON document: `{"version": 1, "tables": {"orders": {"page": {"lookup_ns": 120.5, ...}}}, "indexes": {"by_date": {"prefix 8192": {...}}}}`.
//!
//! Invariant: costs that were read are numbers from 0 to [`NS_MAX`].

use super::{Calibration, CostsByWay, WayCosts};
use crate::{Error, Result};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

const VERSION: u64 = 1;
/// An operation of more than a second is none.
const NS_MAX: f64 = 1e9;

fn way_json(costs: &WayCosts) -> Json {
    let mut fields: Map<String, Json> = costs.operations.fields().iter().map(|(name, ns)| ((*name).to_owned(), json!(ns))).collect();
    fields.insert("read_ns".into(), json!(costs.cost.read_ns));
    fields.insert("write_ns".into(), json!(costs.cost.write_ns));
    Json::Object(fields)
}

fn objects_json(objects: &BTreeMap<String, CostsByWay>) -> Json {
    let ways = |ways: &CostsByWay| Json::Object(ways.iter().map(|(name, costs)| (name.clone(), way_json(costs))).collect());
    Json::Object(objects.iter().map(|(name, of)| (name.clone(), ways(of))).collect())
}

fn wrong(what: &str) -> Error {
    Error::Data(format!("a calibration: {what}"))
}

fn object<'j>(json: &'j Json, what: &str) -> Result<&'j Map<String, Json>> {
    json.as_object().ok_or_else(|| wrong(&format!("{what} is no object")))
}

fn way_of(json: &Json, of: &str) -> Result<WayCosts> {
    let mut costs = WayCosts::default();
    for (name, value) in object(json, of)? {
        let ns = value.as_f64().filter(|ns| (0.0..=NS_MAX).contains(ns)).ok_or_else(|| wrong(&format!("{of}: {name} is no time")))?;
        match name.as_str() {
            "read_ns" => costs.cost.read_ns = ns,
            "write_ns" => costs.cost.write_ns = ns,
            // Of a later version.
            name => costs.operations.field_mut(name).into_iter().for_each(|field| *field = ns),
        }
    }
    Ok(costs)
}

fn objects_of(json: &Json, what: &str) -> Result<BTreeMap<String, CostsByWay>> {
    let ways = |name: &str, json: &Json| -> Result<CostsByWay> {
        object(json, name)?.iter().map(|(way, costs)| Ok((way.clone(), way_of(costs, &format!("{name}, {way}"))?))).collect()
    };
    object(json, what)?.iter().map(|(name, json)| Ok((name.clone(), ways(name, json)?))).collect()
}

impl Calibration {
    /// As a document.
    #[must_use]
    pub fn to_json(&self) -> Json {
        json!({ "version": VERSION, "tables": objects_json(&self.tables), "indexes": objects_json(&self.indexes) })
    }

    /// From the text of a document.
    ///
    /// # Errors
    /// When it is none, of a later version, or a cost is no time.
    pub fn from_json(text: &[u8]) -> Result<Calibration> {
        let json: Json = serde_json::from_slice(text).map_err(|e| wrong(&e.to_string()))?;
        if json["version"].as_u64() != Some(VERSION) {
            return Err(wrong(&format!("version {}; known is {VERSION}", json["version"])));
        }
        Ok(Calibration { tables: objects_of(&json["tables"], "tables")?, indexes: objects_of(&json["indexes"], "indexes")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_wrong_is_refused() {
        let mut calibration = Calibration::default();
        let mut costs = WayCosts::default();
        for (at, (name, _)) in costs.operations.fields().iter().enumerate() {
            *costs.operations.field_mut(name).unwrap() = at as f64 + 0.5;
        }
        (costs.cost.read_ns, costs.cost.write_ns) = (77.25, 1234.5);
        calibration.tables.insert("t \"x\"".into(), CostsByWay::from([("page".into(), costs)]));
        calibration.indexes.insert("i".into(), CostsByWay::from([("prefix 8192".into(), costs)]));
        let text = calibration.to_json().to_string();
        assert_eq!(Calibration::from_json(text.as_bytes()).unwrap(), calibration);
        for (from, to) in [
            ("77.25", "-1"),
            ("77.25", "1e10"),
            ("77.25", "\"x\""),
            ("\"version\":1", "\"version\":2"),
            ("\"tables\":{", "\"tables\":{\"a\":7,"),
        ] {
            let wrong = text.replace(from, to);
            assert!(wrong != text && Calibration::from_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Calibration::from_json(b"{").is_err() && Calibration::from_json(b"{\"version\":1}").is_err());
        assert!(Calibration::from_json("[".repeat(100_000).as_bytes()).is_err());
    }
}
