//! Several lists as one.

/// The first of each list, then the second of each, and so on, at most `limit` in all. It merges
/// lists whose ranks can be compared and whose scores cannot.
pub fn in_turn<T>(lists: Vec<Vec<T>>, limit: usize) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut merged = Vec::new();
    while merged.len() < limit {
        let before = merged.len();
        merged.extend(lists.iter_mut().filter_map(Iterator::next));
        if merged.len() == before {
            break;
        }
    }
    merged.truncate(limit);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_gives_its_best_in_turn() {
        let lists = || vec![vec![1, 2, 3], vec![], vec![10, 20]];
        assert_eq!(in_turn(lists(), 9), [1, 10, 2, 20, 3]);
        assert_eq!(in_turn(lists(), 3), [1, 10, 2]);
        assert_eq!((in_turn(lists(), 0), in_turn::<i32>(vec![], 5)), (vec![], vec![]));
    }
}
