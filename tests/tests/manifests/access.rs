//! Who may ask: the gateway of production lets nobody in without a token.

use anyhow::Context as _;

use crate::source::{self, Manifests};
use crate::yaml::{items, text};

/// Whether these are meant for a cluster that others share: pods are kept apart.
pub(crate) fn is_production(manifests: &Manifests) -> bool {
    manifests.named("NetworkPolicy", "autoact-default-deny").is_some()
}

/// What a gateway's configuration, as it prints it, lets in that it should not.
pub(crate) fn check_gateway(config: &toml::Table, complain: &mut impl FnMut(String)) {
    let at = |path: &str| path.split('.').try_fold(config, |table, key| table.get(key)?.as_table());
    let (access, tls) = (at("access"), at("tls"));
    let said = |table: Option<&toml::Table>, key: &str| table.and_then(|table| table.get(key)).map(toml::Value::to_string);
    let mode = said(access, "mode");
    if mode.as_deref() != Some("\"required\"") {
        complain(format!("whoever reaches it may ask: `access.mode` is {mode:?}"));
    }
    let named = |value: Option<String>| value.is_some_and(|value| value != "\"\"");
    if !named(said(access, "tokens")) && !named(said(at("access.jwt"), "jwks")) {
        complain("nobody can prove who they are: there are neither tokens nor keys of an issuer".to_owned());
    }
    if said(tls, "insecure").as_deref() != Some("false") || !named(said(tls, "cert")) {
        complain("tokens travel in plain text".to_owned());
    }
    if said(tls, "client_certificates").as_deref() != Some("false") {
        complain("clients need a certificate beside their token".to_owned());
    }
}

#[test]
fn nobody_asks_the_gateway_of_production_without_a_token() -> anyhow::Result<()> {
    let Some(kustomize) = source::kustomize() else {
        println!("SKIPPED: no kustomize or kubectl found; `scripts/fetch-kustomize` gets one");
        return Ok(());
    };
    let production = Manifests::rendered(&kustomize, "overlays/production")?;
    anyhow::ensure!(is_production(&production), "what is checked of production is not checked of the overlay");
    anyhow::ensure!(!is_production(&Manifests::rendered(&kustomize, "overlays/local")?), "the local overlay starts with one command");
    crate::check(&production)?;
    let gateway = production.named("Deployment", "autoact-gateway").context("there is a gateway")?;
    let secrets = items(gateway, "spec.template.spec.volumes").filter_map(|volume| text(volume, "secret.secretName"));
    anyhow::ensure!(secrets.filter(|secret| *secret == "autoact-access").count() == 1, "the tokens come from a Secret");
    // the check would see it
    for open in [
        &["AUTOACT_GATEWAY__ACCESS__MODE=open"][..],
        &["AUTOACT_GATEWAY__ACCESS__MODE=auto"],
        &["AUTOACT_GATEWAY__ACCESS__MODE=auto", "AUTOACT_GATEWAY__ACCESS__TOKENS="],
        &["AUTOACT_GATEWAY__TLS__INSECURE=true"],
        &["AUTOACT_GATEWAY__TLS__CLIENT_CERTIFICATES=true"],
    ] {
        let dir = source::with_settings("production", open)?;
        let manifests = Manifests::rendered(&kustomize, &dir.path().display().to_string())?;
        anyhow::ensure!(crate::check(&manifests).is_err(), "{open:?} is not noticed");
    }
    Ok(())
}
