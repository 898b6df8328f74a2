#!/usr/bin/env bash
# make lint: the checks of the source that "make test" begins with.
TESTS=lint exec bash "$(dirname "$0")/test.sh"
