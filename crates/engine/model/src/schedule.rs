//! Chunked prefill: how many tokens of each running sequence the next pass computes.

use std::time::Duration;

/// Prompt tokens of a pass if no sequence decodes, before any measurement, and the least after one.
const ALONE: usize = 128;
/// The most of them. A pass reads the weights once, and tiles of a processor want many rows; what
/// is between the layers grows with the rows.
const MOST_ALONE: usize = 512;
/// A pass that is larger than [`ALONE`] takes at most this long, in seconds: a request that comes
/// meanwhile waits for its end.
const PATIENCE: f64 = 0.5;
/// Prompt tokens of a pass beside decoding sequences, before any measurement.
const GUESS: usize = 16;
/// Minimum number of prompt tokens of a pass, so that every prompt is completed.
const LEAST: usize = 4;
/// A pass with prompt tokens takes at most this fraction longer than one without. So a long prompt
/// never doubles the time between two tokens of a running stream.
const SLACK: f64 = 0.75;
/// Assumed cost of one more row, before any measurement, as a fraction of a pass.
const ROW: f64 = 0.2;
/// Maximum assumed cost of a row. Without it, one pass that the system interrupted would prevent
/// all drafts, and so all measurements that correct it.
const DEAREST: f64 = 0.5;
/// A pass takes at most this fraction longer for the sequences of owners to which it does not belong.
const GUESTS: f64 = 0.25;
/// Weight of the newest measurement.
const NEW: f64 = 0.2;

/// Measured costs of passes in seconds, as exponential moving averages.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// A pass without prompt tokens.
    decode: Option<f64>,
    /// Number of its rows.
    rows: Option<f64>,
    /// One more prompt or drafted token in a pass.
    token: Option<f64>,
    /// A prompt token in a pass without decoding sequences.
    read: Option<f64>,
}

/// What a sequence needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Number of tokens not computed yet.
    pub(crate) pending: usize,
    /// Whether its prompt is complete.
    pub(crate) decoding: bool,
}

impl Wish {
    /// That of a sequence that takes no part.
    pub(crate) const NONE: Self = Self { pending: 0, decoding: false };
}

impl Pace {
    /// Number of tokens of each sequence in the next pass. Decoding sequences get all their tokens.
    /// The remaining budget is shared evenly among prompts, so that a short one does not wait for a
    /// long one. `turn` rotates which prompt comes first if the budget is not sufficient.
    pub(crate) fn share(&self, wishes: &[Wish], turn: usize) -> Vec<usize> {
        let decoding = wishes.iter().any(|w| w.decoding);
        let mut left = if decoding { self.budget() } else { self.alone() };
        let mut chunks: Vec<usize> = wishes.iter().map(|w| if w.decoding { w.pending } else { 0 }).collect();
        let reading: Vec<usize> = (0..wishes.len()).filter(|i| !wishes[*i].decoding && wishes[*i].pending > 0).collect();
        if reading.is_empty() {
            return chunks;
        }
        let even = (left / reading.len()).max(LEAST);
        let order = || reading.iter().cycle().skip(turn % reading.len()).take(reading.len());
        // First an even share for each, then the rest to those that can use it.
        for most in [even, usize::MAX] {
            for i in order() {
                let chunk = (wishes[*i].pending - chunks[*i]).min(most).min(left);
                chunks[*i] += chunk;
                left -= chunk;
            }
        }
        chunks
    }

    /// Which sequences take part in a pass that belongs to those that are `first`: these, and of the
    /// decoding ones as many as make it hardly longer. `turn` rotates which ones.
    pub(crate) fn guests(&self, wishes: &[Wish], first: &[bool], turn: usize) -> Vec<bool> {
        let own: usize =
            wishes.iter().zip(first).filter(|(_, first)| **first).map(|(w, _)| if w.decoding { w.pending } else { self.alone() }).sum();
        let mut left = self.spare(own);
        let mut takes_part = first.to_vec();
        let others: Vec<usize> = (0..wishes.len()).filter(|i| !first[*i] && wishes[*i].decoding).collect();
        for i in others.iter().cycle().skip(turn % others.len().max(1)).take(others.len()) {
            if wishes[*i].pending <= left {
                left -= wishes[*i].pending;
                takes_part[*i] = true;
            }
        }
        takes_part
    }

    /// Number of rows that make a pass of so many rows hardly longer.
    fn spare(&self, rows: usize) -> usize {
        match (self.decode, self.rows, self.token) {
            (Some(decode), Some(mean), Some(token)) if token > 0.0 => {
                // what a pass costs without any row: reading the weights
                let fixed = (decode - token * mean).max(0.0);
                (GUESTS * (fixed / token + rows as f64)) as usize
            }
            _ => 0,
        }
    }

    /// Minimum probability of acceptance at which a drafted token's row costs less than a token
    /// costs now, over all sequences.
    pub(crate) fn worth(&self, wishes: &[Wish], chunks: &[usize]) -> f32 {
        let coming = wishes.iter().zip(chunks).filter(|(w, chunk)| **chunk > 0 && w.pending == **chunk).count().max(1);
        let share = match (self.decode, self.token) {
            (Some(decode), Some(token)) if decode > 0.0 => (token / decode).min(DEAREST),
            _ => ROW,
        };
        (share * coming as f64) as f32
    }

