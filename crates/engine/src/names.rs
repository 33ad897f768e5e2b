//! Names of tables, indexes and what else there is in a database.

use crate::{Error, Result};

/// A name for something in the database: 1 to 128 bytes, so that errors and reports can show it whole.
///
/// # Errors
/// When it is none. `what`: what it is to be a name of.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let refuse = |why: &str| Err(Error::Parameter(format!("\"{}\" is no name for {what}: {why}", name.escape_debug())));
    match name.len() {
        _ if name.chars().any(char::is_control) => refuse("it has control characters (line ends, tabs)"),
        1..=128 => Ok(()),
        bytes => refuse(&format!("it is {bytes} bytes long, not 1 to 128")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_and_why() {
        let reason = |name: &str| check_name("a table", name).unwrap_err().to_string();
        assert!(check_name("a table", &"ü".repeat(64)).is_ok());
        assert!(reason("").ends_with("it is 0 bytes long, not 1 to 128"));
        assert!(reason(&"ü".repeat(65)).ends_with("it is 130 bytes long, not 1 to 128"));
        assert!(reason("a\tb").contains(r#""a\tb" is no name for a table: it has control characters"#), "{}", reason("a\tb"));
    }
}
