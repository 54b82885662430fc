//! Where a model may send the tools.

use serde_json::json;

use crate::server::{Names, Site, World, browse, call, html, redirect};

fn page() -> Site {
    Site::start(|uri| match uri.path().strip_prefix("/to/") {
        Some(place) => redirect(&place.replace("!", "://")),
        None => html("<title>T</title><p>The answer is forty-two."),
    })
}

#[test]
fn only_the_hosts_that_are_named_are_asked() {
    let site = page();
    let other = page();
    let port = site.port();
    let world = World::with(Names::default().set("pages.test", &["127.0.0.1"]).set("a.pages.test", &["127.0.0.1"]));
    let library = world.browser(&[&format!("*.pages.test:{port}")]);
    assert!(browse(&library, &format!("http://a.pages.test:{port}/"), "answer").text.contains("forty-two"));
    let allowed = format!("this tool reads `*.pages.test:{port}`");
    for (url, expected) in [
        (
            format!("http://pages.test:{port}/"),
            format!("no request may go to `pages.test:{port}`: it is not one of the allowed hosts; {allowed}"),
        ),
        (format!("http://a.pages.test:{}/", other.port()), "it is not one of the allowed hosts".to_owned()),
        ("http://a.pages.test/".to_owned(), "it is not one of the allowed hosts".to_owned()),
        (format!("http://a.pages.test.evil.test:{port}/"), "it is not one of the allowed hosts".to_owned()),
        (format!("http://me:pw@a.pages.test:{port}/"), "it holds a user or a password".to_owned()),
        (format!("ftp://a.pages.test:{port}/"), "neither http nor https".to_owned()),
        ("file:///etc/passwd".to_owned(), "neither http nor https".to_owned()),
        ("not a url".to_owned(), "it has blanks".to_owned()),
    ] {
        let seen = browse(&library, &url, "answer");
        assert!(seen.is_error && seen.text.contains(&expected), "{url}: {}", seen.text);
    }
    let seen = call(&library, &json!({ "url": 1 }));
    assert!(seen.is_error && seen.text.contains("Tool was not run"), "{}", seen.text);
    assert_eq!((site.seen().len(), other.seen().len()), (2, 0));
}

#[test]
fn every_public_host_does_not_mean_ones_own() {
    let site = page();
    let world = World::with(Names::default().set("inner.test", &["127.0.0.1"]).set("meta.test", &["169.254.169.254"]));
    let run = format!("kind = \"browse_website\", sandbox = false, hosts = [\"*\", \"*:{}\"], allow_private = true", site.port());
    let library = world.library(&run);
    for (host, expected) in [
        ("127.0.0.1", "loopback"),
        ("inner.test", "loopback"),
        ("0x7f.1", "loopback"),
        ("[::ffff:127.0.0.1]", "loopback"),
        ("169.254.169.254", "metadata service"),
        ("meta.test", "metadata service"),
        ("10.0.0.1", "private"),
    ] {
        let seen = browse(&library, &format!("http://{host}:{}/", site.port()), "answer");
        assert!(seen.is_error && seen.text.contains(&format!("its address is {expected}")), "{host}: {}", seen.text);
    }
    assert!(browse(&library, "http://127.0.0.1:1/", "x").text.contains("not one of the allowed hosts; this tool reads all public hosts"));
    assert_eq!(site.seen().len(), 0);
    // by its name it is open, and `*` beside it changes nothing
    let run = format!("kind = \"browse_website\", sandbox = false, hosts = [\"*\", \"inner.test:{}\"], allow_private = true", site.port());
    assert!(browse(&world.library(&run), &format!("http://inner.test:{}/", site.port()), "answer").text.contains("forty-two"));
}

