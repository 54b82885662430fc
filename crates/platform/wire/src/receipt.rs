//! The stored form of receipts: `proto/autoact/store/v2/receipt.proto`.

use std::time::SystemTime;

use autoact_trajectory::{Action, Claim, Digest, NewArtifact, Outcome, Receipt, TaskKey};
use prost::Message;
use sha2::{Digest as _, Sha256};

use crate::ConversionError;
use crate::event::{EVENT_VERSION, EventError, time_from_proto};
use crate::store::{observation_from_message, observation_to_message};
use crate::store_v2 as v2;
use crate::store_v2::receipt::Body;

/// The most bytes of a stored receipt: a message of the bus has room for them and its headers.
pub const MAX_RECEIPT_BYTES: usize = 900 * 1024;

/// SHA-256 of an action: what makes two calls of a step the same.
pub fn action_digest(action: &Action) -> Digest {
    let mut sha = Sha256::new();
    // the length keeps the name and the parameters apart
    sha.update((action.tool.len() as u64).to_le_bytes());
    sha.update(&action.tool);
    sha.update(&action.params);
    Digest(sha.finalize().into())
}

/// The bytes that are stored. Of an outcome that is larger than a message may be, the largest
/// artifacts are left out, and its observation says so.
pub fn encode(task: &TaskKey, writer: &str, time: SystemTime, receipt: &Receipt) -> Vec<u8> {
    let body = match receipt {
        Receipt::Fence { epoch } => Some(Body::Fence(v2::ReceiptFence { epoch: *epoch })),
        Receipt::Claim(claim) => Some(Body::Claim(v2::ReceiptClaim {
            step: claim.step,
            epoch: claim.epoch,
            action: claim.action.as_bytes().to_vec(),
            until: Some(claim.until.into()),
            claimant: claim.claimant.clone(),
        })),
        Receipt::Outcome { step, outcome } => Some(Body::Outcome(outcome_to_message(*step, outcome))),
        Receipt::Unknown => None,
    };
    let tenant = task.tenant.to_string();
    let mut message = v2::Receipt {
        version: EVENT_VERSION,
        tenant,
        task_id: task.id.to_string(),
        time: Some(time.into()),
        writer: writer.to_owned(),
        body,
    };
    while message.encoded_len() > MAX_RECEIPT_BYTES
        && let Some(Body::Outcome(outcome)) = &mut message.body
        && let Some(largest) = (0..outcome.artifacts.len()).max_by_key(|at| outcome.artifacts[*at].data.len())
    {
        let left_out = outcome.artifacts.remove(largest);
        if let Some(observation) = &mut outcome.observation {
            observation.text = format!("{} (Not stored: {}.)", observation.text, left_out.name);
        }
    }
    message.encode_to_vec()
}

/// The receipt that is stored as `bytes`.
///
/// # Errors
/// The bytes are no receipt, or a field is out of range.
pub fn decode(bytes: &[u8]) -> Result<Receipt, EventError> {
    let message = v2::Receipt::decode(bytes).map_err(EventError::Malformed)?;
    Ok(match message.body {
        None => Receipt::Unknown,
        Some(Body::Fence(fence)) => Receipt::Fence { epoch: fence.epoch },
        Some(Body::Claim(claim)) => Receipt::Claim(Claim {
            step: claim.step,
            epoch: claim.epoch,
            action: Digest::from_slice(&claim.action).ok_or(ConversionError::MissingField("action"))?,
            until: time_from_proto(claim.until)?,
            claimant: claim.claimant,
        }),
        Some(Body::Outcome(outcome)) => Receipt::Outcome { step: outcome.step, outcome: outcome_from_message(outcome) },
    })
}

fn outcome_to_message(step: u32, outcome: &Outcome) -> v2::ReceiptOutcome {
    let artifact = |artifact: &NewArtifact| {
        let NewArtifact { kind, media_type, name, text, data } = artifact.clone();
        v2::ReceiptArtifact { kind, media_type, name, text, data }
    };
    v2::ReceiptOutcome {
        step,
        observation: Some(observation_to_message(&outcome.observation)),
        artifacts: outcome.artifacts.iter().map(artifact).collect(),
    }
}

fn outcome_from_message(outcome: v2::ReceiptOutcome) -> Outcome {
    let artifact = |artifact| {
        let v2::ReceiptArtifact { kind, media_type, name, text, data } = artifact;
        NewArtifact { kind, media_type, name, text, data }
    };
    Outcome {
        observation: outcome.observation.map(observation_from_message).unwrap_or_default(),
        artifacts: outcome.artifacts.into_iter().map(artifact).collect(),
    }
}

#[cfg(test)]
mod tests {
    use autoact_trajectory::Observation;

    use super::*;

    fn task() -> TaskKey {
        TaskKey::new("acme".parse().unwrap(), "t-1".to_owned().try_into().unwrap())
    }

    fn round_trip(receipt: &Receipt) -> Receipt {
        decode(&encode(&task(), "tool-agent-1", SystemTime::UNIX_EPOCH, receipt)).unwrap()
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let action = action_digest(&Action { tool: "Send".to_owned(), params: "x".to_owned() });
        let observation = Observation { text: "sent".to_owned(), is_error: true, truncated: true, ..Observation::default() };
        let artifact = NewArtifact {
            kind: "file".to_owned(),
            media_type: "text/plain".to_owned(),
            name: "a.txt".to_owned(),
            text: "a text".to_owned(),
            data: vec![1, 2, 3],
        };
        for receipt in [
            Receipt::Fence { epoch: 3 },
            Receipt::Claim(Claim { step: 2, epoch: 3, action, until: SystemTime::UNIX_EPOCH, claimant: "c".to_owned() }),
            Receipt::Outcome { step: 2, outcome: Outcome { observation, artifacts: vec![artifact] } },
            Receipt::Unknown,
        ] {
            assert_eq!(round_trip(&receipt), receipt);
        }
        assert!(decode(b"\xff\xff").is_err());
    }

    #[test]
    fn actions_are_told_apart() {
        let digest = |tool: &str, params: &str| action_digest(&Action { tool: tool.to_owned(), params: params.to_owned() });
        assert_ne!(digest("ab", "c"), digest("a", "bc"));
        assert_eq!(digest("a", "b"), digest("a", "b"));
    }

    #[test]
    fn what_has_no_room_is_left_out_and_named() {
        let artifact = |name: &str, bytes: usize| NewArtifact {
            kind: "file".to_owned(),
            media_type: "text/plain".to_owned(),
            name: name.to_owned(),
            text: String::new(),
            data: vec![0; bytes],
        };
        let artifacts = vec![artifact("small", 10), artifact("large", 2 * MAX_RECEIPT_BYTES), artifact("medium", 1000)];
        let observation = Observation { text: "done".to_owned(), ..Observation::default() };
        let receipt = Receipt::Outcome { step: 1, outcome: Outcome { observation, artifacts } };
        let Receipt::Outcome { outcome, .. } = round_trip(&receipt) else { panic!("an outcome") };
        let names: Vec<&str> = outcome.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
        assert_eq!(names, ["small", "medium"]);
        assert!(outcome.observation.text.contains("large"), "{}", outcome.observation.text);
    }
}
