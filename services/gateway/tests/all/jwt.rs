//! JWTs of an issuer: each way in which one can be wrong is refused, over real gRPC.

use std::time::Duration;

use crate::common::scripted::{Group, Script};
use crate::common::*;
use crate::issuer::{AUDIENCE, ISSUER, Issuer, Key, at, claims, hs256, message};
use autoact_wire::client::{Authorized, Bearer, connect_lazy};
use autoact_wire::status::{metadata, reason};
use autoact_wire::v1;
use autoact_wire::v1::gateway_client::GatewayClient;
use serde_json::{Value, json};
use tonic::{Code, Status};

async fn world_of(issuer: &Issuer, cooldown: Duration) -> World {
    world_with(Group::start(Script::default()).await, |config| {
        config.access.jwt.jwks = issuer.url.clone();
        config.access.jwt.issuer = ISSUER.to_owned();
        config.access.jwt.audience = AUDIENCE.to_owned();
        config.access.jwt.cooldown = cooldown;
    })
    .await
}

fn user(world: &World, token: &str) -> GatewayClient<Authorized> {
    GatewayClient::with_interceptor(connect_lazy(&world.gateway.addr().to_string()).unwrap(), Bearer::new(token).unwrap())
}

async fn refused(world: &World, token: &str) -> Option<Status> {
    user(world, token).list_tasks(v1::ListTasksRequest::default()).await.err()
}

fn with(claim: &str, value: Value) -> Value {
    let mut claims = claims("ops", &["ask"]);
    claims[claim] = value;
    claims
}

fn without(claim: &str) -> Value {
    let mut claims = claims("ops", &["ask"]);
    claims.as_object_mut().unwrap().remove(claim);
    claims
}

#[tokio::test]
async fn each_wrong_jwt_is_refused_for_its_reason() {
    let (ec, ed, rsa, stranger) = (Key::ec(), Key::ed(), Key::rsa(), Key::ec());
    let public = [ec.public("ec"), ed.public("ed"), rsa.public("rsa")];
    let issuer = Issuer::start(public.to_vec()).await;
    let world = world_of(&issuer, Duration::from_secs(60)).await;
    for (id, key) in [("ec", &ec), ("ed", &ed), ("rsa", &rsa)] {
        assert!(refused(&world, &key.jwt(id, &claims("ops", &["ask"]))).await.is_none(), "{id}");
    }
    // forms that issuers use
    for good in [with("aud", json!(["other", AUDIENCE])), with("roles", json!("email ask")), without("nbf"), without("sub")] {
        assert!(refused(&world, &ec.jwt("ec", &good)).await.is_none(), "{good}");
    }
    let unnamed = json!({"alg": "ES256"});
    assert!(refused(&world, &ec.jwt_with(&unnamed, &claims("ops", &["ask"]))).await.is_none(), "without the id of its key");
    // clocks differ by less than a minute
    for near in [with("exp", json!(at(-30))), with("nbf", json!(at(30)))] {
        assert!(refused(&world, &ec.jwt("ec", &near)).await.is_none(), "{near}");
    }

    let valid = claims("ops", &["ask"]);
    let whole = ec.jwt("ec", &valid);
    let other = ec.jwt("ec", &claims("dev", &["admin"]));
    let parts: Vec<&str> = whole.split('.').collect();
    let spliced = format!("{}.{}.{}", parts[0], other.split('.').nth(1).unwrap(), parts[2]);
    let der = public[2]["n"].as_str().unwrap();
    let none = |name: &str| format!("{}.", message(&json!({"alg": name, "typ": "JWT"}), &valid));
    let invalid = |problem: &'static str| ("TOKEN_INVALID", Some(problem));
    let cases = [
        ("expired", ec.jwt("ec", &with("exp", json!(at(-120)))), ("TOKEN_EXPIRED", None)),
        ("for later", ec.jwt("ec", &with("nbf", json!(at(120)))), ("TOKEN_NOT_YET_VALID", None)),
        ("another audience", ec.jwt("ec", &with("aud", json!("other"))), invalid("audience")),
        ("no audience", ec.jwt("ec", &without("aud")), invalid("audience")),
        ("another issuer", ec.jwt("ec", &with("iss", json!("https://evil.example"))), invalid("issuer")),
        ("no issuer", ec.jwt("ec", &without("iss")), invalid("issuer")),
        ("no expiry", ec.jwt("ec", &without("exp")), invalid("claims")),
        ("an expiry in words", ec.jwt("ec", &with("exp", json!("never"))), invalid("claims")),
        ("a start in words", ec.jwt("ec", &with("nbf", json!("now"))), invalid("claims")),
        ("no tenant", ec.jwt("ec", &without("tenant")), invalid("claims")),
        ("no such tenant", ec.jwt("ec", &with("tenant", json!("a.*"))), invalid("claims")),
        ("a stranger's key under our id", stranger.jwt("ec", &valid), invalid("signature")),
        ("an unknown key", stranger.jwt("stranger", &valid), invalid("key")),
        ("another JWT's claims", spliced, invalid("signature")),
        ("no signature", none("none"), invalid("algorithm")),
        ("no signature in capitals", none("NONE"), invalid("algorithm")),
        ("the public key as a secret", hs256("rsa", der.as_bytes(), &valid), invalid("algorithm")),
        ("another method than the key's", ec.jwt_with(&json!({"alg": "RS256", "kid": "ec"}), &valid), invalid("algorithm")),
        ("a key of its own", stranger.jwt_with(&json!({"alg": "ES256", "jwk": stranger.public("x")}), &valid), invalid("signature")),
        ("an extension", ec.jwt_with(&json!({"alg": "ES256", "kid": "ec", "crit": ["b64"]}), &valid), invalid("malformed")),
        ("no header", "a.b.c".to_owned(), invalid("malformed")),
        ("no JWT", "x".to_owned(), invalid("unknown")),
    ];
    for (what, token, (expected, problem)) in cases {
        let status = refused(&world, &token).await.unwrap_or_else(|| panic!("{what}: it was let in"));
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unauthenticated, Some(expected)), "{what}");
        assert_eq!(metadata(&status).get("problem").map(String::as_str), problem, "{what}");
    }
}

