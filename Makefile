# mongo_fdw
#
# With PostgreSQL and its headers at hand, the PGXS goals work as everywhere:
#	make, make install, make installcheck, make clean
# "make help" lists all goals.
# From a clean clone on Debian 12 the laboratory goals set up everything
# themselves, in .lab/:
#	make demo, make test, make check, make lint, make indent, make sanitize, make faults,
#	make valgrind, make soak, make moment, make suites, make smith, make sysbench, make bench,
#	make lab,
#	make lab-stop
# and, as root, on other systems in .lab.roots/:
#	make matrix, make packages
# The latter must not include PGXS: pg_config may not be installed yet.

# From the environment this would be the shell's own clock.
ifeq ($(origin SECONDS),environment)
SECONDS =
endif

LAB_GOALS = help demo test check lint indent sanitize faults valgrind soak moment suites smith sysbench datasets lab lab-stop lab-clean bench \
	matrix packages roots-clean dist

ifneq (,$(filter $(LAB_GOALS),$(MAKECMDGOALS)))

.PHONY: $(LAB_GOALS)

demo test check lint indent sanitize faults valgrind suites smith sysbench datasets lab matrix packages:
	@bash scripts/$@.sh

define HELP
With PostgreSQL, its headers and libmongoc (PG_CONFIG= names another pg_config):
  make                builds the extension
  make install        installs it

On Debian 12, as root or with sudo; all but Debian packages stays below .lab/:
  make demo           shows the main features in psql
  make lab            starts PostgreSQL and MongoDB with a sample, and keeps them
  make lab-stop       stops them; make lab-clean removes them, too
  make test           runs all tests; TESTS="lint sql/scans.sql t/catalog/import.pl" some
  make check          runs sql/ and a test of each subject, in about five minutes
  make lint           checks the source; make indent lays it out
  make bench          measures; SCALE=0.1 with a tenth of the documents, ONLY=name one part
  make sanitize, valgrind, faults, soak, moment, suites, smith, sysbench, datasets
                      look for rare faults, as docs/internals/testing.md says

As root, in .lab.roots/:
  make matrix         tests with other versions of PostgreSQL and MongoDB
  make packages       builds packages
endef

help:
	$(info $(HELP))@:

# SCALE=0.1 for a tenth of the documents, ROUNDS=, SECONDS= a round, ONLY=name
bench:
	@bash scripts/bench.sh "--scale=$(or $(SCALE),1)" "--rounds=$(or $(ROUNDS),5)" \
		"--seconds=$(or $(SECONDS),10)" "--only=$(ONLY)"

# SECONDS=, STATEMENTS= for the part about memory, CLIENTS=, SEED=
soak:
	@SOAK_SECONDS=$(or $(SECONDS),600) SOAK_STATEMENTS=$(or $(STATEMENTS),100000) \
		SOAK_CLIENTS=$(or $(CLIENTS),24) SOAK_SEED=$(or $(SEED),1) bash scripts/soak.sh

# SEED= of the first round, ROUNDS=, PARTS="move copy history large",
# WITHOUT= a rule (t/moment/leave_out.c)
moment:
	@MOMENT_ROUNDS=$(or $(ROUNDS),100) MOMENT_SEED=$(or $(SEED),1) MOMENT_PARTS="$(PARTS)" \
		MOMENT_WITHOUT="$(WITHOUT)" bash scripts/moment.sh

lab-stop:
	@bash scripts/lab_stop.sh

lab-clean:
	@bash scripts/lab_stop.sh --remove

roots-clean:
	rm -rf --one-file-system .lab.roots

# What PGXN takes: the last commit.
DIST = mongo_fdw-$(shell sed -n 's/^   "version": "\(.*\)",$$/\1/p' META.json)
dist:
	git archive --format=zip --prefix=$(DIST)/ -o $(DIST).zip HEAD

else

MODULE_big = mongo_fdw

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))
EXTRA_CLEAN = $(OBJS:.o=.d)

