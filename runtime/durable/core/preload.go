package core

import (
	"slices"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Limits of a preload. A worker asks for the promises that do not fit one by one.
const (
	preloadMax      = 10_000
	preloadMaxBytes = 4 << 20 // as large as a request
)

// preload returns the other promises of the branch of a task's promise: the steps and
// calls that the execution has made. A worker need not ask for them again.
func (s *step) preload(tags map[string]string, id string) []protocol.Promise {
	branch, ok := tags[protocol.TagBranch]
	if !ok {
		return []protocol.Promise{}
	}
	ids := make([]string, 0, 8)
	for rest := range s.below(PromiseTags, tagPrefix(nil, protocol.TagBranch, branch)) {
		if ids = append(ids, string(rest)); len(ids) > preloadMax {
			break
		}
	}
	if at, found := slices.BinarySearch(ids, branch); !found {
		ids = slices.Insert(ids, at, branch) // its tag needs no entry, see tagIndexed
	}
	size := 0
	found := make([]promise, 0, len(ids)) // its elements are referred to, and must not move
	list := make([]protocol.Promise, 0, len(ids))
	for _, other := range ids {
		if other == id {
			continue
		}
		found = found[:len(list)+1]
		p := &found[len(list)]
		if !s.read(p, other) || p.tags[protocol.TagBranch] != branch {
			continue // the branch need not exist, and two long values may share an entry
		}
		if size += p.size(); len(list) == preloadMax || size > preloadMaxBytes {
			break
		}
		s.project(p)
		list = append(list, p.shown())
	}
	return list
}

// size is the number of bytes that a promise has about, in a response.
func (p *promise) size() int {
	return 200 + len(p.id) + valueSize(p.param) + valueSize(p.value) + textsSize(p.tags)
}

func valueSize(v protocol.Value) int {
	size := textsSize(v.Headers)
	if v.Data != nil {
		size += len(*v.Data)
	}
	return size
}

func textsSize(m map[string]string) (size int) {
	for k, v := range m {
		size += len(k) + len(v)
	}
	return size
}
