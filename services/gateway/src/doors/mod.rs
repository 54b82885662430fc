//! The doors: each translates a protocol to the application and back. A new door is one folder.

pub(crate) mod grpc;
