"""First copies while the collections are written, renamed and dropped."""


def run_copying(arguments, ports, servers, seed, counts):
    return []
