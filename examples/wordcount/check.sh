#!/usr/bin/env bash
# Runs the example as in its README and checks its output.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o /dev/null ./cmd/topogen ./examples/wordcount # so that the time limit applies only to the run

prints() { # each argument is a pattern of a line
	for pattern; do
		grep -Eq -- "$pattern" <<<"$output" || { printf 'no line like %s in\n%s\n' "$pattern" "$output" >&2; exit 1; }
	done
}

output=$(timeout 60 go run ./cmd/topogen run examples/wordcount/topology.yml 2>&1)
prints '^ +[0-9]+ +[0-9.]+ %  the$' '^ +[0-9]+ words, [0-9]+ different$' '^[0-9]+ files, [0-9.]+ MB in .* MB/s$'

output=$(timeout 60 go run ./cmd/topogen run examples/wordcount/topology.yml -- no-such-file 2>&1) && exit 1
prints '^wordcount: stat no-such-file: no such file or directory$'
