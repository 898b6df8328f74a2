"""Fuzz the functions of t/fuzz/targets.c with libFuzzer, and say "ok" or "not ok" of each.

    fuzz.py --pg-config PROGRAM --folder FOLDER [--seconds N] [--seed 1] [--only TARGET] [--keep-corpus]

Builds the extension with clang, libFuzzer and the address and undefined
sanitizers into FOLDER, and runs it in stand-alone backends, one for each target.
Without --seconds each gets a fixed number of inputs, about twenty seconds' worth.  The same
seed then tries much the same inputs.
An input that fails stays in FOLDER/TARGET/ and is shown in base64.  Inputs that
were found worth keeping stand in t/fuzz/corpus/TARGET.txt, a line each in base64;
--keep-corpus adds those of this run that reach something new.
"""
import argparse
import base64
import glob
import os
import platform
import re
import shutil
import subprocess
import sys

from seeds import SEEDS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CLANG = "clang"
LONGEST_INPUT = 4096
LARGEST_CORPUS = 32 * 1024
RUNS = {"document": 150000, "json": 1000000, "message": 500000, "option": 250000, "pattern": 70000}
# Folders that no target reaches: their objects are those of the tested build, if that is there.
BUILT = ("src/catalog", "src/exec", "src/plan", "src/sync")
# PostgreSQL's own hash functions shift into the sign bit
SANITIZERS = ("-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=shift-base,function "
              "-fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g")


def run(command, **settings):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **settings)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stdout[-4000:]}")
    return done.stdout


def literal(text):
    return "'%s'" % text.replace("'", "''")


