package placement

// Chains numbers the connected components of a graph with n nodes. Instances of processors of
// one component with the same index start on the same worker: a message to another worker costs
// hundreds of nanoseconds, a message within a worker only a few. If the work for a message is
// worth that cost, instances move to idle workers.
func Chains(n int, edges [][2]int) []int {
	parent := make([]int, n)
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for _, e := range edges {
		a, b := find(e[0]), find(e[1])
		parent[max(a, b)] = min(a, b)
	}
	number := make(map[int]int)
	chain := make([]int, n)
	for i := range parent {
		root := find(i)
		if _, ok := number[root]; !ok {
			number[root] = len(number)
		}
		chain[i] = number[root]
	}
	return chain
}
