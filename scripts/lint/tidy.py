"""clang-tidy over the sources; the results of unchanged files are cached.

    tidy.py --cache FOLDER --jobs N FILE ... -- COMPILER ARGUMENTS

A file is checked again if it, one of this project's headers that it includes (listed in
its .d file), .clang-tidy or the release of clang-tidy has changed.
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys


def headers_of(path):
    try:
        with open(path[:-2] + ".d", encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split()
    except FileNotFoundError:
        return []
    headers = {os.path.relpath(word.rstrip(":")) for word in words if word.rstrip(":").endswith(".h")}
    return sorted(name for name in headers if not name.startswith("..") and os.path.exists(name))


def key_of(path, common):
    digest = hashlib.sha256(common)
    for name in [path] + headers_of(path):
        with open(name, "rb") as file:
            digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()


def look(path, options, common):
    kept = os.path.join(options.cache, path.replace("/", "_"))
    key = key_of(path, common)
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as file:
            if file.readline().strip() == key:
                return file.read()
    done = subprocess.run(["clang-tidy", "--quiet", path, "--", *options.arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    # relative, so that findings in a header are the same for all files
    found = re.sub(re.escape(os.getcwd()) + "/", "", done.stdout)
    if done.returncode != 0 and not found:
        found = "%s: clang-tidy failed\n%s" % (path, done.stderr)
    with open(kept, "w", encoding="utf-8") as file:
        file.write(key + "\n" + found)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", nargs="+")
    split = sys.argv.index("--")
    options = parser.parse_args(sys.argv[1:split])
    options.arguments = sys.argv[split + 1:]
    os.makedirs(options.cache, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
    with open(".clang-tidy", "rb") as file:
        common = version + file.read() + " ".join(options.arguments).encode()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = set(pool.map(lambda path: look(path, options, common), options.files)) - {""}
    sys.stdout.write("".join(sorted(found)))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
