package bind

import (
	"strings"

	"github.com/topogen/topogen/spec"
)

// nearCellsMax bounds the steps that looking for similar names may take for one
// topology: 0.1 s.
const nearCellsMax = 1 << 24

// near finds the name that was probably meant. A topology with many wrong names
// must not buy much time with them: cells is what is left.
type near struct{ cells int }

func (n *near) to(name string, candidates []string) string {
	return spec.Nearest(name, candidates, &n.cells)
}

// toHandler is to for names of handlers: what all of them begin with tells nothing.
func (n *near) toHandler(name string, candidates []string) string {
	short, ok := strings.CutPrefix(name, handlerPrefix)
	if !ok {
		return n.to(name, candidates)
	}
	if n.cells -= len(candidates); n.cells < 0 {
		return ""
	}
	var alike, others []string
	for _, c := range candidates {
		if rest, ok := strings.CutPrefix(c, handlerPrefix); ok {
			alike = append(alike, rest)
		} else {
			others = append(others, c)
		}
	}
	if near := n.to(short, alike); near != "" {
		return handlerPrefix + near
	}
	return n.to(name, others)
}
