//! Pages that are valid by themselves and wrong together.
