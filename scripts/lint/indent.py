"""PostgreSQL's own layout of C, as pgindent makes it.

    indent.py --objects FILE [--write] FILE ...

Reports files with a different layout, or rewrites them.  pg_bsd_indent needs the names
of types: those in the debugging information of --objects, as in PostgreSQL's own list,
and those that the files define.
"""
import argparse
import difflib
import re
import subprocess
import sys
import tempfile

# pgindent's arguments
ARGUMENTS = ("-bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 -nfc1 -i4 -l79 -lp -lpl -nip -npro "
             "-sac -tpg -ts4").split()

# Types with names that variables have too; pgindent also excludes such names.
AMBIGUOUS = {"date", "interval", "iterator", "other", "pointer", "reference", "string", "text", "timestamp", "type"}

DEFINED_TYPE = re.compile(r"^\} ?(\w+);|^typedef [^(){};]*?(\w+);|^typedef .*?\(\*(\w+)\)", re.MULTILINE)

# Values in braces, which pg_bsd_indent treats as blocks: within one line, or after a cast.
VALUES = re.compile(r"((?:= |return |\{|, )(?=\{))(\{[^{}\n]*\})|(\(\w+\) (?=\{))(\{[^{}]*\})")

# Types that are also names of many variables, or of a macro: pg_bsd_indent sees names of the
# same length instead.
RENAMED = {r"\btext(?= \*)": ("text", "teXt"), r"\bElfW\(Phdr\)": ("ElfW(Phdr)", "ElfW_Phdr_")}

# A value that continues in the next line: after "=", or of a declaration.  pg_bsd_indent 2.1.1
# leaves that line at the margin; later releases do not.
GOES_ON = re.compile(r"^(\t+)(?:[^;]* =|(?:(?:static|const|struct|unsigned|volatile) )*\w+\s+\**\w+ = [^;]*[^;,{(\n])\n$")


def names_of_types(objects, sources):
    dump = subprocess.run(["readelf", "--debug-dump=info", objects], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace", check=True).stdout
    names = set(re.findall(r"\(DW_TAG_typedef\)\n\s*<\w+>\s+DW_AT_name\s*:(?:.*:)? (\w+)\n", dump))
    for source in sources:
        names.update(name for groups in DEFINED_TYPE.findall(source) for name in groups if name)
    return names - AMBIGUOUS


def indent_what_goes_on(source):
    lines = source.splitlines(True)
    shifting = False
    for i in range(1, len(lines)):
        above = GOES_ON.match(lines[i - 1])
        if above and not shifting:
            shifting = re.match(above.group(1) + r"\S", lines[i]) and not re.match(r"\t+[{}#/*]", lines[i])
        if shifting:
            ends = re.search(r";(\s*/\*.*\*/)?\n$", lines[i])
            lines[i] = "\t" + lines[i]
            shifting = not ends
    return "".join(lines)


def laid_out(path, source, types):
    """Returns the source in pgindent's layout; 'types' is a file with one name per line."""
    kept = []

    def keep(match):
        before, values = match.group(1) or match.group(3), match.group(2) or match.group(4)
        kept.append(values)
        name = "Q%dq" % (len(kept) - 1)
        return before + (name if "\n" in values else name.ljust(len(values), "q"))

    # pgindent's changes before pg_bsd_indent
    source = re.sub(r"^([ \t]*)/\*---", r"\1/*---X_X", source, flags=re.MULTILINE)
    for pattern, (_, name) in RENAMED.items():
        source = re.sub(pattern, name, source)
    last = None
    while source != last:
        last, source = source, VALUES.sub(keep, source)

    done = subprocess.run(["pg_bsd_indent", *ARGUMENTS, "-U" + types], input=source, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0 or done.stderr:
        sys.exit("%s: pg_bsd_indent: %s" % (path, done.stderr.strip()))
    source = done.stdout

    # pgindent's changes after pg_bsd_indent
    source = source.replace("/*---X_X", "/*---")
    source = re.sub(r"\*/(/\*.*\*/)$", r"*/\t\1", source, flags=re.MULTILINE)
    source = re.sub(r"\n\n+(#\s*(?:else|elif|endif))", r"\n\1", source)
    source = re.sub(r"\n(#endif.*)\n\Z", r"\n\n\1\n", source)
    source = re.sub(r"^([A-Za-z_]\S*)[ \t]+\*$", r"\1 *", source, flags=re.MULTILINE)
    # a layout of pg_bsd_indent that pgindent does not change
    source = re.sub(r"=\n\n\{", "=\n{", source)
    source = re.sub(r"(?<=[\w)\]}\"'])\s?,\.(?=[a-z])", ", .", source)
    source = re.sub(r"(?<=[\w)\]}\"']),\[(?=\w+\] = )", ", [", source)
    source = indent_what_goes_on(source)
    for type_name, name in RENAMED.values():
        source = source.replace(name, type_name)
    while re.search(r"Q\d+q+", source):
        source = re.sub(r"Q(\d+)q+", lambda match: kept[int(match.group(1))], source)
    return source


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", required=True, help="a library with debugging information")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    sources = {}
    for path in options.files:
        with open(path, encoding="utf-8") as file:
            sources[path] = file.read()
    with tempfile.NamedTemporaryFile("w", suffix=".types") as types:
        names = names_of_types(options.objects, sources.values()) | {name for _, name in RENAMED.values()}
        types.write("\n".join(sorted(names)) + "\n")
        types.flush()
        for path, source in sources.items():
            result = laid_out(path, source, types.name)
            if result == source:
                continue
            if options.write:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(result)
            else:
                sys.stdout.writelines(difflib.unified_diff(source.splitlines(True), result.splitlines(True), path,
                                                           path + " (laid out)", n=0))


if __name__ == "__main__":
    main()
