//! Who may come in, and what of other tenants they see there: nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::scripted::{Execute, Group, Script, steps};
use crate::common::*;
use autoact_access::{NewToken, Principal, Role};
use autoact_testkit::{NatsServer, poll};
use autoact_wire::client::{Authorized, Bearer, connect_lazy};
use autoact_wire::status::{metadata, reason, retry_after};
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::give_input_request::Input;
use autoact_wire::{agents_v1, v1};
use gateway::{GatewayConfig, QuotaConfig, TenantQuotaConfig};
use tokio_stream::StreamExt;
use tonic::{Code, Status};

type User = GatewayClient<Authorized>;

/// A file of tokens that grows.
struct TokenFile {
    directory: tempfile::TempDir,
}

impl TokenFile {
    fn new() -> TokenFile {
        let file = TokenFile { directory: tempfile::tempdir().unwrap() };
        std::fs::write(file.path(), "").unwrap();
        file
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("tokens.toml")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    /// As an operator does it: another file in its place.
    fn write(&self, text: &str) {
        let new = self.directory.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path()).unwrap();
    }

    fn add(&self, name: &str, tenant: &str, role: Role, expires: Option<SystemTime>) -> String {
        let principal = Principal { name: name.into(), tenant: tenant.parse().unwrap(), roles: [role].into() };
        let NewToken { token, entry } = NewToken::make(&principal, expires).unwrap();
        self.write(&(self.text() + &entry));
        token
    }
}

fn guarded(tokens: &TokenFile) -> impl FnOnce(&mut GatewayConfig) {
    let path: PathBuf = tokens.path();
    move |config| config.access.tokens = Some(path)
}

fn user(world: &World, bearer: Bearer) -> User {
    autoact_wire::limited!(GatewayClient::with_interceptor(connect_lazy(&world.gateway.addr().to_string()).unwrap(), bearer))
}

fn with_token(world: &World, token: &str) -> User {
    user(world, Bearer::new(token).unwrap())
}

/// What each method says: to ask for `id`, or to submit it.
async fn every_method(client: &mut User, id: &str) -> Vec<(&'static str, Option<Status>)> {
    let (task_id, name) = (id.to_owned(), "rivers.csv".to_owned());
    let submitted = named(id, "Loire");
    let asked = v1::AskRequest { task: Some(named(id, "Loire")), ..Default::default() };
    vec![
        ("submit", client.submit_task(submitted).await.err()),
        ("ask", client.ask(asked).await.err()),
        ("get", client.get_task(v1::GetTaskRequest { task_id: task_id.clone(), view: 0 }).await.err()),
        ("watch", client.watch_task(v1::WatchTaskRequest { task_id: task_id.clone(), after_sequence: 0, deltas: true }).await.err()),
        ("cancel", client.cancel_task(v1::CancelTaskRequest { task_id: task_id.clone() }).await.err()),
        ("artifact", client.get_artifact(v1::GetArtifactRequest { task_id, name, step: 0 }).await.err()),
        ("list", client.list_tasks(v1::ListTasksRequest::default()).await.err()),
        ("tools", client.list_tools(v1::ListToolsRequest::default()).await.err()),
        ("choose", client.choose_tools(v1::ChooseToolsRequest { question: "Loire".into() }).await.err()),
    ]
}

/// What each method says that controls task `id`.
async fn every_control(client: &mut User, id: &str) -> Vec<(&'static str, Option<Status>)> {
    let task_id = id.to_owned();
    let answer = |input| v1::GiveInputRequest { task_id: task_id.clone(), step: 1, input: Some(input) };
    let retry = v1::RetryTaskRequest { task_id: task_id.clone(), from_step: 1, ..Default::default() };
    vec![
        ("pause", client.pause_task(v1::PauseTaskRequest { task_id: task_id.clone(), reason: String::new() }).await.err()),
        ("resume", client.resume_task(v1::ResumeTaskRequest { task_id: task_id.clone() }).await.err()),
        ("answer", client.give_input(answer(Input::Answer("yes".into()))).await.err()),
        ("approve", client.give_input(answer(Input::Approval(v1::Approval { approved: true, ..Default::default() }))).await.err()),
        ("retry", client.retry_task(retry).await.err()),
        ("delete", client.delete_task(v1::DeleteTaskRequest { task_id: task_id.clone() }).await.err()),
    ]
}

