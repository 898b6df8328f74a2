"""Random regular expressions; most are shippable."""

CHARACTERS = ["a", "b", "c", "A", "0", "6", "f", "-", "ä", "_", " ", "\\n", "\\.", "\\$", "\\|", "x"]
MEMBERS = ["a", "b", "A-Z", "0-9", "ä", "\\-", "_", "b-f", "\n", "|", ".", "^", "[:alpha:]", "\\d", "\\w"]
CLASSES = ["\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "[[:punct:]]", "[[:upper:]]"]
QUANTIFIERS = [""] * 6 + ["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,1}", "*?", "+?"]


def bracket(rng):
    members = [rng.choice(MEMBERS) for _ in range(rng.randint(1, 3))]
    if members[0] == "^":               # would begin a complement
        members.insert(0, "c")
    return "[%s%s%s%s]" % (rng.choice(["", "^"]), rng.choice(["", "", "]", "-"]), "".join(members), rng.choice(["", "", "-"]))


def atom(rng, depth):
    kind = rng.random()
    if kind < 0.5 or depth <= 0:
        return rng.choice(CHARACTERS)
    if kind < 0.65:
        return "."
    if kind < 0.8:
        return bracket(rng)
    if kind < 0.86:
        return rng.choice(CLASSES)
    return "(%s%s)" % (rng.choice(["", "?:"]), "|".join(sequence(rng, depth - 1) for _ in range(rng.randint(1, 3))))


def sequence(rng, depth):
    return "".join(atom(rng, depth) + rng.choice(QUANTIFIERS) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))


def branch(rng):
    inner = ".*".join(sequence(rng, 2) for _ in range(rng.choice([1, 1, 2, 3])))
    return rng.choice(["", "^"]) + inner + rng.choice(["", "$"])


def random_regular_expression(rng):
    """Returns a regular expression that PostgreSQL accepts, for use in a literal."""
    return "|".join(branch(rng) for _ in range(rng.choice([1, 1, 1, 2])))
