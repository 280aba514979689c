package piper

// chains numbers the connected components of the processors. Instances of one
// component with the same index start on one worker: a hop between workers
// costs hundreds of nanoseconds, one within a worker a few. Where the work per
// message is worth a hop, donate cuts the chain.
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

// placeOf is the worker on which a unit starts.
func (p *Pool) initialWorker(u *Unit) int {
	return (p.chains[u.proc.index] + int(u.index)) % len(p.workers)
}
