//! A JSON value as text: fields in lines, lists of records as tables.

use super::columns::{Align, Grid};
use serde_json::{Map, Value};

pub(super) fn render(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) => fields(map, 0, &mut out),
        other => out.push_str(&scalar(other)),
    }
    out
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        Value::Array(items) => items.iter().map(scalar).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            map.iter().map(|(name, value)| format!("{}: {}", name.replace('_', " "), scalar(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn fields(map: &Map<String, Value>, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    let width = map.iter().filter(|(_, v)| !is_block(v)).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in map {
        let title = name.replace('_', " ");
        match value {
            Value::Object(inner) => {
                out.push_str(&format!("{pad}{title}\n"));
                fields(inner, indent + 2, out);
            }
            Value::Array(items) if is_block(value) => {
                out.push_str(&format!("{pad}{title}\n"));
                list(items, indent + 2, out);
            }
            other => {
                let text = scalar(other);
                out.push_str(&format!("{pad}{title:width$}  {text}\n"));
            }
        }
    }
}

/// Does it take lines of its own?
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_string()),
        _ => false,
    }
}

fn list(items: &[Value], indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    if !items.iter().all(Value::is_object) {
        items.iter().for_each(|item| out.push_str(&format!("{pad}{}\n", scalar(item))));
        return;
    }
    let mut names: Vec<&String> = Vec::new();
    for map in items.iter().filter_map(Value::as_object) {
        names.extend(map.keys().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    let head: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
    let numeric = |name: &String| items.iter().filter_map(|item| item.get(name)).all(Value::is_number);
    let align: Vec<Align> = names.iter().map(|name| if numeric(name) { Align::Right } else { Align::Left }).collect();
    let mut grid = Grid::new(&head.iter().map(String::as_str).collect::<Vec<_>>(), &align);
    for item in items {
        grid.row(names.iter().map(|name| item.get(*name).map(scalar).unwrap_or_default()).collect());
    }
    grid.to_string().lines().for_each(|line| out.push_str(&format!("{pad}{line}\n")));
}
