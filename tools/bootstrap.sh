#!/bin/sh
# Builds the virtual environment in ./.venv from requirements.lock and says what the machine itself lacks.
# Run by `make .venv/ready`; running it again is harmless. Needs Python >= 3.11, g++, make and perl.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

# A package the machine should have: installed with apt when we are root, named otherwise.
need() {
    probe=$1 package=$2 purpose=$3
    if sh -c "$probe" >/dev/null 2>&1; then return 0; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "$package is missing ($purpose): installing it with apt-get"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$package" >&2 ||
            { apt-get update -q >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$package" >&2; } ||
            true
        if sh -c "$probe" >/dev/null 2>&1; then return 0; fi
    fi
    say "$package is missing ($purpose). Install it, e.g. with: sudo apt-get install $package"
    return 1
}

# The newest interpreter that is new enough; PYTHON=... overrides the search.
find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    say "Python 3.11 or newer was not found. Install it, or name it: make PYTHON=/path/to/python3"
    return 3
}

python=$(find_python) || exit 3
missing=0
need 'command -v g++' g++ 'compiles the simulation benches' || missing=1
need 'command -v make' make 'builds the simulation benches' || missing=1
need 'perl -MPod::Usage -MGetopt::Long -e 1' perl "Verilator's driver script" || missing=1
if ! [ -x .venv/bin/python ]; then
    need "$python -c 'import ensurepip, venv'" python3-venv 'creates the virtual environment' || missing=1
fi
[ "$missing" = 0 ] || exit 3
need 'command -v iverilog' iverilog 'optional: the second simulator of some tests, which are skipped without' || true

say "Installing what requirements.lock lists into .venv, once: this takes a minute or two"
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --disable-pip-version-check --quiet -r requirements.lock
# The lock already holds every dependency and the build back end, so nothing is resolved again here.
.venv/bin/python -m pip install --disable-pip-version-check --quiet \
    --no-deps --no-build-isolation --editable .
# Byte code for our own modules too, as pip makes for installed ones: a command starts a second sooner.
.venv/bin/python -m compileall -q kera_hw
: > .venv/ready
say "The environment is ready: .venv/bin/kera"
