//! What several fuzz targets share: how an input is cut into parts, pages to start from, and what has to hold after an op.

pub mod area;
pub mod input;
pub mod ops;
pub mod pages;
pub mod schema;
pub mod view;
