//! Writing `report.json` and `report.html`.

use std::path::Path;

use crate::error::LoadError;
use crate::html::html;
use crate::report::Report;

impl Report {
    /// Writes `report.json` and `report.html` to a directory, which is created if necessary.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), LoadError> {
        std::fs::create_dir_all(dir).map_err(LoadError::file("write", dir))?;
        for (name, text) in [("report.json", self.json()), ("report.html", html(self))] {
            let path = dir.join(name);
            std::fs::write(&path, text).map_err(LoadError::file("write", &path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::collect::Collected;
    use crate::report::Asked;
    use crate::testing::{ms, report};

    #[test]
    fn a_report_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let report = report(40);
        report.write(&dir.path().join("a/b")).unwrap();
        assert_eq!(Report::read(&dir.path().join("a/b")).unwrap(), report);
        assert_eq!(Report::read(&dir.path().join("a/b/report.json")).unwrap(), report);
        let html = std::fs::read_to_string(dir.path().join("a/b/report.html")).unwrap();
        assert!(html.contains("<svg") && !html.contains("NaN") && !html.contains("inf"), "{html}");
        assert!(!html.contains("<script") && !html.contains("src="), "nothing from elsewhere");
    }

    #[test]
    fn a_load_without_tasks_has_a_page() {
        let report = Report::new(Asked::default(), SystemTime::UNIX_EPOCH, &Collected::new(ms(0), ms(0)));
        assert!(!html(&report).contains("NaN"));
    }
}
