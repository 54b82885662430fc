//! Definitions that somebody else can change are in service as long as they are those that were
//! accepted.

use autoact_tools::ToolSet;

/// Takes a set out of service whose definitions are not the accepted ones.
pub(crate) fn pin(mut set: ToolSet, accepted: Option<&str>, found: &str) -> ToolSet {
    set.digest = Some(found.to_owned());
    let why = match accepted {
        Some(accepted) if accepted == found => return set,
        Some(_) => "its definitions are not those that were accepted",
        None => "its definitions were not accepted yet",
    };
    let name = &set.name;
    set.out_of_service = Some(format!("{why}; read them with `autoact tools check`, then accept them with `autoact tools accept {name}`"));
    set.withheld = std::mem::take(&mut set.tools);
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_accepted_is_in_service() {
        let set = |accepted| pin(ToolSet::new("openapi", "pets"), accepted, "ab").out_of_service;
        assert_eq!(set(Some("ab")), None);
        assert!(set(Some("cd")).is_some_and(|why| why.contains("tools accept pets")));
        assert!(set(None).is_some());
    }
}
