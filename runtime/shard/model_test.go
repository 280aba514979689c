package shard

import (
	"fmt"
	"math/bits"
	"strings"
)

// doing is what a worker is about, between two atomic steps.
type doing uint8

const (
	looking   doing = iota // about to look at the epoch
	moving                 // on the way to another configuration
	switching              // within OnSwitch
	working                // within a round of PreProcess and ProcessShard
	resting                // behind a round: its time to promise may have come, or not
	asking                 // all have promised: about to claim the decision
	deciding               // within Resharding
	writing                // the decision stands on its page, and is not in force
)

func (d doing) String() string {
	return [...]string{"looks", "moves", "switches", "works", "rests", "asks", "decides", "writes"}[d]
}

const (
	workersModel = 3 // at most, in the exhaustive model
	epochsModel  = 4
)

// snapshot is a state of the whole: what the real Pages, locks and hands hold,
// and what their workers are about.
type snapshot struct {
	word    uint64
	pages   [2]uint8 // the epoch of each
	free    uint16   // the shards that nobody has
	history [epochsModel + 1]uint16
	number  int // of workers
	workers [workersModel]workerSnapshot
}

type workerSnapshot struct {
	doing              doing
	updates            bool // the round that it is in may update what a decision reads
	epoch, target      uint8
	released, acquired uint8
	promised           uint8
}

// model drives the real Pages, locks and hands one atomic step at a time, in any
// order of the workers.
type model struct {
	pages     *Pages
	locks     locks
	transfers []transfer
	doing     []doing
	updates   []bool
	history   [][][]int // the configuration of each epoch; history[0] is none
	last      uint64    // the epoch in which nobody promises any more

	configs [][][]int // those that a decision may choose
	chosen  []uint16  // history as numbers in configs
}

func newModel(workers int, configs [][][]int, last uint64) *model {
	m := &model{
		transfers: make([]transfer, workers), doing: make([]doing, workers), updates: make([]bool, workers),
		history: [][][]int{nil}, last: last, configs: configs, chosen: []uint16{0},
	}
	var err error
	if m.pages, err = NewPages(workers, configs[0]); err != nil {
		panic(err)
	}
	m.locks = newLocks(m.pages.Shards())
	for w := range m.transfers {
		m.transfers[w].worker = w
	}
	m.note(0)
	return m
}

func (m *model) note(config int) {
	m.history = append(m.history, m.configs[config])
	m.chosen = append(m.chosen, uint16(config))
}

// choices is in how many ways worker w may take its next step.
func (m *model) choices(w int) int {
	switch m.doing[w] {
	case resting:
		if m.pages.Epoch() < m.last {
			return 2 // it is time, or not yet
		}
	case deciding:
		return len(m.configs) + 1 // a configuration, or a failure
	}
	return 1
}

// step lets worker w take its next step, in one of the ways that there are; one
// that waits stays where it is. It follows worker.work.
func (m *model) step(w, choice int) (err error) {
	defer func() {
		if c := recover(); c != nil {
			err = fmt.Errorf("worker %d: panic: %v", w, c)
		}
	}()
	h, p := &m.transfers[w], m.pages
	switch m.doing[w] {
	case looking, moving:
		switch h.step(p, m.locks) {
		case stepNone:
			m.doing[w], m.updates[w] = working, p.MayUpdate(w, h.epoch)
		case stepMoved, stepBlocked:
			m.doing[w] = moving
		case stepDone:
			m.doing[w] = switching
		}
	case switching:
		m.doing[w] = looking
	case working:
		m.doing[w], m.updates[w] = resting, false
	case resting:
		m.doing[w] = looking
		if choice == 1 && p.Promise(w, h.epoch) {
			m.doing[w] = asking
		}
	case asking:
		m.doing[w] = looking
		if _, ok := p.claim(); ok {
			m.doing[w] = deciding
		}
	case deciding:
		if choice == len(m.configs) {
			p.unclaim(p.Epoch())
			m.doing[w] = looking
			break
		}
		if err := p.write(p.Epoch()+1, m.configs[choice]); err != nil {
			return err
		}
		m.note(choice)
		m.doing[w] = writing
	case writing:
		p.publish(p.Epoch() + 1)
		m.doing[w] = looking
	}
	return nil
}

// has are the shards that a worker has: where it works those of its
// configuration, on the way what is left of the old and got of the new.
func (m *model) has(w int) (old, got []int) {
	h := &m.transfers[w]
	return h.shards[h.released:], h.next[:h.acquired]
}

