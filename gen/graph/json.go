package graph

import (
	"bytes"
	"encoding/json"
)

type jsonGraph struct {
	Name  string     `json:"name"`
	Nodes []jsonNode `json:"nodes"`
	Edges []jsonEdge `json:"edges"`
}

type jsonNode struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Instances int    `json:"instances"`
	Blocking  bool   `json:"blocking"`
	External  bool   `json:"external"`
	Timer     bool   `json:"timer"`
}

type jsonEdge struct {
	From    int    `json:"from"`
	To      int    `json:"to"`
	Message string `json:"message"`
	Reply   string `json:"reply"`
	Note    string `json:"note"`
}

// JSON returns the graph as an indented JSON object:
//
//	name    the topology's name
//	nodes   name, type, instances, blocking, external, timer
//	edges   from, to (indices into nodes), message, reply, note
//
// All keys are always there. Names stay; later versions may add keys.
func JSON(g Graph) []byte {
	// The types mirror Graph so that renaming a field there renames nothing here.
	out := jsonGraph{Name: g.Name, Nodes: []jsonNode{}, Edges: []jsonEdge{}}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, jsonNode(n))
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, jsonEdge(e))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // a type such as <-chan is to stay readable
	// Encoding strings, integers and booleans into memory cannot fail.
	_ = enc.Encode(out)
	return b.Bytes()
}
