#!/usr/bin/env bash
# Runs the example as its README says, though not to the end, and looks at what it prints.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/sensor-fusion" ./examples/sensor-fusion # so that the bound holds for the run alone

prints() { # each argument is a pattern of a line
	for pattern; do
		grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
	done
}

# Until after the first failures of camera and gps.
output=$(timeout 60 "$folder/sensor-fusion" -for 5500ms 2>&1)
prints '^ +[0-9.]+ s  degraded   camera is silent$' '^ +[0-9.]+ s  [a-z]+ +camera was restarted$' '^ +[0-9.]+ s  [a-z]+ +camera is back after [0-9.]+ s$' \
	'gps.* exited with code 3"$' '^ +[0-9.]+ s  [a-z]+ +gps is back after [0-9.]+ s$' \
	'^camera +restarts 1, killed for hanging 0$' '^gps +restarts 1, ' '^mean error while degraded: +[0-9.]+ m$'

# Until an interrupt.
"$folder/sensor-fusion" >"$folder/out" 2>&1 &
for _ in $(seq 600); do
	if [ -s "$folder/out" ]; then break; fi
	sleep 0.1
done
kill -INT $!
wait $!
output=$(<"$folder/out")
prints '^mean error while healthy: +[0-9.]+ m$'
