// Command topogen-vet reports handlers that keep a message pointer, a sender or a
// context after they return. It is run by the go command:
//
//	go install github.com/topogen/topogen/cmd/topogen-vet@latest
//	go vet -vettool=$(which topogen-vet) ./...
//
// Package gen/lifetime says what it finds and what it cannot see. "topogen check"
// reports the same for the packages of topologies.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/topogen/topogen/gen/lifetime"
)

func main() { unitchecker.Main(lifetime.Analyzer) }
