//! What a change of the contracts may not do, by the rules that buf calls WIRE_JSON: programs of
//! two releases exchange messages, in protobuf and in JSON. Stricter in one point: no message,
//! enumeration or service goes either.

use std::collections::BTreeMap;

use prost_types::field_descriptor_proto::Type;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto,
};

/// A change that a program of the earlier release would misread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Break {
    /// What changed, by its full name.
    pub(crate) what: String,
    /// How.
    pub(crate) rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    MessageRemoved,
    EnumRemoved,
    ServiceRemoved,
    RpcRemoved,
    /// Without `reserved` for its number and its name.
    FieldRemoved,
    FieldNumber,
    FieldName,
    FieldJsonName,
    FieldType,
    FieldLabel,
    /// Moved into a oneof, out of one, or to another.
    FieldOneof,
    /// Without `reserved` for its number and its name.
    ValueRemoved,
    ValueName,
    /// A reserved number or name is free again.
    ReservedFreed,
    RpcRequest,
    RpcResponse,
    RpcStreaming,
    RpcIdempotency,
}

/// All that `now` breaks of what `before` promised.
pub(crate) fn breaks(before: &FileDescriptorSet, now: &FileDescriptorSet) -> Vec<Break> {
    let (before, now) = (Names::of(before), Names::of(now));
    let mut found = Vec::new();
    for (name, message) in &before.messages {
        match now.messages.get(name) {
            None => found.push(Break { what: name.clone(), rule: Rule::MessageRemoved }),
            Some(today) => message_breaks(name, message, today, &mut found),
        }
    }
    for (name, values) in &before.enums {
        match now.enums.get(name) {
            None => found.push(Break { what: name.clone(), rule: Rule::EnumRemoved }),
            Some(today) => enum_breaks(name, values, today, &mut found),
        }
    }
    for (name, service) in &before.services {
        match now.services.get(name) {
            None => found.push(Break { what: name.clone(), rule: Rule::ServiceRemoved }),
            Some(today) => service_breaks(name, service, today, &mut found),
        }
    }
    found
}

/// Everything of our packages by its full name.
#[derive(Default)]
struct Names<'a> {
    messages: BTreeMap<String, &'a DescriptorProto>,
    enums: BTreeMap<String, &'a EnumDescriptorProto>,
    services: BTreeMap<String, &'a ServiceDescriptorProto>,
}

impl<'a> Names<'a> {
    fn of(files: &'a FileDescriptorSet) -> Names<'a> {
        let mut names = Names::default();
        for file in files.file.iter().filter(|file| file.package().starts_with("autoact.")) {
            let package = file.package();
            file.message_type.iter().for_each(|message| names.message(package, message));
            names.enums.extend(file.enum_type.iter().map(|values| (format!("{package}.{}", values.name()), values)));
            names.services.extend(file.service.iter().map(|service| (format!("{package}.{}", service.name()), service)));
        }
        names
    }

    fn message(&mut self, scope: &str, message: &'a DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        message.nested_type.iter().for_each(|nested| self.message(&name, nested));
        self.enums.extend(message.enum_type.iter().map(|values| (format!("{name}.{}", values.name()), values)));
        self.messages.insert(name, message);
    }
}

fn message_breaks(name: &str, before: &DescriptorProto, now: &DescriptorProto, found: &mut Vec<Break>) {
    for field in &before.field {
        let mut broken = |rule| found.push(Break { what: format!("{name}.{}", field.name()), rule });
        let Some(today) = now.field.iter().find(|today| today.number() == field.number()) else {
            let number_reserved = now.reserved_range.iter().any(|range| (range.start()..range.end()).contains(&field.number()));
            let name_reserved = now.reserved_name.iter().any(|name| name == field.name());
            if now.field.iter().any(|today| today.name() == field.name()) {
                broken(Rule::FieldNumber);
            } else if !(number_reserved && name_reserved) {
                broken(Rule::FieldRemoved);
            }
            continue;
        };
        if today.name() != field.name() {
            broken(Rule::FieldName);
        }
        if today.json_name() != field.json_name() {
            broken(Rule::FieldJsonName);
        }
        if kind(today) != kind(field) {
            broken(Rule::FieldType);
        }
        if today.label() != field.label() || today.proto3_optional() != field.proto3_optional() {
            broken(Rule::FieldLabel);
        }
        if oneof(today, now) != oneof(field, before) {
            broken(Rule::FieldOneof);
        }
    }
    let ranges = |message: &DescriptorProto| -> Vec<(i32, i32)> {
        message.reserved_range.iter().map(|range| (range.start(), range.end())).collect()
    };
    if !still_reserved(ranges(before), &ranges(now), &before.reserved_name, &now.reserved_name) {
        found.push(Break { what: name.to_owned(), rule: Rule::ReservedFreed });
    }
}

/// A field's type: the scalar, or the message or enumeration with its name.
fn kind(field: &FieldDescriptorProto) -> (Type, &str) {
    (field.r#type(), field.type_name())
}

/// The oneof that a field is in. The one that the compiler makes up for `optional` is none.
fn oneof<'a>(field: &FieldDescriptorProto, message: &'a DescriptorProto) -> Option<&'a str> {
    if field.proto3_optional() {
        return None;
    }
    Some(message.oneof_decl.get(usize::try_from(field.oneof_index?).ok()?)?.name())
}

