package fsm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// desk is a replica for tests of sessions. Its log begins at the time 0.
type desk struct {
	t     *testing.T
	r     *replicated
	batch fsm.Batch
	now   time.Duration
}

func newDesk(t *testing.T, o fsm.Options) *desk {
	return &desk{t: t, r: fsm.NewReplicated(noteDefinition, o)}
}

// entry applies an entry with the commands that fill adds, some time after the entry
// before.
func (d *desk) entry(after time.Duration, fill func(b *fsm.Batch)) (list []fsm.Applied) {
	d.t.Helper()
	d.now += after
	d.batch.Reset(int64(d.now))
	fill(&d.batch)
	if err := d.r.Apply(d.r.Applied()+1, 1, d.batch.Bytes(), func(_, _ uint64, a fsm.Applied) { list = append(list, a) }); err != nil {
		d.t.Fatal(err)
	}
	return list
}

func (d *desk) open(client string, nonce uint64) fsm.Applied {
	d.t.Helper()
	return d.entry(0, func(b *fsm.Batch) { b.Open(client, nonce) })[0]
}

func (d *desk) openNode(node, nonce uint64) uint64 {
	d.t.Helper()
	return d.entry(0, func(b *fsm.Batch) { b.OpenNode(node, nonce) })[0].Client
}

// use uses a session after some time, and returns the error of its command.
func (d *desk) use(after time.Duration, session, sequence uint64) error {
	d.t.Helper()
	return d.entry(after, func(b *fsm.Batch) { b.Commit(session, sequence, sequence) })[0].Err
}

// TestOneClientEvictsNoOther: a client that opens sessions in a loop ends only its own.
func TestOneClientEvictsNoOther(t *testing.T) {
	d := newDesk(t, fsm.Options{})
	ann := d.open("ann", 1).Client
	var loop []uint64
	for i := range uint64(3) {
		for _, a := range d.entry(0, func(b *fsm.Batch) {
			for j := range uint64(20_000) {
				b.Open("loop", i*20_000+j+1)
			}
		}) {
			loop = append(loop, a.Client)
		}
	}
	if err := d.use(0, ann, 1); err != nil {
		t.Errorf("another client: %v", err)
	}
	if n := d.r.Sessions(); n != 1+4 {
		t.Errorf("%d sessions, want 1 and 4", n)
	}
	for i, session := range loop[len(loop)-6:] {
		if err := d.use(0, session, 1); errors.Is(err, fsm.ErrSessionExpired) != (i < 2) {
			t.Errorf("the loop's session %d of the last 6: %v", i, err)
		}
	}
}

// TestOpeningIsRepeated: repeated opening with the same nonce returns the same session,
// also after a snapshot.
func TestOpeningIsRepeated(t *testing.T) {
	d := newDesk(t, fsm.Options{})
	ann, node := d.open("ann", 7).Client, d.openNode(3, 7)
	for range 2 {
		if again := d.open("ann", 7).Client; again != ann {
			t.Errorf("session %d, and again %d", ann, again)
		}
		if again := d.openNode(3, 7); again != node {
			t.Errorf("the node's session %d, and again %d", node, again)
		}
		b, err := d.r.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.r.Restore(b); err != nil {
			t.Fatal(err)
		}
	}
	if other := d.open("bob", 7).Client; other == ann || d.r.Sessions() != 3 {
		t.Errorf("another client gets session %d, there are %d", other, d.r.Sessions())
	}
}