#[tokio::test]
async fn the_claims_say_whose_and_what() {
    let key = Key::ed();
    let issuer = Issuer::start(vec![key.public("a")]).await;
    let world = world_of(&issuer, Duration::from_secs(60)).await;
    let mut ann = user(&world, &key.jwt("a", &claims("ops", &["ask"])));
    // a tenant that nobody named before is served to the end
    let asked = v1::AskRequest { task: Some(named("t", "Loire")), ..Default::default() };
    let events = collect_responses(ann.ask(asked).await.unwrap().into_inner()).await;
    assert!(end(&events).approved && events.iter().all(|event| event.tenant == "ops"));
    let get = || v1::GetTaskRequest { task_id: "t".into(), view: 0 };
    let status = user(&world, &key.jwt("a", &claims("dev", &["operate"]))).get_task(get()).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::NotFound, Some("TASK_NOT_FOUND")));
    for roles in [&[][..], &["viewer", "Ask"]] {
        let mut nobody = user(&world, &key.jwt("a", &claims("ops", roles)));
        let submit = nobody.submit_task(task("q")).await.unwrap_err();
        let tools = nobody.list_tools(v1::ListToolsRequest::default()).await.unwrap_err();
        for status in [submit, tools, nobody.get_task(get()).await.unwrap_err()] {
            assert_eq!((status.code(), reason(&status).as_deref()), (Code::PermissionDenied, Some("ROLE_TOO_LOW")), "{status:?}");
            assert_eq!(metadata(&status)["role"], "ask");
        }
    }
}

