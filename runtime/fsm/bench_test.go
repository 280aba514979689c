package fsm_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// bank is a state of plain numbers, and transfer is an update of it.
type (
	bank     struct{ cents []int64 }
	transfer struct {
		from, to uint32
		cents    int64
	}
)

var errNoMoney = errors.New("not enough money")

func (t *transfer) Update(b *bank) error {
	if b.cents == nil {
		b.cents = make([]int64, accounts)
		for i := range b.cents {
			b.cents[i] = 1 << 30
		}
	}
	if int(max(t.from, t.to)) >= len(b.cents) || b.cents[t.from] < t.cents {
		return errNoMoney
	}
	b.cents[t.from] -= t.cents
	b.cents[t.to] += t.cents
	return nil
}

func (t *transfer) Revert(b *bank) error {
	b.cents[t.from] += t.cents
	b.cents[t.to] -= t.cents
	return nil
}

const accounts = 1000

var errShort = errors.New("wrong length")

var transferCodec = fsm.Codec[transfer]{
	Append: func(b []byte, t *transfer) ([]byte, error) {
		b = binary.LittleEndian.AppendUint32(b, t.from)
		b = binary.LittleEndian.AppendUint32(b, t.to)
		return binary.LittleEndian.AppendUint64(b, uint64(t.cents)), nil
	},
	Consume: func(b []byte, t *transfer) error {
		if len(b) != 16 {
			return errShort
		}
		t.from, t.to = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		t.cents = int64(binary.LittleEndian.Uint64(b[8:]))
		return nil
	},
}

var bankCodec = fsm.Codec[bank]{
	Append: func(b []byte, s *bank) ([]byte, error) {
		for _, v := range s.cents {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		return b, nil
	},
	Consume: func(b []byte, s *bank) error {
		if len(b)%8 != 0 {
			return errShort
		}
		for ; len(b) > 0; b = b[8:] {
			s.cents = append(s.cents, int64(binary.LittleEndian.Uint64(b)))
		}
		return nil
	},
}

var bankDefinition = fsm.Definition[bank, transfer, struct{}]{
	Update: fsm.NoResult((*transfer).Update), Revert: (*transfer).Revert,
	StateCodec: bankCodec, UpdateCodec: transferCodec,
	Errors: []fsm.Sentinel{{Name: "errNoMoney", Err: errNoMoney}},
}

// updates returns entries of n updates each, by clients in turn.
type updates struct {
	r       *fsm.Replicated[bank, transfer, struct{}]
	batch   fsm.Batch
	clients []uint64
	n       int
	index   uint64
	seq     uint64
	encoded []byte
}

func newUpdates(clients, n int) *updates {
	u := &updates{r: fsm.NewReplicated(bankDefinition, fsm.Options{}), n: n, index: 1}
	for i := range clients {
		u.batch.Open(fmt.Sprint("client ", i), 0)
	}
	if err := u.r.Apply(1, 1, u.batch.Bytes(), func(_, _ uint64, a fsm.Applied) { u.clients = append(u.clients, a.Client) }); err != nil {
		panic(err)
	}
	return u
}

func (u *updates) entry(cents int64) []byte {
	u.batch.Reset(int64(u.index))
	floor := max(u.seq, 100) - 99 // the floor when the proposer makes the entry
	for i := range u.n {
		if i%len(u.clients) == 0 {
			u.seq++
		}
		u.encoded, _ = transferCodec.Append(u.encoded[:0], &transfer{from: uint32(i) % accounts, to: uint32(i+1) % accounts, cents: cents})
		u.batch.Update(u.clients[i%len(u.clients)], u.seq, floor, u.encoded)
	}
	return append([]byte(nil), u.batch.Bytes()...)
}

func (u *updates) apply(tb testing.TB, entry []byte) {
	u.index++
	if err := u.r.Apply(u.index, 1, entry, func(uint64, uint64, fsm.Applied) {}); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkApply applies updates in entries of 1000. ns/op is for one update.
func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name    string
		clients int
		cents   int64
	}{
		{"1 client", 1, 1},
		{"1000 clients", 1000, 1},
		{"rejected", 1, 1 << 40},
	} {
		b.Run(c.name, func(b *testing.B) {
			u := newUpdates(c.clients, 1000)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				b.StopTimer()
				entries := make([][]byte, min(1000, (b.N-done+999)/1000))
				for i := range entries {
					entries[i] = u.entry(c.cents)
				}
				b.StartTimer()
				for _, e := range entries {
					u.apply(b, e)
				}
				done += 1000 * len(entries)
			}
		})
	}
}

// BenchmarkBatch builds an entry of 1000 updates. ns/op is for one update.
func BenchmarkBatch(b *testing.B) {
	var batch fsm.Batch
	encoded, _ := transferCodec.Append(nil, &transfer{1, 2, 3})
	b.ReportAllocs()
	for i := range b.N {
		if i%1000 == 0 {
			batch.Reset(int64(i))
		}
		batch.Update(1<<40, uint64(i+1), uint64(max(i/1000*1000, 1)), encoded)
	}
}

// BenchmarkMachine applies updates in memory, with a commit after every thousand.
func BenchmarkMachine(b *testing.B) {
	m := fsm.NewMachine(bankDefinition)
	some := make([]transfer, 1000)
	for i := range some {
		some[i] = transfer{uint32(i), uint32(i+1) % accounts, 1}
	}
	b.ReportAllocs()
	for done := 0; done < b.N; done += len(some) {
		m.Add(some...)
		m.Commit()
		if _, err := m.Apply(len(some)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPropose makes proposals to a processor in memory, from outside the pool.
func BenchmarkPropose(b *testing.B) {
	p := fsm.NewProcessor(bankDefinition)
	if err := p.Start(b.Context(), newHost()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := p.Propose(b.Context(), transfer{1, 2, 0}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
