package scenarios

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Journal has the entries of a witness.
type Journal struct {
	now     func() time.Time
	mu      sync.Mutex
	entries []Entry
	changed chan struct{} // closed when an entry is added
}

// Entry is a report or event that a witness received.
type Entry struct {
	At   time.Time
	Text string
}

// Report adds an entry for a message.
func (j *Journal) Report(r Report) { j.Note(fmt.Sprintf("%s: %d", r.From, r.Works)) }

// Note adds an entry.
func (j *Journal) Note(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, Entry{j.now(), text})
	close(j.changed)
	j.changed = make(chan struct{})
}

// find returns the n-th entry with a text. If there is no such entry yet, changed is closed
// when the next entry is added.
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

// texts lists the texts of the entries for which about is true.
func (j *Journal) texts(about func(text string) bool) (list []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		list = append(list, e.Text)
	}
	return slices.DeleteFunc(list, func(s string) bool { return !about(s) })
}
