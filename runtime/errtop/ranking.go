package errtop

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/rankedmap"
)

// newcomerPart is the part of the places, one in so many, for which it counts when
// a record was seen and not how often: enough that an error which comes back
// every now and then meets its own record, and little of the whole.
const newcomerPart = 8

// Entry is a record: an error, how often it occurred and when it did last.
type Entry struct {
	Text  string // what failed and why; in further lines the stack
	Count uint64
	Last  time.Time // in microseconds; zero where the file does not say
}

// ranking holds the records that stay. It knows no clock and no lock. When it was
// added to decides who goes, not the time of it: clocks are set back.
type ranking struct {
	size    int
	adds    uint64
	seen    map[string]uint64 // by text: the larger, the later it was added to
	byCount rankedmap.Map[string, uint64]
	byLast  rankedmap.Map[string, int64] // microseconds since 1970
}

func newRanking(size int) *ranking { return &ranking{size: size, seen: make(map[string]uint64)} }

// add counts n more occurrences of text, the last at a time. There may be too many
// records afterwards, until trim: what is merged at once is counted first.
func (r *ranking) add(text string, n uint64, last int64) {
	r.adds++
	r.seen[text] = r.adds
	count, _ := r.byCount.Get(text)
	r.byCount.Update(text, saturated(count, n))
	if before, known := r.byLast.Get(text); !known || last > before {
		r.byLast.Update(text, last)
	}
}

// trim removes what is too many: of the least frequent those that were not added
// to for longest. At least one of them stays, so it is never the last one added.
func (r *ranking) trim() {
	over := len(r.seen) - r.size
	if over <= 0 {
		return
	}
	var candidates []string
	for text := range r.byCount.All() {
		candidates = append(candidates, text)
		if len(candidates) == over+max(1, r.size/newcomerPart) {
			break
		}
	}
	slices.SortFunc(candidates, func(a, b string) int { return cmp.Compare(r.seen[a], r.seen[b]) })
	for _, text := range candidates[:over] {
		r.remove(text)
	}
}

// removeOld removes what was not seen after a time.
func (r *ranking) removeOld(until int64) {
	for {
		text, last, ok := r.byLast.Lowest()
		if !ok || last > until {
			return
		}
		r.remove(text)
	}
}

func (r *ranking) remove(text string) {
	delete(r.seen, text)
	r.byCount.Erase(text)
	r.byLast.Erase(text)
}

// entries lists the records, the most frequent first; of equally frequent ones
// the one that was seen last.
func (r *ranking) entries() []Entry {
	list := make([]Entry, 0, len(r.seen))
	for text, count := range r.byCount.All() {
		last, _ := r.byLast.Get(text)
		list = append(list, Entry{Text: text, Count: count, Last: time.UnixMicro(last)})
	}
	sortEntries(list)
	return list
}

func sortEntries(list []Entry) {
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Text, b.Text))
	})
}

func saturated(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
