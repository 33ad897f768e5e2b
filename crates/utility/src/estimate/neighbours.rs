//! What pages by column save because neighbours are alike, beyond what clusters of a sample show.
//!
//! A page by column often holds the rows of several clusters. In the sample these come from all over the table, in the table they are neighbours: where values walk, or belong together in
//! runs, they take less there. How much less is seen inside of clusters: areas of a cluster's rows against areas of as many rows, mixed from as many clusters as a page of the sample has;
//! and both again with half as many rows, which tells how that changes as areas grow to the size of a page.

use super::ranges::Clusters;
use pagefold_codec::page::{PageEncoder, PageSchema};
use pagefold_codec::row::RowDictionary;
use pagefold_format::data::{area_encoder, string_codes};
use pagefold_types::RowLayout;

/// Clusters whose rows are looked at, at most.
const CLUSTERS_MAX: usize = 128;
/// Rows of a chunk that is mixed with others, at least: with fewer, nothing of a cluster is left in it.
const CHUNK_ROWS_MIN: usize = 2;

/// Bytes that a row takes less for its neighbours on a page of `page_rows` rows, beyond what the sample shows.
pub(super) fn saved_bytes(clusters: &Clusters, layout: &RowLayout, strings: Option<&RowDictionary>, page_rows: f64) -> f64 {
    let step = clusters.len().div_ceil(CLUSTERS_MAX).max(1);
    let chosen: Vec<Vec<&[u8]>> = (0..clusters.len()).step_by(step).map(|cluster| clusters.records(cluster).collect()).collect();
    let rows = chosen.iter().map(Vec::len).sum::<usize>() as f64 / chosen.len().max(1) as f64;
    let mixed = (page_rows / rows.max(1.0)).round().min(rows / (2 * CHUNK_ROWS_MIN) as f64) as usize;
    if mixed < 2 || chosen.len() < 2 * mixed {
        return 0.0;
    }
    let mut encoder = area_encoder(PageSchema::new(layout), strings.map(string_codes));
    // Areas of both kinds have the same number of rows.
    let (whole, half) = (rows as usize / mixed * mixed, rows as usize / 2 / mixed * mixed);
    let mut saved = |area_rows: usize| mixed_bytes(&mut encoder, &chosen, area_rows, mixed) - own_bytes(&mut encoder, &chosen, area_rows);
    let (whole, half) = (saved(whole), saved(half));
    let doublings = (page_rows / rows).log2();
    if whole <= 0.0 {
        return 0.0;
    }
    whole * (whole / half.max(whole)).powf(doublings)
}

/// Bytes of a row in areas of one cluster each.
fn own_bytes(encoder: &mut PageEncoder, clusters: &[Vec<&[u8]>], area_rows: usize) -> f64 {
    mean_bytes(encoder, clusters.iter().flat_map(|rows| rows.chunks_exact(area_rows)).map(|rows| rows.iter().copied()))
}

/// Bytes of a row in areas of chunks from `mixed` clusters each.
fn mixed_bytes(encoder: &mut PageEncoder, clusters: &[Vec<&[u8]>], area_rows: usize, mixed: usize) -> f64 {
    let chunk_rows = area_rows / mixed;
    let areas = (0..clusters.len()).map(|first| {
        // Each area has another chunk of a cluster.
        let chunk = move |i: usize| {
            let rows = &clusters[(first + i) % clusters.len()];
            rows.chunks_exact(chunk_rows.max(1)).nth(i).unwrap_or_default().iter().copied()
        };
        (0..mixed).flat_map(chunk)
    });
    mean_bytes(encoder, areas)
}

fn mean_bytes<'r>(encoder: &mut PageEncoder, areas: impl Iterator<Item = impl Iterator<Item = &'r [u8]>>) -> f64 {
    let (mut bytes, mut rows) = (0, 0);
    for area in areas {
        encoder.clear();
        // Records of the layout.
        area.for_each(|record| _ = encoder.push(record));
        if encoder.rows() > 0 {
            rows += encoder.rows();
            bytes += encoder.len_of(encoder.rows());
        }
    }
    bytes as f64 / rows.max(1) as f64
}
