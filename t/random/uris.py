"""Random connection strings: none that contains a secret becomes an option.

    uris.py --dsn DSN --seed 1 --uris 20000

The validator checks each, and libmongoc, called by ctypes, reports its contents:
user, password, a key file's password, a session token.  A string that the validator
accepts must contain none of these, and no message may show the secret.
"""

import argparse
import ctypes
import ctypes.util
import random
import re

import psycopg2

SECRET = "s3cr3t"

SCHEMES = ["mongodb://"] * 30 + ["mongodb+srv://"] * 4 + ["MONGODB://", "Mongodb://", "", "http://", "mongodb:/", " mongodb://", "mongodb:"]
AWKWARD = ["?", "/", "#", "@", ":", "%40", "%3A", "%2F", "%3f", "%", "%zz", "%00", "\\", "[", "]", ",", "&", "=", ";", "\u00fc", "\u2028", " ",
           "\"", "\"", "'", "'", "a", "ssl", "\": \"", "27017", "?a=", "/?", "/x?"]
ENDS = ["@"] * 8 + ["%40", "@@", "\\@", ""]
HOSTS = ["h", "h:1", "127.0.0.1:27017"] * 3 + [ "[::1]", "[::1]:27017", "%2Ftmp%2Fx.sock", "a.b.example.net", "a.b.example.net", "a,b", "a:1,b:2", "h:0", ""]
DATABASES = ["", "/"] + ["/"] * 12 + [ "/db", "/db/x", "/a@b", "?", "/%40"]
OPTIONS = [
    "tls=true", "ssl=true", "appName=@a@", "appname=x%40y", "authSource=admin", "authSource=%24external", "replicaSet=rs", "w=majority", "nonsense=1",
    "compressors=zlib", "readPreference=nearest", "readPreferenceTags=a:b", "directConnection=true", "connectTimeoutMS=5", "retryWrites=maybe",
    "authMechanism=MONGODB-X509", "authMechanism=SCRAM-SHA-256", "authMechanism=MONGODB-AWS", "authMechanism=GSSAPI", "authMechanism=PLAIN",
    "authMechanismProperties=SERVICE_NAME:x", f"authMechanismProperties=AWS_SESSION_TOKEN:{SECRET}",
    f"authMechanismProperties=SERVICE_NAME:x,aws_session_token:{SECRET}", f"tlsCertificateKeyFilePassword={SECRET}",
    f"TLSCERTIFICATEKEYFILEPASSWORD={SECRET}", f"sslClientCertificateKeyPassword={SECRET}", f"password={SECRET}", f"proxyPassword={SECRET}",
    f"username={SECRET}", f"appname={SECRET}:{SECRET}@h", "", "=", "a", "&"]
NAMES = ["tlscertificatekeyfilepassword", "sslclientcertificatekeypassword"]


def random_text(rng):
    pieces = [rng.choice(AWKWARD) for _ in range(rng.randrange(4))] + [SECRET]
    rng.shuffle(pieces)
    return "".join(pieces)


def random_case(rng, text):
    return "".join(c.upper() if rng.random() < 0.3 else c.lower() for c in text)


def random_option(rng):
    option = rng.choice(OPTIONS)
    if rng.random() < 0.1:
        name, equals, value = option.partition("=")
        option = random_case(rng, name) + equals + value
    return option


def mutated(rng, text):
    letters = list(text)
    for _ in range(rng.choice([0, 0, 0, 0, 0, 1, 1, 2, 5])):
        place = rng.randrange(len(letters) + 1)
        if rng.random() < 0.5:
            letters.insert(place, rng.choice(AWKWARD))
        elif letters:
            del letters[place:place + rng.choice([1, 1, 2])]
    return "".join(letters)


def random_uri(rng):
    user = ""
    if rng.random() < 0.6:
        user = rng.choice(["ann", "a?n", "a%40n", random_text(rng), ""]) + rng.choice([":", ":", ":", ""]) + rng.choice([random_text(rng), ""]) + rng.choice(ENDS)
    options = "&".join(random_option(rng) for _ in range(rng.choice([0, 0, 1, 1, 2, 3])))
    uri = rng.choice(SCHEMES) + user + rng.choice(HOSTS) + rng.choice(DATABASES) + ("?" + options if options or rng.random() < 0.2 else "")
    return mutated(rng, uri)


