//! The collections that tasks name: the memory service keeps them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_base::random::stable_hash;
use autoact_replicas::{Id, Options, Outcome, Pool, SystemResolver};
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_tools::{CollectionError, Collections, Opened, Page, Place, PlacedPage, Scope};
use autoact_wire::client::{AddressError, Connector, Target};
use autoact_wire::limited;
use autoact_wire::memory_v1::documents_client::DocumentsClient;
use autoact_wire::memory_v1::{OpenSegmentRequest, SearchSegmentsRequest, Segment};
use tokio::runtime::Handle;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// A search takes milliseconds; one that takes longer than this is not waited for, however much time
/// the tool's caller has.
const CALL_LIMIT: Duration = Duration::from_secs(10);
/// How often a call is made where nobody listens, and the pause after each: a service that restarts
/// is back soon.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

type Client = DocumentsClient<InterceptedService<Channel, TraceInterceptor>>;

/// The memory service's collections. Tools run on blocking threads, which wait for its answers.
pub(crate) struct RemoteCollections {
    pool: Pool,
    addresses: String,
    runtime: Handle,
}

impl RemoteCollections {
    /// The service at one address or several. Connects on first use. Called on a runtime, which
    /// makes the calls.
    pub(crate) fn new(connector: &Connector, addresses: &str) -> Result<RemoteCollections, AddressError> {
        let connector = connector.clone();
        let connect = Box::new(move |target: &Target, socket| connector.connect_lazy_to(target, socket));
        let pool = Pool::new("memory", addresses, &Options::default(), Arc::new(SystemResolver), connect)?;
        Ok(RemoteCollections { pool, addresses: addresses.to_owned(), runtime: Handle::current() })
    }

    /// Makes a call on the replica of these collections, and where that is away on another one. It
    /// has what is left of its caller's time, and the replica is told how much that is.
    fn call<T, M, F>(&self, scope: Scope<'_>, message: &M, call: impl Fn(Client, Request<M>) -> F) -> Result<T, CollectionError>
    where
        M: Clone,
        F: Future<Output = Result<T, Status>>,
    {
        let key = stable_hash(&format!("{}/{}", scope.tenant, scope.collections.join(",")));
        let limit = Instant::now() + CALL_LIMIT;
        let deadline = scope.deadline.map_or(limit, |deadline| deadline.min(limit));
        let repeated = async {
            let (mut attempt, mut tried) = (1, Vec::<Id>::new());
            loop {
                if self.pool.all_tried(&tried) {
                    tried.clear();
                }
                let to = self.pool.call(key, &tried).await.map_err(|error| Status::unavailable(error.to_string()))?;
                tried.push(to.id);
                let mut request = Request::new(message.clone());
                request.set_timeout(deadline.saturating_duration_since(Instant::now()));
                let client = limited!(DocumentsClient::with_interceptor(to.channel.clone(), TraceInterceptor));
                let answer = call(client, request).await;
                let away = matches!(&answer, Err(status) if status.code() == Code::Unavailable);
                to.ended(if away { Outcome::Failed } else { Outcome::Answered });
                if !away || attempt == ATTEMPTS {
                    return answer;
                }
                if !self.pool.may_move(&tried) {
                    tokio::time::sleep(PAUSE * attempt).await;
                }
                attempt += 1;
            }
        };
        let limited = async { tokio::time::timeout_at(deadline.into(), repeated).await };
        match self.runtime.block_on(limited) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) if matches!(status.code(), Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition) => {
                Err(CollectionError::Refused(status.message().to_owned()))
            }
            Ok(Err(status)) => {
                tracing::warn!(addresses = self.addresses, %status, "the memory service did not answer");
                Err(CollectionError::Away(format!("the memory service at {}: {}", self.addresses, status.message())))
            }
            Err(_) => Err(CollectionError::Away(format!("no answer from the memory service at {}", self.addresses))),
        }
    }
}

impl Collections for RemoteCollections {
    fn search(&self, scope: Scope<'_>, query: &str, limit: usize) -> Result<Vec<PlacedPage>, CollectionError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let request = SearchSegmentsRequest {
            tenant: scope.tenant.to_owned(),
            collections: scope.collections.to_vec(),
            query: query.to_owned(),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            ..SearchSegmentsRequest::default()
        };
        let call = |mut client: Client, request| async move { Ok(client.search_segments(request).await?.into_inner()) };
        let found = self.call(scope, &request, call)?;
        Ok(found.segments.into_iter().filter_map(|found| found.segment).map(placed).collect())
    }

    fn open(&self, scope: Scope<'_>, name: &str, similar: usize) -> Result<Opened, CollectionError> {
        let request = OpenSegmentRequest {
            tenant: scope.tenant.to_owned(),
            collections: scope.collections.to_vec(),
            name: name.to_owned(),
            similar: u32::try_from(similar).unwrap_or(u32::MAX),
        };
        let call = |mut client: Client, request| async move { Ok(client.open_segment(request).await?.into_inner()) };
        let opened = self.call(scope, &request, call)?;
        Ok(match opened.segment {
            Some(segment) => {
                let also = opened.also.into_iter().map(|segment| placed(segment).place).collect();
                Opened::Page { page: placed(segment), by_title: opened.by_title, also }
            }
            None => Opened::Unknown { similar: opened.similar },
        })
    }
}

fn placed(segment: Segment) -> PlacedPage {
    let Segment { collection, path, title, text, heading, page, start } = segment;
    let heading = (!heading.is_empty()).then_some(heading);
    PlacedPage { page: Page { title, text }, place: Place { collection, file: path, heading, page, start } }
}
