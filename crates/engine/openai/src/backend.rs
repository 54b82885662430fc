//! A remote server as a backend.

use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use autoact_http_client::Client;
use autoact_model::{
    AdapterVersion, Backend, BackendInfo, GenerateError, GenerateRequest, GenerateStream, Prompt, estimated_prompt_tokens,
};
use tokio::runtime::Handle;
use tracing::Instrument;

use crate::completion::Completion;
use crate::error::RemoteError;
use crate::failure::Failure;
use crate::follow::Grammars;
use crate::options::{Dialect, RemoteOptions};
use crate::probe::{Found, find};
use crate::queue::Queue;
use crate::server::Server;
use crate::spellings::Spellings;
use crate::wire::Asked;

/// How long a server may take to count tokens. It takes milliseconds; an estimate is better than a
/// wait.
const COUNT_LIMIT: Duration = Duration::from_secs(5);

/// A model served by an OpenAI-compatible server.
///
/// - **Deadlines and cancellation**: at a request's deadline, and when its stream is dropped, the
///   connection is closed; servers such as vLLM then stop generating. A request without a deadline
///   ends after [`RemoteOptions::timeout`].
/// - **Retries**: a failure before the first token (no connection, 408, 429, 5xx, a broken stream)
///   is retried, with exponential backoff and jitter, or after the time in `Retry-After`. After the
///   first token nothing is retried.
/// - **Overload**: at most [`RemoteOptions::max_in_flight`] requests are sent at a time, and
///   [`RemoteOptions::queue`] wait. Further ones are refused with a retry delay. So is a request
///   that the server still refuses with 429 at the last attempt.
/// - **Chats**: a server that applies its model's chat template takes messages. vLLM continues the
///   beginning of a reply. From any other the whole reply is read first; what a chat model adds to
///   it (a repeated label, a fence, lines after the end) is taken off, and a reply that still
///   violates its grammar is asked for again with what is wrong with it.
/// - **Fields that a server does not know**: one that it refuses by name is left out from then on.
/// - **Grammars**: see [`Dialect`](crate::Dialect). If a text violates its grammar, the completion
///   continues in a further round: after the forced text if the grammar allows only one
///   continuation, or with another sample. After three rounds it is an error.
/// - **Scores**: `logprobs` are requested and read. Of a server that refuses them, which is
///   remembered, or that leaves them out, there are no scores, and no log-odds where it does not name
///   both continuations.
/// - **Control tokens**: a prompt is sent as one string, in which a server recognises every control
///   token. If the prompt's text spells one, a space is inserted after its first character.
pub struct Remote {
    server: Arc<Server>,
    /// The served adapter of the configured name; `None`: the name is the base's.
    speaker: Option<AdapterVersion>,
    runtime: Handle,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("info", &self.server.info).field("speaker", &self.speaker).finish_non_exhaustive()
    }
}

impl Remote {
    /// Finds the served name and how it is asked. Waits for a server that does not answer yet, up to
    /// [`RemoteOptions::start_timeout`]; a server that refuses is an error immediately. Needs a
    /// tokio runtime, on which completions run.
    pub async fn connect(options: RemoteOptions) -> Result<Remote, RemoteError> {
        let client = Client::new(&options.client())?;
        let grammars = Grammars::new()?;
        let spellings = Spellings::new(&options.control_tokens)
            .map_err(|error| RemoteError::ControlTokens { count: options.control_tokens.len(), reason: error.to_string() })?;
        let Found { info, served, style, dialect } = find(&client, &options).await?;
        let adapters = served.adapters;
        let speaker = adapters.iter().find(|adapter| adapter.name == options.model).cloned();
        let queue = Arc::new(Queue::new(options.max_in_flight, options.queue));
        let server = Server {
            client,
            options,
            info,
            style,
            dialect,
            adapters: RwLock::new(adapters),
            queue,
            grammars,
            spellings,
            warned: AtomicBool::new(false),
            scoreless: AtomicBool::new(false),
            refused: Mutex::default(),
        };
        Ok(Remote { server: Arc::new(server), speaker, runtime: Handle::current() })
    }

    /// Loads a LoRA adapter into vLLM under `name`. `path` is its PEFT directory as the server sees
    /// it. One that is loaded already stays as it is: another agent may have been first.
    ///
    /// # Errors
    /// The server refuses, or is away.
    pub async fn load_adapter(&self, name: &str, path: &str) -> Result<(), GenerateError> {
        let body = serde_json::json!({ "lora_name": name, "lora_path": path });
        match self.server.tell("/load_lora_adapter", &body).await {
            Err(Failure::Refused { message }) if message.contains("already") => {}
            told => told.map_err(Failure::told)?,
        }
        self.server.look_again().await
    }

    /// Unloads an adapter of vLLM. One that is gone already is no error.
    ///
    /// # Errors
    /// The server refuses, or is away.
    pub async fn unload_adapter(&self, name: &str) -> Result<(), GenerateError> {
        match self.server.tell("/unload_lora_adapter", &serde_json::json!({ "lora_name": name })).await {
            Err(Failure::UnknownModel) => Ok(()),
            told => told.map_err(Failure::told),
        }
    }

    /// How the server is told grammars.
    pub fn dialect(&self) -> Dialect {
        self.server.dialect
    }

    /// The interface that is used, as the path below the API's URL.
    pub fn path(&self) -> &'static str {
        self.server.style.path()
    }

    /// The adapter to name in requests for the configured model; `None` if that is the base.
    pub fn speaker(&self) -> Option<&AdapterVersion> {
        self.speaker.as_ref()
    }
}

impl Backend for Remote {
    fn info(&self) -> &BackendInfo {
        &self.server.info
    }

    /// The adapters that the server listed last: at the start, or when an adapter was missing.
    fn adapters(&self) -> Vec<AdapterVersion> {
        self.server.adapters.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As the server counts, where it does; otherwise an estimate.
    fn count_tokens(
        &self,
        prompt: &Prompt,
        add_bos: Option<bool>,
    ) -> Pin<Box<dyn Future<Output = Result<usize, GenerateError>> + Send + '_>> {
        let (server, prompt) = (&self.server, prompt.clone());
        Box::pin(async move {
            let name = self.speaker.as_ref().map_or(server.info.name.as_str(), |adapter| adapter.name.as_str());
            let asked = Asked::new(server.style, &server.spellings, &prompt);
            let counted = tokio::time::timeout(COUNT_LIMIT, server.counted(name, &asked, add_bos)).await;
            Ok(counted.ok().flatten().unwrap_or_else(|| estimated_prompt_tokens(&prompt)))
        })
    }

    fn takes_messages(&self) -> bool {
        self.server.style.takes_messages()
    }

    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError> {
        let ticket = self.server.queue.enter()?;
        let (sender, stream) = GenerateStream::channel();
        let completion = Completion::new(Arc::clone(&self.server), request, ticket, sender);
        // ends with its stream, its deadline or the time limit of all completions
        drop(self.runtime.spawn(completion.run().instrument(tracing::Span::current())));
        Ok(stream)
    }
}
