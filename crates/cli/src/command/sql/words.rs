//! Words of SQL: which of them are key words, and names as they are written.

/// Words that mean something to the parser: they are completed and shown as such, and names like these are quoted.
pub(super) const KEY_WORDS: &[&str] = &[
    "ADD",
    "ADVISE",
    "ALL",
    "ALTER",
    "ANALYZE",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "BACKUP",
    "BEGIN",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BOTH",
    "BY",
    "BYTEA",
    "CASCADE",
    "CASE",
    "CAST",
    "CHAR",
    "CHECK",
    "COLLATE",
    "COLUMN",
    "COMMENT",
    "COMMIT",
    "CONFLICT",
    "CONSTRAINT",
    "CREATE",
    "CROSS",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "DATE",
    "DEALLOCATE",
    "DECIMAL",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DISTINCT",
    "DO",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "ESCAPE",
    "ESTIMATE",
    "EXCEPT",
    "EXECUTE",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FETCH",
    "FILTER",
    "FIRST",
    "FOR",
    "FOREIGN",
    "FROM",
    "FULL",
    "GENERATED",
    "GROUP",
    "HAVING",
    "IDENTITY",
    "IF",
    "ILIKE",
    "IN",
    "INDEX",
    "INNER",
    "INSERT",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "ISOLATION",
    "JOIN",
    "KEY",
    "LAST",
    "LATERAL",
    "LEFT",
    "LEVEL",
    "LIKE",
    "LIMIT",
    "NATURAL",
    "NOT",
    "NOTHING",
    "NULL",
    "NULLS",
    "NUMERIC",
    "OFFSET",
    "ON",
    "ONLY",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRECISION",
    "PREPARE",
    "PRIMARY",
    "READ",
    "REAL",
    "REFERENCES",
    "REINDEX",
    "RELEASE",
    "RENAME",
    "REORG",
    "REPLACE",
    "RESET",
    "RESTRICT",
    "RETURNING",
    "RIGHT",
    "ROLLBACK",
    "ROW",
    "ROWS",
    "SAVEPOINT",
    "SCHEMA",
    "SELECT",
    "SEQUENCE",
    "SERIALIZABLE",
    "SET",
    "SHOW",
    "SMALLINT",
    "SOME",
    "START",
    "STORED",
    "TABLE",
    "TEMPORARY",
    "TEXT",
    "THEN",
    "TIME",
    "TIMESTAMP",
    "TO",
    "TRANSACTION",
    "TRUE",
    "TRUNCATE",
    "UNION",
    "UNIQUE",
    "UPDATE",
    "USER",
    "USING",
    "UUID",
    "VALUES",
    "VARCHAR",
    "VIEW",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "WORK",
    "ZONE",
];

/// Names of functions, for completion.
pub(super) const FUNCTIONS: &[&str] = &[
    "abs",
    "avg",
    "ceil",
    "char_length",
    "coalesce",
    "concat",
    "count",
    "floor",
    "generate_series",
    "greatest",
    "least",
    "length",
    "lower",
    "ltrim",
    "max",
    "min",
    "mod",
    "nextval",
    "now",
    "nullif",
    "position",
    "power",
    "replace",
    "round",
    "rtrim",
    "sqrt",
    "substring",
    "sum",
    "trim",
    "trunc",
    "upper",
];

pub(super) fn is_key_word(word: &str) -> bool {
    KEY_WORDS.binary_search_by(|own| own.chars().cmp(word.chars().map(|c| c.to_ascii_uppercase()))).is_ok()
}

/// A name as it is written in SQL: in double quotes, unless it means itself without them.
pub(super) fn quoted(name: &str) -> String {
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let is_plain = begins && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') && !is_key_word(name);
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The name that is meant by what was written: in lower case, unless it is in double quotes; `schema.name` has its parts so.
pub(super) fn meant(written: &str) -> String {
    let mut name = String::new();
    let mut is_quoted = false;
    let mut chars = written.trim().trim_end_matches(';').chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                name.push('"');
            }
            '"' => is_quoted = !is_quoted,
            c if is_quoted => name.push(c),
            c => name.extend(c.to_lowercase()),
        }
    }
    name.strip_prefix("public.").map_or(name.clone(), str::to_owned)
}

/// Does a name fit a pattern with `%` or `*` for any characters, and `?` for one? Both in any case.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.to_lowercase().replace('%', "*").chars().collect();
    let name: Vec<char> = name.to_lowercase().chars().collect();
    crate::pattern::fits(&pattern, &name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_words_are_in_order() {
        assert!(KEY_WORDS.is_sorted());
        assert!(is_key_word("select") && is_key_word("Zone") && !is_key_word("ship"));
    }

    #[test]
    fn names_are_quoted_when_they_have_to_be() {
        for (name, written) in [
            ("ship", "ship"),
            ("order", "\"order\""),
            ("Ship", "\"Ship\""),
            ("a b", "\"a b\""),
            ("x\"y", "\"x\"\"y\""),
            ("1a", "\"1a\""),
            ("ö", "\"ö\""),
        ] {
            assert_eq!(quoted(name), written);
            assert_eq!(meant(written), name);
        }
        assert_eq!(meant("Public.Ship;"), "ship");
    }

    #[test]
    fn patterns() {
        assert!(fits("sh%", "ship") && fits("S*p", "ship") && fits("ship", "Ship") && !fits("sh", "ship"));
    }
}