async fn ask_as(client: &mut User, request: v1::SubmitTaskRequest) -> Vec<v1::TrajectoryEvent> {
    collect_responses(client.ask(v1::AskRequest { task: Some(request), ..Default::default() }).await.unwrap().into_inner()).await
}

async fn ids(client: &mut User) -> Vec<String> {
    let listed = client.list_tasks(v1::ListTasksRequest::default()).await.unwrap().into_inner();
    listed.tasks.into_iter().map(|task| task.task_id).collect()
}

/// A group whose tools return an artifact.
async fn group_with_artifacts() -> Group {
    let artifact = agents_v1::NewArtifact {
        kind: "table".into(),
        media_type: "text/csv".into(),
        name: "rivers.csv".into(),
        text: "12 rivers".into(),
        data: vec![7; 1000],
    };
    let execute: Execute = Box::new(move |_| agents_v1::ExecuteResponse {
        observation: "Here is a table.".into(),
        artifacts: vec![artifact.clone()],
        ..Default::default()
    });
    Group::start(Script { execute: Some(execute), ..Script::default() }).await
}

#[tokio::test]
async fn who_has_no_valid_token_is_refused_by_every_method() {
    let tokens = TokenFile::new();
    let good = tokens.add("ann", "ops", Role::Ask, None);
    let expired = tokens.add("bob", "ops", Role::Ask, Some(SystemTime::now() - Duration::from_secs(2)));
    let world = world_with(Group::start(Script::default()).await, guarded(&tokens)).await;
    let cases = [
        (Bearer::default(), "TOKEN_MISSING", None),
        (Bearer::new("autoact_wrong").unwrap(), "TOKEN_INVALID", Some("unknown")),
        (Bearer::new(&good[..good.len() - 1]).unwrap(), "TOKEN_INVALID", Some("unknown")),
        (Bearer::new("a.b.c").unwrap(), "TOKEN_INVALID", Some("unknown")),
        (Bearer::new(&"x".repeat(9_000)).unwrap(), "TOKEN_INVALID", Some("malformed")),
        (Bearer::new(&expired).unwrap(), "TOKEN_EXPIRED", None),
    ];
    for (bearer, expected, problem) in cases {
        let mut all = every_method(&mut user(&world, bearer.clone()), "t").await;
        all.extend(every_control(&mut user(&world, bearer.clone()), "t").await);
        for (method, refused) in all {
            let status = refused.unwrap_or_else(|| panic!("{method} let somebody in"));
            let told = metadata(&status).remove("problem");
            assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unauthenticated, Some(expected)), "{method}");
            assert_eq!(told.as_deref(), problem);
            assert!(!status.message().contains(&expired), "a token is told to nobody");
        }
    }
    // what is no bearer's token
    for value in ["Basic YTpi", "Bearer", "Bearer ", "x"] {
        let mut request = tonic::Request::new(v1::ListToolsRequest::default());
        request.metadata_mut().insert("authorization", value.parse().unwrap());
        let status = world.client.clone().list_tools(request).await.unwrap_err();
        assert_eq!((status.code(), metadata(&status)["problem"].as_str()), (Code::Unauthenticated, "malformed"), "{value}");
    }
    let mut twice = tonic::Request::new(v1::ListToolsRequest::default());
    for _ in 0..2 {
        twice.metadata_mut().append("authorization", format!("Bearer {good}").parse().unwrap());
    }
    assert_eq!(world.client.clone().list_tools(twice).await.unwrap_err().code(), Code::Unauthenticated);
    // nothing was submitted by any of them
    assert_eq!(ids(&mut with_token(&world, &good)).await, [""; 0]);
    // health is open: probes have no token
    let channel = connect_lazy(&world.gateway.addr().to_string()).unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    assert!(health.check(tonic_health::pb::HealthCheckRequest::default()).await.is_ok());
}

