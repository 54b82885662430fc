//! Tests of the PDF parser, over files that are written here byte by byte.
#![allow(clippy::unwrap_used)] // tests

use std::fmt::Write as _;
use std::time::Duration;

use lopdf::{EncryptionState, EncryptionVersion, Permissions, Stream};
use proptest::prelude::*;

use super::*;

/// A file of objects, numbered from 1; the first one is the catalog.
fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(objects) {
        offsets.push(bytes.len());
        bytes.extend(format!("{number} 0 obj\n").bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    let start = bytes.len();
    let mut end = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    offsets.iter().for_each(|offset| writeln!(end, "{offset:010} 00000 n ").unwrap());
    let id = "<00112233445566778899aabbccddeeff>";
    write!(end, "trailer\n<< /Size {} /Root 1 0 R /ID [{id} {id}] >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1).unwrap();
    bytes.extend(end.bytes());
    bytes
}

fn stream(dictionary: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("<< /Length {} {dictionary} >>\nstream\n", content.len());
    [head.as_bytes(), content, b"\nendstream"].concat()
}

/// A file with a page for each content stream.
fn pages(contents: &[Vec<u8>]) -> Vec<u8> {
    let kids: String = (0..contents.len()).map(|page| format!("{} 0 R ", 5 + 2 * page)).collect();
    let font = |name: &str| format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>").into_bytes();
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} /Resources << /Font << /F 3 0 R /B 4 0 R >> >> >>", contents.len()).into_bytes(),
        font("Helvetica"),
        font("Helvetica-Bold"),
    ];
    for (page, content) in contents.iter().enumerate() {
        let content_id = 6 + 2 * page;
        objects.push(format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content_id} 0 R >>").into_bytes());
        objects.push(content.clone());
    }
    file(&objects)
}

/// Text at places: x, y, font, size, words.
fn page(texts: &[(i32, i32, &str, i32, &str)]) -> Vec<u8> {
    let show = |(x, y, font, size, words): &(i32, i32, &str, i32, &str)| format!("BT /{font} {size} Tf {x} {y} Td ({words}) Tj ET\n");
    stream("", texts.iter().map(show).collect::<String>().as_bytes())
}

fn extract_with(bytes: &[u8], limits: &Limits) -> Result<Extracted, ReadError> {
    read(bytes, limits, Instant::now() + Duration::from_secs(60))
}

fn extract(bytes: &[u8]) -> Result<Extracted, ReadError> {
    extract_with(bytes, &Limits::default())
}

const LEFT: [&str; 4] = [
    "The Loire is the longest river of the",
    "country. It rises in the south-east and",
    "flows north, then west. Its water is ",
    "known for its castles and its vine-",
];
const RIGHT: [&str; 4] = [
    "yards. The Seine is shorter, and more",
    "ships use it. It flows through Paris,",
    "where it has many bridges, and ends",
    "in the Channel near a large harbour.",
];
const READ: &str = "The Loire is the longest river of the country. It rises in the south-east and flows north, then west. Its water is known for its castles and its vineyards. The Seine is shorter, and more ships use it. It flows through Paris, where it has many bridges, and ends in the Channel near a large harbour.";

#[test]
fn one_column_has_paragraphs_and_headings() {
    let content = page(&[
        (72, 740, "F", 18, "Rivers of France"),
        (72, 700, "F", 10, "The Loire is the longest river of the country, and it"),
        (72, 688, "F", 10, "rises in the south-east."),
        (72, 664, "F", 10, "A second paragraph is here, and it has one line only."),
        (72, 630, "B", 10, "The Seine"),
        (72, 610, "F", 10, "It flows through Paris."),
    ]);
    let found = extract(&pages(&[content])).unwrap();
    assert_eq!((found.title.as_deref(), found.pages), (Some("Rivers of France"), Some(1)));
    assert_eq!(
        found.text,
        "The Loire is the longest river of the country, and it rises in the south-east.\n\nA second paragraph is here, and it has one line only.\n\nIt flows through Paris."
    );
    let headings: Vec<_> = found.sections.iter().map(|section| (section.heading.as_deref().unwrap_or_default(), section.page)).collect();
    assert_eq!(headings, [("Rivers of France", Some(1)), ("The Seine", Some(1))]);
}

