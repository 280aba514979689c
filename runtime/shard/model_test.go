package shard

import (
	"fmt"
	"math/bits"
	"strings"
)

// doing is what a worker does between two atomic steps.
type doing uint8

const (
	looking   doing = iota // about to read the epoch
	moving                 // switching to another configuration
	switching              // in OnSwitch
	working                // in a round of PreProcess and ProcessShard
	resting                // after a round: may promise
	claiming               // all have promised: about to claim the decision
	deciding               // in Resharding
	writing                // the decision is written but not published
)

func (d doing) String() string {
	return [...]string{"looks", "moves", "switches", "works", "rests", "claims", "decides", "writes"}[d]
}

const (
	workersModel = 3 // in the exhaustive model
	epochsModel  = 4
)

// snapshot is the state of a model: of the real Pages, locks and transfers, and what the
// workers do.
type snapshot struct {
	word    uint64
	pages   [2]uint8 // the epoch of each
	free    uint16   // the shards that no worker has
	history [epochsModel + 1]uint16
	number  int // number of workers
	workers [workersModel]workerSnapshot
}

type workerSnapshot struct {
	doing              doing
	updates            bool // the current round may update the data that a decision reads
	epoch, target      uint8
	released, acquired uint8
	promised           uint8
}

// model executes the real Pages, locks and transfers one atomic step at a time, in any
// order of the workers.
type model struct {
	pages     *Pages
	locks     locks
	transfers []transfer
	doing     []doing
	updates   []bool
	history   [][][]int // the configuration of each epoch; history[0] is unused
	last      uint64    // the epoch in which workers stop promising

	configs [][][]int // the configurations that a decision may choose
	chosen  []uint16  // history as indices into configs
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

// choices returns the number of ways in which worker w may take its next step.
func (m *model) choices(w int) int {
	switch m.doing[w] {
	case resting:
		if m.pages.Epoch() < m.last {
			return 2 // the interval has passed, or not yet
		}
	case deciding:
		return len(m.configs) + 1 // a configuration, or a failure
	}
	return 1
}

// step executes the next step of worker w, in one of the possible ways. A worker that
// waits stays in the same state. It follows worker.work.
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
			m.doing[w] = claiming
		}
	case claiming:
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

// has returns the shards that a worker has. Between configurations, these are the old
// shards that are not released yet, and the new shards that are already acquired.
func (m *model) has(w int) (old, got []int) {
	h := &m.transfers[w]
	return h.shards[h.released:], h.next[:h.acquired]
}

// holds returns an error if an invariant of the sharder is violated.
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
					return fmt.Errorf("shard %d belongs to workers %d and %d", s, owner[s], w)
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
		return fmt.Errorf("%d workers have promised, but the count is %d", promises, counted)
	}
	for w, own := range m.pages.Config(epoch) {
		for _, s := range own {
			if (owner[s] < 0) != (len(m.locks[s]) == 1) {
				return fmt.Errorf("the lock of shard %d does not match its owner, worker %d (-1: no worker)", s, owner[s])
			}
			if owner[s] < 0 && m.transfers[w].epoch == epoch {
				return fmt.Errorf("no worker has shard %d, and worker %d will not acquire it", s, w)
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
			return fmt.Errorf("worker %d waits for worker %d, which has already switched", w, by)
		}
	}
	if m.doing[w] != deciding && m.doing[w] != writing {
		return nil
	}
	for other, doing := range m.doing {
		switch {
		case other == w:
		case doing == deciding || doing == writing:
			return fmt.Errorf("workers %d and %d decide at the same time", w, other)
		case doing == switching:
			return fmt.Errorf("worker %d decides during OnSwitch of worker %d", w, other)
		case doing == working && m.updates[other]:
			return fmt.Errorf("worker %d decides while worker %d may update", w, other)
		case m.transfers[other].epoch != epoch:
			return fmt.Errorf("worker %d decides before worker %d has switched", w, other)
		}
	}
	return nil
}

// ended reports whether all workers have switched to the last epoch.
func (m *model) ended() bool {
	for w := range m.transfers {
		if m.transfers[w].epoch != m.last || m.doing[w] != looking {
			return false
		}
	}
	return true
}

// save returns a snapshot of the model.
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

// load restores the state of a snapshot.
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

// String returns a line for the history in an error.
func (s snapshot) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d, %d promises, %d free:", s.word>>countBits, s.word&countMask, bits.OnesCount16(s.free))
	for _, w := range s.workers[:s.number] {
		fmt.Fprintf(&b, " [%v in %d", w.doing, w.epoch)
		if w.target != w.epoch {
			fmt.Fprintf(&b, " to %d: %d released, %d acquired", w.target, w.released, w.acquired)
		}
		if w.updates {
			b.WriteString(", updates")
		}
		b.WriteString("]")
	}
	return b.String()
}