// holds returns an error unless all that a sharder promises holds now.
func (m *model) holds() error {
	owner := make([]int, len(m.locks))
	for s := range owner {
		owner[s] = -1
	}
	for w := range m.transfers {
		old, got := m.has(w)
		for _, part := range [][]int{old, got} {
			for _, s := range part {
				if owner[s] >= 0 {
					return fmt.Errorf("shard %d is in worker %d and in worker %d", s, owner[s], w)
				}
				owner[s] = w
			}
		}
	}
	epoch, promises := m.pages.Epoch(), 0
	for w := range m.transfers {
		if !m.pages.MayUpdate(w, epoch) {
			promises++
		}
	}
	if counted := int(m.pages.word.Load() & countMask); counted != promises && counted != len(m.transfers)+1 {
		return fmt.Errorf("%d workers have promised, and %d are counted", promises, counted)
	}
	for w, own := range m.pages.Config(epoch) {
		for _, s := range own {
			if (owner[s] < 0) != (len(m.locks[s]) == 1) {
				return fmt.Errorf("shard %d is in worker %d, and its lock says otherwise", s, owner[s])
			}
			if owner[s] < 0 && m.transfers[w].epoch == epoch {
				return fmt.Errorf("shard %d is nobody's, and worker %d does not come for it", s, w)
			}
		}
	}
	for w := range m.transfers {
		if err := m.holdsFor(w, owner, epoch); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) holdsFor(w int, owner []int, epoch uint64) error {
	h := &m.transfers[w]
	if m.doing[w] == moving && h.released == len(h.shards) && h.acquired < len(h.next) {
		if by := owner[h.nextShard()]; by >= 0 && m.transfers[by].epoch == epoch {
			return fmt.Errorf("worker %d waits for worker %d, which has arrived", w, by)
		}
	}
	if m.doing[w] != deciding && m.doing[w] != writing {
		return nil
	}
	for other, doing := range m.doing {
		switch {
		case other == w:
		case doing == deciding || doing == writing:
			return fmt.Errorf("workers %d and %d decide", w, other)
		case doing == switching:
			return fmt.Errorf("worker %d decides within OnSwitch of worker %d", w, other)
		case doing == working && m.updates[other]:
			return fmt.Errorf("worker %d decides while worker %d may update", w, other)
		case m.transfers[other].epoch != epoch:
			return fmt.Errorf("worker %d decides before worker %d has arrived", w, other)
		}
	}
	return nil
}

// ended reports whether all workers have arrived in the last epoch.
func (m *model) ended() bool {
	for w := range m.transfers {
		if m.transfers[w].epoch != m.last || m.doing[w] != looking {
			return false
		}
	}
	return true
}

// save takes a snapshot.
func (m *model) save() snapshot {
	s := snapshot{word: m.pages.word.Load(), number: len(m.transfers)}
	for i := range s.pages {
		if page := m.pages.pages[i].Load(); page != nil {
			s.pages[i] = uint8(page.epoch)
		}
	}
	for i, l := range m.locks {
		s.free |= uint16(len(l)) << i
	}
	copy(s.history[:], m.chosen)
	for w := range m.transfers {
		h := &m.transfers[w]
		s.workers[w] = workerSnapshot{
			doing: m.doing[w], updates: m.updates[w], epoch: uint8(h.epoch), target: uint8(h.target),
			released: uint8(h.released), acquired: uint8(h.acquired), promised: uint8(m.pages.promised[w].epoch),
		}
	}
	return s
}

// load puts everything back into the state of a snapshot.
func (m *model) load(s snapshot) {
	m.pages.word.Store(s.word)
	highest := max(s.pages[0], s.pages[1])
	m.history, m.chosen = m.history[:1], m.chosen[:1]
	for epoch := 1; epoch <= int(highest); epoch++ {
		m.note(int(s.history[epoch]))
	}
	for i, epoch := range s.pages {
		var p *page
		if epoch > 0 {
			p = &page{uint64(epoch), m.history[epoch]}
		}
		m.pages.pages[i].Store(p)
	}
	for i, l := range m.locks {
		select {
		case <-l:
		default:
		}
		if s.free>>i&1 == 1 {
			l <- struct{}{}
		}
	}
	for w := range m.transfers {
		from := s.workers[w]
		h := transfer{worker: w, epoch: uint64(from.epoch), target: uint64(from.target), released: int(from.released), acquired: int(from.acquired)}
		if h.epoch > 0 {
			h.shards = m.history[h.epoch][w]
		}
		if h.target != h.epoch {
			h.next = m.history[h.target][w]
		}
		m.transfers[w], m.doing[w], m.updates[w] = h, from.doing, from.updates
		m.pages.promised[w].epoch = uint64(from.promised)
	}
}

// String is a line of a history.
func (s snapshot) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d, %d promises, %d free:", s.word>>countBits, s.word&countMask, bits.OnesCount16(s.free))
	for _, w := range s.workers[:s.number] {
		fmt.Fprintf(&b, " [%v in %d", w.doing, w.epoch)
		if w.target != w.epoch {
			fmt.Fprintf(&b, " to %d: %d gone, %d taken", w.target, w.released, w.acquired)
		}
		if w.updates {
			b.WriteString(", updates")
		}
		b.WriteString("]")
	}
	return b.String()
}
