package scenarios

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Journal holds what a witness has written down.
type Journal struct {
	now     func() time.Time
	mu      sync.Mutex
	entries []Entry
	changed chan struct{} // closed when there is another entry
}

// Entry is something that a witness was told.
type Entry struct {
	At   time.Time
	Text string
}

// Report notes a message.
func (j *Journal) Report(r Report) { j.Note(fmt.Sprintf("%s: %d", r.From, r.Works)) }

// Note writes something down.
func (j *Journal) Note(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, Entry{j.now(), text})
	close(j.changed)
	j.changed = make(chan struct{})
}

// find returns the n-th entry with a text, and what is closed by the next entry
// where there is none.
func (j *Journal) find(text string, n int) (e Entry, ok bool, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Text == text {
			if n--; n == 0 {
				return e, true, nil
			}
		}
	}
	return e, false, j.changed
}

// texts lists what stands there about one of the edges or processors named.
func (j *Journal) texts(about func(text string) bool) (list []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		list = append(list, e.Text)
	}
	return slices.DeleteFunc(list, func(s string) bool { return !about(s) })
}
