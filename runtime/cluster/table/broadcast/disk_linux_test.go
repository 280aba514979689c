package broadcast

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/topogen/topogen/internal/test/disksim"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// diskLog is the log of a node on a simulated disk.
type diskLog struct {
	t       *testing.T
	rng     *rand.Rand
	machine *disksim.Machine
	log     *file    // nil: closed
	past    []string // all contents of the log so far
	synced  int      // index in past: a power failure leaves this content or a later one
	proven  int      // index in past: an honest write follows it
	last    table.Revision
	opened  int
	refused int
}

// text describes a content, so that contents can be compared.
func text(c contents) string {
	var b bytes.Buffer
	if c.state != nil {
		fmt.Fprint(&b, c.state.Revision())
	}
	for _, e := range c.entries {
		fmt.Fprintf(&b, " %x", e.append(nil))
	}
	return b.String()
}

// call calls the log, after which it has the content want.
func (d *diskLog) call(want string, f func() error) {
	d.past = append(d.past, want)
	before := d.synced
	err := d.machine.Run(f)
	if d.machine.Off || d.machine.BadSync != "" {
		if !d.machine.Off && err == nil {
			d.t.Errorf("the sync of %s has failed, and the call has not", d.machine.BadSync)
		}
		d.end()
		return
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.synced = len(d.past) - 1
	if !d.machine.Lied {
		d.proven = before
	}
}

// end ends the process, and starts the machine again after a power failure.
func (d *diskLog) end() {
	if d.log != nil {
		_ = d.log.close() // it may have failed
		d.log = nil
	}
	if d.machine.Off {
		d.machine.Restart()
	}
}

func (d *diskLog) open() {
	var c contents
	var l *file
	m := d.machine
	err := m.Read(func() (err error) { l, c, err = openFile(m.Dir, "n1"); return err })
	d.log = l
	switch damaged := errors.Is(err, errLog); {
	case m.Off:
		d.end()
	case err != nil && m.BadRead+m.BadSync != "":
		if damaged {
			d.t.Errorf("an error of the disk must not be reported as damage, got: %v", err)
		}
	case damaged && m.Chances.Lie > 0:
		d.refused++
		m.Wipe()
		d.past, d.synced, d.proven, d.last = []string{""}, 0, 0, table.Revision{}
	case err != nil:
		d.t.Error(err)
	case m.BadRead+m.BadSync != "":
		d.t.Errorf("the error of %s must be returned", m.BadRead+m.BadSync)
	default:
		d.opened++
		d.compare(c)
	}
}

// compare checks the content of an opened log, which is durable from now on.
func (d *diskLog) compare(c contents) {
	from := d.synced
	if d.machine.Chances.Lie > 0 {
		from = d.proven
	}
	i := slices.Index(d.past[from:], text(c))
	if i < 0 {
		d.t.Errorf("the log must have one of %d contents, got %d entries", len(d.past)-from, len(c.entries))
		return
	}
	d.past = d.past[: from+i+1 : from+i+1]
	d.synced, d.proven, d.last = from+i, min(d.proven, from+i), table.Revision{}
	if c.state != nil {
		d.last = c.state.Revision()
	}
	if n := len(c.entries); n > 0 {
		d.last = c.entries[n-1].revision
	}
}

// act opens or closes the log, or does a random call.
func (d *diskLog) act() {
	now := d.past[len(d.past)-1]
	next := table.Revision{Term: max(1, d.last.Term), Index: d.last.Index + 1}
	switch n := d.rng.IntN(20); {
	case d.log == nil:
		d.open()
	case n == 0:
		d.end()
	case n == 1:
		s := table.NewState()
		s.Apply(next, 0, &table.Command{Kind: table.CommandTxn})
		d.last = next
		d.call(text(contents{state: s}), func() error { return d.log.install(next, s.Append(nil)) })
	default:
		e := &entry{revision: next, command: make([]byte, d.rng.IntN(1+d.rng.IntN(3000)))}
		if d.rng.IntN(20) == 0 {
			e.command = make([]byte, d.rng.IntN(100_000))
		}
		if d.rng.IntN(4) > 0 {
			for i := range e.command {
				e.command[i] = byte(d.rng.Uint32())
			}
		}
		d.last = next
		d.call(now+fmt.Sprintf(" %x", e.append(nil)), func() error { return d.log.append(e) })
	}
}

// TestSimulatedDisk: the log has all acknowledged entries after power failures at any moment,
// which leave any sectors of what was not synced. The same holds after a sync that fails. An
// error of a read is not damage. If the disk has lied, the log is right, refused, or shorter by
// its last entries, after which nothing has reached the disk.
func TestSimulatedDisk(t *testing.T) {
	speed.NoRace(t)
	first, end := speed.Seeds(t, 1, 10, 1300)
	for name, c := range map[string]disksim.Chances{
		"power": {Power: 0.05},
		"syncs": {Power: 0.05, Sync: 0.05},
		"reads": {Power: 0.05, Read: 0.05},
		"lies":  {Power: 0.05, Lie: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			total := map[string]int{}
			for seed := first; seed < end; seed++ {
				root := memdir.New(t)
				rng := rand.New(rand.NewPCG(seed, 1))
				d := &diskLog{t: t, rng: rng, machine: disksim.NewMachine(t, root, rng, c), past: []string{""}}
				for range speed.Pick(t, 100, 200, 200) {
					if d.act(); t.Failed() {
						t.Fatal(speed.Repeat(t, seed))
					}
				}
				d.end()
				for what, n := range d.machine.Faults {
					total[what] += n
				}
				total["opened"] += d.opened
				total["refused"] += d.refused
				_ = os.RemoveAll(root)
			}
			t.Log(total)
		})
	}
}
