//! What callers show at a door: tokens and JWTs; and the files in which they are looked up.

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use autoact_access::{AccessConfig, Authority, JwtConfig, Tokens};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::scratch;

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "autoact";
/// The key's own id, and the header of what it signs.
const ID: &str = "ours";
/// The public keys of RFC 7515, appendices A.2 and A.3: what other methods are checked with.
const RSA: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
const EC: [&str; 2] = ["f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"];

/// A door that is asked one thing after the other.
struct Door {
    runtime: Runtime,
    authority: Authority,
    key: Ed25519KeyPair,
}

/// `None` where there is no room for files.
static DOOR: LazyLock<Option<Door>> = LazyLock::new(door);

fn door() -> Option<Door> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
    let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).ok()?;
    let keys = json!({"keys": [
        {"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.public_key()), "kid": ID},
        {"kty": "RSA", "n": RSA, "e": "AQAB", "use": "sig", "alg": "RS256", "kid": "rsa"},
        {"kty": "EC", "crv": "P-256", "x": EC[0], "y": EC[1], "kid": "ec"},
    ]});
    let authority = runtime.block_on(open(keys.to_string().as_bytes()))?;
    Some(Door { runtime, authority, key })
}

/// A door that believes JWTs of these keys.
async fn open(keys: &[u8]) -> Option<Authority> {
    let file = scratch::directory()?.join("keys.json");
    std::fs::write(&file, keys).ok()?;
    Authority::open(&AccessConfig { jwt: jwt(&file), ..AccessConfig::default() }).await.ok()
}

fn jwt(keys: &Path) -> JwtConfig {
    JwtConfig {
        jwks: keys.display().to_string(),
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        // a path, which goes through more code than a name
        roles_claim: "realm.roles".to_owned(),
        ..JwtConfig::default()
    }
}

/// The first byte says what it is: a file of tokens, a JWT as it comes, the claims of one that our
/// key signs, or an issuer's keys.
pub fn tokens(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    let (Some(door), text) = (&*DOOR, String::from_utf8_lossy(bytes)) else { return };
    match kind % 4 {
        0 => file(&text),
        1 => {
            let accepted = door.runtime.block_on(door.authority.authenticate(&text));
            assert!(accepted.is_err(), "nobody signed it: {text}");
        }
        2 => signed(door, bytes),
        _ => {
            let _ = door.runtime.block_on(open(bytes));
        }
    }
}

/// A file of tokens: whoever is in it is found by no other token than its own.
fn file(text: &str) {
    let Ok(tokens) = Tokens::parse(text) else { return };
    assert!(tokens.entries().iter().all(|entry| !entry.principal.roles.is_empty()), "{tokens:?}");
    assert!(tokens.find(text, UNIX_EPOCH).is_err(), "a file is a token of its own");
    assert!(tokens.tenants().len() <= tokens.entries().len());
}

/// What our key signs is accepted if, and only if, what it says is valid here and now.
fn signed(door: &Door, claims: &[u8]) {
    let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": ID}).to_string();
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(door.key.sign(message.as_bytes())));
    let Ok(principal) = door.runtime.block_on(door.authority.authenticate(&token)) else { return };
    let claims: Value = serde_json::from_slice(claims).unwrap_or_default();
    assert_eq!(claims["iss"], ISSUER, "another issuer");
    let ours = match &claims["aud"] {
        Value::Array(all) => all.iter().any(|one| one == AUDIENCE),
        one => one == AUDIENCE,
    };
    assert!(ours, "another audience: {claims}");
    assert_eq!(claims["tenant"], principal.tenant.to_string(), "another tenant");
    let skew = JwtConfig::default().skew + Duration::from_secs(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = |name: &str| claims[name].as_f64();
    assert!(time("exp").is_some_and(|until| until >= (now.saturating_sub(skew)).as_secs_f64()), "expired: {claims}");
    assert!(time("nbf").is_none_or(|from| from <= (now + skew).as_secs_f64()), "from the future: {claims}");
    assert!(principal.name.chars().count() <= 128 && !principal.name.chars().any(char::is_control), "{:?}", principal.name);
}
