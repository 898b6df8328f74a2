"""Run pgbench and read its report."""
import re
import subprocess

FIELDS = {
    "transactions": re.compile(r"^number of transactions actually processed: (\d+)", re.M),
    "failed": re.compile(r"^number of failed transactions: (\d+)", re.M),
    "latency_ms": re.compile(r"^latency average = ([\d.]+) ms", re.M),
    "tps": re.compile(r"^tps = ([\d.]+)", re.M),
}
PROGRESS = re.compile(r"^progress: [\d.]+ s, ([\d.]+) tps", re.M)


def pgbench(program, options, check=True):
    """Returns figures by name, all output ("report") and, with -P, tps of intervals ("progress")."""
    done = subprocess.run([program, "--no-vacuum", *options], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if check and (done.returncode != 0 or "aborted" in done.stderr):
        raise RuntimeError(f"pgbench failed:\n{done.stdout}{done.stderr}")
    result = {"report": done.stdout}
    for name, pattern in FIELDS.items():
        found = pattern.search(done.stdout)
        result[name] = float(found.group(1)) if found else 0.0
    result["progress"] = [float(tps) for tps in PROGRESS.findall(done.stderr)]
    return result
