//! The service's settings.

use std::path::PathBuf;
use std::time::Duration;

use autoact_access::AccessConfig;
use autoact_config::{Check, Common, Secret, Section};
use serde::{Deserialize, Serialize};

use crate::memories::TimeToLive;

/// gRPC: fifth of the five services.
pub const DEFAULT_GRPC_PORT: u16 = 7404;
/// Metrics: a hundred above.
pub const DEFAULT_METRICS_PORT: u16 = 7504;
/// Where the embedded store keeps its files, from the working directory.
pub const DEFAULT_DATA_DIR: &str = "data/memory";
/// Where documents are kept, from the working directory.
const DEFAULT_DOCUMENTS_DIR: &str = "data/documents";
/// Where a Qdrant server listens for gRPC unless told otherwise.
const DEFAULT_QDRANT_URL: &str = "http://127.0.0.1:6334";
/// The collection in Qdrant.
const DEFAULT_COLLECTION: &str = "autoact-memory";
/// What the names of documents' collections in Qdrant begin with.
const DEFAULT_DOCUMENTS: &str = "autoact-documents";
/// How long Qdrant may take for one request: a planning loop does not wait longer for a memory.
const DEFAULT_QDRANT_TIMEOUT: Duration = Duration::from_secs(5);
/// Where `scripts/fetch-embedder` puts the weights.
const DEFAULT_EMBEDDER_DIR: &str = "models/all-minilm-l6-v2";

/// What makes dense vectors of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbedderKind {
    /// The model in `embedder_dir` if it is there, and otherwise none.
    #[default]
    Auto,
    /// None: documents are found by words.
    None,
    /// The model in `embedder_dir`, in this process.
    Model,
    /// A server with OpenAI's API.
    Server,
}

/// A server that makes vectors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbedderServerConfig {
    /// The base of its API, such as `http://gpu:8000/v1`.
    pub url: String,
    /// The model's name there.
    pub model: String,
    /// The server's API key, if it asks for one.
    pub api_key: Secret,
}

/// Which store keeps the memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// In this process, in files below `data_dir`. One process at a time.
    #[default]
    Embedded,
    /// In a Qdrant server, which several replicas share.
    Qdrant,
}

/// How to reach a Qdrant server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QdrantConfig {
    /// Its gRPC address.
    pub url: String,
    /// The collection; made when it is not there.
    pub collection: String,
    /// What the names of documents' collections begin with: each is a collection of its own, such as
    /// `autoact-documents@default@handbook`.
    pub documents: String,
    /// The server's API key, if it asks for one.
    pub api_key: Secret,
    /// How long one request may take.
    #[serde(with = "autoact_config::duration")]
    pub timeout: Duration,
}

impl Default for QdrantConfig {
    fn default() -> Self {
        QdrantConfig {
            url: DEFAULT_QDRANT_URL.to_owned(),
            collection: DEFAULT_COLLECTION.to_owned(),
            documents: DEFAULT_DOCUMENTS.to_owned(),
            api_key: Secret::default(),
            timeout: DEFAULT_QDRANT_TIMEOUT,
        }
    }
}

/// The settings of `[memory]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Who may call.
    pub access: AccessConfig,
    /// `embedded` or `qdrant`.
    pub store: StoreKind,
    /// The embedded store's directory; made when it is not there.
    pub data_dir: PathBuf,
    /// How long turns of conversations are kept; `0s`: until they are forgotten.
    #[serde(with = "autoact_config::duration")]
    pub conversation_ttl: Duration,
    /// How long finished tasks are kept; `0s`: until they are forgotten.
    #[serde(with = "autoact_config::duration")]
    pub task_ttl: Duration,
    /// Which store keeps users' documents: `embedded` or `qdrant`.
    pub documents_store: StoreKind,
    /// The directory of documents that are `embedded`; empty: nowhere, and calls about them are
    /// refused. One process at a time.
    pub documents_dir: PathBuf,
    /// What makes dense vectors of documents: `auto`, `none`, `model` or `server`.
    pub embedder: EmbedderKind,
    /// The directory of the model that makes vectors (`scripts/fetch-embedder`).
    pub embedder_dir: PathBuf,
    /// The server that makes vectors, for `embedder = "server"`.
    pub embedder_server: EmbedderServerConfig,
    /// The Qdrant server, for `store = "qdrant"` and `documents_store = "qdrant"`.
    pub qdrant: QdrantConfig,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        MemoryConfig {
            access: AccessConfig::default(),
            store: StoreKind::default(),
            data_dir: PathBuf::from(DEFAULT_DATA_DIR),
            conversation_ttl: Duration::ZERO,
            task_ttl: Duration::ZERO,
            documents_store: StoreKind::default(),
            documents_dir: PathBuf::from(DEFAULT_DOCUMENTS_DIR),
            embedder: EmbedderKind::default(),
            embedder_dir: PathBuf::from(DEFAULT_EMBEDDER_DIR),
            embedder_server: EmbedderServerConfig::default(),
            qdrant: QdrantConfig::default(),
        }
    }
}

impl MemoryConfig {
    /// How long memories are kept.
    pub fn time_to_live(&self) -> TimeToLive {
        let of = |ttl: Duration| (!ttl.is_zero()).then_some(ttl);
        TimeToLive { task: of(self.task_ttl), turn: of(self.conversation_ttl) }
    }
}

impl Section for MemoryConfig {
    const NAME: &'static str = "memory";

    fn common() -> Common {
        Common::on_ports(DEFAULT_GRPC_PORT, DEFAULT_METRICS_PORT)
    }

    fn validate(&self, _common: &Common, check: &mut Check<'_>) {
        self.access.check(check);
        if self.embedder == EmbedderKind::Server {
            let EmbedderServerConfig { url, model, .. } = &self.embedder_server;
            check.require(!url.is_empty(), "embedder_server.url", "the base of an API such as `http://gpu:8000/v1`", url);
            check.require(!model.is_empty(), "embedder_server.model", "the name of a model", model);
        }
        if self.store == StoreKind::Embedded {
            check.require(!self.data_dir.as_os_str().is_empty(), "data_dir", "a directory", self.data_dir.display());
        }
        if [self.store, self.documents_store].contains(&StoreKind::Qdrant) {
            self.qdrant.check(check);
        }
    }
}

impl QdrantConfig {
    fn check(&self, check: &mut Check<'_>) {
        let url = &self.url;
        let scheme = url.starts_with("http://") || url.starts_with("https://");
        let address = scheme && url.parse::<tonic::transport::Uri>().is_ok_and(|uri| uri.host().is_some());
        check.require(address, "qdrant.url", "an address such as `http://127.0.0.1:6334`", url);
        let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        let name = &self.collection;
        check.require(plain(name) && (1..=255).contains(&name.len()), "qdrant.collection", "letters, digits, `-` and `_`", name);
        // with a tenant's and a collection's name it is still a name in Qdrant
        let name = &self.documents;
        check.require(plain(name) && (1..=100).contains(&name.len()), "qdrant.documents", "1 to 100 letters, digits, `-` and `_`", name);
        check.require(!self.timeout.is_zero(), "qdrant.timeout", "above 0", "0s");
    }
}
