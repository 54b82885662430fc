//! Adapters from elsewhere: a PEFT configuration and its weights.

use std::path::Path;

use autoact_lora::{Adapter, AdapterConfig, BaseLayout, CONFIG_FILE, WEIGHTS_FILE};

use crate::parts::parts;
use crate::scratch::directory;

/// `adapter_config.json`, and what follows it is `adapter_model.safetensors`.
pub fn adapter(data: &[u8]) {
    let parts = parts(data, 2);
    let [config, weights @ ..] = parts.as_slice() else { return };
    if let Ok(config) = AdapterConfig::parse(&String::from_utf8_lossy(config), Path::new(CONFIG_FILE)) {
        let written = config.to_json().to_string();
        let again = AdapterConfig::parse(&written, Path::new(CONFIG_FILE));
        assert!(again.is_ok(), "`{written}` cannot be read again: {again:?}");
    }
    let (Some(weights), Some(dir)) = (weights.first(), directory()) else { return };
    if std::fs::write(dir.join(CONFIG_FILE), config).is_err() || std::fs::write(dir.join(WEIGHTS_FILE), weights).is_err() {
        return;
    }
    let Ok(adapter) = Adapter::load(&dir) else { return };
    let _ = adapter.check_base(&BaseLayout::default());
}
