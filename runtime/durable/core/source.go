package core

import (
	"bytes"
	"iter"
)

// source yields ids in ascending order.
type source = iter.Seq[string]

// listed yields the ids that follow prefix in the keys of a table, after an id.
func (x *tx) listed(t Table, prefix []byte, after string) source {
	return func(yield func(string) bool) {
		start := prefix
		if after != "" {
			start = append(append(bytes.Clone(prefix), after...), 0) // the smallest key above it
		}
		for key, value := range x.kv.Ascend(t, start) {
			id, ok := bytes.CutPrefix(key, prefix)
			if !ok {
				return
			}
			unseal(t, key, value)
			if !yield(string(id)) {
				return
			}
		}
	}
}

// between yields the ids of promises from one id until before another, after an id.
func (x *tx) between(from, until, after string) source {
	return func(yield func(string) bool) {
		for key, value := range x.kv.Ascend(Promises, []byte(max(from, after+"\x00"))) {
			if string(key) >= until {
				return
			}
			unseal(Promises, key, value)
			if !yield(string(key)) {
				return
			}
		}
	}
}

// merged yields the ids of several sources in ascending order, each once.
func merged(sources []source) source {
	if len(sources) == 1 {
		return sources[0]
	}
	return func(yield func(string) bool) {
		heads := make([]head, 0, len(sources))
		for _, source := range sources {
			next, stop := iter.Pull(source)
			defer stop()
			if id, ok := next(); ok {
				heads = append(heads, head{id, next})
			}
		}
		last := ""
		for len(heads) > 0 {
			least := 0
			for i := range heads {
				if heads[i].id < heads[least].id {
					least = i
				}
			}
			h := &heads[least]
			if h.id != last && !yield(h.id) { // an id is not empty
				return
			}
			last = h.id
			var ok bool
			if h.id, ok = h.next(); !ok {
				heads = append(heads[:least], heads[least+1:]...)
			}
		}
	}
}

// head is a source and its next id.
type head struct {
	id   string
	next func() (string, bool)
}
