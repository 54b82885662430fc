//! The contracts break nothing that a release has promised. `proto/released.binpb` is the
//! descriptor set of the last release.
//!
//! At a release, `AUTOACT_WRITE_RELEASED=1 cargo test -p autoact-wire --test breaking` records
//! today's set, once the comparison with the set before has passed.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

#[path = "breaking/rules.rs"]
mod rules;

use std::path::PathBuf;

use prost::Message;
use prost_types::descriptor_proto::ReservedRange;
use prost_types::enum_descriptor_proto::EnumReservedRange;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::method_options::IdempotencyLevel;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, MethodOptions, OneofDescriptorProto, ServiceDescriptorProto,
};
use rules::{Rule, breaks};

/// Today's contracts, without what a compiler or a reader of comments needs.
fn today() -> FileDescriptorSet {
    let mut files = FileDescriptorSet::decode(autoact_wire::FILE_DESCRIPTOR_SET).unwrap();
    files.file.retain(|file| file.package().starts_with("autoact."));
    files.file.iter_mut().for_each(|file| file.source_code_info = None);
    files
}

#[test]
fn nothing_that_was_released_is_broken() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../proto/released.binpb");
    let today = today();
    if let Ok(bytes) = std::fs::read(&path) {
        let broken = breaks(&FileDescriptorSet::decode(bytes.as_slice()).unwrap(), &today);
        assert!(broken.is_empty(), "clients and stored data of the last release would be misread: {broken:#?}");
    }
    if std::env::var_os("AUTOACT_WRITE_RELEASED").is_some() {
        std::fs::write(&path, today.encode_to_vec()).unwrap();
    }
    assert!(path.exists(), "no released contracts: run with AUTOACT_WRITE_RELEASED=1");
}

fn field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        json_name: Some(name.into()),
        number: Some(number),
        label: Some(Label::Optional as i32),
        r#type: Some(kind as i32),
        ..FieldDescriptorProto::default()
    }
}

/// A small contract with one of everything.
fn released() -> FileDescriptorSet {
    let answer = FieldDescriptorProto { oneof_index: Some(0), ..field("answer", 3, Type::String) };
    let limit = FieldDescriptorProto { proto3_optional: Some(true), oneof_index: Some(1), ..field("limit", 4, Type::Uint32) };
    let oneof = |name: &str| OneofDescriptorProto { name: Some(name.into()), ..OneofDescriptorProto::default() };
    let task = DescriptorProto {
        name: Some("Task".into()),
        field: vec![field("id", 1, Type::String), field("steps", 2, Type::Uint32), answer, limit],
        oneof_decl: vec![oneof("end"), oneof("_limit")],
        reserved_range: vec![ReservedRange { start: Some(7), end: Some(8) }],
        reserved_name: vec!["old".into()],
        nested_type: vec![DescriptorProto { name: Some("Part".into()), ..DescriptorProto::default() }],
        ..DescriptorProto::default()
    };
    let value = |name: &str, number| EnumValueDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        ..EnumValueDescriptorProto::default()
    };
    let state = EnumDescriptorProto {
        name: Some("State".into()),
        value: vec![value("STATE_UNSPECIFIED", 0), value("STATE_DONE", 1)],
        ..EnumDescriptorProto::default()
    };
    let get = MethodDescriptorProto {
        name: Some("Get".into()),
        input_type: Some(".autoact.test.Task".into()),
        output_type: Some(".autoact.test.Task".into()),
        ..MethodDescriptorProto::default()
    };
    let service = ServiceDescriptorProto { name: Some("Tasks".into()), method: vec![get], ..ServiceDescriptorProto::default() };
    let file = FileDescriptorProto {
        package: Some("autoact.test".into()),
        message_type: vec![task],
        enum_type: vec![state],
        service: vec![service],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }
}

/// The rules that a change of the small contract breaks.
fn broken_by(change: impl FnOnce(&mut FileDescriptorProto)) -> Vec<Rule> {
    let mut now = released();
    change(&mut now.file[0]);
    breaks(&released(), &now).into_iter().map(|found| found.rule).collect()
}

#[test]
fn additions_break_nothing() {
    let broken = broken_by(|file| {
        let task = &mut file.message_type[0];
        task.field.push(field("labels", 5, Type::Message));
        task.reserved_range.push(ReservedRange { start: Some(20), end: Some(30) });
        file.message_type.push(DescriptorProto { name: Some("Other".into()), ..DescriptorProto::default() });
        let added = EnumValueDescriptorProto { name: Some("STATE_LOST".into()), number: Some(2), ..EnumValueDescriptorProto::default() };
        file.enum_type[0].value.push(added);
        let rpc = MethodDescriptorProto { name: Some("List".into()), ..file.service[0].method[0].clone() };
        file.service[0].method.push(rpc);
        file.service.push(ServiceDescriptorProto { name: Some("More".into()), ..ServiceDescriptorProto::default() });
    });
    assert_eq!(broken, []);
}

