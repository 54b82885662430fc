//! Gets streams and buckets, makes those that are missing, and checks those that are there.

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamError, GetStreamErrorKind, RequestErrorKind};
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{Context, ErrorCode, kv};
use tokio::time::Instant;

use super::identity::identified;
use super::{BETWEEN_LOOKS, looks};
use crate::config::{BusConfig, redacted};
use crate::error::BusError;
use crate::patience::pause;

/// A stream that has to be there.
pub(super) async fn open(context: &Context, config: &BusConfig, wanted: Config, deadline: Instant) -> Result<Stream, BusError> {
    for look in 1..=looks(config.replicas) {
        if look > 1 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        if let Some(stream) = get(context, config, &wanted.name, deadline).await? {
            check(&wanted, &stream.cached_info().config)?;
            return Ok(stream);
        }
    }
    Err(BusError::Vanished { stream: wanted.name })
}

/// A stream, or `None` if the server says that there is none; goes on trying until `deadline`.
pub(super) async fn get(context: &Context, config: &BusConfig, name: &str, deadline: Instant) -> Result<Option<Stream>, BusError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let error = match context.get_stream(name).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) => error,
        };
        let no_jetstream = || Err(BusError::NoJetStream { url: redacted(&config.nats.url) });
        match error.kind() {
            _ if not_found(&error) => return Ok(None),
            GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED => return no_jetstream(),
            _ if no_responders(&error) => return no_jetstream(),
            _ if Instant::now() >= deadline => return Err(BusError::Unavailable { what: "reach its streams", source: error.into() }),
            _ => tokio::time::sleep(pause(attempt)).await,
        }
    }
}

/// Whether all streams were made once: the last one is there. Trajectories of schema version 1 are
/// an error.
pub(super) async fn is_complete(context: &Context, config: &BusConfig, deadline: Instant) -> Result<bool, BusError> {
    let name = crate::version_1::TRAJECTORY;
    let Some(stream) = get(context, config, name, deadline).await? else { return Ok(false) };
    let info = stream.cached_info();
    if info.config.subjects == [crate::version_1::TRAJECTORY_SUBJECTS] {
        return Err(BusError::Version1 { events: info.state.messages });
    }
    Ok(true)
}

pub(crate) async fn ensure(context: &Context, config: &BusConfig, wanted: Config, deadline: Instant) -> Result<Stream, BusError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let error = match get_or_create(context, &wanted).await {
            Ok(stream) => {
                check(&wanted, &stream.cached_info().config)?;
                return Ok(stream);
            }
            Err(Failure::Final(source)) => return Err(BusError::Create { name: wanted.name, source }),
            Err(Failure::NoJetStream) => return Err(BusError::NoJetStream { url: redacted(&config.nats.url) }),
            Err(Failure::Transient(source)) => source,
        };
        if Instant::now() >= deadline {
            return Err(BusError::Unavailable { what: "reach its streams", source: error });
        }
        tracing::warn!(stream = wanted.name, attempt, %error, "JetStream is not ready; trying again");
        tokio::time::sleep(pause(attempt)).await;
    }
}

/// Gets or makes a key-value bucket; goes on trying until `deadline`.
pub(crate) async fn ensure_bucket(context: &Context, wanted: kv::Config, deadline: Instant) -> Result<kv::Store, BusError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        if let Ok(store) = context.get_key_value(&wanted.bucket).await {
            return Ok(store);
        }
        // somebody else may be making it now: looked for again before it is an error
        let error = match context.create_key_value(wanted.clone()).await {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        if Instant::now() >= deadline {
            return Err(BusError::Create { name: wanted.bucket, source: error.into() });
        }
        tracing::debug!(bucket = wanted.bucket, attempt, %error, "the bucket is not there yet; trying again");
        tokio::time::sleep(pause(attempt)).await;
    }
}

enum Failure {
    Final(async_nats::Error),
    Transient(async_nats::Error),
    NoJetStream,
}

async fn get_or_create(context: &Context, wanted: &Config) -> Result<Stream, Failure> {
    match context.get_stream(&wanted.name).await {
        Ok(stream) => return Ok(stream),
        Err(error) => match error.kind() {
            _ if not_found(&error) => {}
            GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED => {
                return Err(Failure::NoJetStream);
            }
            _ if no_responders(&error) => return Err(Failure::NoJetStream),
            _ => return Err(Failure::Transient(error.into())),
        },
    }
    match context.create_stream(identified(wanted.clone())).await {
        Ok(stream) => Ok(stream),
        Err(error) => match error.kind() {
            // somebody else was faster
            CreateStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::STREAM_NAME_EXIST => {
                context.get_stream(&wanted.name).await.map_err(|error| Failure::Transient(error.into()))
            }
            CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::Response => Err(Failure::Transient(error.into())),
            CreateStreamErrorKind::JetStreamUnavailable => Err(Failure::NoJetStream),
            _ => Err(Failure::Final(error.into())),
        },
    }
}

/// The server says that there is no such stream.
pub(super) fn not_found(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// Nobody answers JetStream's API: the server runs without it.
fn no_responders(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(request) = error.downcast_ref::<async_nats::jetstream::context::RequestError>() {
            return request.kind() == RequestErrorKind::NoResponders;
        }
        cause = error.source();
    }
    false
}

/// A stream that means something else is an error; other limits than ours are somebody's decision,
/// and logged.
fn check(wanted: &Config, found: &Config) -> Result<(), BusError> {
    let mismatch = |field, expected: String, found: String| Err(BusError::Mismatch { stream: wanted.name.clone(), field, expected, found });
    if wanted.subjects != found.subjects {
        return mismatch("subjects", wanted.subjects.join(" "), found.subjects.join(" "));
    }
    if wanted.retention != found.retention {
        return mismatch("retention", format!("{:?}", wanted.retention), format!("{:?}", found.retention));
    }
    if wanted.storage != found.storage {
        return mismatch("storage", format!("{:?}", wanted.storage), format!("{:?}", found.storage));
    }
    if wanted.allow_direct && !found.allow_direct {
        return mismatch("allow_direct", "true".to_owned(), "false".to_owned());
    }
    if wanted.republish != found.republish {
        return mismatch("republish", format!("{:?}", wanted.republish), format!("{:?}", found.republish));
    }
    let limits = |config: &Config| (config.num_replicas, config.max_bytes, config.duplicate_window);
    if limits(wanted) != limits(found) {
        let (replicas, max_bytes, window) = limits(found);
        tracing::warn!(
            stream = wanted.name,
            replicas,
            max_bytes,
            ?window,
            "the stream was made with other limits and keeps them; change them with `nats stream edit`"
        );
    }
    Ok(())
}
