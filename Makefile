MODULE_big = mongo_fdw
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))
EXTENSION = mongo_fdw
DATA = mongo_fdw--1.0.sql

PG_CONFIG ?= pg_config
PG_CPPFLAGS = -I$(CURDIR)/include $(shell pkg-config --cflags libmongoc-1.0) -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
SHLIB_LINK = $(shell pkg-config --libs libmongoc-1.0)
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
