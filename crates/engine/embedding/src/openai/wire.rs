//! Requests and replies of `/embeddings`.

use autoact_http_client::said::shown;
use serde::Deserialize;
use serde_json::json;

use crate::vector::normalize;

#[derive(Deserialize)]
struct Reply {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    /// Of its text; servers that leave it out keep the order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The body of a request.
pub(super) fn body(model: &str, texts: &[&str]) -> Vec<u8> {
    // OpenAI refuses an empty text
    let input: Vec<&str> = texts.iter().map(|text| if text.is_empty() { " " } else { text }).collect();
    json!({ "model": model, "input": input }).to_string().into_bytes()
}

/// The vectors of a reply, in the order of the texts: `count` of them, of the same `dimension`.
pub(super) fn read(body: &[u8], count: usize, dimension: Option<usize>) -> Result<Vec<Vec<f32>>, String> {
    let reply: Reply = serde_json::from_slice(body).map_err(|error| format!("{error}: {}", shown(body)))?;
    if reply.data.len() != count {
        return Err(format!("it has {} vectors, expected {count}", reply.data.len()));
    }
    let mut vectors = vec![Vec::new(); count];
    let mut dimension = dimension;
    for (place, Embedding { index, mut embedding }) in reply.data.into_iter().enumerate() {
        let index = index.unwrap_or(place);
        let expected = *dimension.get_or_insert(embedding.len());
        if embedding.is_empty() || embedding.len() != expected {
            return Err(format!("vector {index} has {} numbers, expected {expected}", embedding.len()));
        }
        normalize(&mut embedding).map_err(|flaw| format!("vector {index} cannot be used: {flaw}"))?;
        match vectors.get_mut(index) {
            Some(vector) if vector.is_empty() => *vector = embedding,
            Some(_) => return Err(format!("it has two vectors with the index {index}")),
            None => return Err(format!("it has the index {index}, expected less than {count}")),
        }
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_in_the_order_of_their_index() {
        let body = br#"{"object": "list", "data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 4]}]}"#;
        assert_eq!(read(body, 2, None).unwrap(), [[0.6, 0.8], [0.0, 1.0]]);
        let body = br#"{"data": [{"embedding": [0, 2]}, {"embedding": [3, 4]}]}"#;
        assert_eq!(read(body, 2, Some(2)).unwrap(), [[0.0, 1.0], [0.6, 0.8]]);
    }

    #[test]
    fn replies_that_break_the_contract_are_refused() {
        for (body, words) in [
            (r#"{"data": []}"#, "0 vectors, expected 2"),
            (r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}"#, "two vectors"),
            (r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}]}"#, "less than 2"),
            (r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}"#, "2 numbers, expected 1"),
            (r#"{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}"#, "0 numbers"),
            (r#"{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}"#, "NaN"),
            (r#"{"data": [{"index": 0, "embedding": [null]}, {"index": 1, "embedding": [1]}]}"#, "null"),
            (r#"{"data": [{"index": 0, "embedding": [1e39]}, {"index": 1, "embedding": [1]}]}"#, "out of range"),
            (r#"{"data": [{"index": 0, "embedding": [0]}, {"index": 1, "embedding": [1]}]}"#, "are 0"),
            (r#"{"error": {"message": "no such model"}}"#, "no such model"),
            ("<html>", "<html>"),
        ] {
            let reason = read(body.as_bytes(), 2, None).unwrap_err();
            assert!(reason.contains(words), "{body}: {reason}");
        }
    }

    #[test]
    fn an_empty_text_is_sent_as_a_blank() {
        let body: serde_json::Value = serde_json::from_slice(&body("m", &["", "x"])).unwrap();
        assert_eq!(body, json!({ "model": "m", "input": [" ", "x"] }));
    }
}