fn enum_breaks(name: &str, before: &EnumDescriptorProto, now: &EnumDescriptorProto, found: &mut Vec<Break>) {
    for value in &before.value {
        let mut broken = |rule| found.push(Break { what: format!("{name}.{}", value.name()), rule });
        // the end of an enumeration's range is inclusive
        let number_reserved = now.reserved_range.iter().any(|range| (range.start()..=range.end()).contains(&value.number()));
        let name_reserved = now.reserved_name.iter().any(|name| name == value.name());
        match now.value.iter().find(|today| today.number() == value.number()) {
            Some(today) if today.name() != value.name() => broken(Rule::ValueName),
            None if !(number_reserved && name_reserved) => broken(Rule::ValueRemoved),
            Some(_) | None => {}
        }
    }
    let ranges = |values: &EnumDescriptorProto| -> Vec<(i32, i32)> {
        values.reserved_range.iter().map(|range| (range.start(), range.end() + 1)).collect()
    };
    if !still_reserved(ranges(before), &ranges(now), &before.reserved_name, &now.reserved_name) {
        found.push(Break { what: name.to_owned(), rule: Rule::ReservedFreed });
    }
}

fn still_reserved(before: Vec<(i32, i32)>, now: &[(i32, i32)], names_before: &[String], names_now: &[String]) -> bool {
    let covered = |number| now.iter().any(|(start, end)| (*start..*end).contains(&number));
    before.into_iter().all(|(start, end)| (start..end).all(covered)) && names_before.iter().all(|name| names_now.contains(name))
}

fn service_breaks(name: &str, before: &ServiceDescriptorProto, now: &ServiceDescriptorProto, found: &mut Vec<Break>) {
    let streaming = |rpc: &MethodDescriptorProto| (rpc.client_streaming(), rpc.server_streaming());
    let idempotency = |rpc: &MethodDescriptorProto| rpc.options.as_ref().map(|options| options.idempotency_level());
    for rpc in &before.method {
        let mut broken = |rule| found.push(Break { what: format!("{name}.{}", rpc.name()), rule });
        let Some(today) = now.method.iter().find(|today| today.name() == rpc.name()) else {
            broken(Rule::RpcRemoved);
            continue;
        };
        if today.input_type() != rpc.input_type() {
            broken(Rule::RpcRequest);
        }
        if today.output_type() != rpc.output_type() {
            broken(Rule::RpcResponse);
        }
        if streaming(today) != streaming(rpc) {
            broken(Rule::RpcStreaming);
        }
        if idempotency(today) != idempotency(rpc) {
            broken(Rule::RpcIdempotency);
        }
    }
}
