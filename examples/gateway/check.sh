#!/usr/bin/env bash
# Runs the example as in its README and checks its output.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o /dev/null ./examples/gateway # so that the time limit applies only to the run

output=$(timeout 60 go run ./examples/gateway -load 2s)
for pattern in '^serving on http://127\.0\.0\.1:[0-9]+$' '^[0-9]+ requests in .*: [0-9]+ requests/s$' \
	'^status 200: [0-9]+$' '^latency: half within ' '^drained: [1-9][0-9]* deposits booked$'; do
	grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
done
