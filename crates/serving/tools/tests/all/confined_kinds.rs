//! Kinds that run programs: `command`, `code_interpreter` and the reading of text in pictures.

use std::path::Path;
use std::process::Command;

use autoact_sandbox::Tiers;
use serde_json::{Value, json};

const CALL: &str = env!("CARGO_BIN_EXE_tools-test-call");

/// Why a test cannot run here.
fn missing(program: &str) -> Option<String> {
    let tiers = Tiers::of(Path::new(CALL));
    let found = ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|directory| Path::new(directory).join(program).is_file());
    match (tiers.namespaces, found) {
        (Err(why), _) => Some(format!("no namespaces: {why}")),
        (_, false) => Some(format!("{program} is not installed")),
        _ => None,
    }
}

fn call(directory: &Path, run: &str, tool: &str, params: &str) -> Value {
    let library = directory.join("tools.toml");
    let finish = "[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[answer]\"\nrun = { kind = \"finish\" }\n";
    std::fs::write(&library, format!("[[tool]]\nname = \"{tool}\"\n{run}\n\n{finish}")).unwrap();
    let output = Command::new(CALL).arg(&library).arg(tool).arg(params).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn python(program: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let run = "timeout = \"10s\"\nrun = { kind = \"code_interpreter\", limits = { memory_bytes = 268435456, cpu_seconds = 5 } }";
    call(directory.path(), run, "Python", &json!({ "program": program }).to_string())
}

fn skipped() -> bool {
    match missing("python3") {
        Some(why) => {
            eprintln!("skipped: {why}");
            true
        }
        None => false,
    }
}

#[test]
fn a_program_is_confined_unless_its_entry_trusts_it() {
    let directory = tempfile::tempdir().unwrap();
    let run = |sandbox: &str| {
        let more = "definition = \"Looks.\"\nusage = \"Look[path]\"\neffect = \"read_only\"";
        call(directory.path(), &format!("{more}\nrun = {{ kind = \"command\", program = \"ls\"{sandbox} }}"), "Look", "x")
    };
    for confined in ["", ", sandbox = {}", ", sandbox = true", ", sandbox = { network = true }"] {
        let library = run(confined);
        assert_eq!((&library["sandboxes"], &library["trusted"]), (&json!(["Look"]), &json!([])), "{confined}");
    }
    let library = run(", sandbox = false");
    assert_eq!((&library["sandboxes"], &library["trusted"]), (&json!([]), &json!(["Look"])));
    for wrong in [", sandbox = 1", ", sandbox = { tier = \"none\" }", ", sandbox = { files = [] }"] {
        assert!(run(wrong)["mistakes"].is_array(), "{wrong}");
    }
}

#[test]
fn the_example_runs_confined_with_its_arguments() {
    if let Err(why) = Tiers::of(Path::new(CALL)).namespaces {
        eprintln!("skipped: no namespaces: {why}");
        return;
    }
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/convert/tools.toml");
    let output = Command::new(CALL).arg(library).arg("Convert").arg(r#"{ "to": "km", "amount": 26.2, "from": "mi" }"#).output().unwrap();
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&seen["text"], &seen["is_error"], &seen["sandboxes"]),
        (&json!("26.2 mi is 42.1648 km."), &json!(false), &json!(["Convert"]))
    );
}

#[test]
fn a_program_is_a_cell_of_a_notebook() {
    if skipped() {
        return;
    }
    for (program, expected) in [
        ("1 + 1", "2"),
        ("x = 20\nfor n in range(2):\n  print(n, n * n)\nx + 1", "0 0\n1 1\n21"),
        ("print('é → ')\nNone", "é →"),
        ("x = 1", "(nothing)"),
        ("'a\\nb'", "'a\\nb'"),
        ("import sys; sys.exit(0)", "(nothing)"),
        ("import sys\nprint('warned', file=sys.stderr)\n3", "warned\n3"),
        ("def f(n):\n  return 1 if n < 2 else n * f(n - 1)\nf(10)", "3628800"),
        ("if __name__ == '__main__':\n  print('main')", "main"),
        ("print('\\ud800')", "\\ud800"),
    ] {
        let found = python(program);
        assert_eq!((&found["text"], &found["is_error"]), (&json!(expected), &json!(false)), "{program}: {found}");
    }
    assert_eq!(python("1")["sandboxes"], json!(["Python"]));
}

#[test]
fn an_exception_names_its_line_and_what_was_printed() {
    if skipped() {
        return;
    }
    for (program, expected) in [
        (
            "print('so far')\nx = 0\n1 / x",
            "ZeroDivisionError: division by zero in line 3 of the program, `1 / x`. Before that it printed: so far",
        ),
        ("def f():\n  return [][1]\n\nf()", "IndexError: list index out of range in line 2 of the program, `return [][1]`."),
        ("import nonsense", "ModuleNotFoundError: No module named 'nonsense' in line 1 of the program, `import nonsense`."),
        ("import sys\nsys.exit('no data')", "SystemExit: no data in line 2 of the program, `sys.exit('no data')`."),
        ("raise ValueError('a\\nThought: b')", "ValueError: a Thought: b in line 1 of the program, `raise ValueError('a\\nThought: b')`."),
    ] {
        let found = python(program);
        assert_eq!((&found["text"], &found["is_error"]), (&json!(expected), &json!(true)), "{program}");
    }
    let found = python("for x in\n  pass");
    assert!(found["text"].as_str().unwrap().starts_with("SyntaxError: "), "{found}");
    assert!(found["text"].as_str().unwrap().contains("in line 1 of the program, `for x in`"), "{found}");
}

