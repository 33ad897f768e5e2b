//! Dictionaries that stand for those that LOAD would train on a table of which only a sample was read.
//!
//! A sample of 100 pages has fewer rows than LOAD trains on, and they come from fewer places. So its dictionary has learned by heart what occurs in one place of the sample, which the real
//! one has no room for; it may have fewer tokens than the real one; and with more rows it would find better ones. How much that is, four rates (bytes of codes by bytes of rows) tell:
//!
//! * `own`: of the dictionary of the sample, on the rows it was trained on;
//! * `half`: the same for a dictionary of half of the clusters. Twice the rows bring it from `half` to `own`; to the rows that LOAD looks at it is as far again, about;
//! * `held`: of the dictionary of one half, on the other half. Most rows of a large table are such that LOAD has not looked at. A dictionary is worse on these by as much as it is
//!   better on its own, about (Akaike 1974);
//! * `lasting`: as `own` without the tokens that only one cluster uses and that have no room in the table's dictionary. These are learned by heart; the table has as many times more of
//!   them as it has more rows than the sample, and those go that are used least (`Part::lasting_tokens`).
//!
//! Clusters of a large sample beyond those trained on are scaled by what the dictionary does on them.
//!
//! How near that comes, over twenty made files: `tests/estimate/coverage.rs`, docs/performance.md.

use super::dictionary::{Trained, methods, of_strings};
use super::ranges::Clusters;
use pagefold_codec::row::{CODE_COUNT, Dictionary, DictionaryType, Encoder, TrainOptions};
use pagefold_engine::table_space::{SampledRecords, Sampler, Saving};
use pagefold_format::data::PageFill;
use pagefold_format::data::forms::RecordEncoder;
use pagefold_types::RowLayout;

/// Bytes of rows that a sample's dictionary is trained on: this part of the table's bytes, so that training stays a small part of a load ...
const TRAINING_PART: f64 = 1.0 / 2000.0;
/// ... but not less than this, where the sample has as much.
const TRAINING_BYTES_MIN: f64 = 1024.0 * 1024.0;
const TRAINING_BYTES_MAX: f64 = 4e6;
/// Bytes of rows that LOAD's training looks at, about (`TrainOptions`).
const LOAD_TRAINING_BYTES: f64 = 2.0 * 1024.0 * 1024.0;

/// Of the way that the rate made with the last doubling of rows, what all that are to come make: for one that grows, and for one that falls.
const TREND_UP: f64 = 0.6;
const TREND_DOWN: f64 = 0.85;
/// Of the gap between rows trained on and others, what counts for those that LOAD does not train on.
const GAP: f64 = 0.25;
/// Of trend, gap, and what has no room, the part that is not sure.
const TREND_MARGIN: f64 = 0.25;
const GAP_MARGIN: f64 = 0.13;
const LOST_MARGIN: f64 = 0.22;
/// Tokens that every dictionary has.
const SINGLE_BYTES: usize = 256;
/// Uncertainty of every stand-in, relative.
const MARGIN_MIN: f64 = 0.005;
/// Uncertainty of a dictionary of strings that was trained on a sample, relative.
const STRINGS_MARGIN: f64 = 0.03;

/// A dictionary that stands for the one that nobody has trained.
pub(super) struct StandIn {
    trained: Trained,
    scaling: Scaling,
}

/// What the other dictionary would make of a stand-in's codes.
pub(super) struct Scaling {
    /// What the lengths of its codes are multiplied with, in clusters it was trained on and in others.
    scales: [f64; 2],
    /// What that adds to the relative half-width.
    pub(super) margin: f64,
    step: usize,
}

impl Scaling {
    /// In a cluster.
    pub(super) fn of(&self, cluster: usize) -> f64 {
        self.scales[usize::from(!cluster.is_multiple_of(self.step))]
    }
}

/// Every so many clusters of a sample, or one half of these: of two that follow each other the first is in one, the second in the other.
#[derive(Clone, Copy)]
struct Part<'c> {
    clusters: &'c Clusters,
    step: usize,
    half: Option<usize>,
}

impl<'c> Part<'c> {
    /// Records, each with the number of its draw: clusters that were drawn together are neighbours, too.
    fn records(self) -> impl Iterator<Item = (usize, &'c [u8])> {
        let (clusters, together) = (self.clusters, self.clusters.drawn_together.max(1));
        let is_in = move |cluster: &usize| self.half.is_none_or(|half| cluster / self.step.max(together) % 2 == half);
        let chosen = (0..clusters.len()).step_by(self.step).filter(is_in);
        chosen.flat_map(move |cluster| clusters.records(cluster).map(move |record| (cluster / together, record)))
    }

