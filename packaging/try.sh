#!/bin/sh
# What Containerfile.try's image runs: MongoDB with the sample data, PostgreSQL, and psql with the
# arguments that it gets.  MONGO_PORT is another port than 27017.
set -eu
port=${MONGO_PORT:-27017}

echo "Starting MongoDB and PostgreSQL ..." >&2
# empty when a container is started again, too
mongod --quiet --fork --logpath /var/log/mongod.log --dbpath "$(mktemp -d)" --bind_ip 127.0.0.1 \
	--port "$port" --replSet rs0 >/dev/null
python3 /usr/share/mongo_fdw/load_sample.py --port "$port" --initiate rs0 >/dev/null
pg_lsclusters -h | while read -r major cluster rest; do
	pg_ctlcluster "$major" "$cluster" start
done
cd /
runuser -u postgres -- createdb try 2>/dev/null || true
exec runuser -u postgres -- psql -d try "$@"
