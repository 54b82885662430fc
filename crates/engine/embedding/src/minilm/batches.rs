//! Which texts are computed together.

use std::ops::Range;

/// Splits texts of `lengths`, sorted from long to short, into batches of neighbours. A batch has at
/// most `most` pieces with its padding, or one text. Neighbours have nearly the same length, so
/// there is little padding.
pub(crate) fn batches(lengths: &[usize], most: usize) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let mut start = 0;
    while start < lengths.len() {
        // the first is the longest: all others are padded to it
        let rows = (most / lengths[start].max(1)).max(1);
        let end = (start + rows).min(lengths.len());
        batches.push(start..end);
        start = end;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_with_their_padding() {
        assert!(batches(&[], 8).is_empty());
        assert_eq!(batches(&[9], 8), vec![0..1]);
        assert_eq!(batches(&[4, 3, 2, 2, 1, 1], 8), vec![0..2, 2..6]);
        let lengths: Vec<usize> = (2..=256).rev().collect();
        let found = batches(&lengths, 1024);
        assert_eq!((found[0].start, found[found.len() - 1].end), (0, lengths.len()));
        for (batch, next) in found.iter().zip(&found[1..]) {
            assert_eq!(batch.end, next.start);
            assert!(batch.len() * lengths[batch.start] <= 1024);
        }
    }
}
