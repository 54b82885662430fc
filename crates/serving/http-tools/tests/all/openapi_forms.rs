//! Parameters, bodies and schemas in the forms of each version.

use autoact_http_tools::openapi::{Import, ImportOptions, Imported, Note, SkipReason, import};
use autoact_http_tools::{BodyForm, Place, Style};
use serde_json::{Value, json};

use crate::import::{read, with_paths};

fn yaml(text: &str) -> Import {
    import(text.as_bytes(), "openapi.yaml", &ImportOptions::default()).unwrap()
}

fn schema(imported: &Imported) -> &Value {
    imported.spec.schema.as_ref().unwrap().value()
}

/// The schema of a body, as it is imported into version 3.0.
fn body(schema: Value) -> (Value, Vec<Note>) {
    let document = with_paths(
        json!({ "/x": { "post": { "requestBody": { "required": true, "content": { "application/json": { "schema": schema } } } } } }),
    );
    let mut import = read(&document, &ImportOptions::default());
    let imported = import.operations.pop().unwrap_or_else(|| panic!("{:?}", import.skipped));
    (self::schema(&imported)["properties"]["body"].clone(), imported.notes)
}

#[test]
fn swagger_2_has_its_own_forms() {
    let import = yaml(
        "
swagger: 2.0
info: {title: T, version: 1.0}
host: api.example.com
basePath: /v2
schemes: [http, https]
consumes: [application/json]
securityDefinitions:
  basic: {type: basic}
  key: {type: apiKey, in: header, name: X-Key}
  flow: {type: oauth2, flow: implicit, authorizationUrl: 'https://x.test', scopes: {}}
parameters:
  limit: {name: limit, in: query, type: integer, maximum: 10, exclusiveMaximum: true, default: 5}
definitions:
  Pet: {type: object, required: [name], properties: {name: {type: string, x-nullable: true}}}
paths:
  /pets:
    get:
      security: [{basic: []}]
      parameters:
        - $ref: '#/parameters/limit'
        - {name: ids, in: query, type: array, items: {type: string}, collectionFormat: pipes}
        - {name: tags, in: query, type: array, items: {type: string}, collectionFormat: multi}
        - {name: plain, in: query, type: array, items: {type: string}}
        - {name: X-Id, in: header, type: string, enum: [1, on]}
    post:
      security: [{key: []}]
      parameters: [{name: pet, in: body, required: true, schema: {$ref: '#/definitions/Pet'}}]
  /form:
    post:
      consumes: [application/x-www-form-urlencoded]
      security: [{flow: []}]
      parameters:
        - {name: a, in: formData, type: string, required: true}
        - {name: photo, in: formData, type: file}
  /upload:
    post:
      consumes: [multipart/form-data]
      parameters: [{name: photo, in: formData, type: file, required: true}]
  /multi:
    post:
      consumes: [multipart/form-data]
      parameters: [{name: a, in: formData, type: string}]
  /xml:
    put:
      consumes: [application/xml]
      parameters: [{name: b, in: body, required: true, schema: {}}]
",
    );
    let of = |name: &str| import.operations.iter().find(|one| one.spec.name == name).unwrap();
    let get = of("get_pets");
    assert_eq!(get.operation.url.to_string(), "https://api.example.com/v2/pets");
    let styles: Vec<_> = get.operation.arguments.iter().map(|one| (one.name.as_str(), one.style, one.explode)).collect();
    assert_eq!(
        styles,
        [
            ("limit", Style::Form, false),
            ("ids", Style::Pipe, false),
            ("tags", Style::Form, true),
            ("plain", Style::Form, false),
            ("X-Id", Style::Simple, false)
        ]
    );
    assert_eq!(schema(get)["properties"]["limit"], json!({ "type": "integer", "default": 5, "exclusiveMaximum": 10 }));
    assert_eq!(schema(get)["properties"]["X-Id"]["enum"], json!(["1", "on"]));
    assert_eq!(schema(of("post_pets"))["properties"]["body"]["properties"]["name"]["type"], json!(["string", "null"]));
    assert_eq!(
        (&of("post_form").operation.body, of("post_form").notes.as_slice()),
        (&BodyForm::Form, &[Note::LeftOut("photo".into())][..])
    );
    assert_eq!(of("post_multi").operation.body, BodyForm::Multipart);
    assert_eq!(import.secrets.iter().map(|one| one.scheme.as_str()).collect::<Vec<_>>(), ["basic", "key", "flow"]);
    let reasons: Vec<_> = import.skipped.iter().map(|one| (one.at.as_str(), one.reason.clone())).collect();
    assert_eq!(reasons, [("POST /upload", SkipReason::File("photo".into())), ("PUT /xml", SkipReason::Body("application/xml".into()))]);
}

