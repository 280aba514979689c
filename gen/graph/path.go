package graph

import (
	"fmt"
	"strings"
)

const (
	headLong = 9 // length of an arrowhead
	headHalf = 4 // half its width
	radius   = 8 // radius of a bend
)

// unit is the direction of a line along one axis: -1, 0 or 1 in each.
func unit(a, b point) (dx, dy int) {
	sign := func(n int) int { return min(max(n, -1), 1) }
	return sign(b.x - a.x), sign(b.y - a.y)
}

// shorten ends a line inside its arrowhead and not at the tip, where the line would be wider
// than the head.
func shorten(line []point, both bool) []point {
	short := append([]point(nil), line...)
	n := len(short)
	dx, dy := unit(line[n-2], line[n-1])
	short[n-1] = point{line[n-1].x - dx*(headLong-2), line[n-1].y - dy*(headLong-2)}
	if both {
		dx, dy = unit(line[0], line[1])
		short[0] = point{line[0].x + dx*(headLong-2), line[0].y + dy*(headLong-2)}
	}
	return short
}

// rounded is the path of a line with round bends.
func rounded(line []point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", line[0].x, line[0].y)
	for i := 1; i < len(line)-1; i++ {
		p, q, r := line[i-1], line[i], line[i+1]
		size := min(radius, reach(p, q, i > 1), reach(q, r, i+2 < len(line)))
		ux, uy := unit(p, q)
		vx, vy := unit(q, r)
		fmt.Fprintf(&b, "L%d %dQ%d %d %d %d", q.x-ux*size, q.y-uy*size, q.x, q.y, q.x+vx*size, q.y+vy*size)
	}
	last := line[len(line)-1]
	fmt.Fprintf(&b, "L%d %d", last.x, last.y)
	return b.String()
}

// reach is the part of a segment that one bend may use: half of it if the other end bends too.
func reach(a, b point, shared bool) int {
	n := max(a.x-b.x, b.x-a.x) + max(a.y-b.y, b.y-a.y)
	if shared {
		return n / 2
	}
	return n
}

// arrowhead is the path of an arrowhead with its tip at b. It is wider by extra on both sides.
func arrowhead(a, b point, extra int) string {
	dx, dy := unit(a, b)
	half := headHalf + extra
	x, y := b.x-dx*(headLong+extra), b.y-dy*(headLong+extra)
	return fmt.Sprintf("M%d %dL%d %dL%d %dZ", b.x, b.y, x-dy*half, y+dx*half, x+dy*half, y-dx*half)
}
