//! robots.txt: what sites close to programs is not read.

use std::sync::atomic::{AtomicU16, Ordering};

use crate::server::{Site, World, browse, html, ok, redirect, status};

const PAGE: &str = "<title>T</title><p>The answer is forty-two.";

fn site(robots: impl Fn() -> axum::http::Response<axum::body::Body> + Send + Sync + 'static) -> Site {
    Site::start(move |uri| match uri.path() {
        "/robots.txt" => robots(),
        "/to-closed" => redirect("/closed/1"),
        _ => html(PAGE),
    })
}

#[test]
fn closed_pages_are_not_asked_for_and_the_rules_are_asked_for_once() {
    let site = site(|| ok("text/plain", "User-agent: *\nDisallow: /\n\nUser-agent: autoact\nDisallow: /closed/\n"));
    let world = World::new();
    let library = world.browser(&[&site.address.to_string()]);
    assert!(browse(&library, &site.url("/open"), "answer").text.contains("forty-two"));
    for path in ["/closed/1", "/to-closed"] {
        let seen = browse(&library, &site.url(path), "answer");
        let expected = format!("{}/robots.txt does not allow programs to read this page; choose another page", site.url(""));
        assert!(seen.is_error && seen.text.ends_with(&expected), "{}", seen.text);
    }
    assert_eq!(site.seen(), ["/robots.txt", "/open", "/to-closed"]);
    let run =
        format!("kind = \"browse_website\", sandbox = false, hosts = [\"{}\"], allow_private = true, ignore_robots = true", site.address);
    assert!(browse(&world.library(&run), &site.url("/closed/1"), "answer").text.contains("forty-two"));
    assert_eq!(site.seen().len(), 4);
}

#[test]
fn a_site_without_rules_is_open_and_one_that_fails_is_not() {
    static STATUS: AtomicU16 = AtomicU16::new(0);
    let site = site(|| status(STATUS.load(Ordering::SeqCst)));
    let world = World::new();
    for (code, open) in [(404, true), (401, true), (410, true), (500, false), (503, false), (429, false)] {
        STATUS.store(code, Ordering::SeqCst);
        let seen = browse(&world.browser(&[&site.address.to_string()]), &site.url("/open"), "answer");
        assert_eq!(seen.text.contains("forty-two"), open, "{code}: {}", seen.text);
        assert!(open || seen.text.contains(&format!("status {code}")), "{}", seen.text);
    }
}

#[test]
fn the_rules_of_each_place_of_a_redirect_count() {
    let second = site(|| ok("text/plain", "User-agent: autoact\nDisallow: /closed"));
    let place = second.url("/closed/2");
    let first = Site::start(move |uri| {
        if uri.path() == "/robots.txt" {
            redirect("/rules/robots.txt")
        } else if uri.path() == "/go" {
            redirect(&place)
        } else {
            ok("text/plain", "User-agent: *\nDisallow: /private")
        }
    });
    let world = World::new();
    let library = world.browser(&[&first.address.to_string(), &second.address.to_string()]);
    assert!(browse(&library, &first.url("/private"), "x").text.contains("does not allow"));
    assert!(browse(&library, &first.url("/go"), "x").text.contains(&format!("{}/robots.txt does not allow", second.url(""))));
    assert_eq!(second.seen(), ["/robots.txt"]);
}
