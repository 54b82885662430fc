//! Attribute names of the OpenTelemetry GenAI conventions (in development there, so the names are
//! kept here) and our own beside them.
//!
//! `tracing` wants field names at compile time, so spans are made with these as literal fields; the
//! constants are for attributes that are added later, for tests and for dashboards. [`chat_span`]
//! and [`tool_span`] make the spans.

use tracing::Span;
use tracing::field::Empty;

/// `chat`, `execute_tool`, `invoke_agent` …
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// Who serves the model: `autoact` for our own engine.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// `plan`, `tool` or `reflect`.
pub const AGENT_NAME: &str = "gen_ai.agent.name";
/// The adapter's digest: what the agent is, exactly.
pub const AGENT_VERSION: &str = "gen_ai.agent.version";
/// The task.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The base model.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// The bound of the reply.
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
/// Sampling temperature.
pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
/// Sampling top-k.
pub const REQUEST_TOP_K: &str = "gen_ai.request.top_k";
/// Sampling top-p.
pub const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
/// Sampling seed.
pub const REQUEST_SEED: &str = "gen_ai.request.seed";
/// Why generation ended.
pub const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Tokens read.
pub const USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens read from the cache.
pub const USAGE_CACHE_READ_INPUT_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Tokens written.
pub const USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// The tool's name.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// What the tool was given; content.
pub const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// What the tool returned; content.
pub const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";
/// The prompt; content.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The reply; content.
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
/// A short class of what went wrong.
pub const ERROR_TYPE: &str = "error.type";
/// The LoRA adapter's name; empty for the base. The conventions have no name for adapters.
pub const ADAPTER_NAME: &str = "autoact.adapter.name";
/// The LoRA adapter's sha256.
pub const ADAPTER_DIGEST: &str = "autoact.adapter.digest";

/// The span of one call of a model: `chat <model>`. Usage and content are recorded on it later, by
/// the names above.
pub fn chat_span(model: &str, agent: &str, adapter: &str, digest: &str, task: &str) -> Span {
    tracing::info_span!(
        "chat",
        otel.name = format!("chat {model}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = "autoact",
        gen_ai.agent.name = agent,
        gen_ai.agent.version = digest,
        gen_ai.conversation.id = task,
        gen_ai.request.model = model,
        gen_ai.request.max_tokens = Empty,
        gen_ai.request.temperature = Empty,
        gen_ai.request.top_k = Empty,
        gen_ai.request.top_p = Empty,
        gen_ai.request.seed = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        autoact.adapter.name = adapter,
        autoact.adapter.digest = digest,
        "error.type" = Empty,
    )
}

/// The span of one run of a tool: `execute_tool <name>`.
pub fn tool_span(tool: &str, task: &str, step: u32) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {tool}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        gen_ai.conversation.id = task,
        autoact.step = step,
        "error.type" = Empty,
    )
}
