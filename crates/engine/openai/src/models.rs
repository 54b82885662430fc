//! `/models`: the served names, and which of them are adapters of which base.

use std::path::{Path, PathBuf};

use autoact_model::AdapterVersion;
use serde::Deserialize;

/// Who owns vLLM's models, as it says.
const VLLM: &str = "vllm";

/// The server's reply.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Listing {
    data: Vec<Card>,
}

/// One served name. vLLM fills in all fields, other servers only `id`.
#[derive(Debug, Clone, Deserialize)]
struct Card {
    id: String,
    /// The base of an adapter.
    parent: Option<String>,
    /// The directory of the files, as the server sees it.
    root: Option<PathBuf>,
    max_model_len: Option<usize>,
    owned_by: Option<String>,
}

/// A base with its adapters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) base: String,
    pub(crate) adapters: Vec<AdapterVersion>,
    pub(crate) context_length: Option<usize>,
}

impl Listing {
    /// Whether the server is vLLM.
    pub(crate) fn is_of_vllm(&self) -> bool {
        self.data.iter().any(|card| card.owned_by.as_deref() == Some(VLLM))
    }

    /// The served names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.data.iter().map(|card| card.id.clone()).collect()
    }

    /// The directory of an adapter, as the server sees it.
    pub(crate) fn directory(&self, adapter: &str) -> Option<&Path> {
        self.data.iter().find(|card| card.id == adapter && card.parent.is_some())?.root.as_deref()
    }

    /// The base that is `model`, or whose adapter `model` is; `None` if the list does not name it.
    pub(crate) fn around(&self, model: &str) -> Option<Served> {
        let card = self.data.iter().find(|card| card.id == model)?;
        let base = match &card.parent {
            Some(parent) if *parent != card.id => parent.clone(),
            _ => card.id.clone(),
        };
        let of_base = self.data.iter().filter(|other| other.parent.as_ref() == Some(&base) && other.id != base);
        // a server reports an adapter's name, but no digest
        let adapters = of_base.map(|card| AdapterVersion { name: card.id.clone(), digest: String::new() }).collect();
        let of_the_base = || self.data.iter().find(|other| other.id == base).and_then(|base| base.max_model_len);
        let context_length = card.max_model_len.or_else(of_the_base);
        Some(Served { base, adapters, context_length })
    }
}

impl Served {
    /// A model that its server does not list.
    pub(crate) fn unlisted(model: &str) -> Served {
        Served { base: model.to_owned(), adapters: Vec::new(), context_length: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VLLM_REPLY: &str = r#"{"object": "list", "data": [
        {"id": "stem", "object": "model", "created": 1, "owned_by": "vllm", "root": "/models/stem", "parent": null, "max_model_len": 2048, "permission": []},
        {"id": "plan", "object": "model", "root": "/adapters/plan", "parent": "stem", "max_model_len": null},
        {"id": "tool", "object": "model", "root": "/adapters/tool", "parent": "stem"},
        {"id": "other", "object": "model", "root": "/adapters/other", "parent": "another"}]}"#;

    #[test]
    fn an_adapter_is_found_with_its_base() {
        let listing: Listing = serde_json::from_str(VLLM_REPLY).unwrap();
        let served = listing.around("plan").unwrap();
        assert_eq!((served.base.as_str(), served.context_length), ("stem", Some(2048)));
        assert_eq!(served.adapters.iter().map(|adapter| adapter.name.as_str()).collect::<Vec<_>>(), ["plan", "tool"]);
        assert_eq!(listing.around("stem").unwrap(), served);
        assert!(listing.is_of_vllm());
        assert_eq!((listing.directory("plan"), listing.directory("stem")), (Some(Path::new("/adapters/plan")), None));
    }

    #[test]
    fn a_name_that_is_not_served_is_not_found() {
        let listing: Listing = serde_json::from_str(VLLM_REPLY).unwrap();
        assert_eq!(listing.around("reflect"), None);
        assert_eq!(listing.names(), ["stem", "plan", "tool", "other"]);
    }

    #[test]
    fn openai_says_names_only() {
        let listing: Listing = serde_json::from_str(r#"{"data": [{"id": "plan", "object": "model", "owned_by": "me"}]}"#).unwrap();
        assert_eq!(listing.around("plan").unwrap(), Served::unlisted("plan"));
        assert!(!listing.is_of_vllm());
    }
}
