#!/usr/bin/env bash
# make lint: runs the checks of the source with which "make test" begins.
TESTS=lint exec bash "$(dirname "$0")/test.sh"
