#!/usr/bin/env bash
# Runs the example as in its README, with fewer messages, and checks its output and that
# it leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/cluster" ./examples/cluster # so that the timeout is only for the run
mkdir "$folder/tmp"

prints() { # each argument is a pattern of a line
	for pattern; do
		grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
	done
}

proof='^each name was counted as often as it was sent: nothing is missing, nothing came twice or out of order$'

check() { # the number of nodes, and patterns
	output=$(TMPDIR="$folder/tmp" timeout 60 "$folder/cluster" -nodes "$1" -adds 1000000 2>&1)
	prints "${@:2}" '^1000000 messages in [0-9.]+ s, [0-9]+/s$' "$proof" \
		'^8 sources have sent 1000000 messages with 1000 names; 64 counters have counted 1000000$'
	[ -z "$(ls "$folder/tmp")" ] || { printf 'files were left behind: %s\n' "$(ls "$folder/tmp")" >&2; exit 1; }
}

check 1 '^one process runs everything$'
check 2 '^ +counter +32 +32$'
check 4 '^ +load +2 +2 +2 +2$' '^ +counter +16 +16 +16 +16$' '^ +report +1 +0 +0 +0$'
