//! How large the requests of each method may be.

/// Most requests are ids, names and numbers. A method that is not named here takes no more.
pub const SMALL: usize = 64 * 1024;
/// Those with a task or a list in them.
pub const MEDIUM: usize = 1024 * 1024;
/// Those with a trajectory, a document or many texts: what every client may send at most.
pub const LARGE: usize = 16 * 1024 * 1024;

/// The methods that take more than [`SMALL`], and how much.
const SIZES: [(&str, usize); 14] = [
    ("/autoact.v1.Gateway/SubmitTask", MEDIUM),
    ("/autoact.v1.Gateway/Ask", MEDIUM),
    ("/autoact.agents.v1.PlanAgent/Plan", LARGE),
    ("/autoact.agents.v1.ToolAgent/Parameterize", LARGE),
    ("/autoact.agents.v1.ToolAgent/Execute", LARGE),
    ("/autoact.agents.v1.ReflectAgent/Reflect", LARGE),
    ("/autoact.agents.v1.TokenCounter/CountTokens", LARGE),
    ("/autoact.memory.v1.Memory/Remember", LARGE),
    ("/autoact.memory.v1.Memory/Recall", MEDIUM),
    ("/autoact.memory.v1.Documents/PutFile", LARGE),
    ("/autoact.memory.v1.Documents/DeleteFiles", MEDIUM),
    ("/autoact.memory.v1.Documents/SearchSegments", MEDIUM),
    ("/autoact.memory.v1.Documents/OpenSegment", MEDIUM),
    ("/autoact.memory.v1.Documents/Embed", LARGE),
];

/// The methods whose request is a stream of messages.
const STREAMS: [&str; 3] = [
    "/autoact.memory.v1.Documents/PutFile",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// What a method takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSize {
    /// Bytes of one message.
    pub most: usize,
    /// Any number of messages.
    pub stream: bool,
}

/// What the method of a request's path (`/package.Service/Method`) takes.
pub fn request_size(path: &str) -> RequestSize {
    let most = SIZES.iter().find(|(method, _)| *method == path).map_or(SMALL, |(_, most)| *most);
    RequestSize { most, stream: STREAMS.contains(&path) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    /// The paths of our methods, and whether their requests are streams.
    fn methods() -> BTreeMap<String, bool> {
        let set = FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET).unwrap();
        let mut methods = BTreeMap::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    methods.insert(path, method.client_streaming());
                }
            }
        }
        methods
    }

    #[test]
    fn sizes_are_of_methods_that_there_are() {
        let methods = methods();
        for (path, _) in &SIZES {
            assert!(methods.contains_key(*path), "{path}");
        }
        assert_eq!(request_size("/autoact.v1.Gateway/GetTask"), RequestSize { most: SMALL, stream: false });
        assert_eq!(request_size("/made/Up"), RequestSize { most: SMALL, stream: false });
    }

    #[test]
    fn streams_are_known_as_such() {
        for (path, streams) in methods() {
            assert_eq!(request_size(&path).stream, streams, "{path}");
        }
    }
}
