package piper

// Measured calls report at each decision, with the number of turns that each pair of
// instances caused each other, as recorded for each of the two. No instance moves.
func Measured(p *Pool, report func(turns []map[int]int64)) {
	p.place = func(m *placement) ([]int, bool) {
		turns := make([]map[int]int64, len(m.traffic))
		for i, list := range m.traffic {
			turns[i] = make(map[int]int64)
			for _, n := range list {
				turns[i][n.other] += n.turns
			}
		}
		report(turns)
		return m.at, false
	}
}
