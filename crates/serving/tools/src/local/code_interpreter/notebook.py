# Runs a program as a cell of a notebook: prints the value of a last expression, keeps open figures,
# and says in one line on the standard error where an exception comes from. What the program itself
# writes to its standard error goes to its standard output, where it stands in order.
import ast, os, sys

def main(source):
    complain, home = sys.stderr, os.getcwd()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stderr, sys.argv = sys.stdout, ["program"]
    os.environ.update(HOME=home, TMPDIR=os.path.join(home, "work"), MPLCONFIGDIR=os.path.join(home, "work"), MPLBACKEND="Agg")
    # what the program writes beside it is kept
    os.chdir(os.environ.get("ARTIFACTS_DIR", home))
    lines = source.splitlines()

    def fail(error):
        where, kind = "", type(error).__name__
        line = error.lineno if isinstance(error, SyntaxError) else None
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "<program>":
                line = trace.tb_lineno
            trace = trace.tb_next
        if line is not None and 0 < line <= len(lines):
            where = " in line %d of the program, `%s`" % (line, lines[line - 1].strip()[:200])
        try:
            said = error.msg if isinstance(error, SyntaxError) else str(error)
        except BaseException:
            said = ""
        try:
            sys.stdout.flush()
        except BaseException:
            pass
        message = "%s%s%s" % (kind, ": " if said else "", " ".join(said.split())[:600])
        complain.write((message + where).encode("utf-8", "backslashreplace").decode("utf-8") + "\n")
        complain.flush()
        os._exit(1)

    try:
        tree = ast.parse(source, "<program>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        scope = {"__name__": "__main__", "__builtins__": __builtins__}
        exec(compile(tree, "<program>", "exec"), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<program>", "eval"), scope)
            if value is not None:
                print(repr(value))
        figures = sys.modules.get("matplotlib.pyplot")
        for number in figures.get_fignums() if figures else []:
            figures.figure(number).savefig("figure-%d.png" % number)
        sys.stdout.flush()
    except SystemExit as ended:
        if ended.code not in (None, 0):
            fail(ended)
    except BaseException as error:
        fail(error)

main(sys.argv[1])