#[test]
fn what_was_released_stays() {
    assert_eq!(broken_by(|file| drop(file.message_type[0].nested_type.pop())), [Rule::MessageRemoved]);
    assert_eq!(broken_by(|file| drop(file.enum_type.pop())), [Rule::EnumRemoved]);
    assert_eq!(broken_by(|file| drop(file.service.pop())), [Rule::ServiceRemoved]);
    assert_eq!(broken_by(|file| drop(file.service[0].method.pop())), [Rule::RpcRemoved]);
    assert_eq!(broken_by(|file| file.package = Some("autoact.moved".into())).len(), 4);
}

#[test]
fn a_field_goes_only_if_its_number_and_name_are_reserved() {
    let number = ReservedRange { start: Some(2), end: Some(3) };
    assert_eq!(broken_by(|file| drop(file.message_type[0].field.remove(1))), [Rule::FieldRemoved]);
    let broken = broken_by(|file| {
        file.message_type[0].field.remove(1);
        file.message_type[0].reserved_range.push(number);
    });
    assert_eq!(broken, [Rule::FieldRemoved]);
    let broken = broken_by(|file| {
        file.message_type[0].field.remove(1);
        file.message_type[0].reserved_name.push("steps".into());
    });
    assert_eq!(broken, [Rule::FieldRemoved]);
    let broken = broken_by(|file| {
        file.message_type[0].field.remove(1);
        file.message_type[0].reserved_range.push(number);
        file.message_type[0].reserved_name.push("steps".into());
    });
    assert_eq!(broken, []);
}

#[test]
fn a_field_stays_as_it_is() {
    let change = |change: fn(&mut FieldDescriptorProto)| broken_by(move |file| change(&mut file.message_type[0].field[1]));
    assert_eq!(change(|steps| steps.number = Some(9)), [Rule::FieldNumber]);
    assert_eq!(change(|steps| steps.name = Some("loops".into())), [Rule::FieldName]);
    assert_eq!(change(|steps| steps.json_name = Some("loops".into())), [Rule::FieldJsonName]);
    assert_eq!(change(|steps| steps.r#type = Some(Type::Uint64 as i32)), [Rule::FieldType]);
    assert_eq!(change(|steps| steps.type_name = Some(".autoact.test.Other".into())), [Rule::FieldType]);
    assert_eq!(change(|steps| steps.label = Some(Label::Repeated as i32)), [Rule::FieldLabel]);
    assert_eq!(change(|steps| steps.proto3_optional = Some(true)), [Rule::FieldLabel]);
    assert_eq!(change(|steps| steps.oneof_index = Some(0)), [Rule::FieldOneof]);
    assert_eq!(broken_by(|file| file.message_type[0].field[2].oneof_index = None), [Rule::FieldOneof]);
}

#[test]
fn an_enumeration_keeps_its_values() {
    assert_eq!(broken_by(|file| drop(file.enum_type[0].value.pop())), [Rule::ValueRemoved]);
    assert_eq!(broken_by(|file| file.enum_type[0].value[1].number = Some(5)), [Rule::ValueRemoved]);
    assert_eq!(broken_by(|file| file.enum_type[0].value[1].name = Some("STATE_OVER".into())), [Rule::ValueName]);
    let broken = broken_by(|file| {
        file.enum_type[0].value.pop();
        file.enum_type[0].reserved_range.push(EnumReservedRange { start: Some(1), end: Some(1) });
        file.enum_type[0].reserved_name.push("STATE_DONE".into());
    });
    assert_eq!(broken, []);
}

#[test]
fn what_is_reserved_stays_reserved() {
    assert_eq!(broken_by(|file| file.message_type[0].reserved_range.clear()), [Rule::ReservedFreed]);
    assert_eq!(broken_by(|file| file.message_type[0].reserved_name.clear()), [Rule::ReservedFreed]);
}

#[test]
fn a_call_keeps_its_messages_and_its_streaming() {
    let change = |change: fn(&mut MethodDescriptorProto)| broken_by(move |file| change(&mut file.service[0].method[0]));
    assert_eq!(change(|rpc| rpc.input_type = Some(".autoact.test.Other".into())), [Rule::RpcRequest]);
    assert_eq!(change(|rpc| rpc.output_type = Some(".autoact.test.Other".into())), [Rule::RpcResponse]);
    assert_eq!(change(|rpc| rpc.client_streaming = Some(true)), [Rule::RpcStreaming]);
    assert_eq!(change(|rpc| rpc.server_streaming = Some(true)), [Rule::RpcStreaming]);
    let options = || MethodOptions { idempotency_level: Some(IdempotencyLevel::Idempotent as i32), ..MethodOptions::default() };
    let broken = broken_by(|file| file.service[0].method[0].options = Some(options()));
    assert_eq!(broken, [Rule::RpcIdempotency]);
}
