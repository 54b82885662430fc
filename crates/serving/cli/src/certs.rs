//! `autoact certs`: certificates for development.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use autoact_certificates::{Certificate, Options};
use serde_json::json;

use crate::args::{CertsCommand, CertsOptions};
use crate::exit;
use crate::out;
use crate::text::plain_line;

/// The width of the column of subjects.
const SUBJECT: usize = 14;
const DAY: u64 = 24 * 60 * 60;

pub(crate) fn run(command: CertsCommand) -> anyhow::Result<u8> {
    match command {
        CertsCommand::Init { options, force } => {
            let (dir, options) = split(options, force);
            told(&autoact_certificates::init(&dir, &options)?)?;
            let ca = autoact_certificates::files(&dir, autoact_certificates::AUTHORITY).1;
            out::note(format!("services need `tls.ca`, `tls.cert` and `tls.key`, and never {}", ca.display()));
        }
        CertsCommand::Renew(options) => {
            let (dir, options) = split(options, false);
            told(&autoact_certificates::renew(&dir, &options)?)?;
        }
        CertsCommand::Show { path, json } => show(&path, json)?,
    }
    Ok(exit::OK)
}

fn split(options: CertsOptions, force: bool) -> (PathBuf, Options) {
    let CertsOptions { dir, days, names } = options;
    (dir, Options { days, names, force })
}

fn told(written: &[PathBuf]) -> anyhow::Result<()> {
    for path in written {
        out::line(path.display())?;
    }
    Ok(())
}

fn show(path: &Path, as_json: bool) -> anyhow::Result<()> {
    let found = autoact_certificates::show(path)?;
    let now = SystemTime::now();
    if as_json {
        let each = found.iter().map(|(file, certificate)| {
            let Certificate { subject, issuer, names, from, to, authority } = certificate;
            json!({
                "file": file.display().to_string(), "subject": subject, "issuer": issuer, "names": names,
                "valid_from": time(*from), "valid_to": time(*to), "valid": valid(certificate, now), "authority": authority,
            })
        });
        out::line(serde_json::Value::Array(each.collect()))?;
        return Ok(());
    }
    for (file, certificate) in found {
        let Certificate { subject, names, from, to, authority, .. } = &certificate;
        let state = match (to.duration_since(now), valid(&certificate, now)) {
            (Ok(left), true) => format!("{} days left", left.as_secs() / DAY),
            (Ok(_), false) => "not valid yet".to_owned(),
            (Err(_), _) => "EXPIRED".to_owned(),
        };
        let names = if *authority { "authority".to_owned() } else { names.join(" ") };
        let (subject, names) = (plain_line(subject), plain_line(&names));
        out::line(format_args!("{subject:<SUBJECT$} {} to {} ({state})", time(*from), time(*to)))?;
        out::line(format_args!("{:<SUBJECT$} {names}", ""))?;
        out::line(format_args!("{:<SUBJECT$} {}", "", file.display()))?;
    }
    Ok(())
}

fn valid(certificate: &Certificate, now: SystemTime) -> bool {
    (certificate.from..=certificate.to).contains(&now)
}

fn time(time: SystemTime) -> String {
    prost_types::Timestamp::from(time).to_string()
}
