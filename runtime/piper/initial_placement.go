package piper

// chains numbers the connected components of the processors. Instances of one component
// with the same index start on the same worker: a message to another worker costs
// hundreds of nanoseconds, a message within a worker only a few. If the work for a
// message is worth that cost, donate moves instances to idle workers.
func chains(s Spec) []int {
	parent := make([]int, len(s.Processors))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for _, e := range s.Edges {
		if e.From >= 0 && !s.Processors[e.From].External {
			a, b := find(e.From), find(e.To)
			parent[max(a, b)] = min(a, b)
		}
	}
	number := make(map[int]int)
	chain := make([]int, len(parent))
	for i := range parent {
		root := find(i)
		if _, ok := number[root]; !ok {
			number[root] = len(number)
		}
		chain[i] = number[root]
	}
	return chain
}

// initialWorker is the index of the worker on which a unit starts.
func (p *Pool) initialWorker(u *Unit) int {
	return (p.chains[u.proc.index] + int(u.index)) % len(p.workers)
}