// TestTheTableIsFull: while all sessions are in use, opening another one is refused and
// ends no session. Sessions that are not used for the TTL end.
func TestTheTableIsFull(t *testing.T) {
	const ttl = time.Minute
	d := newDesk(t, fsm.Options{Sessions: 100, SessionTTL: ttl})
	sessions := make([]uint64, 100)
	for i := range sessions {
		sessions[i] = d.open(fmt.Sprint("client ", i), 1).Client
	}
	for range 50 {
		a := d.open("late", 1)
		if !errors.Is(a.Err, fsm.ErrTooMany) || a.Client != 0 || !strings.Contains(a.Err.Error(), "100 sessions of clients, all used within 1m0s") {
			t.Fatalf("opened %d, %v", a.Client, a.Err)
		}
	}
	if again := d.open("client 5", 1); again.Client != sessions[5] {
		t.Errorf("a client opens again: %+v", again)
	}
	own := d.open("client 5", 2)
	if own.Err != nil || own.Client == sessions[5] {
		t.Errorf("a client that starts again: %+v", own)
	}
	if err := d.use(0, sessions[5], 1); !errors.Is(err, fsm.ErrSessionExpired) {
		t.Errorf("its earlier session, while the table is full: %v", err)
	}
	sessions[5] = own.Client
	// Half of the sessions remain in use, for longer than the TTL, in steps that count.
	for step := range uint64(11) {
		for i := range 50 {
			if err := d.use(0, sessions[i], step+1); err != nil {
				t.Fatalf("step %d, session %d: %v", step, i, err)
			}
		}
		d.entry(ttl/10, func(b *fsm.Batch) { b.Commit(1, 1, 1) })
	}
	if n := d.r.Sessions(); n != 50 {
		t.Errorf("%d sessions are left, want 50", n)
	}
	if err := d.use(0, sessions[60], 1); !errors.Is(err, fsm.ErrSessionExpired) {
		t.Errorf("a session that was not used: %v", err)
	}
	if a := d.open("late", 2); a.Err != nil {
		t.Errorf("opening a session, although the table is not full any more: %v", a.Err)
	}
}

// TestAClockThatJumps: a jump of the clock ends no session.
func TestAClockThatJumps(t *testing.T) {
	d := newDesk(t, fsm.Options{SessionTTL: time.Hour})
	ann := d.open("ann", 1).Client
	for i := range uint64(6) {
		d.entry(365*24*time.Hour, func(b *fsm.Batch) { b.Open("bob", i+1) })
	}
	if err := d.use(0, ann, 1); err != nil {
		t.Errorf("after some jumps: %v", err)
	}
}

// TestNodesKeepTheirSessions: sessions of nodes remain when clients open many sessions
// and when the nodes are idle for a long time. Nodes that restart again and again do not fill the
// table.
func TestNodesKeepTheirSessions(t *testing.T) {
	d := newDesk(t, fsm.Options{Sessions: 100, SessionTTL: time.Minute})
	n1, n2 := d.openNode(1, 1), d.openNode(2, 1)
	for i := range uint64(500) {
		d.open(fmt.Sprint("client ", i%150), i+1)
		d.entry(time.Minute, func(b *fsm.Batch) { b.OpenNode(3, i+1) })
	}
	for _, node := range []uint64{n1, n2} {
		if err := d.use(time.Hour, node, 1); err != nil {
			t.Errorf("a node's session: %v", err)
		}
	}
	for node := range uint64(1000) {
		d.openNode(node+10, 1)
		if err := d.use(0, n1, node+2); err != nil {
			t.Fatalf("a node that is used, after %d others: %v", node+1, err)
		}
	}
	if n := d.r.Sessions(); n > 100+256 {
		t.Errorf("%d sessions", n)
	}
	before := d.openNode(2000, 1)
	now := d.openNode(2000, 2)
	last := d.openNode(2000, 3)
	for session, ended := range map[uint64]bool{before: true, now: false, last: false} {
		if err := d.use(0, session, 1); errors.Is(err, fsm.ErrSessionExpired) != ended {
			t.Errorf("session %d of a node that starts again: %v", session, err)
		}
	}
}