#[test]
fn a_redirect_leads_nowhere_else() {
    let site = page();
    let world = World::with(Names::default().set("meta.test", &["169.254.169.254"]).set("inner.test", &["10.0.0.1"]));
    let own = site.address.to_string();
    let library = world.browser(&[&own, "meta.test", "169.254.169.254"]);
    let open = world.library(&format!("kind = \"browse_website\", sandbox = false, hosts = [\"{own}\", \"*\"], allow_private = true"));
    for (library, place, expected) in [
        (&library, "http!169.254.169.254/latest", "its address is metadata service"),
        (&library, "http!meta.test/", "its address is metadata service"),
        (&library, "http!inner.test/", "it is not one of the allowed hosts"),
        (&library, "http!user:pw@meta.test/", "the URL holds a user"),
        (&library, "ftp!meta.test/", "neither http nor https"),
        (&open, "http!inner.test/", "its address is private"),
        (&open, "http!127.0.0.1/", "its address is loopback"),
        (&open, "http!meta.test:8080/", "it is not one of the allowed hosts"),
    ] {
        let seen = browse(library, &site.url(&format!("/to/{place}")), "x");
        assert!(seen.is_error && seen.text.contains(expected), "{place}: {}", seen.text);
    }
}

/// A name that leads to an open address when robots.txt is asked for, and to another one later.
#[test]
fn a_name_that_changes_its_address_is_checked_each_time() {
    let site = page();
    let world = World::with(Names::default().set("rebind.test", &["127.0.0.1", "169.254.169.254"]));
    let library = world.browser(&[&format!("rebind.test:{}", site.port())]);
    let seen = browse(&library, &format!("http://rebind.test:{}/page", site.port()), "answer");
    assert!(seen.is_error && seen.text.contains("its address is metadata service"), "{}", seen.text);
    assert_eq!(site.seen(), ["/robots.txt"]);
}

#[test]
fn mistakes_of_an_entry_name_cause_and_fix() {
    let world = World::new();
    for (run, expected) in [
        ("kind = \"browse_website\"", "the key `hosts` is missing: the hosts whose pages it may read"),
        ("kind = \"browse_website\", hosts = []", "expected some such as `example.org`, or `[\"*\"]`"),
        ("kind = \"browse_website\", hosts = [\"http://x\"]", "the host `http://x` is not a host such as"),
        ("kind = \"browse_website\", hosts = [\"*:x\"]", "the host `*:x` has no port"),
        ("kind = \"browse_website\", hosts = [\"a.test\"], host = 1", "the key `host` is unknown"),
        ("kind = \"browse_website\", hosts = [\"a.test\"], max_response_bytes = 0", "expected 1 to 67108864"),
        ("kind = \"browse_website\", hosts = [\"a.test\"], concurrency = 0", "expected 1 to 64"),
        ("kind = \"browse_website\", hosts = 3", "expected a host or a list of hosts"),
        ("kind = \"browse_wiki\"", "the key `api` is missing"),
        ("kind = \"browse_wiki\", api = \"w/api.php\"", "expected an absolute URL of http or https"),
        ("kind = \"web_search\"", "expected either `url` (a URL with `{query}`) or `api`"),
        ("kind = \"web_search\", url = \"https://a.test/search\"", "has no `{query}`"),
        ("kind = \"web_search\", url = \"https://{query}.test/search\"", "has no `{query}` in its path or query"),
        ("kind = \"web_search\", url = \"https://me:pw@a.test/?q={query}\"", "without a user"),
        ("kind = \"hybrid_search\", search_url = \"https://a.test/?q={query}\"", "expected either `api`"),
        ("kind = \"hybrid_search\", search_url = \"https://a.test/?q={query}\", entities = \"none.jsonl\"", "cannot read"),
        ("kind = \"hybrid_search\", search_url = \"https://a.test/?q={query}\", entities = \"tools.toml\"", "expected a line such as"),
        ("kind = \"weather\", archive_url = \"x\"", "`archive_url` is `x`"),
    ] {
        let error = world.try_library(run, "").err().unwrap_or_default();
        assert!(error.contains(expected), "{run}: {error}");
    }
}