#[test]
fn version_3_1_has_the_keywords_of_json_schema() {
    let import = yaml(
        "
openapi: 3.1.0
info: {title: T, version: 1}
servers: [{url: 'https://api.example.com'}]
components:
  schemas: {Id: {type: [string, 'null'], description: inner}}
paths:
  /x/{id}:
    get:
      parameters:
        - {name: id, in: path, required: true, schema: {$ref: '#/components/schemas/Id', description: outer}}
        - {name: n, in: query, schema: {type: integer, exclusiveMinimum: 0, examples: [3], not: {const: 4}}}
        - {name: c, in: query, schema: {const: fixed}}
",
    );
    let [one] = import.operations.as_slice() else { panic!("{import:?}") };
    let properties = &schema(one)["properties"];
    assert_eq!(properties["id"], json!({ "type": ["string", "null"], "description": "outer" }));
    assert_eq!(properties["n"], json!({ "type": "integer", "exclusiveMinimum": 0 }));
    assert_eq!(properties["c"], json!({ "const": "fixed" }));
    assert_eq!(one.notes, [Note::Dropped("not".into())]);
}

#[test]
fn parameters_of_version_3_have_styles_and_places() {
    let document = with_paths(json!({ "/x/{id}": { "get": { "parameters": [
        { "name": "id", "in": "path", "required": true, "style": "matrix", "schema": { "type": "array", "items": {} } },
        { "name": "id", "in": "query", "required": true, "schema": { "type": "string" } },
        { "name": "id", "in": "header", "schema": { "type": "string" } },
        { "name": "f", "in": "query", "style": "deepObject", "explode": true, "schema": { "type": "object" } },
        { "name": "s", "in": "query", "style": "spaceDelimited", "schema": { "type": "array" } },
        { "name": "j", "in": "query", "content": { "application/json": { "schema": { "type": "object" } } } },
        { "name": "filter[a]", "in": "query", "schema": { "type": "string" } },
        { "name": "Accept", "in": "header", "schema": { "type": "string" } },
        { "name": "Host", "in": "header", "schema": { "type": "string" } },
        { "name": "gone", "in": "path", "required": true, "schema": { "type": "string" } },
    ] } },
        "/y/{undeclared}#frag": { "get": {} }, "/z": { "get": { "parameters": [{ "name": "Host", "in": "header", "required": true, "schema": {} }] } } }));
    let import = read(&document, &ImportOptions::default());
    let x = &import.operations[0];
    let found: Vec<_> = x.operation.arguments.iter().map(|one| (one.name.as_str(), one.wire.as_str(), one.place, one.style)).collect();
    assert_eq!(
        found,
        [
            ("id", "id", Place::Path, Style::Matrix),
            ("id_query", "id", Place::Query, Style::Form),
            ("id_header", "id", Place::Header, Style::Simple),
            ("f", "f", Place::Query, Style::Deep),
            ("s", "s", Place::Query, Style::Space),
            ("j", "j", Place::Query, Style::Json),
            ("filter_a", "filter[a]", Place::Query, Style::Form),
        ]
    );
    assert_eq!(x.notes, [Note::LeftOut("Host".into()), Note::LeftOut("gone".into())]);
    assert_eq!(import.operations[1].notes, [Note::Undeclared("undeclared".into()), Note::Fragment("frag".into())]);
    assert_eq!(import.operations[1].operation.url.to_string(), "https://api.example.com/v1/y/{undeclared}");
    assert_eq!(import.skipped[0].reason, SkipReason::Header("Host".into()));
}

#[test]
fn bodies_of_version_3_are_json_forms_or_text() {
    let form = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" }, "f": { "type": "string", "format": "binary" }, "o": { "type": "object" } } });
    let of = |media: &str, schema: &Value, required: bool| json!({ "post": { "requestBody": { "required": required, "content": { media: { "schema": schema, "encoding": { "o": { "contentType": "application/json" } } } } } } });
    let mut needs_file = form.clone();
    needs_file["required"] = json!(["f"]);
    let document = with_paths(json!({
        "/json": of("application/vnd.api+json; charset=utf-8", &json!({ "type": "object" }), true),
        "/form": of("application/x-www-form-urlencoded", &form, true),
        "/multipart": of("multipart/form-data", &form, true),
        "/file": of("multipart/form-data", &needs_file, true),
        "/text": of("text/markdown", &json!({ "type": "string" }), true),
        "/binary": of("application/octet-stream", &json!({}), true),
        "/maybe": of("application/xml", &json!({}), false),
    }));
    let import = read(&document, &ImportOptions::default());
    let bodies: Vec<_> = import.operations.iter().map(|one| (one.at.as_str(), &one.operation.body)).collect();
    assert_eq!(
        bodies,
        [
            ("POST /json", &BodyForm::Json("application/vnd.api+json".into())),
            ("POST /form", &BodyForm::Form),
            ("POST /multipart", &BodyForm::Multipart),
            ("POST /text", &BodyForm::Text("text/markdown".into())),
            ("POST /maybe", &BodyForm::None),
        ]
    );
    assert_eq!(import.operations[1].operation.arguments[1].style, Style::Json);
    assert!(import.operations[1].notes.contains(&Note::LeftOut("f".into())));
    // a text with a media type is no plain line
    assert_eq!(import.operations[3].spec.schema.as_ref().unwrap().line_property(), None);
    let reasons: Vec<_> = import.skipped.iter().map(|one| one.reason.clone()).collect();
    assert_eq!(reasons, [SkipReason::File("f".into()), SkipReason::Body("application/octet-stream".into())]);
}

