//! Requests, checked: what they ask for, or what is wrong with them.

use std::cmp::Reverse;

use autoact_trajectory::{InvalidTenant, Tenant};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::remember_request::Memory as Message;
use autoact_wire::status::ServiceError;
use tonic::Code;

use crate::asked::{Place, Query};
use crate::forgetting::{Forgetting, Scope};
use crate::memories::InConversation;
use crate::payload::tenant_of;
use crate::remembered::{Key, Kind, Memory};

/// How many memories a call that names no limit gets.
const DEFAULT_LIMIT: u32 = 5;
/// The most anybody gets.
const MOST_MEMORIES: u32 = 100;
/// The most memories before and after one that is found.
const MOST_NEIGHBOURS: u32 = 10;
/// How many memories are listed for a call that names no size.
const DEFAULT_PAGE: u32 = 50;
/// The most memories of one page.
const LARGEST_PAGE: u32 = 1000;
/// The longest text of one field: far above a question, far below a message.
const LONGEST_TEXT: usize = 64 * 1024;
/// The longest id; the gateway's task ids have 64 at most.
const LONGEST_ID: usize = 256;
/// The longest id of a conversation.
const LONGEST_CONVERSATION_ID: usize = 64;

/// A request that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{field}` has {length} bytes; at most {most} are allowed")]
    TooLong { field: &'static str, length: usize, most: usize },
    #[error("`{field}` is {value}; at most {most} are allowed")]
    Limit { field: &'static str, value: u32, most: u32 },
    #[error("`half_life` is not a number of memories, 0 or more")]
    HalfLife,
    #[error("`{field}` is not valid")]
    Tenant { field: &'static str, source: InvalidTenant },
    #[error("`{field}` is `{shown}`; expected at most {LONGEST_CONVERSATION_ID} characters of A-Z, a-z, 0-9, `_` and `-`")]
    Conversation { field: &'static str, shown: String },
    #[error("`kind` is {0}; expected `MEMORY_KIND_TASK` (1) or `MEMORY_KIND_CONVERSATION` (3)")]
    Kind(i32),
    #[error("`page_token` is none that this service gave")]
    PageToken,
    #[error("expected either `id`, or `conversation_id` and `before` (one of them or both), or `all`")]
    Scope,
    #[error("there is no such memory")]
    NoMemory,
}

impl ServiceError for RequestError {
    fn code(&self) -> Code {
        match self {
            RequestError::NoMemory => Code::NotFound,
            _ => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            RequestError::Missing(_) => "FIELD_MISSING",
            RequestError::TooLong { .. } => "FIELD_TOO_LONG",
            RequestError::Limit { .. } | RequestError::HalfLife => "LIMIT_OUT_OF_RANGE",
            RequestError::Tenant { .. } => "BAD_TENANT",
            RequestError::Conversation { .. } => "BAD_CONVERSATION_ID",
            RequestError::Kind(_) => "UNKNOWN_KIND",
            RequestError::PageToken => "BAD_PAGE_TOKEN",
            RequestError::Scope => "BAD_SCOPE",
            RequestError::NoMemory => "MEMORY_NOT_FOUND",
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            RequestError::Missing(field)
            | RequestError::TooLong { field, .. }
            | RequestError::Limit { field, .. }
            | RequestError::Conversation { field, .. }
            | RequestError::Tenant { field, .. } => Some(field),
            RequestError::HalfLife => Some("half_life"),
            RequestError::Kind(_) => Some("kind"),
            RequestError::PageToken => Some("page_token"),
            RequestError::Scope | RequestError::NoMemory => None,
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            RequestError::TooLong { length, most, .. } => vec![("value", length.to_string()), ("limit", most.to_string())],
            RequestError::Limit { value, most, .. } => vec![("value", value.to_string()), ("limit", most.to_string())],
            RequestError::Tenant { source, .. } => vec![("value", source.shown().to_owned())],
            RequestError::Conversation { shown, .. } => vec![("value", shown.clone())],
            RequestError::Kind(kind) => vec![("value", kind.to_string())],
            _ => Vec::new(),
        }
    }
}

/// What is to be remembered.
pub(crate) fn memory(request: memory_v1::RememberRequest) -> Result<Memory, RequestError> {
    match request.memory {
        None => Err(RequestError::Missing("memory")),
        Some(Message::Task(task)) => {
            texts(["task.task_id", "task.question", "task.answer"], [&task.task_id, &task.question, &task.answer])?;
            conversation("task.conversation_id", &task.conversation_id)?;
            let tenant = |source| RequestError::Tenant { field: "task.tenant", source };
            Ok(Memory::Task(task.try_into().map_err(tenant)?))
        }
        Some(Message::Turn(turn)) => {
            texts(["turn.task_id", "turn.question", "turn.answer"], [&turn.task_id, &turn.question, &turn.answer])?;
            text("turn.conversation_id", &turn.conversation_id, LONGEST_ID)?;
            conversation("turn.conversation_id", &turn.conversation_id)?;
            let tenant = |source| RequestError::Tenant { field: "turn.tenant", source };
            Ok(Memory::Turn(turn.try_into().map_err(tenant)?))
        }
    }
}

/// What is to be recalled.
pub(crate) fn query(request: memory_v1::RecallRequest) -> Result<(Query, InConversation), RequestError> {
    let memory_v1::RecallRequest { kind, query, limit, approved_only, tenant, conversation_id, neighbours, latest, half_life } = request;
    let kind = kind_of(kind)?;
    text("query", &query, LONGEST_TEXT)?;
    conversation("conversation_id", &conversation_id)?;
    let limit = if limit == 0 { DEFAULT_LIMIT } else { limit };
    within("limit", limit, MOST_MEMORIES)?;
    within("neighbours", neighbours, MOST_NEIGHBOURS)?;
    if !half_life.is_finite() || half_life < 0.0 {
        return Err(RequestError::HalfLife);
    }
    let around = InConversation { neighbours: neighbours as usize, latest, half_life };
    if around != InConversation::default() && conversation_id.is_empty() {
        return Err(RequestError::Missing("conversation_id"));
    }
    let tenant = whose(&tenant)?;
    Ok((Query { tenant, kind, conversation: conversation_id, text: query, limit: limit as usize, approved_only }, around))
}

/// A part of a list.
pub(crate) struct List {
    pub(crate) tenant: Tenant,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) conversation: String,
    pub(crate) size: usize,
    pub(crate) after: Option<Place>,
}

/// What is to be listed.
pub(crate) fn list(request: memory_v1::ListMemoriesRequest) -> Result<List, RequestError> {
    let memory_v1::ListMemoriesRequest { tenant, conversation_id, kind, page_size, page_token } = request;
    conversation("conversation_id", &conversation_id)?;
    let size = if page_size == 0 { DEFAULT_PAGE } else { page_size };
    within("page_size", size, LARGEST_PAGE)?;
    let after = if page_token.is_empty() { None } else { Some(place(&page_token).ok_or(RequestError::PageToken)?) };
    Ok(List { tenant: whose(&tenant)?, kinds: kinds_of(kind)?, conversation: conversation_id, size: size as usize, after })
}

/// The token of the page after this place.
pub(crate) fn page_token(place: &Place) -> String {
    let Place { time: Reverse((seconds, nanos)), kind, id } = place;
    format!("{seconds}.{nanos}.{}.{id}", kind.as_str())
}

fn place(token: &str) -> Option<Place> {
    let mut parts = token.splitn(4, '.');
    let time = Reverse((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?));
    let name = parts.next()?;
    let kind = Kind::TOLD.into_iter().find(|kind| kind.as_str() == name)?;
    Some(Place { time, kind, id: parts.next()?.to_owned() })
}

/// Which memory.
pub(crate) fn key(request: memory_v1::GetMemoryRequest) -> Result<Key, RequestError> {
    let memory_v1::GetMemoryRequest { tenant, kind, id } = request;
    text("id", &id, LONGEST_ID)?;
    Ok(Key { tenant: whose(&tenant)?, kind: kind_of(kind)?, id })
}

/// What is to be forgotten.
pub(crate) fn forgetting(request: memory_v1::ForgetRequest) -> Result<Forgetting, RequestError> {
    let memory_v1::ForgetRequest { kind, id, tenant, conversation_id, before, all } = request;
    let kinds = kinds_of(kind)?;
    conversation("conversation_id", &conversation_id)?;
    let scope = match (id.is_empty(), conversation_id.is_empty(), before, all) {
        (false, true, None, false) => {
            text("id", &id, LONGEST_ID)?;
            Scope::Id(id)
        }
        (true, false, before, false) => Scope::Conversation { id: conversation_id, before },
        (true, true, before @ Some(_), false) | (true, true, before @ None, true) => Scope::All { before },
        _ => return Err(RequestError::Scope),
    };
    Ok(Forgetting { tenant: whose(&tenant)?, kinds, scope })
}

fn whose(tenant: &str) -> Result<Tenant, RequestError> {
    tenant_of(tenant).map_err(|source| RequestError::Tenant { field: "tenant", source })
}

fn kind_of(kind: i32) -> Result<Kind, RequestError> {
    match memory_v1::MemoryKind::try_from(kind) {
        Ok(memory_v1::MemoryKind::Task) => Ok(Kind::Task),
        Ok(memory_v1::MemoryKind::Conversation) => Ok(Kind::Turn),
        _ => Err(RequestError::Kind(kind)),
    }
}

/// The same, where no kind means all of them.
fn kinds_of(kind: i32) -> Result<Vec<Kind>, RequestError> {
    if kind == 0 { Ok(Kind::TOLD.to_vec()) } else { Ok(vec![kind_of(kind)?]) }
}

fn within(field: &'static str, value: u32, most: u32) -> Result<(), RequestError> {
    if value > most { Err(RequestError::Limit { field, value, most }) } else { Ok(()) }
}

/// Id, question and answer; an answer may be empty.
fn texts(fields: [&'static str; 3], [id, question, answer]: [&String; 3]) -> Result<(), RequestError> {
    let [of_id, of_question, of_answer] = fields;
    text(of_id, id, LONGEST_ID)?;
    text(of_question, question, LONGEST_TEXT)?;
    match answer.len() {
        length if length > LONGEST_TEXT => Err(RequestError::TooLong { field: of_answer, length, most: LONGEST_TEXT }),
        _ => Ok(()),
    }
}

fn conversation(field: &'static str, id: &str) -> Result<(), RequestError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if id.len() > LONGEST_CONVERSATION_ID || !id.bytes().all(allowed) {
        return Err(RequestError::Conversation { field, shown: id.chars().take(LONGEST_CONVERSATION_ID + 1).collect() });
    }
    Ok(())
}

fn text(field: &'static str, text: &str, most: usize) -> Result<(), RequestError> {
    if text.trim().is_empty() {
        return Err(RequestError::Missing(field));
    }
    if text.len() > most {
        return Err(RequestError::TooLong { field, length: text.len(), most });
    }
    Ok(())
}
