//! Lists of columns on the command line: `orders(o_orderdate, o_orderkey DESC)` and `id bigint not null, name char(20)`.

use pagefold::types::{Column, DataType, Direction, Schema};

/// Columns and their order.
pub(crate) type KeyColumns = Vec<(String, Direction)>;

/// Splits at commas outside parentheses and double quotes.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut quoted, mut start) = (Vec::new(), 0i32, false, 0);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    if quoted || depth != 0 {
        return Err(format!("\"{text}\": a quote or parenthesis is not closed"));
    }
    parts.push(text[start..].trim());
    Ok(parts)
}

/// A name, bare or in double quotes, and what stands behind it.
fn name(text: &str) -> Result<(String, &str), String> {
    if let Some(rest) = text.strip_prefix('"') {
        // A doubled quote is one of the name.
        let mut end = 0;
        loop {
            end += rest[end..].find('"').ok_or_else(|| format!("{text}: the quote is not closed"))?;
            if !rest[end + 1..].starts_with('"') {
                return Ok((rest[..end].replace("\"\"", "\""), rest[end + 1..].trim()));
            }
            end += 2;
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    if end == 0 {
        return Err("a column name is missing".to_owned());
    }
    Ok((text[..end].to_owned(), text[end..].trim()))
}

/// `a, "b c"`: names alone.
pub(crate) fn column_names(text: &str) -> Result<Vec<String>, String> {
    split(text)?
        .into_iter()
        .map(|part| match name(part)? {
            (column, "") => Ok(column),
            // A name with blanks that are not doubted: nothing else can stand behind it.
            _ if !part.starts_with('"') => Ok(part.to_owned()),
            (column, rest) => Err(format!("column \"{column}\": \"{rest}\" stands behind it")),
        })
        .collect()
}

/// `zip=text, price=decimal(9,2)`
pub(crate) fn types(text: &str) -> Result<Vec<(String, DataType)>, String> {
    split(text)?
        .into_iter()
        .map(|part| {
            let (column, type_text) = match part.strip_prefix('"') {
                Some(_) => {
                    let (column, rest) = name(part)?;
                    (column, rest.strip_prefix('=').ok_or_else(|| format!("\"{part}\" is not of the form COLUMN=TYPE"))?)
                }
                None => {
                    let (column, rest) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is not of the form COLUMN=TYPE"))?;
                    (column.trim().to_owned(), rest)
                }
            };
            Ok((column.clone(), type_text.parse().map_err(|e| format!("column \"{column}\": {e}"))?))
        })
        .collect()
}

/// `a, b DESC`
pub(crate) fn key_columns(text: &str) -> Result<KeyColumns, String> {
    split(text)?
        .into_iter()
        .map(|part| {
            let (column, rest) = name(part)?;
            match rest.to_ascii_uppercase().as_str() {
                "" | "ASC" => Ok((column, Direction::Ascending)),
                "DESC" => Ok((column, Direction::Descending)),
                _ => Err(format!("column \"{column}\": \"{rest}\" is neither ASC nor DESC")),
            }
        })
        .collect()
}

/// `TABLE(a, b DESC)`
pub(crate) fn table_and_columns(text: &str) -> Result<(String, KeyColumns), String> {
    let shape = || format!("\"{text}\" is not of the form TABLE(COLUMN, COLUMN DESC)");
    let (table, rest) = text.trim().split_once('(').ok_or_else(shape)?;
    let columns = rest.strip_suffix(')').ok_or_else(shape)?;
    let table = table.trim();
    let table = table.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(table);
    if table.is_empty() {
        return Err(shape());
    }
    Ok((table.to_owned(), key_columns(columns)?))
}

/// What stands before the last word, when that is `word` in any case.
fn strip_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let at = text.len().checked_sub(word.len())?;
    let tail = text.get(at..)?;
    tail.eq_ignore_ascii_case(word).then(|| text[..at].trim_end())
}

/// `id bigint not null, name char(20)`
pub(crate) fn schema(text: &str) -> Result<Schema, String> {
    let columns = split(text)?.into_iter().map(|part| {
        let (column, rest) = name(part)?;
        let (type_text, nullable) = match strip_word(rest, "NULL") {
            Some(head) => strip_word(head, "NOT").map_or((head, true), |head| (head, false)),
            None => (rest, true),
        };
        let data_type: DataType = type_text.parse().map_err(|e| format!("column \"{column}\": {e}"))?;
        Ok(Column::new(column, data_type, nullable))
    });
    Schema::new(columns.collect::<Result<Vec<Column>, String>>()?).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_columns() {
        let (table, columns) = table_and_columns(" orders ( a, \"b c\" desc,d ASC) ").unwrap();
        assert_eq!(table, "orders");
        let expected = [("a", Direction::Ascending), ("b c", Direction::Descending), ("d", Direction::Ascending)];
        assert_eq!(columns, expected.map(|(c, d)| (c.to_owned(), d)));
        for bad in ["orders", "orders(a", "(a)", "orders(a b)", "orders(a,)", "orders()", "orders(\"a)", "orders(a))"] {
            assert!(table_and_columns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_and_types_of_single_columns() {
        assert_eq!(column_names("a, \"b, c\",d e,\"f\"\"g\"").unwrap(), ["a", "b, c", "d e", "f\"g"]);
        assert!(column_names("a,").is_err() && column_names("\"a\" b").is_err());
        let found = types("zip=text, \"a b\"=decimal(9,2)").unwrap();
        assert_eq!(found, [("zip".to_owned(), DataType::Varchar(None)), ("a b".to_owned(), DataType::Decimal { precision: 9, scale: 2 })]);
        assert!(types("zip").is_err() && types("zip=nonsense").is_err());
    }

    #[test]
    fn schemas() {
        let schema = schema("id bigint not null, \"the name\" char(20), price decimal(9,2) null").unwrap();
        let columns = schema.columns();
        assert_eq!(columns[0], Column::new("id", DataType::BigInt, false));
        assert_eq!(columns[1], Column::new("the name", DataType::Char(20), true));
        assert_eq!(columns[2], Column::new("price", DataType::Decimal { precision: 9, scale: 2 }, true));
        for bad in ["", "a", "a nonsense", "a int, a int", "a decimal(9", "a int not"] {
            assert!(super::schema(bad).is_err(), "{bad}");
        }
    }
}