// TestSharesOfResults: a client that never raises its floor is refused when it keeps
// too many results, and others are not. A refused command is remembered, so that it is
// not applied later.
func TestSharesOfResults(t *testing.T) {
	d := newDesk(t, fsm.Options{Sessions: 10, Results: 100, Window: 80})
	a, b, c := d.open("a", 1).Client, d.open("b", 1).Client, d.open("c", 1).Client
	greedy := func(session uint64) (refused uint64) {
		for i := range uint64(80) {
			err := d.entry(0, func(batch *fsm.Batch) { batch.Commit(session, i+1, 1) })[0].Err
			if err != nil && refused == 0 {
				refused = i + 1
			}
			if err != nil && !(errors.Is(err, fsm.ErrTooMany) && fsm.OutcomeKnown(err)) {
				t.Fatal(err)
			}
		}
		return refused
	}
	if n := greedy(a); n != 0 {
		t.Errorf("the first is refused at %d", n)
	}
	n := greedy(b)
	if n != 21 {
		t.Errorf("the second is refused at %d, want 21", n)
	}
	for i := range uint64(50) {
		if err := d.use(0, c, i+1); err != nil {
			t.Errorf("a client that raises its floor: %v", err)
		}
	}
	d.entry(0, func(batch *fsm.Batch) { batch.Commit(a, 81, 81) })
	if err := d.entry(0, func(batch *fsm.Batch) { batch.Commit(b, n, 1) })[0].Err; !errors.Is(err, fsm.ErrTooMany) {
		t.Errorf("the refused command again, now below the limit: %v", err)
	}
	if err := d.entry(0, func(batch *fsm.Batch) { batch.Commit(b, 81, 30) })[0].Err; err != nil {
		t.Errorf("another command, now below the limit: %v", err)
	}
}

// TestLargeResultsCountForMore: large results use up the limits faster.
func TestLargeResultsCountForMore(t *testing.T) {
	d := fsm.Definition[int, int, string]{
		Update: func(n, _ *int) (string, error) { return strings.Repeat("x", *n), nil },
		StateCodec: fsm.Codec[int]{
			Append:  func(b []byte, _ *int) ([]byte, error) { return b, nil },
			Consume: func([]byte, *int) error { return nil },
		},
		UpdateCodec: fsm.Codec[int]{
			Append:  func(b []byte, n *int) ([]byte, error) { return binary.AppendVarint(b, int64(*n)), nil },
			Consume: func(b []byte, n *int) error { v, _ := binary.Varint(b); *n = int(v); return nil },
		},
		ResultCodec: stringCodec,
	}
	r := fsm.NewReplicated(d, fsm.Options{})
	var b fsm.Batch
	b.OpenNode(1, 1)
	size := binary.AppendVarint(nil, 64<<10)
	for i := range uint64(2000) {
		b.Update(1<<20, i+1, 1, size)
	}
	kept, refused := 0, 0
	if err := r.Apply(1, 1, b.Bytes(), func(_, sequence uint64, a fsm.Applied) {
		if kept += len(a.Data); errors.Is(a.Err, fsm.ErrTooMany) {
			refused++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if kept > 65<<20 || refused < 900 || refused == 2000 {
		t.Errorf("%d bytes were kept, %d commands refused", kept, refused)
	}
}

// TestOlderVersionsAreWritten: entries can be written in an older version, for groups
// whose members know no newer one.
func TestOlderVersionsAreWritten(t *testing.T) {
	for version := byte(1); version <= 3; version++ {
		b := fsm.Batch{Version: version}
		b.Reset(5)
		b.Open("ann", 7)
		b.OpenNode(3, 9)
		b.Update(2<<20, 1, 1, []byte{0, 2, 0, 0, 0})
		b.Reset(5)
		b.Open("ann", 7)
		b.OpenNode(3, 9)
		b.Update(1<<20, 1, 1, []byte{0, 2, 0, 0, 0})
		entry := bytes.Clone(b.Bytes())
		if entry[0] != version {
			t.Errorf("version %d was written", entry[0])
		}
		r := newTape()
		var list []fsm.Applied
		if err := r.Apply(1, 1, entry, func(_, _ uint64, a fsm.Applied) { list = append(list, a) }); err != nil {
			t.Fatal(err)
		}
		if list[0].Client != 1<<20 || list[1].Client != 1<<20|1 || list[2].Err != nil || r.Sessions() != 2 {
			t.Errorf("version %d: %+v", version, list)
		}
	}
}
