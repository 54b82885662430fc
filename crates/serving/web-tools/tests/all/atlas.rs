//! Pages of the atlas among what other pages have around their text: how often the sentence with the
//! answer stands at the beginning of the observation.

use serde_json::Value;

use crate::server::{Site, World, browse, html, status};

const ATLAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas");
/// About 300 tokens.
const BEGINNING_CHARS: usize = 1200;
const QUESTIONS: usize = 100;
/// Pages of the atlas on a web page that has several.
const CHAPTER: usize = 30;

struct Asked {
    question: String,
    title: String,
    /// The sentence that has the answer.
    gold: String,
}

fn lines(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{ATLAS}/{file}")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// Held-out questions of one hop, each of another page that has the answer in one of its sentences.
fn asked(pages: &[Value]) -> Vec<Asked> {
    let mut asked: Vec<Asked> = Vec::new();
    for question in lines("questions/held-out.jsonl").iter().chain(&lines("questions/dev.jsonl")) {
        if question["kind"] != "hop" || question["hops"] != 1 || asked.len() == QUESTIONS {
            continue;
        }
        let (title, answer) = (question["entities"][0].as_str().unwrap(), text(question, "answer"));
        let Some(page) = pages.iter().find(|page| page["title"] == title) else { continue };
        let mut with = text(page, "text").lines().filter(|sentence| sentence.contains(answer));
        if let (Some(gold), None) = (with.next(), with.next())
            && !asked.iter().any(|asked| asked.title == title)
        {
            asked.push(Asked { question: text(question, "text").to_owned(), title: title.to_owned(), gold: gold.to_owned() });
        }
    }
    asked
}

fn section(page: &Value) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let (title, text) = (escaped(text(page, "title")), escaped(text(page, "text")));
    let sentences: Vec<&str> = text.lines().collect();
    // every third page is a list, the others are paragraphs
    if title.len() % 3 == 0 {
        format!("<h2>{title}</h2><ul><li>{}</ul>", sentences.join("</li>\n<li>"))
    } else {
        format!("<h2>{title}</h2>\n<p>{}</p>", sentences.join("\n"))
    }
}

/// A web page with navigation, advertisements, scripts and forms around its content. Every other
/// one does not say which part of it is the main content.
fn web_page(title: &str, content: &str, plain: bool) -> String {
    let (open, close) = if plain { ("<div class=\"content\">", "</div>") } else { ("<main>", "</main>") };
    let (nav, end_nav) = if plain { ("<div id=menu>", "</div>") } else { ("<nav>", "</nav>") };
    let items: String =
        (0..40).map(|number| format!("<li><a href=/topic-{number}>Country, capital and river no. {number}</a></li>")).collect();
    let advertisement = format!(
        "<div class=\"ad banner\"><p>Which country is the largest? Win a trip to the highest mountain! Flights to {title}: how long, how \
         high, how far? Book now.</p><img src=ad.png><script>track('{title}', 'capital', 'river', 'mountain');</script></div>"
    );
    format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>{title} | The Atlas</title>\
         <style>.ad {{ content: 'capital of {title}' }}</style><script>var page = {{title: \"{title}\", capital: \"Nowhere\"}};</script></head>\
         <body class=page><header><h1>The Atlas</h1><form action=/search><input name=q value=\"{title}\"><button>Search</button></form></header>\
         {nav}<ul>{items}</ul>{end_nav}{advertisement}{open}{content}{advertisement}{close}\
         <aside><h3>You may also like</h3><ul>{items}</ul></aside><noscript>Please enable scripts to see {title}.</noscript>\
         <footer>© The Atlas. Contact: which city, which country.</footer><!-- {title} --></body></html>"
    )
}

/// How many observations begin with the gold sentence.
fn at_the_beginning(asked: &[Asked], page_of: impl Fn(usize) -> String) -> usize {
    let all: Vec<String> = (0..asked.len()).map(page_of).collect();
    let site = Site::start(move |uri| match uri.path().trim_start_matches('/').parse::<usize>() {
        Ok(number) => html(&all[number]),
        Err(_) => status(404),
    });
    let world = World::new();
    let library = world.browser(&[&site.address.to_string()]);
    let mut found = 0;
    for (number, Asked { question, gold, title }) in asked.iter().enumerate() {
        let seen = browse(&library, &site.url(&format!("/{number}")), question);
        let beginning: String = seen.text.chars().take(BEGINNING_CHARS).collect();
        if beginning.contains(gold.as_str()) {
            found += 1;
        } else {
            println!("{title}: {question} {gold}\n{beginning}\n");
        }
    }
    found
}

#[test]
fn the_sentence_with_the_answer_stands_at_the_beginning() {
    let pages = lines("pages.jsonl");
    let asked = asked(&pages);
    let place = |title: &str| pages.iter().position(|page| page["title"] == title).unwrap();
    let alone = at_the_beginning(&asked, |number| {
        let title = &asked[number].title;
        web_page(title, &section(&pages[place(title)]), number % 2 == 1)
    });
    // the pages of the atlas around it, which are of the same kind, on the same web page
    let among = at_the_beginning(&asked, |number| {
        let start = place(&asked[number].title).saturating_sub(number % CHAPTER).min(pages.len() - CHAPTER);
        let content: String = pages[start..start + CHAPTER].iter().map(section).collect();
        web_page("All of them", &content, number % 2 == 1)
    });
    println!(
        "of {} answers, in the first {BEGINNING_CHARS} characters: {alone} of pages of their own, {among} among {CHAPTER}",
        asked.len()
    );
    assert_eq!(asked.len(), QUESTIONS);
    assert!(alone * 100 >= asked.len() * 95 && among * 100 >= asked.len() * 95);
}
