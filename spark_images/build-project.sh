#!/bin/sh
# build-project.sh DIRECTORY: builds the project that lies here as a wheel, and unpacks and compiles it
# into the directory.
set -eu
directory=$1
# The package's description; of no use in an image.
touch README.md
python3 -m pip wheel --quiet --no-input --disable-pip-version-check --no-deps --wheel-dir wheels .
python3 -m zipfile --extract wheels/*.whl "$directory"
python3 -m compileall -q --invalidation-mode unchecked-hash "$directory"
