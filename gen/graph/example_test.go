package graph_test

import (
	"os"

	"github.com/topogen/topogen/gen/graph"
)

func ExampleMermaid() {
	g := graph.Graph{
		Name: "words",
		Nodes: []graph.Node{
			{Name: "reader", Type: "Reader"},
			{Name: "counter", Type: "Counter", Instances: 4},
		},
		Edges: []graph.Edge{{From: 0, To: 1, Message: "Word", Note: "key Text"}},
	}
	os.Stdout.Write(graph.Mermaid(g))
	// Output:
	// flowchart LR
	//   n0["<b>reader</b><br/>Reader"]
	//   n1["<b>counter</b><br/>Counter ×4"]
	//   n0 -->|"Word<br/>key Text"| n1
}