#[tokio::test]
async fn a_tenant_sees_nothing_of_another() {
    let tokens = TokenFile::new();
    let (ops, dev) = (tokens.add("ann", "ops", Role::Ask, None), tokens.add("dan", "dev", Role::Operate, None));
    let root = tokens.add("root", "staff", Role::Admin, None);
    let world = world_with(group_with_artifacts().await, guarded(&tokens)).await;
    let (mut ann, mut dan) = (with_token(&world, &ops), with_token(&world, &dev));
    let events = ask_as(&mut ann, named("secret", "Loire")).await;
    assert!(end(&events).approved && events.iter().all(|event| event.tenant == "ops"));
    assert!(every_method(&mut ann, "secret").await.iter().all(|(_, refused)| refused.is_none()), "its own tenant sees it");

    // another tenant's id answers like one that nobody ever had
    let told = |status: Status, id: &str| {
        assert_eq!(status.code(), Code::NotFound, "{status:?}");
        (reason(&status), status.message().replace(id, "ID"), metadata(&status).remove("task_id").unwrap().replace(id, "ID"))
    };
    for method in ["get", "watch", "cancel", "artifact"] {
        let of = async |client: &mut User, id: &str| {
            let task_id = id.to_owned();
            let status = match method {
                "get" => client.get_task(v1::GetTaskRequest { task_id, view: 0 }).await.err(),
                "watch" => client.watch_task(v1::WatchTaskRequest { task_id, after_sequence: 0, deltas: true }).await.err(),
                "cancel" => client.cancel_task(v1::CancelTaskRequest { task_id }).await.err(),
                _ => client.get_artifact(v1::GetArtifactRequest { task_id, name: "rivers.csv".into(), step: 0 }).await.err(),
            };
            told(status.unwrap_or_else(|| panic!("{method} shows another tenant's task")), id)
        };
        assert_eq!(of(&mut dan, "secret").await, of(&mut dan, "nobodys").await, "{method}");
    }
    let controls = async |client: &mut User, id: &str| {
        let all = every_control(client, id).await.into_iter();
        all.map(|(method, status)| (method, told(status.unwrap_or_else(|| panic!("{method} reaches another tenant's task")), id)))
            .collect::<Vec<_>>()
    };
    assert_eq!(controls(&mut dan, "secret").await, controls(&mut dan, "nobodys").await);
    assert_eq!(ids(&mut dan).await, [""; 0]);
    // ids are each tenant's own: the same one with another question is no conflict, and tells nothing
    let theirs = ask_as(&mut dan, named("secret", "Rhine")).await;
    assert!(theirs.iter().all(|event| event.tenant == "dev"));
    assert_eq!((end(&theirs).answer.as_str(), end(&events).answer.as_str()), ("the answer to Rhine", "the answer to Loire"));
    assert_eq!((ids(&mut ann).await, ids(&mut dan).await), (vec!["secret".to_owned()], vec!["secret".to_owned()]));
    // memory heard of both, as of each its own
    let remembered = poll::until(LIMIT, async || {
        let heard: Vec<_> = world.group.inner.remembered.lock().unwrap().iter().map(|task| task.tenant.clone()).collect();
        Some(heard).filter(|heard| heard.len() == 2)
    });
    let mut remembered = remembered.await.unwrap();
    remembered.sort();
    assert_eq!(remembered, ["dev", "ops"]);

    // an admin names the tenant; nobody else may
    let for_tenant = |token: &str, tenant: &str| user(&world, Bearer::new(token).unwrap().acting_for(tenant).unwrap());
    assert_eq!(ids(&mut for_tenant(&root, "ops")).await, ["secret"]);
    assert_eq!(ids(&mut with_token(&world, &root)).await, [""; 0]);
    assert_eq!(ids(&mut for_tenant(&ops, "ops")).await, ["secret"]);
    let mut all = every_method(&mut for_tenant(&dev, "ops"), "secret").await;
    all.extend(every_control(&mut for_tenant(&dev, "ops"), "secret").await);
    for (_, refused) in all {
        let status = refused.unwrap();
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::PermissionDenied, Some("TENANT_REFUSED")));
    }
    let status = for_tenant(&root, "no.tenant").list_tools(v1::ListToolsRequest::default()).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::InvalidArgument, Some("BAD_TENANT")));
}

