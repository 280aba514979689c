package gen

import (
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// unfinished reports parts of a topology for which package emit cannot write code yet.
func unfinished(t *spec.Topology) (list []finding.Finding) {
	for _, e := range t.Edges {
		if e.Durable {
			list = append(list, finding.New(finding.Reserved, t.File, e.At, e.Pointer, "durable edges are reserved for a later version of topogen", "remove durable"))
		}
	}
	return list
}
