package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/topogen/topogen/internal/test/disksim"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// simulation is a history on a machine with faults.
type simulation struct {
	*recorded
	machine *disksim.Machine
	opened  int
	refused int // logs that Open has refused because the disk has lied
}

func newSimulation(t *testing.T, seed uint64, mode wal.Sync, c disksim.Chances) *simulation {
	s := &simulation{recorded: &recorded{history: newHistory(t, seed, mode)}}
	s.run = func(f func() error) bool { return s.record(s.machine.Dir, func() bool { return s.runOnMachine(f) }) }
	s.machine = disksim.NewMachine(t, memdir.New(t), s.rng, c)
	return s
}

// runOnMachine calls the log. If the power or a sync fails, the log is not used any more.
func (s *simulation) runOnMachine(f func() error) bool {
	m := s.machine
	err := m.Run(f)
	switch {
	case m.Off:
		s.restart()
		return false
	case m.BadSync != "" && err == nil && m.IsDir(m.BadSync): // of obsolete files, which the next snapshot removes
		return true
	case m.BadSync != "":
		if err == nil && s.log.Sync() == nil { // SyncInBackground has no result
			s.t.Errorf("the sync of %s has failed, and the log does not report it", m.BadSync)
		}
		s.abandon()
		return false
	case m.Lied && errors.Is(err, wal.ErrDamaged): // a snapshot with a body is read back
		s.abandon()
		return false
	}
	must(s.t, err)
	return true
}

// act opens the log, or does a random call.
func (s *simulation) act() {
	if s.log == nil {
		s.open()
		return
	}
	s.history.act()
}

// abandon ends a log that has failed, as the end of its process would.
func (s *simulation) abandon() {
	m := s.machine
	if l := s.log; l != nil && m.Off {
		_ = l.Close() // it has failed
	} else if l != nil { // it may work, if only the file of a snapshot has failed
		c := m.Chances
		m.Chances = disksim.Chances{}
		_ = m.Run(l.Close)
		m.Chances = c
	}
	s.log = nil
	if !m.Off { // the next log has the same folder, and the engine does not unlock its files if its last sync fails
		runtime.GC()
	}
}

// restart starts the machine after a power failure.
func (s *simulation) restart() {
	s.abandon()
	s.machine.Restart()
}

// open opens the log. Its content must be a possible one.
func (s *simulation) open() {
	m := s.machine
	if s.lies() {
		m.DropCaches()
	}
	before := copied(s.t, m.Dir)
	var stored wal.Stored
	var l wal.Log
	err := m.Read(func() (err error) {
		l, stored, err = wal.Open(m.Dir, own, s.options())
		return err
	})
	if l != nil { // a nil Log in a field would not be nil for abandon
		s.log = l
	}
	switch damaged := errors.Is(err, wal.ErrDamaged); {
	case m.Off:
		s.restart()
	case err != nil && (m.BadSync != "" || m.BadRead != ""):
		if damaged {
			s.t.Errorf("an error of the disk must not be reported as damage, got: %v", err)
		}
		s.unchanged(before)
		s.abandon()
	case damaged && s.lies():
		s.refused++
		s.startAgain()
	case err != nil:
		s.t.Errorf("Open: %v", err)
	case (m.BadRead != "" || m.BadSync != "") && !stored.Fresh: // the engine asks twice whether a directory has no segments
		s.t.Errorf("Open must return the error of a read or sync of %s", m.BadRead+m.BadSync)
	default:
		s.opened++
		s.compare(stored, before)
	}
}

// lies reports whether the disk may have lied.
func (s *simulation) lies() bool { return s.machine.Chances.Lie > 0 }

// unchanged checks that a failed Open has changed nothing. It may have removed an incomplete end,
// and extended a segment.
func (s *simulation) unchanged(before image) {
	if s.machine.Chances.Sync > 0 || s.lies() { // Open reads what the disk has
		return
	}
	after := copied(s.t, s.machine.Dir)
	for name, b := range before {
		if got := bytes.TrimRight(after[name], "\x00"); !bytes.HasPrefix(b, got) {
			s.t.Errorf("Open has changed %s", name)
		}
	}
}

// compare checks the content of an opened log, which is durable from now on. The disk had the image
// before.
func (s *simulation) compare(stored wal.Stored, before image) {
	from := s.syncedAt
	if s.lies() {
		from = s.lastProven(before)
	}
	i := slices.IndexFunc(s.past[from:], func(p model) bool { return same(p.stored(), stored) })
	if i < 0 {
		s.t.Errorf("Open must return one of %d possible contents; the first of them has this\n%s", len(s.past)-from, diff(s.past[from].stored(), stored))
		return
	}
	s.checkBody(stored)
	s.past = s.past[: from+i+1 : from+i+1]
	s.writes = slices.DeleteFunc(s.writes, func(w written) bool { return w.model > from+i })
	s.step(s.past[from+i].withState(stored.State)) // Open may have corrected it
	s.synced()
}

// startAgain replaces a damaged log by a new one.
func (s *simulation) startAgain() {
	s.abandon()
	s.machine.Wipe()
	s.model = model{state: state(0, 0, 0)}
	s.past, s.syncedAt, s.term, s.writes = []model{s.model}, 0, 0, nil
	clear(s.bodies)
}

// simulate runs histories on machines, and returns how often each fault has happened.
func simulate(t *testing.T, c disksim.Chances) {
	speed.NoRace(t)
	counts := map[string]int{}
	calls := speed.Pick(t, 50, 100, 100) // the power fails at about each tenth call
	histories(t, 1, 8, 1000, func(t *testing.T, seed uint64, mode wal.Sync) {
		s := newSimulation(t, seed, mode, c)
		for range calls {
			if s.act(); t.Failed() {
				return
			}
		}
		s.abandon()
		counts["opened"] += s.opened
		counts["refused"] += s.refused
		for what, n := range s.machine.Faults {
			counts[what] += n
		}
	})
	t.Log(fmt.Sprint(counts))
}

// TestPowerFailures: after a power failure the log opens in every mode, no matter which sectors
// or pages of unsynced data are missing. It has all synced records, and a prefix of the later
// ones. The power also fails while a log is created, opened and closed.
func TestPowerFailures(t *testing.T) { simulate(t, disksim.Chances{Power: 0.02}) }

// TestFailedSyncs: after a sync that fails, the next start reads what the disk has. What it
// returns survives a power failure.
func TestFailedSyncs(t *testing.T) { simulate(t, disksim.Chances{Power: 0.02, Sync: 0.02}) }

// TestReadErrors: an error while the log is read is not damage, and changes no file.
func TestReadErrors(t *testing.T) { simulate(t, disksim.Chances{Power: 0.02, Read: 0.05}) }

// TestLyingDisk: if the disk loses, tears or misdirects a write and acknowledges it, Open
// refuses the log, unless no later mark has reached the disk.
func TestLyingDisk(t *testing.T) { simulate(t, disksim.Chances{Power: 0.02, Lie: 0.2}) }
