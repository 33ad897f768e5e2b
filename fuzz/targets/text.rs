//! Values and types as text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema::every_type;
use pagefold_types::{DataType, Schema, text};
use std::str::FromStr;
use std::sync::LazyLock;

static TYPES: LazyLock<Schema> = LazyLock::new(every_type);

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let choice = usize::from(input.byte()) % (TYPES.len() + 1);
    let text = String::from_utf8_lossy(input.rest());
    let Some(column) = TYPES.columns().get(choice) else {
        if let Ok(data_type) = DataType::from_str(&text) {
            assert!(data_type.is_valid());
            assert_eq!(DataType::from_str(&data_type.to_string()), Ok(data_type));
        }
        return;
    };
    let data_type = &column.data_type;
    let mut scratch = Vec::new();
    let canonical = text::is_canonical(&text, data_type, &mut scratch);
    let Ok(value) = text::parse(&text, data_type) else {
        assert!(!canonical);
        return;
    };
    value.as_ref().check(data_type, "c").expect("a value of the type");
    let written = text::to_text(value.as_ref(), data_type);
    assert!(text::is_canonical(&written, data_type, &mut scratch), "{written}");
    assert!(text::parse(&written, data_type).expect("as written").as_ref() == value.as_ref(), "{text} {written}");
    if canonical {
        assert_eq!(written, text);
    }
});
