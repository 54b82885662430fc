//! Reads one document in a confined process, as programs do that import files.

fn main() {
    autoact_sandbox::run_if_launcher();
    autoact_documents::run_if_reader();
    eprintln!("only tests start it");
    std::process::exit(2);
}