    fn sample(self) -> SampledRecords {
        self.records().map(|(_, record)| record).collect::<Sampler>().into_sample()
    }

    fn bytes(self) -> f64 {
        self.records().map(|(_, record)| record.len()).sum::<usize>() as f64
    }

    /// Bytes of codes by bytes of rows.
    fn rate(self, encoder: &RecordEncoder) -> f64 {
        rate(encoder, self.records().map(|(_, record)| record))
    }

    /// The tokens that a dictionary of `times` as many clusters like these has: those that several clusters use, and of those that one uses, of which there are `times` as many, the ones
    /// that are used more often than the least used of all that have room.
    fn lasting_tokens(self, tokens: &Dictionary, times: f64) -> Vec<&[u8]> {
        let encoder = Encoder::new(tokens);
        let mut uses = vec![Uses::default(); tokens.token_count()];
        for (draw, record) in self.records() {
            encoder.codes(record, |code| uses[usize::from(code)].see(draw));
        }
        let longer = || uses.iter().zip(tokens.tokens()).filter(|(_, token)| token.len() > 1);
        // How often each is used in all of the clusters, and how many there are like it.
        let in_all = |uses: &Uses| if uses.alone { (uses.count as f64, times) } else { (uses.count as f64 * times, 1.0) };
        let mut by_uses: Vec<(f64, f64)> = longer().map(|(uses, _)| in_all(uses)).collect();
        by_uses.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut room = (CODE_COUNT - SINGLE_BYTES) as f64;
        let has_room = |(_, number): &&(f64, f64)| {
            room -= number;
            room >= 0.0
        };
        let least = by_uses.iter().take_while(has_room).last().map_or(0.0, |last| last.0);
        uses.iter()
            .zip(tokens.tokens())
            .filter(|(uses, token)| token.len() == 1 || !uses.alone || in_all(uses).0 > least)
            .map(|(_, token)| token)
            .collect()
    }
}

/// By whom a token is used.
#[derive(Clone, Default)]
struct Uses {
    count: u32,
    draw: usize,
    /// By that draw only.
    alone: bool,
}

impl Uses {
    fn see(&mut self, draw: usize) {
        self.alone = self.count == 0 || self.alone && self.draw == draw;
        self.draw = draw;
        self.count += 1;
    }
}

fn rate<'r>(encoder: &RecordEncoder, records: impl Iterator<Item = &'r [u8]>) -> f64 {
    let (plain, codes) = records.fold((0, 0), |sum, record| (sum.0 + record.len(), sum.1 + encoder.stored_len(record).0));
    codes as f64 / plain.max(1) as f64
}

/// What is seen of a dictionary of a sample.
struct Rates {
    own: f64,
    half: f64,
    held: f64,
    lasting: f64,
    /// The part of the table that LOAD does not train on.
    unseen: f64,
    /// Doublings of its rows up to those that LOAD trains on, and up to those that fill it with tokens.
    doublings: f64,
    until_full: f64,
}

impl Rates {
    /// The rate of the real dictionary, and how far it may be from that, relative.
    fn real(&self) -> (f64, f64) {
        let step = self.own - self.half;
        let lost = (self.lasting - self.own).max(0.0);
        let gap = (self.held - self.own).max(0.0) * self.unseen;
        // A rate that grows with the rows does so because less is known by heart: one effect, seen from several sides. More tokens make a rate fall; when there are all, it falls no more.
        let (trend, more) = if step > 0.0 {
            let trend = step * self.doublings.clamp(0.0, 1.0);
            (trend, (TREND_UP * trend + GAP * gap).max(lost))
        } else {
            let trend = step * self.doublings.min(self.until_full).clamp(0.0, 1.0);
            (trend, TREND_DOWN * trend + lost / 2.0)
        };
        let real = self.own + more;
        let unsure = TREND_MARGIN * trend.abs() + GAP_MARGIN * gap + LOST_MARGIN * lost;
        (real, MARGIN_MIN + unsure / real)
    }
}

fn grown(from: usize, to: usize) -> f64 {
    to as f64 / from.max(1) as f64
}