    /// Updates the costs with a pass that took `took` and had `drafted` drafted tokens.
    pub(crate) fn note(&mut self, took: Duration, wishes: &[Wish], chunks: &[usize], drafted: usize) {
        let took = took.as_secs_f64();
        let decoding = wishes.iter().any(|w| w.decoding);
        let read: usize = wishes.iter().zip(chunks).filter(|(w, _)| !w.decoding).map(|(_, chunk)| chunk).sum();
        let prompt = read + drafted;
        let blend = |old: Option<f64>, new: f64| Some(old.map_or(new, |old| old + NEW * (new - old)));
        match (decoding, self.decode) {
            (true, _) if prompt == 0 => {
                self.decode = blend(self.decode, took);
                self.rows = blend(self.rows, chunks.iter().sum::<usize>() as f64);
            }
            (false, _) if read > 0 => self.read = blend(self.read, took / prompt as f64),
            (true, Some(decode)) if prompt > 0 => self.token = blend(self.token, (took - decode).max(0.0) / prompt as f64),
            _ => {}
        }
    }

    /// Number of prompt tokens of a pass without decoding sequences.
    fn alone(&self) -> usize {
        self.read.map_or(ALONE, |read| ((PATIENCE / read.max(f64::MIN_POSITIVE)) as usize).clamp(ALONE, MOST_ALONE))
    }

    fn budget(&self) -> usize {
        match (self.decode, self.token) {
            (Some(decode), Some(token)) if token > 0.0 => ((SLACK * decode / token) as usize).clamp(LEAST, ALONE),
            _ => GUESS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(pending: usize, decoding: bool) -> Wish {
        Wish { pending, decoding }
    }

    #[test]
    fn alone_a_prompt_takes_large_steps() {
        assert_eq!(Pace::default().share(&[wish(1_000, false)], 0), [ALONE]);
        assert_eq!(Pace::default().share(&[wish(100, false), wish(1_000, false)], 0), [64, 64]);
    }

    #[test]
    fn alone_a_prompt_takes_what_the_machine_reads_in_a_moment() {
        let long = [wish(2_048, false)];
        for (seconds, tokens) in [(0.001, MOST_ALONE), (0.256, 250), (1.0, ALONE)] {
            let mut pace = Pace::default();
            pace.note(Duration::from_secs_f64(seconds), &long, &[128], 0);
            let chunk = pace.share(&long, 0)[0];
            assert!(chunk.abs_diff(tokens) <= 1, "{chunk} after 128 tokens in {seconds} s");
        }
    }

    #[test]
    fn beside_a_stream_a_prompt_takes_what_fits_into_the_gap() {
        let mut pace = Pace::default();
        let (stream, prompt) = (wish(1, true), wish(2_048, false));
        assert_eq!(pace.share(&[stream, prompt], 0), [1, GUESS]);
        for _ in 0..50 {
            pace.note(Duration::from_millis(10), &[stream], &[1], 0);
            pace.note(Duration::from_millis(20), &[stream, prompt], &[1, 20], 0);
        }
        // Half a millisecond per token: 15 fit into three quarters of 10 ms.
        let chunks = pace.share(&[stream, prompt], 0);
        assert!((14..=15).contains(&chunks[1]), "{chunks:?}");
    }

    #[test]
    fn drafts_are_worth_it_again_after_a_pass_that_was_interrupted() {
        let stream = [wish(1, true)];
        let mut pace = Pace::default();
        assert!((pace.worth(&stream, &[1]) - ROW as f32).abs() < 1e-6);
        for _ in 0..50 {
            pace.note(Duration::from_millis(10), &stream, &[1], 0);
        }
        pace.note(Duration::from_secs(2), &stream, &[1], 4);
        assert!((pace.worth(&stream, &[1]) - DEAREST as f32).abs() < 1e-6);
        for _ in 0..50 {
            pace.note(Duration::from_millis(14), &stream, &[1], 4);
        }
        assert!((pace.worth(&stream, &[1]) - 0.1).abs() < 0.01);
        // With more sequences in the batch, a row has to save more.
        let others = [wish(1, true); 4];
        assert!((pace.worth(&others, &[1; 4]) - 0.4).abs() < 0.04);
    }

    #[test]
    fn everybody_gets_a_turn() {
        let prompts = [wish(500, false); 5];
        let stream = wish(2, true);
        let wishes: Vec<Wish> = prompts.into_iter().chain([stream]).collect();
        let mut read = [0; 5];
        for turn in 0..10 {
            let chunks = Pace::default().share(&wishes, turn);
            assert_eq!(chunks[5], 2);
            assert_eq!(chunks.iter().take(5).sum::<usize>(), GUESS);
            read.iter_mut().zip(chunks).for_each(|(read, chunk)| *read += chunk);
        }
        assert!(read.iter().all(|n| *n == 2 * GUESS), "{read:?}");
    }
}
