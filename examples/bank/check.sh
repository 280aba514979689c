#!/usr/bin/env bash
# Runs the example as in its README, for some seconds, and checks its output and that
# it leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/bank" ./examples/bank # so that the timeout is only for the run
mkdir "$folder/tmp"

prints() { # each argument is a pattern of a line
	for pattern; do
		grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
	done
}

check() { # the name of the leader, and flags
	output=$(TMPDIR="$folder/tmp" timeout 60 "$folder/bank" "${@:2}" 2>&1)
	prints "^ +[0-9.]+ s  $1, leader of term [0-9]+, is killed\$" "^ +[0-9.]+ s  $1 is back\$" \
		'^[1-9][0-9]* transfers in .* 0 of unknown outcome$' '^[1-9][0-9]* kills; the next transfer was booked ' \
		'^total 25000, the same as at the beginning, and on each node$' '^porcupine: [1-9][0-9]* operations in [0-9]+ rounds: linearizable$'
	[ -z "$(ls "$folder/tmp")" ] || { printf 'files were left behind: %s\n' "$(ls "$folder/tmp")" >&2; exit 1; }
}

check 'n[1-3]' -nodes 3 -for 8s
check alone -alone -for 6s -kill 2s
