//! An issuer of JWTs with keys that are made here, served over HTTP.
#![allow(unreachable_pub)] // every test file uses its own part

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

/// The example key of RFC 7515, appendix A.2: ring makes no RSA keys.
const RSA: [&str; 7] = [
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
    "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ",
    "4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc",
    "uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmpe_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc",
    "BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-FOKnu1R6HsJeDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0",
    "h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-NKJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU",
    "IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U",
];
const EXPONENT: &str = "AQAB";

pub const ISSUER: &str = "https://id.example";
pub const AUDIENCE: &str = "autoact";

/// A private key.
pub enum Key {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl Key {
    pub fn ec() -> Key {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Key::Ec(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap())
    }

    pub fn ed() -> Key {
        Key::Ed(Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap().as_ref()).unwrap())
    }

    pub fn rsa() -> Key {
        let [n, d, p, q, dp, dq, qi] = RSA.map(|part| BASE64.decode(part).unwrap());
        let public_key = PublicKeyComponents { n, e: BASE64.decode(EXPONENT).unwrap() };
        let components = KeyPairComponents { public_key, d, p, q, dP: dp, dQ: dq, qInv: qi };
        Key::Rsa(Box::new(RsaKeyPair::from_components(&components).unwrap()))
    }

    pub fn algorithm(&self) -> &'static str {
        match self {
            Key::Ec(_) => "ES256",
            Key::Ed(_) => "EdDSA",
            Key::Rsa(_) => "RS256",
        }
    }

    /// Its public half, as a set has it.
    pub fn public(&self, id: &str) -> Value {
        match self {
            Key::Ec(key) => {
                let point = key.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": BASE64.encode(&point[1..33]), "y": BASE64.encode(&point[33..]), "kid": id})
            }
            Key::Ed(key) => json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(key.public_key()), "kid": id}),
            Key::Rsa(_) => json!({"kty": "RSA", "n": RSA[0], "e": EXPONENT, "use": "sig", "alg": "RS256", "kid": id}),
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Key::Ec(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Key::Ed(key) => key.sign(message).as_ref().to_vec(),
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    /// A JWT with these claims.
    pub fn jwt(&self, id: &str, claims: &Value) -> String {
        self.jwt_with(&json!({"alg": self.algorithm(), "typ": "JWT", "kid": id}), claims)
    }

    pub fn jwt_with(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        format!("{message}.{}", BASE64.encode(self.sign(message.as_bytes())))
    }
}

/// The first two parts of a JWT.
pub fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()))
}

/// A JWT "signed" with a shared secret.
pub fn hs256(id: &str, secret: &[u8], claims: &Value) -> String {
    let message = message(&json!({"alg": "HS256", "typ": "JWT", "kid": id}), claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    format!("{message}.{}", BASE64.encode(ring::hmac::sign(&key, message.as_bytes())))
}

/// Seconds since 1970, from now on.
pub fn at(seconds: i64) -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap() + seconds
}

/// The claims of a JWT that is valid for an hour.
pub fn claims(tenant: &str, roles: &[&str]) -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": at(3600), "nbf": at(-5), "tenant": tenant, "roles": roles})
}

/// Serves keys that can change.
pub struct Issuer {
    pub url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    pub async fn start(keys: Vec<Value>) -> Issuer {
        let (keys, asked) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let (served, counted) = (keys.clone(), asked.clone());
        let serve = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let keys = served.lock().unwrap().clone();
            async move { json!({ "keys": keys }).to_string() }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let router = axum::Router::new().route("/keys", axum::routing::get(serve));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Issuer { url, keys, asked }
    }

    pub fn rotate(&self, keys: Vec<Value>) {
        *self.keys.lock().unwrap() = keys;
    }

    /// How often somebody read the keys.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
