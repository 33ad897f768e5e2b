//! CREATE SEQUENCE, and the sequences of SERIAL and identity columns.

use super::{Defining, taken, too_much};
use crate::parse::quoted_where_needed;
use crate::settings::text_of;
use crate::{SqlError, SqlResult};
use pagefold_format::catalog::{DefinedKind, Notes, Sequence};
use pagefold_types::DataType;
use sqlparser::ast::{self, SequenceOptions};

impl Defining<'_> {
    pub(super) fn create_sequence(
        &mut self,
        name: &ast::ObjectName,
        data_type: Option<&ast::DataType>,
        options: &[SequenceOptions],
        if_not_exists: bool,
    ) -> SqlResult<String> {
        let name = self.check_schema(name)?;
        let data_type = data_type.map_or(Ok(DataType::BigInt), crate::bind::types::data_type)?;
        if if_not_exists && self.transaction.object(DefinedKind::Sequence, &name).is_ok() {
            self.skips("relation", &name);
            return Ok("CREATE SEQUENCE".into());
        }
        self.make_sequence(&name, &data_type, options)?;
        Ok("CREATE SEQUENCE".into())
    }

    /// Makes a sequence; gives its object's number.
    pub(super) fn make_sequence(&mut self, name: &str, data_type: &DataType, options: &[SequenceOptions]) -> SqlResult<u32> {
        let numbers = numbers(name, data_type, options)?;
        let mut notes = Notes::default();
        notes.set_sequence(Some(&numbers)).map_err(too_much)?;
        self.refuse_taken(name)?;
        let made = self.transaction.create_object(DefinedKind::Sequence, name, notes).map_err(|error| taken(error, name))?;
        Ok(made.object_id)
    }
}

fn number(expr: &ast::Expr) -> SqlResult<i64> {
    let text = text_of(expr);
    text.replace(' ', "").parse().map_err(|_| SqlError::syntax(format!("{text} is no number of a sequence")))
}

fn numbers(name: &str, data_type: &DataType, options: &[SequenceOptions]) -> SqlResult<Sequence> {
    let wrong = |what: String| SqlError::new("22023", format!("sequence \"{name}\": {what}"));
    let (mut increment, mut start, mut least, mut greatest) = (1, None, None, None);
    let mut sequence = Sequence::default();
    for option in options {
        match option {
            SequenceOptions::IncrementBy(by, _) => increment = number(by)?,
            SequenceOptions::StartWith(with, _) => start = Some(number(with)?),
            SequenceOptions::MinValue(value) => least = value.as_ref().map(number).transpose()?,
            SequenceOptions::MaxValue(value) => greatest = value.as_ref().map(number).transpose()?,
            SequenceOptions::Cache(count) => {
                sequence.cache =
                    u32::try_from(number(count)?).ok().filter(|count| *count > 0).ok_or_else(|| wrong("CACHE is at least 1".into()))?;
            }
            SequenceOptions::Cycle(does_not) => sequence.cycles = !does_not,
        }
    }
    let (lowest, highest) = data_type.int_range().ok_or_else(|| wrong(format!("{data_type} is no type of whole numbers")))?;
    if increment == 0 {
        return Err(wrong("INCREMENT must not be zero".into()));
    }
    sequence.increment = increment;
    sequence.least = least.unwrap_or(if increment > 0 { 1 } else { lowest });
    sequence.greatest = greatest.unwrap_or(if increment > 0 { highest } else { -1 });
    if sequence.least > sequence.greatest || sequence.least < lowest || sequence.greatest > highest {
        return Err(wrong(format!("MINVALUE {} and MAXVALUE {} leave no numbers of {data_type}", sequence.least, sequence.greatest)));
    }
    sequence.start = start.unwrap_or(if increment > 0 { sequence.least } else { sequence.greatest });
    if !(sequence.least..=sequence.greatest).contains(&sequence.start) {
        return Err(wrong(format!("START {} is not between MINVALUE and MAXVALUE", sequence.start)));
    }
    Ok(sequence)
}

/// The name of an object, for the text of a default: in quotes where it would be another without them.
pub(super) fn literal(name: &str) -> String {
    format!("nextval('{}')", quoted_where_needed(name).replace('\'', "''"))
}
