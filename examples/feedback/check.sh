#!/usr/bin/env bash
# Runs the example as its README says and looks at what it prints.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o /dev/null ./examples/feedback # so that the bound holds for the run alone

output=$(timeout 60 go run ./examples/feedback)
for pattern in '^page  visits$' '^400000 surfers made [0-9]+ visits and were bored$' '^a direct computation finds the same$'; do
	grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
done