#[tokio::test]
async fn tokens_are_given_and_taken_back_while_the_gateway_runs() {
    let tokens = TokenFile::new();
    let first = tokens.add("ann", "ops", Role::Ask, None);
    let world = world_with(Group::start(Script::default()).await, guarded(&tokens)).await;
    let before = tokens.text();
    let can = async |token: &str| with_token(&world, token).list_tools(v1::ListToolsRequest::default()).await.is_ok();
    let becomes = async |token: &str, wanted: bool| poll::until(LIMIT, async || (can(token).await == wanted).then_some(())).await.is_some();
    assert!(can(&first).await);
    let second = tokens.add("eve", "new", Role::Ask, None);
    assert!(becomes(&second, true).await);
    // a tenant that the gateway did not know at its start is served to the end
    let events = ask_as(&mut with_token(&world, &second), task("Loire")).await;
    assert!(end(&events).approved && events[0].tenant == "new");
    // a file that is not valid changes nothing: nobody is locked out by a typing mistake
    tokens.write("[[token]]\nname = 'x'\n");
    let third = { NewToken::make(&Principal::anonymous("ops".parse().unwrap()), None).unwrap() };
    assert!(can(&first).await && can(&second).await && !can(&third.token).await);
    // taken back
    tokens.write(&before);
    assert!(becomes(&second, false).await);
    assert!(can(&first).await);
}

/// What ends a stream.
async fn ended<T>(mut stream: tonic::Streaming<T>) -> Option<Status> {
    let end = async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    };
    tokio::time::timeout(LIMIT, end).await.expect("a stream ends")
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_its_task_goes_on() {
    let tokens = TokenFile::new();
    let roles = [("ann", Role::Ask), ("bob", Role::Operate), ("cat", Role::Ask), ("dan", Role::Ask)];
    let [ann, bob, cat, dan] = roles.map(|(name, role)| tokens.add(name, "ops", role, None));
    let eve = tokens.add("eve", "ops", Role::Ask, Some(SystemTime::now() + Duration::from_secs(5)));
    let world = world_with(Group::start(Script::default()).await, guarded(&tokens)).await;
    world.group.hold_after(0);
    let request = v1::AskRequest { task: Some(named("t", "Loire")), ..Default::default() };
    let asked = with_token(&world, &ann).ask(request).await.unwrap().into_inner();
    let watch = async |token: &str| {
        let request = v1::WatchTaskRequest { task_id: "t".into(), after_sequence: 0, deltas: true };
        let mut stream = with_token(&world, token).watch_task(request).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        stream
    };
    let (of_ann, of_bob, of_cat) = (watch(&ann).await, watch(&bob).await, watch(&cat).await);
    let (of_dan, of_eve) = (watch(&dan).await, watch(&eve).await);
    // taken back, of a lower role, of another tenant
    let entries = tokens.text();
    let kept: Vec<String> = entries.split("[[token]]").skip(2).map(|entry| format!("[[token]]{entry}")).collect();
    let (lower, other) = (kept[0].replace("operate", "ask"), kept[1].replace("ops", "new"));
    tokens.write(&[&lower, &other, &kept[2], &kept[3]].map(String::as_str).concat());
    for (stream, expected, problem) in [
        (of_ann, "TOKEN_INVALID", Some("unknown")),
        (of_bob, "TOKEN_CHANGED", None),
        (of_cat, "TOKEN_CHANGED", None),
        (of_eve, "TOKEN_EXPIRED", None),
    ] {
        let status = ended(stream).await.unwrap_or_else(|| panic!("{expected}: the stream ended well"));
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unauthenticated, Some(expected)), "{status:?}");
        assert_eq!(metadata(&status).get("problem").map(String::as_str), problem);
    }
    assert_eq!(ended(asked).await.unwrap().code(), Code::Unauthenticated);
    // the task goes on, and who is still let in sees its end
    world.group.go_on();
    assert!(ended(of_dan).await.is_none());
    let events = collect_responses(
        with_token(&world, &dan).ask(v1::AskRequest { task: Some(named("t", "Loire")), ..Default::default() }).await.unwrap().into_inner(),
    )
    .await;
    assert!(end(&events).approved);
}