#[tokio::test]
async fn keys_rotate_and_invented_ones_do_not_flood_the_issuer() {
    let (old, new) = (Key::ec(), Key::ec());
    let issuer = Issuer::start(vec![old.public("old")]).await;
    let world = world_of(&issuer, Duration::from_millis(300)).await;
    let valid = claims("ops", &["ask"]);
    assert!(refused(&world, &old.jwt("old", &valid)).await.is_none());
    assert_eq!(issuer.asked(), 1);
    issuer.rotate(vec![old.public("old"), new.public("new")]);
    // the first JWT with the new key makes the keys be read: nobody waits for it
    assert!(refused(&world, &new.jwt("new", &valid)).await.is_none());
    assert_eq!(issuer.asked(), 2);
    issuer.rotate(vec![new.public("new")]);
    let began = tokio::time::Instant::now();
    for number in 0..200 {
        let status = refused(&world, &new.jwt(&format!("invented-{number}"), &valid)).await.unwrap();
        assert_eq!(metadata(&status)["problem"], "key");
    }
    let most = 3 + usize::try_from(began.elapsed().as_millis() / 300).unwrap();
    assert!(issuer.asked() <= most, "{} of at most {most}", issuer.asked());
    // what was taken out of the set opens nothing once it was read again
    let gone = autoact_testkit::poll::until(LIMIT, async || {
        refused(&world, &new.jwt("invented", &valid)).await;
        refused(&world, &old.jwt("old", &valid)).await
    });
    assert_eq!(metadata(&gone.await.unwrap())["problem"], "key");
    assert!(refused(&world, &new.jwt("new", &valid)).await.is_none());
}

#[tokio::test]
async fn an_issuer_that_is_away_at_the_start_is_asked_again() {
    let key = Key::ec();
    let issuer = Issuer::start(vec![]).await;
    let world = world_of(&issuer, Duration::from_millis(100)).await;
    let token = key.jwt("a", &claims("ops", &["ask"]));
    let status = refused(&world, &token).await.unwrap();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unavailable, Some("TOKEN_KEYS_UNAVAILABLE")));
    issuer.rotate(vec![key.public("a")]);
    let entered = autoact_testkit::poll::until(LIMIT, async || refused(&world, &token).await.is_none().then_some(()));
    assert!(entered.await.is_some());
}

#[tokio::test]
async fn a_stream_ends_when_its_jwt_expires_or_its_key_is_withdrawn() {
    let (old, new) = (Key::ec(), Key::ec());
    let issuer = Issuer::start(vec![old.public("old"), new.public("new")]).await;
    let world = world_with(Group::start(Script::default()).await, |config| {
        config.access.jwt.jwks = issuer.url.clone();
        config.access.jwt.issuer = ISSUER.to_owned();
        config.access.jwt.audience = AUDIENCE.to_owned();
        config.access.jwt.skew = Duration::ZERO;
        config.access.jwt.refresh = Duration::from_millis(200);
    })
    .await;
    world.group.hold_after(0);
    let valid = claims("ops", &["ask"]);
    user(&world, &new.jwt("new", &valid)).submit_task(named("t", "Loire")).await.unwrap();
    let watch = async |token: String| {
        let request = v1::WatchTaskRequest { task_id: "t".into(), after_sequence: 0, deltas: false };
        let mut stream = user(&world, &token).watch_task(request).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        stream
    };
    let expiring = watch(new.jwt("new", &with("exp", json!(at(5))))).await;
    let withdrawn = watch(old.jwt("old", &valid)).await;
    let mut lasting = watch(new.jwt("new", &valid)).await;
    issuer.rotate(vec![new.public("new")]);
    for (mut stream, expected) in [(withdrawn, "TOKEN_INVALID"), (expiring, "TOKEN_EXPIRED")] {
        let end = async {
            loop {
                match stream.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{expected}: the stream ended well"),
                    Err(status) => return status,
                }
            }
        };
        let status = tokio::time::timeout(LIMIT, end).await.unwrap();
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unauthenticated, Some(expected)), "{status:?}");
    }
    world.group.go_on();
    while let Some(response) = tokio::time::timeout(LIMIT, lasting.message()).await.unwrap().unwrap() {
        assert!(response.event.is_some());
    }
}
