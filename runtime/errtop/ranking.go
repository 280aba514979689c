package errtop

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/rankedmap"
)

// newcomerPart says which part of the places is for new records: one in newcomerPart.
// There, the time of the last occurrence decides which record stays, and not the count. An
// eighth is enough for an error that occurs again from time to time to keep its record, and
// it is a small part of all places.
const newcomerPart = 8

// Entry is a record: an error, the number of its occurrences and the time of the last.
type Entry struct {
	Text  string // what failed and why; the stack follows in further lines
	Count uint64
	Last  time.Time // in microseconds; zero if the file has no time
}

// ranking holds the records that stay. It has no clock and no lock. The order of
// additions, not their time, decides which record is removed, because clocks may be set
// back.
type ranking struct {
	size    int
	adds    uint64
	seen    map[string]uint64 // by text: number of the last addition
	byCount rankedmap.Map[string, uint64]
	byLast  rankedmap.Map[string, int64] // microseconds since 1970
}

func newRanking(size int) *ranking { return &ranking{size: size, seen: make(map[string]uint64)} }

// add counts n more occurrences of text, the last at a time. The number of records may
// exceed the size until trim is called, so that counts merged together are added first.
func (r *ranking) add(text string, n uint64, last int64) {
	r.adds++
	r.seen[text] = r.adds
	count, _ := r.byCount.Get(text)
	r.byCount.Update(text, saturated(count, n))
	if before, known := r.byLast.Get(text); !known || last > before {
		r.byLast.Update(text, last)
	}
}

// trim removes the records above the size. Of the least frequent records it removes those
// whose last addition is the oldest. At least one of the least frequent stays, so the
// record of the last addition is never removed.
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

// removeOld removes the records that were not seen after a time.
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

// entries lists the records, the most frequent first. Of equally frequent records the
// last seen comes first.
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