/// Also when the lines of the columns are drawn in turn, or stand at other heights.
#[test]
fn two_columns_are_read_one_after_the_other() {
    for lower in [0, 5] {
        let mut texts = vec![(72, 740, "F", 18, "A title that goes across the two columns")];
        for (at, (left, right)) in (0..).zip(LEFT.iter().zip(RIGHT)) {
            texts.push((72, 700 - 12 * at, "F", 10, left));
            texts.push((300, 700 - lower - 12 * at, "F", 10, right));
        }
        let found = extract(&pages(&[page(&texts)])).unwrap();
        assert_eq!(found.text, READ, "{lower}");
        assert_eq!(found.title.as_deref(), Some("A title that goes across the two columns"));
    }
}

#[test]
fn tables_are_read_row_by_row() {
    let rows = ["Loire", "Seine", "Rhone", "Rhine"];
    let texts: Vec<_> =
        (0..).zip(rows).flat_map(|(at, name)| [(72, 700 - 12 * at, "F", 10, name), (300, 700 - 12 * at, "F", 10, "1 km")]).collect();
    assert_eq!(extract(&pages(&[page(&texts)])).unwrap().text.replace("\n\n", "; "), "Loire 1 km; Seine 1 km; Rhone 1 km; Rhine 1 km");
}

#[test]
fn words_are_divided_by_gaps_and_escapes_are_read() {
    let content = stream(
        "",
        b"BT /F 10 Tf 1 0 0 1 72 700 Tm [(Caf\\351 ) -20 (a) 10 (u) -400 (lait)] TJ 0 -12 TD (next \\(line\\)) Tj T* (third) ' ET
          /Artifact BMC BT /F 10 Tf 300 20 Td (page 7) Tj ET EMC",
    );
    assert_eq!(extract(&pages(&[content])).unwrap().text, "Café au lait next (line)\n\nthird");
}

#[test]
fn pages_are_numbered_and_running_lines_dropped() {
    let contents: Vec<Vec<u8>> = ["one", "two", "three", "four"]
        .iter()
        .map(|word| {
            page(&[(72, 760, "F", 10, "Annual report"), (72, 700, "F", 10, &format!("This is page {word}.")), (300, 20, "F", 10, "12")])
        })
        .collect();
    let found = extract(&pages(&contents)).unwrap();
    assert_eq!(found.text, "This is page one.\n\nThis is page two.\n\nThis is page three.\n\nThis is page four.");
    assert_eq!(found.sections.iter().map(|section| section.page).collect::<Vec<_>>(), [Some(1), Some(2), Some(3), Some(4)]);
}

#[test]
fn text_in_forms_and_turned_pages_is_read() {
    let turned = stream("", b"BT /F 10 Tf 0 1 -1 0 72 72 Tm (Turned by a) Tj ET BT /F 10 Tf 0 1 -1 0 84 72 Tm (quarter.) Tj ET");
    assert_eq!(extract(&pages(&[turned])).unwrap().text, "Turned by a quarter.");
    let form = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /G 3 0 R >> /XObject << /X 5 0 R >> >>",
        b"BT /G 10 Tf (In a form.) Tj ET /X Do",
    );
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents 6 0 R /Resources << /XObject << /X 5 0 R >> >> >>".to_vec(),
        form,
        stream("", b"/X Do"),
    ];
    // the form draws itself: it ends all the same
    assert!(extract(&file(&objects)).unwrap().text.starts_with("In a form."));
}

#[test]
fn composite_fonts_are_read_by_their_map_to_unicode() {
    let map = b"/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /X def\n/CMapType 2 def\n\
1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n2 beginbfchar\n<0001> <0041>\n<0002> <00660069>\nendbfchar\n\
endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend";
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [<< /DW 500 /W [1 [600 700] 5 9 400] >>] >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F 3 0 R >> >> >>".to_vec(),
        stream("", b"BT /F 10 Tf 9 9 Td <00010002> Tj 30 0 Td <0001> Tj ET"),
        stream("", map),
    ];
    assert_eq!(extract(&file(&objects)).unwrap().text, "Afi A");
}

