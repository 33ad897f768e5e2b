//! RocksDB as it is used here: zstd with a dictionary, blocks of 16 KB cached as they are when decompressed.

use rocksdb::{BlockBasedOptions, Cache, DBCompressionType, Options};

/// Bytes of a dictionary, and of the rows it is trained on: a hundred times as many, as zstd advises.
const DICTIONARY_BYTES: i32 = 16 << 10;

/// Options of a database that is made when there is none, with so many bytes of cache.
#[must_use]
pub fn options(cache_bytes: usize) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(cache_bytes));
    blocks.set_block_size(16 << 10);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::Zstd);
    options.set_compression_options(-14, 3, 0, DICTIONARY_BYTES);
    options.set_zstd_max_train_bytes(DICTIONARY_BYTES * 100);
    options.increase_parallelism(2);
    options
}
