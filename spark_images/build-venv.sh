#!/bin/sh
# build-venv.sh VENV REQUIREMENTS CONSTRAINTS [BELOW]
# Makes a virtual environment of locked packages, compiled, without pip. It sees the packages of the
# environment BELOW and holds only what that lacks, so that images share what they have in common.
set -eu
venv=$1
requirements=$2
constraints=$3
below=${4:-}

packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

python3 -m venv --without-pip "$venv"
site=$(packages "$venv")
if [ -n "$below" ]; then
  packages "$below" >"$site/below.pth"
fi
python3 -m pip --python "$venv/bin/python" install --quiet --no-compile --no-input \
  --disable-pip-version-check --constraint "$constraints" --requirement "$requirements"
# Tests and headers of packages are not for running.
rm -rf "$site/pandas/tests" "$site/pyarrow/tests" "$site/pyarrow/include" "$site/pyarrow/src"
# The sources in an image do not change, so nobody has to compare them with what was compiled.
"$venv/bin/python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$site"
