#!/usr/bin/env bash
# Runs the example as in its README and checks its output.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o /dev/null ./examples/feedback # so that the time limit applies only to the run

output=$(timeout 60 go run ./examples/feedback)
for pattern in '^page  visits$' '^400000 surfers made [0-9]+ visits and were bored$' '^a direct computation gives the same result$'; do
	grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
done