#[test]
fn schemas_become_what_the_compiler_takes() {
    let (merged, notes) = body(json!({ "allOf": [
        { "type": "object", "properties": { "a": { "type": "number", "minimum": 1 } }, "required": ["a"], "additionalProperties": false },
        { "type": "object", "properties": { "a": { "type": "integer", "minimum": 3 }, "b": { "enum": ["x", "y"] } }, "required": ["a", "b"] },
        { "properties": { "b": { "enum": ["y", "z"] } } } ] }));
    let expected = json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 3 }, "b": { "enum": ["y"] } },
        "required": ["a", "b"], "additionalProperties": false });
    assert_eq!((merged, notes), (expected, Vec::new()));
    for (given, expected, dropped) in [
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
            json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
            None,
        ),
        (
            json!({ "oneOf": [{ "type": "string", "not": {} }, { "type": "string" }] }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "string" }] }),
            Some("not"),
        ),
        (json!({ "type": "string", "pattern": "^(?=a)b$" }), json!({ "type": "string" }), Some("pattern")),
        (json!({ "type": "string", "pattern": "^[a-z]+$" }), json!({ "type": "string", "pattern": "^[a-z]+$" }), None),
        (json!({ "type": "string", "minLength": 5, "maxLength": 2 }), json!({ "type": "string" }), Some("minLength")),
        (json!({ "type": "string", "maxLength": 4_294_967_295_u64 }), json!({ "type": "string" }), Some("maxLength")),
        (json!({ "type": "int", "minimum": "3" }), json!({ "type": "integer", "minimum": 3.0 }), None),
        (
            json!({ "type": "integer", "enum": ["1", 2], "nullable": true }),
            json!({ "type": ["integer", "null"], "enum": [1, 2, null] }),
            None,
        ),
        (json!({ "type": "string", "format": "uri", "xml": {}, "example": "x" }), json!({ "type": "string" }), None),
        (
            json!({ "properties": { "$id": { "type": "string" } }, "$schema": "x", "$id": "y" }),
            json!({ "type": "object", "properties": { "$id": { "type": "string" } } }),
            None,
        ),
        (json!({ "type": "strange" }), json!({}), Some("type: strange")),
        (json!({ "type": "string", "required": true, "enum": [] }), json!({ "type": "string" }), Some("enum")),
    ] {
        let (found, notes) = body(given.clone());
        assert_eq!(found, expected, "{given}");
        assert_eq!(notes, dropped.map(|name| Note::Dropped(name.to_owned())).into_iter().collect::<Vec<_>>(), "{given}");
    }
}

#[test]
fn a_large_schema_is_made_smaller_and_says_so() {
    let property = |n: usize| (format!("property_{n}"), json!({ "type": "string", "description": "long words ".repeat(30) }));
    let properties: serde_json::Map<String, Value> = (0..150).map(property).collect();
    let (found, notes) = body(json!({ "type": "object", "properties": properties }));
    assert_eq!(found["properties"].as_object().unwrap().len(), 150);
    assert_eq!(notes, [Note::Descriptions]);
    let deep = json!({ "type": "object", "properties": (0..60).map(|n| (format!("p{n}"), json!({ "type": "object", "properties": properties }))).collect::<serde_json::Map<_, _>>() });
    let (found, notes) = body(deep);
    assert_eq!(found["properties"]["p3"], json!({ "type": "object" }));
    assert!(notes.contains(&Note::Deep));
    let huge: serde_json::Map<String, Value> = (0..2000).map(property).collect();
    let parameters: Vec<Value> = huge.keys().map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } })).collect();
    let import = read(&with_paths(json!({ "/x": { "get": { "parameters": parameters } } })), &ImportOptions::default());
    assert!(matches!(import.skipped[0].reason, SkipReason::SchemaTooLarge(_)));
}

#[test]
fn deprecated_operations_are_skipped_by_an_option() {
    let document = with_paths(json!({ "/x": { "get": { "deprecated": true } } }));
    assert_eq!(read(&document, &ImportOptions::default()).skipped[0].reason, SkipReason::Deprecated);
    let all = read(&document, &ImportOptions { skip_deprecated: false, prefix: "old_".into(), ..ImportOptions::default() });
    assert_eq!((all.operations[0].deprecated, all.operations[0].spec.name.as_str()), (true, "old_get_x"));
}