class Fuzzer:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.folder)
        options.pg_config = shutil.which(options.pg_config) or options.pg_config
        options.pg_config = os.path.abspath(options.pg_config)
        self.programs = run([options.pg_config, "--bindir"]).strip()
        os.makedirs(self.folder, exist_ok=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def build(self):
        source = self.path("source")
        shutil.rmtree(source, ignore_errors=True)
        for name in ("include", "sync", "t/fuzz", *sorted(glob.glob("src/*", root_dir=ROOT))):
            if os.path.isdir(os.path.join(ROOT, name)):
                reused = () if name in BUILT else ("*.o", "*.d")
                shutil.copytree(os.path.join(ROOT, name), os.path.join(source, name),
                                ignore=shutil.ignore_patterns(*reused, "*.bc", "__pycache__"))
            elif name.endswith((".c", ".h")):
                shutil.copy2(os.path.join(ROOT, name), os.path.join(source, "src"))
        for name in ("Makefile", "mongo_fdw.control", "mongo_fdw--1.0.sql", "additions-2.0.sql", "additions-2.1.sql",
                     "update-2.0.sql", "update-2.0--2.1.sql"):
            shutil.copy2(os.path.join(ROOT, name), source)
        # gcc's options that PostgreSQL was built with mean nothing to clang
        run(["make", "-C", source, f"-j{os.cpu_count()}", "FUZZ=1", f"CC={CLANG}", "with_llvm=no", f"COPT=-w {SANITIZERS}",
             f"PG_CONFIG={self.options.pg_config}"])
        run([CLANG, "-shared", "-fPIC", "-o", self.path("no_gettext.so"), os.path.join(HERE, "preload", "no_gettext.c")])
        if not os.path.exists(self.path("data")):
            run([os.path.join(self.programs, "initdb"), "-D", self.path("data"), "--username=postgres", "--no-locale",
                 "--encoding=UTF8", "--no-sync"])

    def prepare(self, target):
        """A folder with data of its own, as a stand-alone backend locks it, and the corpus."""
        for name in ("data", "corpus"):
            shutil.rmtree(self.path(target, name), ignore_errors=True)
        shutil.copytree(self.path("data"), self.path(target, "data"))
        os.makedirs(self.path(target, "corpus"))
        for number, data in enumerate(SEEDS[target] + kept_corpus(target)):
            with open(self.path(target, "corpus", f"seed{number}"), "wb") as file:
                file.write(data)

    def start(self, target, *arguments):
        runtime = run([CLANG, f"-print-file-name=libclang_rt.asan-{platform.machine()}.so"]).strip()
        environment = dict(
            os.environ, LD_PRELOAD=f"{runtime} {self.path('no_gettext.so')}",
            ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
            UBSAN_OPTIONS="print_stacktrace=1")
        statements = (
            "CREATE OR REPLACE FUNCTION mongo_fdw_fuzz(text, text[]) RETURNS int LANGUAGE c AS "
            f"{literal(self.path('source', 'mongo_fdw.so'))}, 'mongo_fdw_fuzz';\n"
            f"SELECT mongo_fdw_fuzz({literal(target)}, ARRAY[{', '.join(map(literal, arguments))}]);\n")
        process = subprocess.Popen(
            [os.path.join(self.programs, "postgres"), "--single", "-D", self.path(target, "data"), "postgres"],
            stdin=subprocess.PIPE, stdout=open(self.path(target, "log"), "w"), stderr=subprocess.STDOUT, text=True,
            env=environment)
        process.stdin.write(statements)
        process.stdin.close()
        return process

    def limit(self, target):
        return f"-max_total_time={self.options.seconds}" if self.options.seconds else f"-runs={RUNS[target]}"

    def fuzz(self, target):
        self.prepare(target)
        arguments = [f"-seed={self.options.seed}", self.limit(target),
                     f"-max_len={LONGEST_INPUT}", "-rss_limit_mb=4096",
                     f"-artifact_prefix={self.path(target)}/", "-verbosity=1", self.path(target, "corpus")]
        dictionary = os.path.join(HERE, "dictionaries", f"{target}.dict")
        if os.path.exists(dictionary):
            arguments.insert(0, f"-dict={dictionary}")
        return self.start(target, *arguments)

    def report(self, target, process):
        """One line of TAP; what a failure looks like goes before it, as comments."""
        try:
            process.wait(timeout=(self.options.seconds or 300) + 300)
        except subprocess.TimeoutExpired:
            process.kill()
        with open(self.path(target, "log"), errors="replace") as file:
            log = file.read()
        done = re.search(r"DONE +cov: (\d+).*\n", log)
        runs = re.search(r"Done (\d+) runs", log)
        if done and runs:
            print(f"ok - {target}: {runs[1]} inputs, {done[1]} edges of the code")
            return
        for name in os.listdir(self.path(target)):
            if name.startswith(("crash-", "oom-")):
                with open(self.path(target, name), "rb") as file:
                    print(f"#   {name}: {base64.b64encode(file.read()).decode()}")
        print("\n".join(f"#   {line}" for line in log.splitlines()[-60:]))
        print(f"not ok - {target}")

    def keep_corpus(self, target):
        """Write what libFuzzer has kept, as it reaches something that the seeds do not; the shortest first."""
        found = set()
        for name in os.listdir(self.path(target, "corpus")):
            with open(self.path(target, "corpus", name), "rb") as file:
                found.add(base64.b64encode(file.read()).decode())
        found -= {base64.b64encode(seed).decode() for seed in SEEDS[target]}
        left = LARGEST_CORPUS
        os.makedirs(os.path.dirname(corpus_file(target)), exist_ok=True)
        with open(corpus_file(target), "w") as file:
            for line in sorted(found, key=lambda line: (len(line), line)):
                left -= len(line) + 1
                if left < 0:
                    break
                file.write(f"{line}\n")


def corpus_file(target):
    return os.path.join(HERE, "corpus", f"{target}.txt")


def kept_corpus(target):
    if not os.path.exists(corpus_file(target)):
        return []
    with open(corpus_file(target)) as file:
        return [base64.b64decode(line) for line in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pg-config", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seconds", type=int, help="for each target, instead of a number of inputs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=SEEDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep-corpus", action="store_true")
    options = parser.parse_args()

    fuzzer = Fuzzer(options)
    fuzzer.build()
    targets = [options.only] if options.only else list(SEEDS)
    for first in range(0, len(targets), options.jobs):
        together = targets[first:first + options.jobs]
        for target, process in [(target, fuzzer.fuzz(target)) for target in together]:
            fuzzer.report(target, process)
            if options.keep_corpus:
                fuzzer.keep_corpus(target)
    print("done")


if __name__ == "__main__":
    main()