#[tokio::test]
async fn tasks_that_another_gateway_accepted_are_found_in_the_queue() {
    let tokens = TokenFile::new();
    let token = tokens.add("ann", "ops", Role::Ask, None);
    let (nats, group) = (NatsServer::start().await.unwrap(), Group::start(Script::default()).await);
    // this one runs none of the tasks it accepts: it was told to run others'
    let mut accepts = config(&nats, &group);
    accepts.service.access.tokens = Some(tokens.path());
    accepts.service.run_tenants = vec!["others".into()];
    let (gateway, client) = start(accepts).await;
    let world = World { nats, group, gateway, client };
    let mut ann = with_token(&world, &token);
    ann.submit_task(named("t", "Loire")).await.unwrap();
    // and this one knows the tenant from the queue alone
    let mut runs = config(&world.nats, &world.group);
    let none = TokenFile::new();
    runs.service.access.tokens = Some(none.path());
    let (other, _) = start(runs).await;
    let watch = ann.watch_task(v1::WatchTaskRequest { task_id: "t".into(), after_sequence: 0, deltas: false }).await.unwrap().into_inner();
    let events: Vec<_> = tokio::time::timeout(LIMIT, watch.map(|response| response.unwrap().event.unwrap()).collect()).await.unwrap();
    assert!(end(&events).approved);
    other.stop().await.unwrap();
}

#[tokio::test]
async fn a_tenant_has_its_share_and_not_more() {
    let tokens = TokenFile::new();
    let (ops, dev) = (tokens.add("ann", "ops", Role::Ask, None), tokens.add("dan", "dev", Role::Ask, None));
    let quota = |tasks, watchers, tasks_per_minute| TenantQuotaConfig { tasks, watchers, tasks_per_minute, ..TenantQuotaConfig::default() };
    let tenants = [("ops".to_owned(), quota(Some(2), Some(1), None)), ("dev".to_owned(), quota(None, None, Some(3)))];
    let world = world_with(Group::start(Script::default()).await, |config| {
        guarded(&tokens)(config);
        config.quota = QuotaConfig { tenants: tenants.into(), ..QuotaConfig::default() };
    })
    .await;
    let refused = |status: Status, code_reason: &str, limit: &str| {
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::ResourceExhausted, Some(code_reason)), "{status:?}");
        assert_eq!(metadata(&status)["limit"], limit);
        assert!(retry_after(&status).is_some());
        retry_after(&status).unwrap()
    };
    world.group.hold_after(0);
    let (mut ann, mut dan) = (with_token(&world, &ops), with_token(&world, &dev));
    for id in ["a", "b"] {
        ann.submit_task(named(id, "q")).await.unwrap();
    }
    refused(ann.submit_task(task("q")).await.unwrap_err(), "TASK_QUOTA", "2");
    // what is there already is no new task
    ann.submit_task(named("a", "q")).await.unwrap();
    // many at once do not get around it, and neither is the other tenant's business
    for id in ["a", "b", "c"] {
        dan.submit_task(named(id, "q")).await.unwrap();
    }
    let wait = refused(dan.submit_task(task("q")).await.unwrap_err(), "RATE_LIMITED", "3");
    assert!(wait > Duration::ZERO && wait <= Duration::from_secs(20), "{wait:?}");
    dan.submit_task(named("a", "q")).await.unwrap();
    let watch = |id: &str| v1::WatchTaskRequest { task_id: id.into(), after_sequence: 0, deltas: false };
    let held = ann.watch_task(watch("a")).await.unwrap();
    refused(ann.watch_task(watch("b")).await.unwrap_err(), "WATCHER_QUOTA", "1");
    let (_one, _two) = (dan.watch_task(watch("a")).await.unwrap(), dan.watch_task(watch("b")).await.unwrap());
    drop(held);
    assert!(poll::until(LIMIT, async || ann.clone().watch_task(watch("b")).await.ok()).await.is_some());
    world.group.go_on();
    // there is room again when they have ended
    assert!(poll::until(LIMIT, async || ann.clone().submit_task(task("q")).await.ok()).await.is_some());
}

