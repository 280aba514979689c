package errtop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// naive implements the rule of ranking with a plain list.
type naive struct {
	size, adds int
	list       []naiveRecord
}

type naiveRecord struct {
	text  string
	count uint64
	last  int64
	seen  int
}

func (m *naive) add(text string, n uint64, last int64) {
	m.adds++
	i := slices.IndexFunc(m.list, func(r naiveRecord) bool { return r.text == text })
	if i < 0 {
		i = len(m.list)
		m.list = append(m.list, naiveRecord{text: text, last: last})
	}
	r := &m.list[i]
	r.count, r.last, r.seen = r.count+n, max(r.last, last), m.adds
}

func (m *naive) trim() {
	if len(m.list) <= m.size {
		return
	}
	slices.SortFunc(m.list, func(a, b naiveRecord) int { // the most frequent first
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.text, a.text))
	})
	others := m.list[m.size-max(1, m.size/8):]
	slices.SortFunc(others, func(a, b naiveRecord) int { return cmp.Compare(b.seen, a.seen) }) // the rest by when they were seen, the newest first
	m.list = m.list[:m.size]
}

func (m *naive) removeOld(until int64) {
	m.list = slices.DeleteFunc(m.list, func(r naiveRecord) bool { return r.last <= until })
}

func (m *naive) entries() []Entry {
	list := []Entry{}
	for _, r := range m.list {
		list = append(list, Entry{r.text, r.count, time.UnixMicro(r.last)})
	}
	sortEntries(list)
	return list
}

func TestRankingMatchesModel(t *testing.T) {
	speed.Checks(t, 100, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(t, "size")
		r, m := newRanking(size), &naive{size: size}
		texts := rapid.Map(rapid.IntRange(0, 2*size+1), func(i int) string { return fmt.Sprint("error ", i) })
		now := int64(1_000_000)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				text := ""
				for range rapid.IntRange(1, 2*size).Draw(t, "at once") {
					text = texts.Draw(t, "text")
					n := rapid.Uint64Range(1, 5).Draw(t, "n")
					now += rapid.Int64Range(-2, 5).Draw(t, "passed") // clocks may be set back
					r.add(text, n, now)
					m.add(text, n, now)
				}
				r.trim()
				m.trim()
				if _, ok := r.seen[text]; !ok {
					t.Fatalf("%s was just added but is missing", text)
				}
			},
			"remove old": func(t *rapid.T) {
				until := now - rapid.Int64Range(0, 40).Draw(t, "keep")
				r.removeOld(until)
				m.removeOld(until)
			},
			"restart": func(t *rapid.T) {
				entries, err := decodeBytes(encode(r.entries()))
				if err != nil {
					t.Fatal(err)
				}
				r = newRanking(size)
				r.restore(entries, now)
				r.trim()
				want := m.entries()
				for i := range want { // times in the future count as now
					want[i].Last = time.UnixMicro(min(now, want[i].Last.UnixMicro()))
				}
				slices.SortFunc(want, func(a, b Entry) int {
					return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Count, b.Count), cmp.Compare(a.Text, b.Text))
				})
				*m = naive{size: size}
				for _, e := range want {
					m.add(e.Text, e.Count, e.Last.UnixMicro())
				}
				if len(m.list) != len(want) {
					t.Fatalf("got %d of %d records after a restart", len(m.list), len(want))
				}
			},
			"": func(t *rapid.T) {
				if got, want := r.entries(), m.entries(); !slices.Equal(got, want) {
					t.Fatalf("got  %v\nwant %v", got, want)
				}
				if r.byCount.Len() != len(r.seen) || r.byLast.Len() != len(r.seen) || len(r.seen) > size {
					t.Fatalf("%d records, %d by count, %d by time", len(r.seen), r.byCount.Len(), r.byLast.Len())
				}
			},
		})
	})
}

// TestNewcomerRises: when the top is full of frequent errors, a new error, at first the
// rarest, can still reach the first place.
func TestNewcomerRises(t *testing.T) {
	const size, noise = 80, 9 // number of errors that occur once between two occurrences of the new one
	r := newRanking(size)
	for i := range size {
		r.add(fmt.Sprint("old ", i), 1000, int64(i))
	}
	once := 0
	for i := range 2000 {
		for range noise {
			once++
			r.add(fmt.Sprint("once ", once), 1, int64(size+i))
			r.trim()
		}
		r.add("new", 1, int64(size+i))
		r.trim()
	}
	entries := r.entries()
	if first := entries[0]; first.Text != "new" || first.Count != 2000 {
		t.Errorf("the first record is %v", first)
	}
	old := 0
	for _, e := range entries {
		if e.Count == 1000 {
			old++
		}
	}
	if old != size-size/newcomerPart-1 { // the new error is among the most frequent
		t.Errorf("%d of %d frequent errors are left after %d that occurred once", old, size, once)
	}
}

func TestRemoveOldOfNothing(t *testing.T) {
	r := newRanking(3)
	r.removeOld(math.MaxInt64)
	r.add("a", 1, 10)
	r.add("b", 1, 11)
	r.removeOld(10)
	if e := r.entries(); len(e) != 1 || e[0].Text != "b" {
		t.Errorf("got %v", e)
	}
	r.removeOld(math.MaxInt64)
	if e := r.entries(); len(e) != 0 {
		t.Errorf("got %v", e)
	}
}

func TestCountsEnd(t *testing.T) {
	r := newRanking(1)
	r.add("a", math.MaxUint64-1, 1)
	r.add("a", 5, 1)
	if got := r.entries()[0].Count; got != math.MaxUint64 {
		t.Errorf("counts to %d", got)
	}
}

// TestRestoreKeepsTheNewest: the newest record is restored even if the file has too many
// records and all others are more frequent.
func TestRestoreKeepsTheNewest(t *testing.T) {
	speed.Checks(t, 100, 100, 10_000)
	now := time.UnixMicro(1_000_000)
	rapid.Check(t, func(t *rapid.T) {
		entries := []Entry{{"newest", 1, now}}
		for i := range rapid.IntRange(0, 40).Draw(t, "others") {
			ago := time.Duration(rapid.IntRange(1, 5).Draw(t, "ago")) * time.Microsecond
			entries = append(entries, Entry{fmt.Sprint("other ", i), rapid.Uint64Range(2, 9).Draw(t, "count"), now.Add(-ago)})
		}
		r := newRanking(rapid.IntRange(1, 20).Draw(t, "size"))
		r.restore(rapid.Permutation(entries).Draw(t, "entries"), now.UnixMicro())
		r.trim()
		if count, ok := r.byCount.Get("newest"); !ok || count != 1 || len(r.seen) != min(r.size, len(entries)) {
			t.Errorf("got %d records; the newest is restored: %v", len(r.seen), ok)
		}
	})
}

func TestRestoreOddEntries(t *testing.T) {
	r := newRanking(10)
	r.restore([]Entry{
		{"without a time", 2, time.Time{}},
		{"without a count", 0, time.UnixMicro(5)},
		{"in the future", 3, time.UnixMicro(math.MaxInt64)},
		{"before all", 4, time.UnixMicro(math.MinInt64)},
	}, 7)
	got := r.entries()
	want := []Entry{
		{"before all", 4, time.UnixMicro(math.MinInt64)},
		{"in the future", 3, time.UnixMicro(7)},
		{"without a time", 2, time.UnixMicro(7)},
		{"without a count", 1, time.UnixMicro(5)},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
