//! Who may read and change memories and documents, over real gRPC.

use std::path::Path;

use autoact_access::{AccessConfig, AccessMode, NewToken, Principal, Role};
use autoact_config::{Common, Loaded, Section};
use autoact_service::{App, Running};
use autoact_wire::client::{Authorized, Bearer, connect_lazy};
use autoact_wire::memory_v1::documents_client::DocumentsClient;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::memory_v1::put_file_request::Part;
use autoact_wire::memory_v1::remember_request::Memory;
use autoact_wire::memory_v1::{self as v1};
use autoact_wire::status::reason;
use memory::{MemoryApp, MemoryConfig};
use tokio_stream::StreamExt as _;
use tonic::{Code, Status};

struct World {
    running: Running,
    directory: tempfile::TempDir,
}

/// A user, or a service where there is no token.
struct User {
    memory: MemoryClient<Authorized>,
    documents: DocumentsClient<Authorized>,
}

async fn world(mode: AccessMode) -> World {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(tokens(directory.path()), "").unwrap();
    World { running: start(directory.path(), mode).await, directory }
}

fn tokens(directory: &Path) -> std::path::PathBuf {
    directory.join("tokens.toml")
}

async fn start(directory: &Path, mode: AccessMode) -> Running {
    let mut common: Common = MemoryConfig::common();
    common.listen.set_port(0);
    common.metrics_listen.set_port(0);
    common.grace_period = std::time::Duration::from_secs(5);
    let access = AccessConfig { mode, tokens: Some(tokens(directory)), ..AccessConfig::default() };
    let config = MemoryConfig {
        access,
        data_dir: directory.join("memory"),
        documents_dir: directory.join("documents"),
        embedder: memory::EmbedderKind::None,
        ..MemoryConfig::default()
    };
    App::build::<MemoryApp>(Loaded::new(common, config)).await.unwrap().start()
}

impl World {
    fn user(&self, bearer: Bearer) -> User {
        let channel = || connect_lazy(&self.running.addr().to_string()).unwrap();
        User {
            memory: MemoryClient::with_interceptor(channel(), bearer.clone()),
            documents: DocumentsClient::with_interceptor(channel(), bearer),
        }
    }
}

fn give(directory: &Path, name: &str, tenant: &str, role: Role) -> Bearer {
    let principal = Principal { name: name.into(), tenant: tenant.parse().unwrap(), roles: [role].into() };
    let made = NewToken::make(&principal, None).unwrap();
    let text = std::fs::read_to_string(tokens(directory)).unwrap();
    std::fs::write(tokens(directory), text + &made.entry).unwrap();
    Bearer::new(&made.token).unwrap()
}

fn task(tenant: &str, id: &str) -> v1::RememberRequest {
    let task = v1::TaskMemory {
        tenant: tenant.into(),
        task_id: id.into(),
        question: "How long is the Loire?".into(),
        answer: "1,006 km".into(),
        approved: true,
        ..Default::default()
    };
    v1::RememberRequest { memory: Some(Memory::Task(task)) }
}

fn file(tenant: &str) -> Vec<v1::PutFileRequest> {
    let file = Some(v1::File { path: "a.txt".into(), sha256: "0".into(), title: "a".into(), kind: "text".into(), ..Default::default() });
    let part = Part::File(v1::FileToPut { tenant: tenant.into(), collection: "handbook".into(), file });
    let segment = v1::NewSegment { title: "Loire".into(), text: "The Loire is 1,006 km long.".into(), ..Default::default() };
    let segments = Part::Segments(v1::SegmentBatch { segments: vec![segment] });
    vec![v1::PutFileRequest { part: Some(part) }, v1::PutFileRequest { part: Some(segments) }]
}

impl User {
    async fn ids(&mut self, tenant: &str) -> Result<Vec<String>, Status> {
        let request = v1::ListMemoriesRequest { tenant: tenant.into(), ..Default::default() };
        let memories = self.memory.list_memories(request).await?.into_inner().memories;
        let id = |memory: v1::StoredMemory| match memory.memory {
            Some(v1::stored_memory::Memory::Task(task)) => task.task_id,
            _ => String::new(),
        };
        Ok(memories.into_iter().map(id).collect())
    }

    async fn collections(&mut self, tenant: &str) -> Result<Vec<String>, Status> {
        let listed = self.documents.list_collections(v1::ListCollectionsRequest { tenant: tenant.into() }).await?.into_inner();
        Ok(listed.collections.into_iter().map(|one| one.name).collect())
    }

    /// Every call that reads, with what it says of `tenant`.
    async fn reads(&mut self, tenant: &str) -> Vec<(&'static str, Option<Status>)> {
        let tenant = || tenant.to_owned();
        let (kind, collections) = (v1::MemoryKind::Task as i32, vec!["handbook".to_owned()]);
        let recall = v1::RecallRequest { kind, query: "Loire".into(), tenant: tenant(), ..Default::default() };
        let search =
            v1::SearchSegmentsRequest { tenant: tenant(), collections: collections.clone(), query: "Loire".into(), ..Default::default() };
        let open = v1::OpenSegmentRequest { tenant: tenant(), collections, name: "Loire".into(), similar: 1 };
        let collection = || "handbook".to_owned();
        vec![
            ("recall", self.memory.recall(recall).await.err()),
            ("list", self.ids(&tenant()).await.err()),
            ("get", self.memory.get_memory(v1::GetMemoryRequest { tenant: tenant(), kind, id: "t".into() }).await.err()),
            ("search", self.documents.search_segments(search).await.err()),
            ("open", self.documents.open_segment(open).await.err()),
            ("collections", self.collections(&tenant()).await.err()),
            ("files", self.documents.list_files(v1::ListFilesRequest { tenant: tenant(), collection: collection() }).await.err()),
        ]
    }