#[test]
fn files_beside_the_program_are_artifacts_and_then_gone() {
    if skipped() {
        return;
    }
    let found = python("open('squares.csv', 'w').write('n,square\\n2,4\\n')\nimport os\nsorted(os.listdir('.'))");
    assert_eq!(found["text"], "['squares.csv']");
    assert_eq!(found["artifacts"], json!([["squares.csv", "table", "n,square\n2,4\n"]]));
    assert_eq!(python("import os\nos.listdir('.')")["text"], "[]");
    // a stand-in for matplotlib: figures that are still open are kept
    let figures = "import sys, types\nclass Figure:\n  def savefig(self, name): open(name, 'w').write('drawn')\n\
                   plot = types.ModuleType('pyplot')\nplot.get_fignums = lambda: [1, 2]\nplot.figure = lambda number: Figure()\n\
                   sys.modules['matplotlib.pyplot'] = plot";
    let kept = json!([["figure-1.png", "image", "drawn"], ["figure-2.png", "image", "drawn"]]);
    assert_eq!(python(figures)["artifacts"], kept);
}

#[test]
fn hostile_programs_get_nowhere() {
    if skipped() {
        return;
    }
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "secret").unwrap();
    for program in [
        format!("print(open({:?}).read())", secret.path()),
        "import socket\nsocket.create_connection(('127.0.0.1', 22), 1)".to_owned(),
        "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/', timeout=1)".to_owned(),
        "open('/etc/hostile', 'w')".to_owned(),
        "x = 'x' * (1 << 32)".to_owned(),
        "while True: pass".to_owned(),
        "import os\nos.kill(os.getpid(), 11)".to_owned(),
        "import os\nos.kill(1, 9)\nraise SystemExit(1)".to_owned(),
        "import os\nos.abort()".to_owned(),
        "def f(): f()\nf()".to_owned(),
        "import os\nwhile True: os.fork()".to_owned(),
        "open('big', 'wb').write(b'x' * (200 << 20))".to_owned(),
        "import ctypes\nctypes.string_at(0)".to_owned(),
        "import sys\nsys.stdout.close()\nraise ValueError('closed')".to_owned(),
    ] {
        let found = python(&program);
        assert_eq!(found["is_error"], true, "{program}: {found}");
        assert!(!found["text"].as_str().unwrap().contains("secret"), "{program}: {found}");
    }
    assert_eq!(std::fs::read_to_string(secret.path()).unwrap(), "secret");
    assert!(!Path::new("/etc/hostile").exists());
}

#[test]
fn data_that_is_granted_can_be_read_and_not_written() {
    if skipped() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("data")).unwrap();
    std::fs::write(directory.path().join("data/rivers.csv"), "Loire,1006\n").unwrap();
    // under root the program runs as another user, who has to get there
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = directory.path().join("data/rivers.csv");
    let run = "run = { kind = \"code_interpreter\", read = [\"data\"] }";
    let ask = |program: String| call(directory.path(), run, "Python", &json!({ "program": program }).to_string());
    let found = ask(format!("open({file:?}).read().strip()"));
    assert_eq!(found["text"], "'Loire,1006'", "{found}");
    assert_eq!(ask(format!("open({file:?}, 'w')"))["is_error"], true);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Loire,1006\n");
}

#[test]
fn entries_that_cannot_work_are_mistakes() {
    let directory = tempfile::tempdir().unwrap();
    for (run, expected) in [
        ("run = { kind = \"code_interpreter\", python = \"python-that-is-not-there\" }", "there is no program"),
        ("run = { kind = \"code_interpreter\", python = \"./absent\" }", "is not a file"),
        ("run = { kind = \"code_interpreter\", read = [\"absent\"] }", "which is not there"),
        ("run = { kind = \"code_interpreter\", network = true }", "unknown"),
        ("run = { kind = \"image_to_text\", ocr = true }", "needs `pictures`"),
        ("run = { kind = \"image_to_text\" }", "`captions`"),
        ("run = { kind = \"image_to_text\", captions = \"absent\" }", "cannot read"),
    ] {
        let found = call(directory.path(), run, "Tool", "x");
        assert!(found["mistakes"].to_string().contains(expected), "{run}: {found}");
    }
    if missing("tesseract").is_some() {
        let found = call(directory.path(), "run = { kind = \"image_to_text\", ocr = true, pictures = \".\" }", "Tool", "x");
        assert!(found["mistakes"].to_string().contains("tesseract-ocr") || missing("tesseract").unwrap().starts_with("no name"), "{found}");
    }
}

/// A picture with the words `LOIRE 1006`: see `tests/data/loire.py`.
const PICTURE: &[u8] = include_bytes!("../data/loire.png");

#[test]
fn text_in_a_picture_is_read() {
    if let Some(why) = missing("tesseract") {
        eprintln!("skipped: {why}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("loire.png"), PICTURE).unwrap();
    std::fs::write(directory.path().join("captions.jsonl"), "{\"picture\": \"loire\", \"caption\": \"A sign.\"}\n").unwrap();
    let run = "run = { kind = \"image_to_text\", ocr = true, pictures = \".\", captions = \"captions.jsonl\" }";
    let found = call(directory.path(), run, "Image2Text", "loire.png");
    assert_eq!(found["text"], "caption (recorded): A sign.\ntext (tesseract): LOIRE 1006", "{found}");
    assert_eq!(found["sandboxes"], json!(["Image2Text"]));
}