def without_option(name, text):
    head, mark, query = text.partition("?")
    rest = re.sub(r"(?i)(^|(?<=&))%s=[^&]*(&|$)" % name, "", query)
    # libmongoc may reject a "&" at the end
    rest = rest.rstrip("&") if rest != query else query
    return head + (mark + rest if rest else "")


class Driver:
    """A connection string as libmongoc parses it."""

    def __init__(self):
        name = ctypes.util.find_library("mongoc-1.0") or ctypes.util.find_library("mongoc2")
        self.library = library = ctypes.CDLL(name)
        for function, result, arguments in (
                ("mongoc_uri_new", ctypes.c_void_p, [ctypes.c_char_p]), ("mongoc_uri_destroy", None, [ctypes.c_void_p]),
                ("mongoc_uri_get_username", ctypes.c_char_p, [ctypes.c_void_p]),
                ("mongoc_uri_get_password", ctypes.c_char_p, [ctypes.c_void_p]),
                ("mongoc_uri_get_option_as_utf8", ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
                ("mongoc_uri_get_credentials", ctypes.c_void_p, [ctypes.c_void_p]),
                ("bson_as_relaxed_extended_json", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]), ("bson_free", None, [ctypes.c_void_p]),
                ("mongoc_log_set_handler", None, [ctypes.c_void_p, ctypes.c_void_p])):
            getattr(library, function).restype = result
            getattr(library, function).argtypes = arguments
        library.mongoc_log_set_handler(None, None)

    def secrets(self, text):
        """Returns the secrets that libmongoc finds; None if the string is no URI for it."""
        library = self.library
        # with a mechanism, libmongoc requires the user, which is in the mapping
        text = without_option("authMechanism", text)
        uri = library.mongoc_uri_new(text.encode())
        # newer versions reject unknown properties, which are not secret
        if not uri and "session_token" not in text.lower():
            uri = library.mongoc_uri_new(without_option("authMechanismProperties", text).encode())
        if not uri:
            return None
        found = [name for name in ("username", "password") if getattr(library, "mongoc_uri_get_" + name)(uri) is not None]
        found += [name for name in NAMES if library.mongoc_uri_get_option_as_utf8(uri, name.encode(), None)]
        json = library.bson_as_relaxed_extended_json(library.mongoc_uri_get_credentials(uri), None)
        if b"session_token" in ctypes.string_at(json).lower():
            found.append("token")
        library.bson_free(json)
        library.mongoc_uri_destroy(uri)
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--uris", type=int, default=20000)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    driver = Driver()
    connection = psycopg2.connect(options.dsn)
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("""
        SET client_min_messages = error;
        CREATE OR REPLACE FUNCTION pg_temp.refusal(uri text) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            detail text;
            hint text;
        BEGIN
            PERFORM mongo_fdw_validator(ARRAY['uri=' || uri], 'pg_foreign_server'::regclass);
            RETURN NULL;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
            RETURN concat_ws(' ', SQLSTATE, SQLERRM, detail, hint);
        END $$""")

    accepted = holding = invalid = 0
    faults = []
    for _ in range(options.uris):
        uri = random_uri(rng)
        cursor.execute("SELECT pg_temp.refusal(%s)", [uri])
        refusal = cursor.fetchone()[0]
        secrets = driver.secrets(uri)
        accepted += refusal is None
        holding += bool(secrets)
        invalid += secrets is None
        if refusal is None and (secrets is None or secrets or "@" in uri):
            faults.append(f"accepted {uri!r}: {secrets}")
        if refusal is not None and SECRET in refusal.lower():
            faults.append(f"the secret is in {refusal!r}, of {uri!r}")
    print(f"# seed {options.seed}: {options.uris} URIs, {accepted} accepted, {holding} with a secret, {invalid} that libmongoc refuses")
    for fault in faults[:20]:
        print(f"#   {fault}")
    print(("not ok" if faults else "ok") + " - no URI with a secret is accepted, no message shows one")
    enough = min(accepted, holding, invalid) > options.uris // 20
    print(("ok" if enough else "not ok") + " - there are enough of each kind")
    print("done")


main()
