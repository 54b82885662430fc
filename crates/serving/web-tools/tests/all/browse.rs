//! `browse_website`: what it shows of a page.

use autoact_documents::{Kind, Limits, Reader};

use crate::server::{Site, World, browse, html, redirect, status};

const LOIRE: &str = "<!doctype html><html><head><title>Loire – Rivers</title><style>p { color: red }</style></head><body>\
    <header><a href=/>Rivers of the world</a> Length of your stay?</header>\
    <nav><ul><li><a href=/danube>Danube</a><li><a href=/lengths>List of rivers by length</a><li><a href=/x>Imprint</a></ul></nav>\
    <main><h1>Loire</h1><p>The Loire is a river in France. It flows into the Atlantic Ocean.</p>\
    <h2>Course</h2><p>The Loire rises at Mont Gerbier de Jonc. It passes Orléans, Tours and Nantes on its way to the west. \
    Its valley is known for its castles, and there are more than a thousand of them. The upper part of the river is wild, the lower \
    part is calm, and its banks are full of vineyards that have been there for many centuries. Ships went up to Roanne.</p>\
    <h2>Figures</h2><p>The river is 1006 km long. Its basin has an area of 117054 km².</p>\
    <aside class=ad>Length matters! Buy long boats now.</aside><script>document.write('<p>The river is 5 km long.</p>')</script>\
    <p>More in the <a href='lengths?sort=long#top'>list of lengths</a>.</p></main><footer>© Length Media 2026</footer></body></html>";

#[test]
fn a_page_is_its_title_its_best_passages_and_its_links() {
    let site = Site::start(|uri| if uri.path() == "/robots.txt" { status(404) } else { html(LOIRE) });
    let library = World::new();
    let library = library.browser(&[&site.address.to_string()]);
    let seen = browse(&library, &site.url("/loire#course"), "How long is the Loire?");
    let expected = format!(
        "Loire – Rivers <{0}/loire>\n\
         - Figures: The river is 1006 km long. Its basin has an area of 117054 km².\nMore in the list of lengths.",
        site.url("")
    );
    println!("{}", seen.text);
    assert!(seen.text.starts_with(&expected), "{}", seen.text);
    let links = format!("Links: list of lengths <{0}/lengths?sort=long>", site.url(""));
    assert!(seen.text.contains(&links) || !seen.text.contains("Links"), "{}", seen.text);
    assert!(!seen.is_error && !seen.truncated);
    for noise in ["Buy long boats", "5 km", "color", "Imprint", "©"] {
        assert!(!seen.text.contains(noise), "{noise}: {}", seen.text);
    }
}

#[test]
fn sources_are_the_bytes_of_the_pages_text() {
    let site = Site::start(|uri| if uri.path() == "/robots.txt" { status(404) } else { html(LOIRE) });
    let world = World::new();
    let seen = browse(&world.browser(&[&site.address.to_string()]), &site.url("/loire"), "Where does the Loire rise? How long is it?");
    let document = Reader::here(Limits::default()).read("loire", Kind::Html, LOIRE.as_bytes().to_vec()).unwrap();
    assert!(seen.sources.len() >= 2);
    for source in &seen.sources {
        let (start, end) = (usize::try_from(source.start).unwrap(), usize::try_from(source.end).unwrap());
        assert_eq!(document.text[start..end], source.text);
        assert_eq!((source.collection.as_str(), source.file.as_str()), ("", site.url("/loire").as_str()));
        assert!(seen.text.contains(&source.text.replace("\n\n", "\n")), "{}", source.text);
    }
    assert_eq!(seen.sources[0].title, "Loire – Rivers");
}

#[test]
fn without_a_word_of_the_question_the_page_begins() {
    let site = Site::start(|uri| if uri.path() == "/robots.txt" { status(404) } else { html(LOIRE) });
    let world = World::new();
    let library = world.browser(&[&site.address.to_string()]);
    for question in ["quark", "", "?"] {
        let seen = browse(&library, &site.url("/loire"), question).text;
        assert!(seen.contains("No passage has a word of the question. The page begins:\n- Loire: The Loire is a river"), "{seen}");
    }
}

#[test]
fn redirects_are_followed_and_named() {
    let site = Site::start(|uri| match uri.path() {
        "/robots.txt" => status(404),
        "/old" => redirect("/older"),
        "/older" => redirect("loire"),
        "/loop" => redirect("/loop"),
        "/nowhere" => redirect("http://["),
        "/gone" => status(410),
        "/closed" => status(403),
        _ => html(LOIRE),
    });
    let world = World::new();
    let library = world.browser(&[&site.address.to_string()]);
    let text = |path: &str| browse(&library, &site.url(path), "length").text;
    assert!(text("/old").starts_with(&format!("Loire – Rivers <{}>", site.url("/loire"))));
    assert_eq!(text("/loop"), "Tool failed: no result: `127.0.0.1` sent a redirect that is not followed: there were 3 already");
    assert_eq!(text("/nowhere"), "Tool failed: no result: `127.0.0.1` sent a redirect that is not followed: its place is no URL");
    assert_eq!(text("/gone"), "Tool failed: client error, status 410: no");
    assert_eq!(text("/closed"), "Tool failed: not authorised, status 403: no");
}

#[test]
fn an_answer_is_cited_with_the_pages_url() {
    use autoact_trajectory::{Source, bound_sources};
    let site = Site::start(|uri| if uri.path() == "/robots.txt" { status(404) } else { html(LOIRE) });
    let world = World::new();
    let path = format!("/loire?{}", "x".repeat(600));
    let sources = browse(&world.browser(&[&site.address.to_string()]), &site.url(&path), "How long is it?").sources;
    // a URL that is too long for a path loses its query, so that the source is kept
    assert!(sources.iter().all(|source: &Source| source.file == site.url("/loire")) && !sources.is_empty());
    assert_eq!(bound_sources(sources.clone(), usize::MAX), sources);
}
