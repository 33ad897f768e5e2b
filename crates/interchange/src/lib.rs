//! Arrow, Parquet, CSV and .tbl to typed rows and back.
