package hexid

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// at returns a generator after n calls of Next.
func at(n uint64) *Generator {
	var g Generator
	g.n.Store(n)
	return &g
}

// tokens computes identifiers group by group: it increments the first group below ffff,
// or appends a group when all are ffff.
type tokens []uint16

func (g *tokens) next() string {
	for i := range *g {
		if (*g)[i] < 0xffff {
			(*g)[i]++
			return g.String()
		}
	}
	*g = append(*g, 0)
	return g.String()
}

func (g *tokens) String() string {
	const digits = "0123456789abcdef"
	var groups []string
	for _, v := range *g {
		groups = append(groups, string([]byte{digits[v>>12], digits[v>>8&15], digits[v>>4&15], digits[v&15]}))
	}
	return strings.Join(groups, "-")
}

// TestAsTheText compares with tokens for all identifiers of one, two and three groups,
// and for some of four.
func TestAsTheText(t *testing.T) {
	var g Generator
	text := tokens{0}
	before := g.Current()
	if before != text.String() {
		t.Fatalf("the first identifier is %q, want %q", before, text.String())
	}
	for range 3<<16 + 100 {
		id, want := g.Next(), text.next()
		if id != want || id <= before || g.Current() != id {
			t.Fatalf("got %q after %q, want %q; current is %q", id, before, want, g.Current())
		}
		before = id
	}
}

func TestBorders(t *testing.T) {
	for _, c := range []struct {
		after     uint64
		ids, name string
	}{
		{0, "0000 0001 0002", "begin"},
		{0x000f, "000f 0010 0011", "digit"},
		{0x00ff, "00ff 0100 0101", "byte"},
		{0xabcd, "abcd abce abcf", "lowercase"},
		{0xfffe, "fffe ffff ffff-0000 ffff-0001", "second group"},
		{0x1_fffe, "ffff-fffe ffff-ffff ffff-ffff-0000 ffff-ffff-0001", "third group"},
		{0x3_ffff, "ffff-ffff-ffff-ffff ffff-ffff-ffff-ffff-0000", "fifth group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := at(c.after)
			ids := strings.Fields(c.ids)
			got := []string{g.Current()}
			for range len(ids) - 1 {
				got = append(got, g.Next())
			}
			if !slices.Equal(got, ids) {
				t.Errorf("got %v, want %v", got, ids)
			}
		})
	}
}

// TestAscends: identifiers ascend and keep their form, starting anywhere, often near
// changes of the length.
func TestAscends(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	form := regexp.MustCompile(`^(ffff-)*[0-9a-f]{4}$`)
	borders := rapid.Custom(func(t *rapid.T) uint64 {
		border := rapid.Uint64Range(1, 1000).Draw(t, "group") << 16
		return border + 5 - rapid.Uint64Range(0, 10).Draw(t, "before")
	})
	anywhere := rapid.OneOf(borders, rapid.Uint64Range(0, 1000<<16))
	rapid.Check(t, func(t *rapid.T) {
		n := anywhere.Draw(t, "n")
		g := at(n)
		before := g.Current()
		for range 12 {
			id := g.Next()
			n++
			if id <= before || g.Current() != id || !form.MatchString(id) || len(id) != int(4+5*(n>>16)) {
				t.Fatalf("got %q after %q", id, before)
			}
			before = id
		}
		if other := anywhere.Draw(t, "other"); (identifier(n) < identifier(other)) != (n < other) {
			t.Fatalf("numbers %d and %d are not in order", n, other)
		}
	})
}

// TestConcurrentCallers: concurrent callers get different identifiers, ascending for each
// caller, and together get all identifiers.
func TestConcurrentCallers(t *testing.T) {
	const callers, each, begin = 4, 5000, 0x1_f000 // crosses into the third group
	g := at(begin)
	made := make([][]string, callers)
	var wait sync.WaitGroup
	for c := range callers {
		wait.Go(func() {
			for range each {
				id := g.Next()
				if g.Current() < id {
					t.Errorf("Current is less than %q", id)
				}
				made[c] = append(made[c], id)
			}
		})
	}
	wait.Wait()
	for _, ids := range made {
		if !slices.IsSorted(ids) {
			t.Error("the identifiers of one caller do not ascend")
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(made...)))
	for i, id := range all {
		if want := identifier(begin + 1 + uint64(i)); id != want {
			t.Fatalf("got %q, want %q", id, want)
		}
	}
	if g.Current() != all[len(all)-1] {
		t.Errorf("current is %q", g.Current())
	}
}

// TestGrowth checks the sizes in doc.go.
func TestGrowth(t *testing.T) {
	for n, length := range map[uint64]int{1_000_000: 79, 100_000_000: 7629} {
		if got := len(identifier(n)); got != length {
			t.Errorf("identifier %d has %d bytes, want %d", n, got, length)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for b.Loop() {
		var g Generator
		g.Next()
	}
}
