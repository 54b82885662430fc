//! The HTML page around the plots, and its tables.

use std::fmt::{Display, Write as _};

const STYLE: &str = "\
:root{--ink:#1b2733;--soft:#5b6b7a;--line:#d9e0e6;--back:#fff;--c0:#1f6feb;--c1:#d9822b;--c2:#2f9e6b;--c3:#b5499b;--c4:#8a6d3b;--c5:#d1453b;\
--c6:#6b5bd2;--c7:#1aa3b8;--c8:#8fa31e;--c9:#8b97a3}\
@media(prefers-color-scheme:dark){:root{--ink:#e4eaf0;--soft:#93a3b1;--line:#33404c;--back:#12181f;--c0:#6ea8ff;--c1:#f0ad5e;--c2:#62c99a;\
--c3:#dd8bc9;--c4:#c2a878;--c5:#f08078;--c6:#a79cf5;--c7:#62cfe0;--c8:#c3d65a;--c9:#76828e}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:62rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid var(--line)}\
table{border-collapse:collapse;margin:.6rem 0}th,td{text-align:left;padding:.2rem 1rem .2rem 0;border-bottom:1px solid var(--line)}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.soft{color:var(--soft)}.plots{display:flex;flex-wrap:wrap;gap:1rem}\
svg{max-width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}figure{margin:0}figcaption{font-size:.9rem}\
.key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em}";

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// An HTML page under construction.
#[derive(Debug, Clone)]
pub struct Page {
    html: String,
}

impl Page {
    /// A page with a title. The title is escaped.
    pub fn new(title: &str) -> Page {
        let title = escape(title);
        let html = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
        );
        Page { html }
    }

    /// Adds a heading. The text is escaped.
    pub fn section(&mut self, title: &str) {
        // writing to a string cannot fail
        let _ = write!(self.html, "<h2>{}</h2>", escape(title));
    }

    /// Adds a paragraph. The text is escaped.
    pub fn say(&mut self, text: &str) {
        let _ = write!(self.html, "<p>{}</p>", escape(text));
    }

    /// Adds an explanatory paragraph. The text is escaped.
    pub fn note(&mut self, text: &str) {
        let _ = write!(self.html, "<p class=soft>{}</p>", escape(text));
    }

    /// Adds markup, such as a plot or a table, without escaping.
    pub fn push(&mut self, markup: &str) {
        self.html.push_str(markup);
    }

    /// Adds plots side by side.
    pub fn plots(&mut self, plots: impl IntoIterator<Item = String>) {
        self.html.push_str("<div class=plots>");
        plots.into_iter().for_each(|plot| self.html.push_str(&plot));
        self.html.push_str("</div>");
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        self.html.push_str("</html>\n");
        self.html
    }
}

/// A table under construction. The first column is text; the others are numbers or remarks.
#[derive(Debug, Clone)]
pub struct Table {
    html: String,
}

impl Table {
    /// A table with these headings.
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Table {
        let mut html = String::from("<table><tr>");
        for (at, heading) in headings.into_iter().enumerate() {
            let _ = write!(html, "<th{}>{}", if at == 0 { "" } else { " class=n" }, escape(heading));
        }
        Table { html }
    }

    /// Adds a row: its name, then its cells.
    pub fn row<T: Display>(&mut self, name: &str, cells: impl IntoIterator<Item = T>) {
        let _ = write!(self.html, "<tr><td>{}", escape(name));
        for cell in cells {
            let _ = write!(self.html, "<td class=n>{}", escape(&cell.to_string()));
        }
    }

    /// Adds a remark at the end of the last row.
    pub fn remark(&mut self, text: &str) {
        let _ = write!(self.html, "<td class=soft>{}", escape(text));
    }

    /// The markup.
    pub fn html(mut self) -> String {
        self.html.push_str("</table>");
        self.html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_text_is_escaped_in_html() {
        assert_eq!(escape("<script>\"&"), "&lt;script&gt;&quot;&amp;");
        let mut page = Page::new("<b>");
        page.section("<b>");
        page.say("<b>");
        let mut table = Table::new(["<b>", "<b>"]);
        table.row("<b>", ["<b>"]);
        table.remark("<b>");
        page.push(&table.html());
        assert!(!page.finish().contains("<b>"));
    }
}
