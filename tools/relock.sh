#!/bin/sh
# Rewrites requirements.lock from the newest versions that pyproject.toml's ranges allow.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --upgrade setuptools
"$work/venv/bin/python" -m pip install --quiet --editable '.[dev]'
{
    echo "# Exact versions that \`make\` and CI install; pyproject.toml holds the ranges users get."
    echo "# Refresh: make relock, then run make test."
    "$work/venv/bin/python" -m pip freeze --all --exclude-editable | grep -v '^pip==' | grep -v '^kera' | sort -f
} > "$work/lock"
mv "$work/lock" requirements.lock