    /// Every call that changes something, those that delete last.
    async fn changes(&mut self, tenant: &str) -> Vec<(&'static str, Option<Status>)> {
        let (owner, collection) = (|| tenant.to_owned(), || "handbook".to_owned());
        let delete = v1::DeleteFilesRequest { tenant: owner(), collection: collection(), paths: vec!["a.txt".into()] };
        vec![
            ("remember", self.memory.remember(task(tenant, "t")).await.err()),
            ("put", self.documents.put_file(tokio_stream::iter(file(tenant))).await.err()),
            ("delete files", self.documents.delete_files(delete).await.err()),
            (
                "delete",
                self.documents.delete_collection(v1::DeleteCollectionRequest { tenant: owner(), collection: collection() }).await.err(),
            ),
            ("forget", self.memory.forget(v1::ForgetRequest { tenant: owner(), all: true, ..Default::default() }).await.err()),
        ]
    }
}

fn all_refused(calls: Vec<(&'static str, Option<Status>)>, code: Code, expected: &str) {
    for (call, status) in calls {
        let status = status.unwrap_or_else(|| panic!("{call} was allowed"));
        assert_eq!((status.code(), reason(&status).as_deref()), (code, Some(expected)), "{call}: {status:?}");
    }
}

fn all_allowed(calls: Vec<(&'static str, Option<Status>)>) {
    for (call, status) in calls {
        assert!(status.is_none(), "{call}: {status:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_bound_to_its_tenant_and_a_service_is_believed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(tokens(directory.path()), "").unwrap();
    let (ask, operate) = (give(directory.path(), "ann", "ops", Role::Ask), give(directory.path(), "dan", "dev", Role::Operate));
    let admin = give(directory.path(), "root", "staff", Role::Admin);
    let running = start(directory.path(), AccessMode::Auto).await;
    let world = World { running, directory };
    let mut service = world.user(Bearer::default());
    for tenant in ["ops", "dev"] {
        service.memory.remember(task(tenant, "t")).await.unwrap();
        service.documents.put_file(tokio_stream::iter(file(tenant))).await.unwrap();
        assert_eq!(service.ids(tenant).await.unwrap(), ["t"]);
    }
    let (mut ann, mut dan, mut root) = (world.user(ask), world.user(operate), world.user(admin));
    // its own tenant, named or not
    for tenant in ["", "ops"] {
        all_allowed(ann.reads(tenant).await);
        all_refused(ann.changes(tenant).await, Code::PermissionDenied, "ROLE_TOO_LOW");
        assert_eq!((ann.ids(tenant).await.unwrap(), ann.collections(tenant).await.unwrap().len()), (vec!["t".to_owned()], 1));
    }
    // another tenant, whether there is one or not
    for tenant in ["dev", "never", "default"] {
        all_refused(ann.reads(tenant).await, Code::PermissionDenied, "TENANT_REFUSED");
    }
    all_refused(dan.reads("ops").await, Code::PermissionDenied, "TENANT_REFUSED");
    all_refused(dan.changes("ops").await, Code::PermissionDenied, "TENANT_REFUSED");
    // forgetting everything forgets one's own
    all_allowed(dan.changes("").await);
    assert_eq!((dan.ids("").await.unwrap().len(), dan.collections("").await.unwrap().len()), (0, 0));
    assert_eq!((ann.ids("").await.unwrap(), ann.collections("").await.unwrap()), (vec!["t".to_owned()], vec!["handbook".to_owned()]));
    all_allowed(root.reads("ops").await);
    all_allowed(root.changes("ops").await);
    assert_eq!(ann.ids("").await.unwrap().len(), 0);
    let mut wrong = world.user(Bearer::new("autoact_wrong").unwrap());
    all_refused(wrong.reads("").await, Code::Unauthenticated, "TOKEN_INVALID");
    all_refused(wrong.changes("").await, Code::Unauthenticated, "TOKEN_INVALID");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_tokens_are_required_nobody_comes_in_without() {
    let world = world(AccessMode::Required).await;
    let mut nobody = world.user(Bearer::default());
    all_refused(nobody.reads("").await, Code::Unauthenticated, "TOKEN_MISSING");
    all_refused(nobody.changes("").await, Code::Unauthenticated, "TOKEN_MISSING");
    let status = nobody.documents.embed(v1::EmbedRequest { texts: vec!["a".into()] }).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    // and who was given one since comes in
    let bearer = give(world.directory.path(), "ann", "ops", Role::Ask);
    let mut ann = world.user(bearer);
    let limit = std::time::Duration::from_secs(30);
    let entered = autoact_testkit::poll::until(limit, async || ann.ids("").await.ok()).await;
    assert_eq!(entered.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_ends_with_its_token() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(tokens(directory.path()), "").unwrap();
    let bob = give(directory.path(), "bob", "ops", Role::Operate);
    let world = World { running: start(directory.path(), AccessMode::Required).await, directory };
    let mut user = world.user(bob);
    let (began, begun) = tokio::sync::oneshot::channel();
    let mut began = Some(began);
    // it never ends by itself
    let parts = tokio_stream::iter(file("ops")).chain(tokio_stream::pending()).map(move |part| {
        if let Some(began) = began.take() {
            let _ = began.send(());
        }
        part
    });
    let upload = tokio::spawn(async move { user.documents.put_file(parts).await });
    begun.await.unwrap();
    // the file is read again after a second: by then the upload is on its way
    std::fs::write(tokens(world.directory.path()), "").unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), upload).await.expect("the upload ends").unwrap();
    let status = ended.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unauthenticated, Some("TOKEN_INVALID")), "{status:?}");
}