#[test]
fn an_encrypted_file_is_named_unless_its_password_is_empty() {
    let plain = pages(&[page(&[(72, 700, "F", 10, "Secret words.")])]);
    let encrypted = |user_password: &str| {
        let mut document = Document::load_mem(&plain).unwrap();
        let version = EncryptionVersion::V2 {
            document: &document,
            owner_password: "owner",
            user_password,
            key_length: 128,
            permissions: Permissions::all(),
        };
        let state = EncryptionState::try_from(version).unwrap();
        document.encrypt(&state).unwrap();
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    };
    let error = extract(&encrypted("user")).unwrap_err();
    assert!(matches!(error, ReadError::Encrypted), "{error}");
    assert_eq!(extract(&encrypted("")).unwrap().text, "Secret words.");
}

/// `size` blanks, compressed so many times.
fn bomb(size: usize, times: usize) -> Vec<u8> {
    let mut content = vec![b' '; size];
    for _ in 0..times {
        let mut packed = Stream::new(lopdf::Dictionary::new(), content);
        packed.compress().unwrap();
        content = packed.content;
    }
    stream(&format!("/Filter [{}]", "/FlateDecode ".repeat(times)), &content)
}

#[test]
fn a_decompression_bomb_is_named() {
    let limits = Limits { decompressed_bytes: 1 << 20, ..Limits::default() };
    for times in [1, 2] {
        let bytes = pages(&[bomb(8 << 20, times)]);
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        let error = extract_with(&bytes, &limits).unwrap_err();
        assert!(matches!(error, ReadError::Decompressed { .. }), "{error}");
    }
    // each page fits, but not all of them
    let many = pages(&vec![bomb(400_000, 1); 4]);
    assert!(matches!(extract_with(&many, &limits), Err(ReadError::Decompressed { .. })));
}

#[test]
fn nesting_and_circles_end() {
    let chain = 20_000;
    let mut objects = vec![b"<< /Type /Catalog /Pages 2 0 R >>".to_vec()];
    objects.extend((3..chain).map(|next| format!("<< /Type /Pages /Kids [{next} 0 R] /Count 1 >>").into_bytes()));
    // the chain ends at an object that is missing: a blank page
    assert!(extract(&file(&objects)).unwrap().text.is_empty());
    let circle = [b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(), b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>".to_vec()];
    assert!(matches!(extract(&file(&circle)), Err(ReadError::Broken { .. })));
    let deep = [b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(), ["[".repeat(200_000), "]".repeat(200_000)].concat().into_bytes()];
    assert!(matches!(extract(&file(&deep)), Err(ReadError::Broken { .. })));
    let content =
        stream("", ["[".repeat(200_000).as_str(), "q ".repeat(200_000).as_str(), "<<".repeat(200_000).as_str()].concat().as_bytes());
    assert_eq!(extract(&pages(&[content])).unwrap().text, "");
}

#[test]
fn a_page_that_takes_too_long_is_given_up() {
    let bytes = pages(&[page(&[(72, 700, "F", 10, "words")])]);
    assert!(matches!(read(&bytes, &Limits::default(), Instant::now() - Duration::from_secs(1)), Err(ReadError::Time { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Bytes of a good file that were changed, cut or moved.
    #[test]
    fn a_damaged_file_is_a_document_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = pages(&[page(&[(72, 700, "F", 10, "Some words."), (72, 688, "B", 12, "More words.")])]);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        let _ = extract(&bytes);
    }

    /// Operators with any numbers.
    #[test]
    fn any_operators_are_run(content in "(BT|ET|Tf|Tj|TJ|Td|Tm|cm|q|Q|T\\*|Do|BDC|EMC|/F|/B|\\(ab c\\)|\\[|\\]|-?[0-9]{1,9}(\\.[0-9]{1,3})?|<<|>>| ){0,80}") {
        extract(&pages(&[stream("", content.as_bytes())])).unwrap();
    }
}
