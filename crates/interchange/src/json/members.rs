//! The members of a JSON object, as they are written. A name that comes twice is an error: which of the values is meant nobody can tell.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

/// Members by name.
pub(super) struct Members<'a>(pub(super) BTreeMap<String, &'a RawValue>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            match members.entry(name) {
                Entry::Vacant(entry) => _ = entry.insert(value),
                Entry::Occupied(entry) => return Err(A::Error::custom(format_args!("member {:?} comes twice", entry.key()))),
            }
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_member_comes_twice() {
        let read = |text| serde_json::from_str::<Members<'_>>(text).map(|m| m.0.len()).map_err(|e| e.to_string());
        assert_eq!(read(r#"{"a": 1, "b": {"a": 2, "a": 3}}"#), Ok(2));
        let error = read(r#"{"a": 1, "b": 2, "\u0061": 3}"#).unwrap_err();
        assert!(error.starts_with(r#"member "a" comes twice"#), "{error}");
        assert!(read("[1]").unwrap_err().contains("expected a map"));
    }
}
