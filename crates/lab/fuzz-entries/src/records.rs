//! The bus' other records: the index of tasks, receipts of effects, tools.

use autoact_trajectory::{Action, Receipts, Standing};
use autoact_wire::receipt::{self, action_digest};
use autoact_wire::specs::decode_spec;
use autoact_wire::store::{About, IndexRecord};

use crate::parts::parts;

/// More records than any seed has.
const MOST: usize = 32;

/// Records, one after another; receipts are folded.
pub fn records(data: &[u8]) {
    let mut receipts = Receipts::default();
    let action = action_digest(&Action { tool: "Send".to_owned(), params: "x".to_owned() });
    for bytes in parts(data, MOST) {
        if let Ok(record) = IndexRecord::decode(bytes) {
            let again = record.encode();
            assert!(IndexRecord::decode(&again).is_ok_and(|again| again == record), "{record:?}");
        }
        let _ = (About::decode(bytes), decode_spec(bytes));
        let Ok(read) = receipt::decode(bytes) else { continue };
        let epoch = receipts.epoch();
        receipts.apply(read);
        assert!(receipts.epoch() >= epoch, "a fence was lowered");
        for step in 0..4 {
            let standing = receipts.standing(step, receipts.epoch(), &action);
            assert!(!matches!(standing, Standing::Fenced(_)), "the newest holder is fenced off");
            assert!(receipts.was_begun(step) || standing == Standing::Free, "{standing:?}");
        }
    }
}
