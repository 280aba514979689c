package bind

import (
	"go/token"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
)

// TestBefore checks positions from //line directives, which may name any line and any file.
func TestBefore(t *testing.T) {
	dir := memdir.Quick(t)
	small, large := filepath.Join(dir, "a.go"), filepath.Join(dir, "b.go")
	write(t, small, "one\ntwö!\n")
	write(t, large, "x\n")
	if err := os.Truncate(large, sourceBytesMax+1); err != nil {
		t.Fatal(err)
	}
	r := &reporter{texts: make(map[string][]byte)}
	for _, c := range []struct {
		at   token.Position
		want string
		ok   bool
	}{
		{token.Position{Filename: small, Line: 2, Column: 5}, "twö", true},
		{token.Position{Filename: small, Line: 2, Column: 5, Offset: 8}, "twö", true},
		{token.Position{Filename: small, Line: 2, Column: 5, Offset: 3}, "twö", true}, // not that of the line
		{token.Position{Filename: small, Line: 2, Column: 7}, "", false},
		{token.Position{Filename: small, Line: 3, Column: 1}, "", true},
		{token.Position{Filename: small, Line: 4, Column: 1}, "", false},
		{token.Position{Filename: small, Line: math.MaxInt, Column: 1}, "", false},
		{token.Position{Filename: small, Line: 1, Column: math.MaxInt}, "", false},
		{token.Position{Filename: small, Line: 0, Column: 0}, "", false},
		{token.Position{Filename: large, Line: 1, Column: 2}, "", false},
	} {
		if got := r.before(c.at); string(got) != c.want || (got != nil) != c.ok {
			t.Errorf("%v, offset %d: %q, want %q, %t", c.at, c.at.Offset, got, c.want, c.ok)
		}
	}
}
