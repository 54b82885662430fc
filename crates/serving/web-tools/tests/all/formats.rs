//! What else than HTML in UTF-8 is read.

use crate::server::{Site, World, browse};

/// A PDF of one page with a line of text.
fn pdf(text: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        places.push(file.len());
        file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    places.iter().for_each(|place| file.push_str(&format!("{place:010} 00000 n \n")));
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1));
    file.into_bytes()
}

fn text(media: &'static str, path: &'static str, body: &[u8], question: &str) -> String {
    let site = Site::of(vec![(path, media, body.to_vec())]);
    let world = World::new();
    let seen = browse(&world.browser(&[&site.address.to_string()]), &site.url(path), question);
    seen.text.replace(&site.url(""), "")
}

#[test]
fn pdf_markdown_and_text_are_read() {
    let file = pdf("The Loire is 1006 km long.");
    for media in ["application/pdf", "application/octet-stream", ""] {
        assert_eq!(
            text(media, "/a/loire.pdf", &file, "how long"),
            "loire </a/loire.pdf>\n- (page 1) The Loire is 1006 km long.",
            "{media}"
        );
    }
    let markdown = b"# Loire\n\nA river.\n\n## Length\n\nIt is *1006* km long.";
    for (media, path) in [("text/markdown", "/x"), ("text/plain; charset=utf-8", "/loire.md")] {
        assert_eq!(text(media, path, markdown, "length"), format!("Loire <{path}>\n- Length: It is 1006 km long."));
    }
    assert_eq!(
        text("text/plain", "/t", b"The Loire is long.\n\nThe Danube is longer.", "Danube"),
        "t </t>\n- The Loire is long.\nThe Danube is longer."
    );
    assert_eq!(text("", "/t", b"The Loire is long.", "Loire"), "t </t>\n- The Loire is long.");
    assert_eq!(text("application/json", "/t", b"{\"length\": 1006}", "length"), "t </t>\n- {\"length\": 1006}");
    assert_eq!(text("", "/t", b"<!DOCTYPE html><title>L</title><p>The Loire is long.", "Loire"), "L </t>\n- The Loire is long.");
}

#[test]
fn what_cannot_be_read_is_named() {
    for (media, body, expected) in [
        ("image/png", &b"\x89PNG"[..], "the page is image/png of 4 bytes; only HTML, text, Markdown and PDF can be read"),
        ("", b"\xff\x00", "the page is data of no named type of 2 bytes"),
        ("application/pdf", b"nothing", "the page is application/pdf of 7 bytes"),
        ("application/pdf", b"%PDF-1.4 nothing", "the page cannot be read: broken: "),
        ("text/html", b"<script>all()</script><div id=app></div>", "the page has no text; a page that is made by scripts cannot be read"),
        ("text/html", b"", "the page has no text"),
        ("text/plain", b"", "the page cannot be read: the file"),
    ] {
        let seen = text(media, "/x", body, "x");
        assert!(seen.starts_with("Tool failed: no result: ") && seen.contains(expected), "{media}: {seen}");
    }
}

#[test]
fn the_servers_charset_goes_before_the_pages() {
    for (media, body, expected) in [
        ("text/html; charset=iso-8859-1", &b"<meta charset=utf-8><p>Caf\xe9 here."[..], "Café here."),
        ("text/html", b"<meta charset=windows-1251><p>\xc4\xe0 here.", "Да here."),
        ("text/html", b"<p>Caf\xe9 here.", "Café here."),
        ("text/html; charset=utf-8", b"<p>Caf\xe9 here.", "Caf\u{fffd} here."),
        ("text/html; charset=klingon", "<meta charset=klingon><p>Café here.".as_bytes(), "Café here."),
        ("text/html; charset=utf-16", b"<\x00p\x00>\x00h\x00\xe9\x00r\x00e\x00", "hére"),
        ("text/plain; charset=shift_jis", b"\x83\x8d\x83\x8f here.", "ロワ here."),
    ] {
        let seen = text(media, "/x", body, "here");
        assert!(seen.ends_with(&format!("- {expected}")), "{media}: {seen}");
    }
}