#[tokio::test]
async fn a_gateway_does_not_start_with_tokens_that_it_cannot_read() {
    let tokens = TokenFile::new();
    let (nats, group) = (NatsServer::start().await.unwrap(), Group::start(Script::default()).await);
    let started = async |path: &Path| {
        let mut config = config(&nats, &group);
        config.service.access.tokens = Some(path.to_owned());
        autoact_service::App::build::<gateway::Gateway>(config).await.map(drop)
    };
    assert!(started(&tokens.path()).await.is_ok());
    assert!(started(&tokens.path().with_extension("gone")).await.is_err());
    tokens.write("token = 1");
    assert!(started(&tokens.path()).await.is_err());
}

/// Who may ask a question may not thereby change the world, nor remove what happened.
#[tokio::test]
async fn approval_and_deletion_need_an_operator() {
    let tokens = TokenFile::new();
    let (ann, bob) = (tokens.add("ann", "ops", Role::Ask, None), tokens.add("bob", "ops", Role::Operate, None));
    let plan = |trajectory: &v1::Trajectory| if steps(trajectory).is_empty() { "Send".into() } else { "Finish".into() };
    let script = Script { approval: true, plan: Box::new(plan), ..Script::default() };
    let world = world_with(Group::start(script).await, guarded(&tokens)).await;
    let (mut ann, mut bob) = (with_token(&world, &ann), with_token(&world, &bob));
    ann.submit_task(named("t", "Loire")).await.unwrap();
    let asked = poll::until(LIMIT, async || {
        let request = v1::GetTaskRequest { task_id: "t".into(), view: 0 };
        ann.clone().get_task(request).await.unwrap().into_inner().task.unwrap().input_required
    });
    assert!(asked.await.is_some());
    let approve = v1::GiveInputRequest {
        task_id: "t".into(),
        step: 1,
        input: Some(Input::Approval(v1::Approval { approved: true, ..Default::default() })),
    };
    let status = ann.give_input(approve.clone()).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::PermissionDenied, Some("ROLE_TOO_LOW")));
    let given = bob.give_input(approve).await.unwrap().into_inner().task.unwrap();
    assert_eq!(given.state(), v1::TaskState::Running);
    let ended = poll::until(LIMIT, async || {
        let request = v1::GetTaskRequest { task_id: "t".into(), view: 0 };
        let task = ann.clone().get_task(request).await.unwrap().into_inner().task.unwrap();
        (task.state() == v1::TaskState::Finished).then_some(())
    });
    assert!(ended.await.is_some());
    let delete = v1::DeleteTaskRequest { task_id: "t".into() };
    assert_eq!(ann.delete_task(delete.clone()).await.unwrap_err().code(), Code::PermissionDenied);
    assert!(bob.delete_task(delete).await.is_ok());
}

#[tokio::test]
async fn a_task_says_who_submitted_it_and_who_cancelled_it() {
    let tokens = TokenFile::new();
    let (ann, bob) = (tokens.add("ann", "ops", Role::Ask, None), tokens.add("bob", "ops", Role::Ask, None));
    let world = world_with(Group::start(Script::default()).await, guarded(&tokens)).await;
    world.group.hold_after(0);
    let (mut ann, mut bob) = (with_token(&world, &ann), with_token(&world, &bob));
    ann.submit_task(named("t", "Loire")).await.unwrap();
    // the same request again is the same task, whoever sends it
    let same = bob.submit_task(named("t", "Loire")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(same.submitted_by, "ann");
    let cancelled = bob.cancel_task(v1::CancelTaskRequest { task_id: "t".into() }).await.unwrap().into_inner().task.unwrap();
    assert_eq!((cancelled.submitted_by.as_str(), cancelled.cancelled_by.as_str()), ("ann", "bob"));
    let listed = ann.list_tasks(v1::ListTasksRequest::default()).await.unwrap().into_inner().tasks.remove(0);
    assert_eq!((listed.submitted_by.as_str(), listed.cancelled_by.as_str()), ("ann", "bob"));
    let events = ask_as(&mut ann, named("t", "Loire")).await;
    assert_eq!(end(&events).by, "bob");
    let retry = v1::RetryTaskRequest { task_id: "t".into(), from_step: 1, ..Default::default() };
    assert_eq!(bob.retry_task(retry).await.unwrap().into_inner().task.unwrap().submitted_by, "bob");
}
