#!/usr/bin/env bash
# Runs the example as in its README and checks its output and that it leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/checkout" ./examples/checkout # so that the time limit applies only to the run
mkdir "$folder/tmp"

output=$(TMPDIR="$folder/tmp" timeout 60 "$folder/checkout" 2>&1)
for pattern in '^kill 20: (server|worker [1-3])$' '^150 orders in [0-9.]+ s: [0-9]+ completed, [0-9]+ compensated$' \
	'^20 kills: [1-9][0-9]* of the server, [1-9][0-9]* of workers$' \
	'^every order was completed or compensated, and no card was charged twice$'; do
	grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
done

# An interrupt of a terminal goes to all processes. The program ends without an error.
: >"$folder/output"
set -m # the program gets a process group of its own
TMPDIR="$folder/tmp" "$folder/checkout" -orders 0 >"$folder/output" 2>&1 &
program=$! # without timeout, which sends the interrupt a second time: that ends the program at once
timeout 30 bash -c 'until grep -q "^serving " "$1"; do sleep 0.1; done' wait "$folder/output" || status=$?
kill -INT -- "-$program"
timeout 60 tail --pid="$program" -f /dev/null || kill -KILL -- "-$program"
wait "$program" && [ -z "${status:-}" ] || { cat "$folder/output" >&2; exit 1; }
[ -z "$(ls "$folder/tmp")" ] || { printf 'files were left behind: %s\n' "$(ls "$folder/tmp")" >&2; exit 1; }
