#!/usr/bin/env bash
# Holds a running daemon against its own OpenAPI description: bounded, about two minutes.
#
# HELDOUT_BIN names the binary (default: the release build if there is one, else a debug build).
# SCHEMATHESIS_EXAMPLES bounds the cases of one operation in each phase.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.32.5
examples=${SCHEMATHESIS_EXAMPLES:-20}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

scratch=$(mktemp -d)
server=
finish() {
    local status=$?
    if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
        kill "$server"
        wait "$server" || echo "the daemon did not stop cleanly" >&2
    fi
    if [ "$status" -ne 0 ] && [ -f "$scratch/log" ]; then
        echo "-- the end of the daemon's log:" >&2
        tail -n 40 "$scratch/log" >&2
    fi
    rm -rf "$scratch"
    exit "$status"
}
trap finish EXIT

venv=$target/schemathesis-$version
if ! [ -x "$venv/bin/st" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version"
fi

bin=${HELDOUT_BIN:-}
if [ -z "$bin" ]; then
    if [ -x "$target/release/heldout" ]; then
        bin=$target/release/heldout
    else
        cargo build --quiet -p heldout
        bin=$target/debug/heldout
    fi
fi

# Records to talk about: an experiment, a finished run, and its rows.
"$bin" --data "$scratch/data" run daemon/tests/it/http/small.toml >"$scratch/run.log" 2>&1 || {
    cat "$scratch/run.log" >&2
    exit 1
}

"$bin" --data "$scratch/data" serve --listen 127.0.0.1:0 >"$scratch/log" 2>&1 &
server=$!
url=
for _ in $(seq 150); do
    url=$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$scratch/log" || true)
    [ -n "$url" ] && break
    kill -0 "$server" || exit 1
    sleep 0.2
done
[ -n "$url" ] || { echo "the daemon does not say where it listens" >&2; exit 1; }

# One record of every kind, so that the second pass gets past "there is no such record".
python3 - "$url" >"$scratch/records.toml" <<'PYTHON'
import json, sys, urllib.request

def read(path):
    with urllib.request.urlopen(sys.argv[1] + "/api/v1" + path) as answer:
        return json.load(answer)

kinds = ["theories", "experiments", "leases", "runs", "results", "machines"]
for kind in kinds:
    print("[[operations]]")
    print("include-path-regex = '^/api/v1/%s/\\{id\\}'" % kind)
    print('parameters = { id = "%s" }' % read("/" + kind)["items"][0]["id"])
PYTHON

# The stream of events does not end, so it cannot be called like the others; its tests are in
# daemon/tests/it/http/events.rs. `positive_data_acceptance` is left out because a well-formed id or
# protocol need not exist or make sense: what is refused then is checked by the other rules.
against_description() {
    printf '\n-- %s\n' "$1"
    shift
    (cd "$scratch" && "$venv/bin/st" "${config[@]}" run "$url/openapi.json" \
        --checks all --exclude-checks positive_data_acceptance \
        --exclude-path /api/v1/events/stream \
        --max-examples "$examples" --seed 20261201 --request-timeout 20 \
        --suppress-health-check all --no-shrink --continue-on-failure --warnings off "$@")
}
config=()
against_description "any parameters" --phases examples,coverage,fuzzing,stateful
config=(--config-file "$scratch/records.toml")
against_description "records that exist" --phases coverage,fuzzing --include-path-regex '\{id\}'

kill -TERM "$server"
wait "$server"
server=
echo "the daemon answered as described and stopped cleanly"
