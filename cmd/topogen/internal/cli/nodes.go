package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen/plan"
)

// nodesMax bounds the processes that run starts on one computer. The status on a terminal
// has a line for each.
const nodesMax = 16

// nodeCount is the value of --nodes. 0 means that the flag was not set.
type nodeCount int

func (n *nodeCount) String() string { return strconv.Itoa(int(*n)) }
func (n *nodeCount) Type() string   { return "int" }

// Set says what is allowed, in place of the error of strconv.
func (n *nodeCount) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > nodesMax {
		return fmt.Errorf("want a number from 1 to %d", nodesMax)
	}
	*n = nodeCount(v)
	return nil
}

// nodeNames returns the names of n nodes: the first nodes in the topology file, then n1, n2
// and so on. It fails if the cluster cannot run with these nodes alone.
func nodeNames(p *plan.Plan, file string, n int) ([]string, error) {
	c := p.Cluster
	if c == nil {
		return nil, fmt.Errorf("%s has no section cluster, which --nodes needs; without --nodes, one process runs the topology", file)
	}
	var names []string
	for _, node := range c.Nodes {
		names = append(names, node.Name)
	}
	for i := 1; len(names) < n; i++ {
		if name := "n" + strconv.Itoa(i); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	names = names[:n]
	list := strings.Join(names, ", ")
	for i := range p.Processors {
		q := &p.Processors[i]
		if q.Placement != nil && q.Placement.Kind == plan.OnNode && !slices.Contains(names, q.Placement.Node) {
			return nil, fmt.Errorf("processor %s must run on node %s, which is not one of the nodes with --nodes %d: %s", q.Name, q.Placement.Node, n, list)
		}
	}
	switch {
	case c.TieBreaker != "" && !slices.Contains(names, c.TieBreaker):
		return nil, fmt.Errorf("cluster.tie_breaker is node %s, which is not one of the nodes with --nodes %d: %s", c.TieBreaker, n, list)
	case c.TieBreaker == "" && c.Fence == "majority" && n == 2:
		return nil, fmt.Errorf("two nodes need a rule for the failure of one: set cluster.tie_breaker: %s or cluster.fence: off, or use --nodes 1 or 3", names[0])
	}
	return names, nil
}
