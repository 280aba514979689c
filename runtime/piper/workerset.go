package piper

import (
	"math/bits"
	"sync/atomic"
)

const (
	wordBits  = 64
	lineBytes = 64 // of a cache line
	lineWords = 8  // in a cache line
)

// workerSet is a set of workers, a bit for each. So a worker finds another one without a look at all of
// them, whose memory other threads write. Any goroutine may call its methods.
type workerSet struct {
	words []atomic.Uint64 // alone in its cache lines
}

func newWorkerSet(workers int) workerSet {
	words := (workers + wordBits - 1) / wordBits
	return workerSet{make([]atomic.Uint64, words, (words+lineWords-1)/lineWords*lineWords)}
}

func (s *workerSet) add(w *Worker) { s.words[w.index/wordBits].Or(1 << (w.index % wordBits)) }

func (s *workerSet) remove(w *Worker) {
	s.words[w.index/wordBits].And(^(uint64(1) << (w.index % wordBits)))
}

// set adds or removes w.
func (s *workerSet) set(w *Worker, in bool) {
	if in {
		s.add(w)
	} else {
		s.remove(w)
	}
}

// take removes one of the workers and returns its index, or -1 if there is none. Two callers get two
// workers.
func (s *workerSet) take() int {
	for i := range s.words {
		for word := s.words[i].Load(); word != 0; word = s.words[i].Load() {
			bit := word & -word
			if s.words[i].And(^bit)&bit != 0 {
				return i*wordBits + bits.TrailingZeros64(bit)
			}
		}
	}
	return -1
}

// after returns the index of the worker that follows w in the set, or -1 if there is none but w. The first
// worker follows the last one.
func (s *workerSet) after(w *Worker) int {
	own, bit := w.index/wordBits, w.index%wordBits
	for i := range len(s.words) + 1 { // the word of w is looked at in two parts
		at := (own + i) % len(s.words)
		word := s.words[at].Load()
		switch i {
		case 0:
			word &= ^uint64(0) << (bit + 1)
		case len(s.words):
			word &= 1<<bit - 1
		}
		if word != 0 {
			return at*wordBits + bits.TrailingZeros64(word)
		}
	}
	return -1
}

func (s *workerSet) any() bool {
	for i := range s.words {
		if s.words[i].Load() != 0 {
			return true
		}
	}
	return false
}

func (s *workerSet) len() (n int) {
	for i := range s.words {
		n += bits.OnesCount64(s.words[i].Load())
	}
	return n
}

// anyWithout reports whether the set has a worker that is neither w nor in other.
func (s *workerSet) anyWithout(other *workerSet, w *Worker) bool {
	for i := range s.words {
		word := s.words[i].Load() &^ other.words[i].Load()
		if i == w.index/wordBits {
			word &^= 1 << (w.index % wordBits)
		}
		if word != 0 {
			return true
		}
	}
	return false
}