# With libFuzzer in it: t/fuzz/fuzz.py builds that, with clang, apart from all else.
ifneq (,$(FUZZ))
OBJS += $(patsubst %.c,%.o,$(sort $(wildcard t/fuzz/*.c)))
FUZZ_LIBS = $(shell $(CC) -print-file-name=libclang_rt.fuzzer_no_main-$(shell uname -m).a) -lstdc++ -lm
endif

# With what lets things fail in it: make faults builds that, apart from all else.
ifneq (,$(FAULTS))
OBJS += t/faults/inject_fault.o
FAULT_LIBS = $(patsubst %,-Wl$(comma)--wrap=%,connect sendmsg recvmsg WaitEventSetWait bson_mem_set_vtable)
endif

# With what leaves out a rule in it: make moment builds that, apart from all else.
ifneq (,$(MOMENT))
OBJS += t/moment/leave_out.o
MOMENT_LIBS = $(patsubst %,-Wl$(comma)--wrap=%,mongo_event_stream_mark sync_group_load \
	sync_collection_identity mongo_batch_read mongo_check_collections)
endif

EXTENSION = mongo_fdw sync/mongo_sync
DATA = mongo_fdw--1.0.sql sync/mongo_sync--1.0.sql
DATA_built = mongo_fdw--2.1.sql mongo_fdw--1.0--2.1.sql mongo_fdw--1.1--2.1.sql mongo_fdw--2.0--2.1.sql
PGFILEDESC = "mongo_fdw - foreign data wrapper for MongoDB"

# Tests whose expected output needs a MongoDB loaded by t/lib/load_regress.py,
# see docs/internals/testing.md.
REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --launcher="perl $(CURDIR)/t/lib/normalise.pl"
export MONGO_HOST ?= 127.0.0.1
export MONGO_PORT ?= 27017

PG_CONFIG ?= pg_config
ifeq (,$(shell command -v $(PG_CONFIG) 2>/dev/null))
$(error pg_config ("$(PG_CONFIG)") was not found. Install PostgreSQL's server headers (Debian: postgresql-server-dev-15) or say where it is with PG_CONFIG=...; "make demo", "make test" and "make lab" install what they need themselves)
endif

# libmongoc 2 has another pkg-config name.
LIBMONGOC := $(shell for name in libmongoc-1.0 mongoc2; do \
	pkg-config --exists $$name 2>/dev/null && echo $$name && break; done)
ifeq (,$(LIBMONGOC)$(filter clean distclean,$(MAKECMDGOALS)))
$(error libmongoc was not found by pkg-config as libmongoc-1.0 or mongoc2. On Debian: apt-get install libmongoc-dev pkg-config)
endif

# Compressors of the wire protocol, as far as their libraries are here.
COMPRESSORS := $(shell for name in snappy zlib libzstd; do \
	pkg-config --exists $$name 2>/dev/null && echo $$name; done)

# PostgreSQL 15's headers are not C23, which is GCC 15's default.
PG_CFLAGS = -MMD -MP $(if $(filter 15,$(MAJORVERSION)),-std=gnu17)

# -isystem: warnings are for our code, not for the headers it is built with.
PG_CPPFLAGS = -I$(CURDIR)/include -Wall -Wextra -Wundef \
	-isystem $(shell $(PG_CONFIG) --includedir-server) \
	$(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(LIBMONGOC) $(COMPRESSORS))) \
	$(patsubst %,-DWITH_%,$(shell echo $(COMPRESSORS) | tr a-z A-Z)) \
	$(if $(FAULTS),-include $(CURDIR)/t/faults/inject_fault.h) \
	$(if $(MOMENT),-I$(CURDIR)/src/sync -I$(CURDIR)/src/remote -include $(CURDIR)/t/moment/leave_out.h)

# Our functions call each other directly, and never another library's function
# of the same name: PostgreSQL loads libraries into one name space.
comma = ,
SHLIB_LINK = $(shell pkg-config --libs $(LIBMONGOC) $(COMPRESSORS)) -lpthread $(FUZZ_LIBS) $(FAULT_LIBS) $(MOMENT_LIBS) \
	$(if $(filter linux darwin,$(PORTNAME)),-lresolv) \
	$(if $(filter linux,$(PORTNAME)),-Wl$(comma)-Bsymbolic)

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

ADDITIONS = additions-2.0.sql additions-2.1.sql

mongo_fdw--2.1.sql: mongo_fdw--1.0.sql $(ADDITIONS)
	cat $^ >$@

mongo_fdw--2.0--2.1.sql: update-2.0--2.1.sql additions-2.1.sql
	cat $^ >$@

# The other mongo_fdw's versions 1.0 and 1.1 have what comes before the first type in ours.
mongo_fdw--1.0--2.1.sql mongo_fdw--1.1--2.1.sql: mongo_fdw--1.0.sql update-2.0.sql $(ADDITIONS)
	sed '1,/^-- Type objectid$$/d' mongo_fdw--1.0.sql | \
		sed -e '/^@OBJECTS@$$/{' -e 'r /dev/stdin' -e d -e '}' update-2.0.sql | cat - $(ADDITIONS) >$@

# The compiler says which headers an object depends on.  PostgreSQL's own
# dependency tracking is usually not configured in, and takes files of one name
# in two folders for the same.  Bitcode, which has none, is built anew.
-include $(OBJS:.o=.d)
$(OBJS): Makefile
$(OBJS:.o=.bc): Makefile $(wildcard $(CURDIR)/include/*.h $(CURDIR)/src/*/*.h)

endif
