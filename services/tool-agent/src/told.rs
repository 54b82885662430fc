//! The library as callers are told it.

use autoact_tools::ToolLibrary;
use autoact_trajectory::{Digest, ToolBackground};
use autoact_wire::agents_v1::{ListToolsResponse, OptionalTool};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

/// All that is told of a library but its digest. Of thousands of tools it takes milliseconds: call it
/// on a thread that may wait.
pub(crate) fn whole(library: &ToolLibrary) -> ListToolsResponse {
    let tools = library.specs().iter().map(Into::into).collect();
    let optional = library.optional().map(|(name, ToolBackground { title, about, details })| OptionalTool {
        name: name.to_owned(),
        title,
        about,
        details,
    });
    let optional = optional.collect();
    let corpus = Some(library.corpus_name().to_owned());
    ListToolsResponse { tools, optional, corpus, ..ListToolsResponse::default() }
}

/// SHA-256 of [`whole`] in hexadecimal digits: the same in every process of one release. In another
/// release it may differ, and then the library is told once more than needed.
pub(crate) fn digest(library: &ToolLibrary) -> String {
    // the message has no maps, so its bytes have one order
    Digest(Sha256::digest(whole(library).encode_to_vec()).into()).to_string()
}
