//! The gRPC methods that a server may be asked for. Metrics and spans are labelled with these
//! alone: a request's path is whatever the client wrote, and each label value is a time series that
//! stays.

use std::collections::HashSet;
use std::sync::Arc;

use prost::{DecodeError, Message};
use prost_types::FileDescriptorSet;

/// What calls of anything else are labelled with.
pub(crate) const UNKNOWN: &str = "unknown";

/// Known methods, from compiled descriptors; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Methods {
    /// `package.Service/Method`
    paths: Arc<HashSet<String>>,
}

impl Methods {
    /// All methods of all services in these encoded `FileDescriptorSet`s.
    pub fn of<'a>(descriptor_sets: impl IntoIterator<Item = &'a [u8]>) -> Result<Methods, DecodeError> {
        let mut paths = HashSet::new();
        for set in descriptor_sets {
            for file in FileDescriptorSet::decode(set)?.file {
                for service in &file.service {
                    let name = match file.package() {
                        "" => service.name().to_owned(),
                        package => format!("{package}.{}", service.name()),
                    };
                    paths.extend(service.method.iter().map(|method| format!("{name}/{}", method.name())));
                }
            }
        }
        Ok(Methods { paths: Arc::new(paths) })
    }

    /// The service and the method that a request's path names, if they are known.
    pub(crate) fn find(&self, path: &str) -> Option<(&str, &str)> {
        self.paths.get(path.strip_prefix('/')?)?.split_once('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_descriptors_have_is_known() {
        let methods = Methods::of([autoact_wire::FILE_DESCRIPTOR_SET]).unwrap();
        assert_eq!(methods.find("/autoact.memory.v1.Memory/Recall"), Some(("autoact.memory.v1.Memory", "Recall")));
        for path in [
            "",
            "/",
            "autoact.memory.v1.Memory/Recall",
            "/autoact.memory.v1.Memory",
            "/autoact.memory.v1.Memory/Recall/",
            "/autoact.memory.v1.Memory/x",
        ] {
            assert_eq!(methods.find(path), None, "{path}");
        }
        assert!(Methods::of([&[0xff_u8][..]]).is_err());
        assert_eq!(Methods::default().find("/autoact.memory.v1.Memory/Recall"), None);
    }
}
