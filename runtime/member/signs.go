package member

import (
	"sync"
	"sync/atomic"
)

// signs remembers which nodes were heard since they were last looked at. The flags of nodes
// that have left remain; there are at most signsMax.
type signs struct {
	flags sync.Map // name -> *atomic.Bool
	count atomic.Int64
}

// signsMax limits the names: callers pass the names of authenticated peers, of which there
// are at most as many as members.
const signsMax = membersMax

func (s *signs) set(name string) {
	flag, ok := s.flags.Load(name)
	if !ok {
		if s.count.Load() >= signsMax {
			return
		}
		var loaded bool
		if flag, loaded = s.flags.LoadOrStore(name, new(atomic.Bool)); !loaded {
			s.count.Add(1)
		}
	}
	if f := flag.(*atomic.Bool); !f.Load() { // a store would take the cache line from other processors
		f.Store(true)
	}
}

// take calls heard for each node that was heard since the last take.
func (s *signs) take(heard func(name string)) {
	s.flags.Range(func(name, flag any) bool {
		if f := flag.(*atomic.Bool); f.Load() {
			f.Store(false)
			heard(name.(string))
		}
		return true
	})
}
