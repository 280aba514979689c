package graph

// against returns which edges run against the flow. Without these edges the graph has no
// cycle. The search starts at nodes without inputs, in their order, so that the flow
// usually follows the order of the file. ends has the two ends of each edge. Self edges always run against the flow.
func against(nodes int, ends [][2]int) []bool {
	out := make([][]int, nodes)
	inputs := make([]int, nodes)
	for i, e := range ends {
		out[e[0]] = append(out[e[0]], i)
		if e[0] != e[1] {
			inputs[e[1]]++
		}
	}
	const (
		unseen = iota
		open
		closed
	)
	state := make([]int, nodes)
	back := make([]bool, len(ends))
	var visit func(v int)
	visit = func(v int) {
		state[v] = open
		for _, i := range out[v] {
			switch w := ends[i][1]; state[w] {
			case unseen:
				visit(w)
			case open:
				back[i] = true
			}
		}
		state[v] = closed
	}
	for _, sources := range []bool{true, false} {
		for v := range nodes {
			if state[v] == unseen && (inputs[v] == 0 || !sources) {
				visit(v)
			}
		}
	}
	return back
}

// components returns the connected parts of a graph, each as its nodes in
// ascending order; the parts are ordered by their first nodes.
func components(nodes int, ends [][2]int) [][]int {
	root := make([]int, nodes)
	for v := range root {
		root[v] = v
	}
	find := func(v int) int {
		for root[v] != v {
			root[v] = root[root[v]]
			v = root[v]
		}
		return v
	}
	for _, e := range ends {
		a, b := find(e[0]), find(e[1])
		root[max(a, b)] = min(a, b)
	}
	index := make([]int, nodes)
	var parts [][]int
	for v := range nodes {
		r := find(v) // the smallest node of its part, so it comes first
		if r == v {
			index[v] = len(parts)
			parts = append(parts, nil)
		}
		parts[index[r]] = append(parts[index[r]], v)
	}
	return parts
}
