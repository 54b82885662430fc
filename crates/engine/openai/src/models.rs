//! `/models`: the served names, and which of them are adapters of which base.

use autoact_model::AdapterVersion;
use serde::Deserialize;

use crate::error::RemoteError;

/// The server's reply.
#[derive(Debug, Deserialize)]
pub(crate) struct Listing {
    data: Vec<Card>,
}

/// One served name. vLLM fills in all fields, other servers only `id`.
#[derive(Debug, Clone, Deserialize)]
struct Card {
    id: String,
    /// The base of an adapter.
    parent: Option<String>,
    max_model_len: Option<usize>,
}

/// A base with its adapters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) base: String,
    pub(crate) adapters: Vec<AdapterVersion>,
    pub(crate) context_length: Option<usize>,
}

impl Listing {
    /// The base that is `model`, or whose adapter `model` is.
    pub(crate) fn around(&self, url: &str, model: &str) -> Result<Served, RemoteError> {
        let Some(card) = self.data.iter().find(|card| card.id == model) else {
            let served = self.data.iter().map(|card| card.id.clone()).collect();
            return Err(RemoteError::UnknownModel { url: url.to_owned(), model: model.to_owned(), served });
        };
        let base = match &card.parent {
            Some(parent) if *parent != card.id => parent.clone(),
            _ => card.id.clone(),
        };
        let of_base = self.data.iter().filter(|other| other.parent.as_ref() == Some(&base) && other.id != base);
        // a server reports an adapter's name, but no digest
        let adapters = of_base.map(|card| AdapterVersion { name: card.id.clone(), digest: String::new() }).collect();
        let of_the_base = || self.data.iter().find(|other| other.id == base).and_then(|base| base.max_model_len);
        let context_length = card.max_model_len.or_else(of_the_base);
        Ok(Served { base, adapters, context_length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VLLM: &str = r#"{"object": "list", "data": [
        {"id": "stem", "object": "model", "created": 1, "owned_by": "vllm", "root": "/models/stem", "parent": null, "max_model_len": 2048, "permission": []},
        {"id": "plan", "object": "model", "root": "/adapters/plan", "parent": "stem", "max_model_len": null},
        {"id": "tool", "object": "model", "root": "/adapters/tool", "parent": "stem"},
        {"id": "other", "object": "model", "root": "/adapters/other", "parent": "another"}]}"#;

    #[test]
    fn an_adapter_is_found_with_its_base() {
        let listing: Listing = serde_json::from_str(VLLM).unwrap();
        let served = listing.around("u", "plan").unwrap();
        assert_eq!((served.base.as_str(), served.context_length), ("stem", Some(2048)));
        assert_eq!(served.adapters.iter().map(|adapter| adapter.name.as_str()).collect::<Vec<_>>(), ["plan", "tool"]);
        assert_eq!(listing.around("u", "stem").unwrap(), served);
    }

    #[test]
    fn a_name_that_is_not_served_is_told_with_those_that_are() {
        let listing: Listing = serde_json::from_str(VLLM).unwrap();
        let error = listing.around("u", "reflect").unwrap_err().to_string();
        assert!(error.contains("`reflect`") && error.contains("`stem`, `plan`, `tool`, `other`"), "{error}");
    }

    #[test]
    fn openai_says_names_only() {
        let listing: Listing = serde_json::from_str(r#"{"data": [{"id": "plan", "object": "model", "owned_by": "me"}]}"#).unwrap();
        let served = listing.around("u", "plan").unwrap();
        assert_eq!(served, Served { base: "plan".into(), adapters: vec![], context_length: None });
    }
}
