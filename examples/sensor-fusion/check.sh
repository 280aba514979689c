#!/usr/bin/env bash
# Runs the example as in its README until the first sensors have recovered, and checks its
# output.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/sensor-fusion" ./examples/sensor-fusion

prints() { # each argument is a pattern of a line
	for pattern; do
		grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
	done
}

"$folder/sensor-fusion" -for 2m >"$folder/out" 2>&1 &
for _ in $(seq 600); do
	if grep -q 'gps is back' "$folder/out"; then break; fi
	sleep 0.1
done
kill -INT $! # one interrupt: timeout(1) would send two, and the second ends the program at once
wait $!
output=$(<"$folder/out")
time='^ +[0-9.]+ s  [a-z]+ +'
prints "${time}camera is silent\$" "${time}camera was restarted\$" "${time}camera is back after [0-9.]+ s\$" \
	"${time}gps is silent\$" 'gps.* exited with code 3"$' "${time}gps is back after [0-9.]+ s\$" \
	'^camera +restarts 1, killed for hanging 0$' '^gps +restarts 1, ' '^mean error while degraded: +[0-9.]+ m$'
