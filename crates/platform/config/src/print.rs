//! The effective configuration as a TOML file, each value with the place it comes from.

use toml::{Table, Value};

use crate::load::{Loaded, Section};
use crate::secret::redact_addresses;

impl<S: Section> Loaded<S> {
    /// What `--print-config` prints: a configuration file that says the same again, with the source
    /// of every value as a comment and without secrets.
    pub fn print(&self) -> String {
        let mut table = Table::try_from(&self.common).unwrap_or_default();
        table.extend(Table::try_from(&self.service).unwrap_or_default());
        let mut out = String::new();
        self.print_table(&table, S::NAME, "", &mut out);
        out
    }

    fn print_table(&self, table: &Table, header: &str, prefix: &str, out: &mut String) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("[{header}]\n"));
        for (key, value) in table.iter().filter(|(_, value)| !value.is_table()) {
            let source = self.source(&format!("{prefix}{key}"));
            out.push_str(&format!("{} = {}  # {source}\n", quoted(key), redacted(value)));
        }
        for (key, value) in table {
            if let Value::Table(inner) = value {
                self.print_table(inner, &format!("{header}.{}", quoted(key)), &format!("{prefix}{key}."), out);
            }
        }
    }
}

fn quoted(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { key.to_owned() } else { Value::String(key.to_owned()).to_string() }
}

fn redacted(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact_addresses(text)),
        Value::Array(items) => Value::Array(items.iter().map(redacted).collect()),
        other => other.clone(),
    }
}
