//! Every document of `tests/bad-protocols/` is refused with its own error, at the place of its fault.
//!
//! [`refused`] is what the tests over HTTP and of the command line go through as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use heldout::domain::protocol::{MediaType, parse};
use heldout::domain::refusal::{Code, Refusal};
use serde_json::{Value, json};

/// A document that must be refused.
pub(crate) struct BadDocument {
    /// File name, or a name of the same form for a document that is made here.
    pub(crate) name: String,
    pub(crate) media: MediaType,
    pub(crate) bytes: Vec<u8>,
    /// What a database must hold for the refusal; such a document is good as such.
    pub(crate) needs: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-protocols")
}

/// Every document of the folder in the order of their names, then those that are made here.
pub(crate) fn all() -> Vec<BadDocument> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    names.sort();
    let from_files = names.into_iter().map(|name| {
        let bytes = std::fs::read(folder().join(&name)).unwrap();
        let media = match name.rsplit_once('.') {
            Some((_, "toml")) => MediaType::Toml,
            Some((_, "json")) => MediaType::Json,
            _ => panic!("{name} is neither TOML nor JSON"),
        };
        let first = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
        let needs = std::str::from_utf8(first).ok().and_then(|line| line.strip_prefix("# needs: "));
        BadDocument { needs: needs.map(str::to_owned), name, media, bytes }
    });
    from_files.chain(made_here()).collect()
}

/// Bodies that are too large, too deep or too many to keep as files.
fn made_here() -> Vec<BadDocument> {
    let deep = |levels: usize, open: &str, close: &str| {
        format!("{}{}", open.repeat(levels), close.repeat(levels))
    };
    let blocks: Vec<_> =
        (0..65).map(|n| format!("[seeds.b{n}]\nrole = \"training\"\ncount = 1\n")).collect();
    let many_blocks = blocks.concat();
    let fields: Vec<_> = (0..400).map(|n| format!("field{n} = 1\n")).collect();
    let many_fields = fields.concat();
    let head = "format = \"heldout-protocol-v1\"\nkind = \"tables\"\n";
    let made = [
        ("body-of-10-mib.json", format!("{{\"title\":\"{}\"}}", "x".repeat(10 << 20))),
        ("body-of-10-mib.toml", format!("title = \"{}\"\n", "x".repeat((10 << 20) + 1))),
        ("nested-100000-deep.json", deep(100_000, "[", "]")),
        ("nested-65-deep.json", deep(65, "{\"a\":", "}").replace(":}", ":1}")),
        ("nested-100000-deep.toml", format!("a = {}\n", deep(100_000, "[", "]"))),
        ("nested-70-deep.toml", format!("title = {}\n", deep(70, "[", "]"))),
        ("key-of-257-bytes.json", format!("{{\"title\":{{\"{}\":1}}}}", "k".repeat(257))),
        ("key-of-257-bytes.toml", format!("[theory]\n{} = 1\n", "k".repeat(257))),
        (
            "sixty-five-blocks.toml",
            format!("{head}title = \"t\"\nhypothesis = \"h\"\n{many_blocks}"),
        ),
        ("hundreds-of-faults.toml", format!("{head}{many_fields}")),
    ];
    made.map(|(name, text)| BadDocument {
        name: name.to_owned(),
        media: if name.ends_with("json") { MediaType::Json } else { MediaType::Toml },
        bytes: text.into_bytes(),
        needs: None,
    })
    .into()
}

/// A refusal as JSON, without what may be worded differently elsewhere.
fn shown(refusal: &Refusal) -> Value {
    let few = &refusal.errors[..refusal.errors.len().min(12)];
    json!({
        "code": refusal.code,
        "detail": refusal.detail,
        "hint": refusal.hint,
        "errors": few,
        "errorCount": refusal.errors.len(),
    })
}

#[test]
fn every_bad_document_is_refused_as_expected() {
    let expected = folder().join("expected");
    let mut seen = BTreeSet::new();
    insta::with_settings!({
        snapshot_path => &expected,
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        for document in all().into_iter().filter(|document| document.needs.is_none()) {
            let Err(refusal) = parse(&document.bytes, document.media) else {
                panic!("{} is accepted", document.name);
            };
            insta::assert_json_snapshot!(document.name.as_str(), shown(&refusal));
            seen.insert(format!("{}.snap", document.name));
        }
    });
    for entry in std::fs::read_dir(&expected).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(seen.contains(&name), "expected/{name} belongs to no document");
    }
}

#[test]
fn every_bad_document_has_its_own_first_error() {
    let mut first_errors = std::collections::BTreeMap::new();
    let mut files = 0;
    for document in all().into_iter().filter(|document| document.needs.is_none()) {
        let refusal = parse(&document.bytes, document.media).unwrap_err();
        assert!(!refusal.detail.is_empty(), "{}", document.name);
        let first = refusal.errors.first();
        let wording = first.map_or(&refusal.detail, |error| &error.detail);
        let without_line = wording.split(" (line ").next().unwrap_or_default();
        let pointer = first.map(|error| error.pointer.clone());
        if refusal.code != Code::TooLarge {
            assert!(pointer.is_some(), "{} has no pointer", document.name);
        }
        let key = (document.media == MediaType::Json, pointer, without_line.to_owned());
        if let Some(other) = first_errors.insert(key, document.name.clone()) {
            panic!("{} and {other} have the same first error: {refusal}", document.name);
        }
        files += 1;
    }
    assert!(files >= 35, "{files} documents");
}

#[test]
fn documents_that_need_a_database_are_good_as_such() {
    let mut files = 0;
    for document in all().into_iter().filter(|document| document.needs.is_some()) {
        if let Err(refusal) = parse(&document.bytes, document.media) {
            panic!("{}: {refusal}", document.name);
        }
        files += 1;
    }
    assert!(files >= 3, "{files} documents");
}
