//! A remote server as a backend.

use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use autoact_model::{AdapterVersion, Backend, BackendInfo, GenerateError, GenerateRequest, GenerateStream, Prompt, estimated_tokens};
use tokio::runtime::Handle;
use tracing::Instrument;

use crate::completion::Completion;
use crate::error::RemoteError;
use crate::follow::Grammars;
use crate::http::Client;
use crate::models::Served;
use crate::options::RemoteOptions;
use crate::queue::Queue;
use crate::server::{Server, wait_for};
use crate::spellings::Spellings;

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
    /// Finds the served name. Waits for a server that does not answer yet, up to
    /// [`RemoteOptions::start_timeout`]; a server that refuses is an error immediately. Needs a
    /// tokio runtime, on which completions run.
    pub async fn connect(options: RemoteOptions) -> Result<Remote, RemoteError> {
        let client = Client::new(&options)?;
        let grammars = Grammars::new()?;
        let spellings = Spellings::new(&options.control_tokens)
            .map_err(|error| RemoteError::ControlTokens { count: options.control_tokens.len(), reason: error.to_string() })?;
        let served = wait_for(&client, &options).await?;
        let Served { base, adapters, context_length } = served;
        let context_length = match (context_length, options.context_length) {
            (Some(theirs), Some(ours)) => theirs.min(ours),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(RemoteError::NoContextLength { url: options.url, model: options.model }),
        };
        let speaker = adapters.iter().find(|adapter| adapter.name == options.model).cloned();
        let info = BackendInfo {
            name: base,
            // servers do not report a digest of their weights
            digest: String::new(),
            context_length,
            chat_template: false,
        };
        let queue = Arc::new(Queue::new(options.max_in_flight, options.queue));
        let adapters = RwLock::new(adapters);
        let server = Server {
            client,
            options,
            info,
            adapters,
            queue,
            grammars,
            spellings,
            warned: AtomicBool::new(false),
            scoreless: AtomicBool::new(false),
        };
        Ok(Remote { server: Arc::new(server), speaker, runtime: Handle::current() })
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
        let prompt = self.server.spellings.broken_up(prompt).into_owned();
        Box::pin(async move {
            let name = self.speaker.as_ref().map_or(self.server.info.name.as_str(), |adapter| adapter.name.as_str());
            let counted = tokio::time::timeout(COUNT_LIMIT, self.server.counted(name, &prompt, add_bos)).await;
            Ok(counted.ok().flatten().unwrap_or_else(|| estimated_tokens(&prompt)))
        })
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
