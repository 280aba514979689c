#!/usr/bin/env bash
# Runs the example as in its README and checks its output.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o /dev/null ./examples/batch # so that the time limit applies only to the run
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/topogen" ./cmd/topogen

prints() { # each argument is a pattern of a line
	for pattern; do
		grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
	done
}

# Without arguments, until it ends.
output=$(timeout 60 "$folder/topogen" run examples/batch/topology.yml 2>&1)
prints '^1-monday\.csv is booked$' '^3-wednesday\.csv is booked$' '^ann +550$' '^2 files, 3 restarts$' \
	'^topogen: an instance has failed: processor "batch", instance 0: Serve: 2-tuesday\.csv: line 2: ' \
	'^topogen: an instance was restarted: processor "batch", instance 0$'

# With a folder, until an interrupt.
mkdir "$folder/in"
printf 'ann,250\n' >"$folder/in/1.csv"
"$folder/topogen" run examples/batch/topology.yml -- "$folder/in" >"$folder/out" 2>&1 &
for _ in $(seq 600); do
	if [ -e "$folder/in/1.csv.done" ]; then break; fi
	sleep 0.1
done
kill -INT $!
wait $!
output=$(<"$folder/out")
prints '^1\.csv is booked$' '^ann +250$' '^1 files, [0-9]+ restarts$'
