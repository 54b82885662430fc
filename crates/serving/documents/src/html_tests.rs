//! Tests of the HTML parser.
#![allow(clippy::unwrap_used)] // tests

use proptest::prelude::*;

use super::*;

fn text(html: &str) -> String {
    read(html, &Limits::default()).unwrap().text
}

#[test]
fn only_the_main_content_is_read() {
    let html = "<!doctype html><html><head><title>Loire &ndash; rivers</title><style>p{}</style></head><body>\
        <header><h1>My site</h1></header><nav><ul><li>Home</li></ul></nav>\
        <main><article><header><h1>The Loire</h1><p>by Ada</p></header><p>It is a <b>river</b> of\n France.</p>\
        <h2>Length</h2><ul><li>1,006&nbsp;km<li>long</ul><script>if (a < b) { '<p>no</p>' }</script>\
        <table><tr><th>mouth<td>Atlantic</tr></table><pre>a\n  b</pre><aside>Ad</aside></article></main>\
        <div>Outside</div><footer>© me</footer></body></html>";
    let found = read(html, &Limits::default()).unwrap();
    assert_eq!(found.title.as_deref(), Some("Loire – rivers"));
    assert_eq!(found.text, "It is a river of France.\n\n1,006 km\nlong\nmouth | Atlantic\n\na\n  b");
    let headings: Vec<_> = found.sections.iter().map(|section| section.heading.as_deref().unwrap_or_default()).collect();
    assert_eq!(headings, ["The Loire", "Length"]);
}

#[test]
fn a_page_without_main_content_is_read_whole() {
    assert_eq!(text("<body>One<div>two <i>and</i> three</div><p>four<p>five<br>six"), "One\n\ntwo and three\n\nfour\n\nfive six");
    let teasers = format!("<p>{}</p><article>Read this too</article>", "Words of the page. ".repeat(20));
    assert!(text(&teasers).starts_with("Words of the page."));
    assert_eq!(text("<h1>Title<p>never closed"), "never closed");
    assert_eq!(read("<h1>A</h1><p>b", &Limits::default()).unwrap().title.as_deref(), Some("A"));
}

#[test]
fn what_is_never_closed_or_never_opened_ends_with_what_is_around_it() {
    assert_eq!(text("<main><nav>menu</main><p>text"), "text");
    assert_eq!(text("</nav></main>text</article>"), "text");
    assert_eq!(text("<svg><title>icon</title></svg>text<nav/>more"), "text\n\nmore");
}

#[test]
fn deep_nesting_costs_no_stack() {
    let deep = format!("{}deep{}", "<div><b><main><nav>".repeat(100_000), "</i></aside></main>".repeat(100_000));
    assert_eq!(text(&deep), "");
    assert_eq!(text(&("<div>".repeat(100_000) + "deep")), "deep");
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(
        html in prop_oneof![any::<String>(), "(<|>|/|!--|&|;|h1|p|main|nav|pre|script|title|li|td|header| |a|é|\"|=|\n){0,60}"],
    ) {
        read(&html, &Limits::default()).unwrap();
    }
}