/// Doublings of rows until there are as many tokens as codes, when one brought them from `half` to `all`.
fn until_full(half: usize, all: usize) -> f64 {
    grown(all, CODE_COUNT).ln() / grown(half, all).max(1.0 + f64::EPSILON).ln()
}

/// Bytes of the dictionary's serial form when it has all tokens it will have, from those of half and all of the sample.
fn dictionary_bytes(half: (usize, usize), all: (usize, usize), doublings: f64) -> usize {
    let growth = grown(half.1, all.1).max(1.0).powf(doublings.min(until_full(half.0, all.0)).max(0.0));
    (all.1 as f64 * growth.min(2.0)) as usize
}

impl StandIn {
    pub(super) fn split(self) -> (Scaling, Trained) {
        (self.scaling, self.trained)
    }

    /// Trains on some of the clusters of a sample of a table with `rows_total` rows; one for each method.
    pub(super) fn train(clusters: &Clusters, layout: &RowLayout, rows_total: u64, fills: &[PageFill]) -> Vec<StandIn> {
        let bytes = clusters.record_bytes() as f64;
        if clusters.row_count() == 0 {
            return Vec::new();
        }
        let total = bytes / clusters.row_count() as f64 * rows_total as f64;
        let wanted = (total * TRAINING_PART).clamp(TRAINING_BYTES_MIN, TRAINING_BYTES_MAX);
        let step = ((bytes / wanted).round() as usize).max(1);
        let all = Part { clusters, step, half: None };
        let [half, other_half] = [0, 1].map(|half| Part { half: Some(half), ..all });
        let options = TrainOptions { refine_rounds: 1, ..TrainOptions::default() };
        let trained = |part: Part<'_>| {
            let sample = part.sample();
            Some((sample.dictionary(&options, DictionaryType::Fixed)?, sample))
        };
        let (Some((tokens, sample)), Some((half_tokens, half_sample))) = (trained(all), trained(half)) else { return Vec::new() };
        let (tokens, half_tokens) = (tokens.tokens(), half_tokens.tokens());
        let trained_bytes = all.bytes();
        let Ok(lasting) = Dictionary::from_tokens(&all.lasting_tokens(tokens, (total / trained_bytes).max(1.0))) else { return Vec::new() };
        let doublings = (LOAD_TRAINING_BYTES.min(total) / trained_bytes).log2();
        let stand_ins = methods().filter_map(|(method, kind)| {
            let of = |sample: &SampledRecords, tokens: &Dictionary| sample.dictionary_of(tokens, &options, kind);
            let (dictionary, of_half) = (of(&sample, tokens)?, of(&half_sample, half_tokens)?);
            let of_lasting = of(&sample, &lasting)?;
            let [encoder, encoder_of_half] = [&dictionary, &of_half].map(|dictionary| RecordEncoder::codes(1, dictionary));
            let rates = Rates {
                own: all.rate(&encoder),
                half: half.rate(&encoder_of_half),
                held: other_half.rate(&encoder_of_half),
                lasting: all.rate(&RecordEncoder::codes(1, &of_lasting)),
                unseen: 1.0 - LOAD_TRAINING_BYTES.min(total) / total,
                doublings,
                until_full: until_full(half_tokens.token_count(), tokens.token_count()),
            };
            let others = (0..clusters.len()).filter(|cluster| !cluster.is_multiple_of(step)).flat_map(|cluster| clusters.records(cluster));
            let of_others = if step > 1 { rate(&encoder, others) } else { rates.own };
            if rates.own == 0.0 || of_others == 0.0 {
                return None;
            }
            let (real, margin) = rates.real();
            let page_sizes = Saving::new(&sample, method, layout, &dictionary).paying(rows_total, fills);
            if page_sizes.is_empty() {
                return None;
            }
            let mut trained = Trained::new(method, dictionary, page_sizes);
            let halved = (half_tokens.token_count(), of_half.to_bytes().len());
            trained.dictionary_bytes = dictionary_bytes(halved, (tokens.token_count(), trained.dictionary_bytes), doublings);
            Some(StandIn { trained, scaling: Scaling { scales: [real / rates.own, real / of_others], margin, step } })
        });
        // All of the sample is about as much as LOAD looks at, or the part of it that there is.
        let strings = of_strings(&Part { step: 1, ..all }.sample(), layout, rows_total, fills)
            .map(|trained| StandIn { trained, scaling: Scaling { scales: [1.0, 1.0], margin: STRINGS_MARGIN, step } });
        stand_ins.chain(strings).collect()
    }
}
