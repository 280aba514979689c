// Package kills has processors in their own processes. They record their work in a ledger,
// and sometimes fail.
package kills

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/topo"
)

// LedgerVariable is the environment variable with the file to which all processes append.
const LedgerVariable = "KILLS_LEDGER"

// Spins is the number of rounds of a job in the cycle.
const Spins = 3

type Job struct{ ID int }

type Spin struct {
	ID, Hops int
	Load     []byte
}

func (s Spin) Clone() Spin { return s }

type (
	Question struct{ ID int }
	Verdict  struct{ ID int }
	Note     struct{ ID int }
	Result   struct{ ID int }
	Sample   struct{ ID int }
	Query    struct{ ID int }
	Answer   struct{ ID, Process int }
	Extra    struct{ Process, N int }
	Beat     struct{ Process, N int }
)

// ledger is the file of a process, with a line for each action that it begins.
type ledger struct{ file *os.File }

// lineBytes is the length of a line. It divides the length of a page, because the kernel may
// end the write of a killed process between two pages, and other processes may see part of it.
const lineBytes = 64

func open(in topo.Instance) (*ledger, error) {
	file, err := os.OpenFile(os.Getenv(LedgerVariable), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	l := &ledger{file}
	return l, l.write("start "+in.Processor, in.Index)
}

func (l *ledger) write(what string, id int) error {
	_, err := fmt.Fprintf(l.file, "%-*s\n", lineBytes-1, fmt.Sprint(os.Getpid(), " ", what, " ", id))
	return err
}

// once reports whether it is the first call with these arguments, in all processes: faults
// happen only at the first attempt.
func once(what string, id int) bool {
	file, err := os.OpenFile(fmt.Sprintf("%s.%s.%d", os.Getenv(LedgerVariable), what, id), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

// misbehave causes a fault at some messages.
func (l *ledger) misbehave(id int) {
	switch {
	case id%100 == 20 && once("exit", id):
		l.write("exit", id)
		os.Exit(3)
	case id%100 == 40 && once("panic", id):
		l.write("panic", id)
		panic("a fault")
	case id%100 == 60 && once("crash", id):
		l.write("crash", id)
		go panic("elsewhere")
		select {}
	case id%300 == 280 && once("hang", id):
		l.write("hang", id)
		select {}
	}
}

// Feed sends jobs until Enough.
type Feed struct {
	Enough atomic.Bool
	Sent   int
	Done   chan struct{}
}

func NewFeed() *Feed { return &Feed{Done: make(chan struct{})} }

func (f *Feed) Serve(ctx context.Context, out *FeedSender) error {
	defer close(f.Done)
	for !f.Enough.Load() {
		if err := out.SendJob(Job{f.Sent}); err != nil {
			return err
		}
		f.Sent++
	}
	return nil
}

type Stage struct{ *ledger }

func NewStage(in topo.Instance) (*Stage, error) {
	l, err := open(in)
	return &Stage{l}, err
}

func (s *Stage) ReceiveJob(m Job, out *StageSender) error {
	if err := s.write("job", m.ID); err != nil {
		return err
	}
	out.SendNote(Note(m))
	spin := Spin{ID: m.ID}
	if m.ID%50 == 0 { // more than a socket buffers
		spin.Load = make([]byte, 300<<10)
	}
	out.SendSpin(spin)
	out.SendSample(Sample(m))
	s.misbehave(m.ID)
	return nil
}

func (s *Stage) ReceiveSpin(m Spin, out *StageSender) error {
	if err := s.write(fmt.Sprint("spin", m.Hops), m.ID); err != nil {
		return err
	}
	out.SendSample(Sample{m.ID})
	if m.Hops < Spins {
		out.SendSpin(m)
	} else {
		out.SendQuestion(Question{m.ID})
	}
	return nil
}

func (s *Stage) ReceiveVerdict(m Verdict, out *StageSender) error {
	if err := s.write("verdict", m.ID); err != nil {
		return err
	}
	out.SendSample(Sample(m))
	out.SendResult(Result(m))
	return nil
}

func (s *Stage) ReceiveExtra(m Extra, out *StageSender) { out.SendExtra(m) }
func (s *Stage) ReceiveBeat(m Beat, out *StageSender)   { out.SendBeat(m) }
func (s *Stage) ReceiveQuery(m Query) (Answer, error) {
	return Answer{m.ID, os.Getpid()}, s.write("query", m.ID)
}
func (s *Stage) ReceiveTick(topo.Tick, *StageSender) error { return s.write("tick", 0) }

type Turner struct{ *ledger }

func NewTurner(in topo.Instance) (*Turner, error) {
	l, err := open(in)
	return &Turner{l}, err
}

func (t *Turner) ReceiveSpin(m Spin, out *TurnerSender) error {
	m.Hops++
	if err := t.write(fmt.Sprint("turn", m.Hops), m.ID); err != nil {
		return err
	}
	out.SendSpin(m)
	return nil
}

type Oracle struct{ *ledger }

func NewOracle(in topo.Instance) (*Oracle, error) {
	l, err := open(in)
	return &Oracle{l}, err
}

func (o *Oracle) ReceiveQuestion(m Question) (Verdict, error) {
	return Verdict(m), o.write("question", m.ID)
}

// Source sends numbers from Serve, beginning with 1 after each start.
type Source struct{ *ledger }

func NewSource(in topo.Instance) (*Source, error) {
	l, err := open(in)
	return &Source{l}, err
}

func (s *Source) Serve(ctx context.Context, out *SourceSender) error {
	for n := 1; ctx.Err() == nil; n++ {
		if err := s.write("extra", n); err != nil {
			return err
		}
		if err := out.SendExtra(Extra{os.Getpid(), n}); err != nil {
			return err
		}
		if err := s.write("taken", n); err != nil {
			return err
		}
	}
	return nil
}

// Pinger does the same in Ping.
type Pinger struct {
	*ledger
	n int
}

func NewPinger(in topo.Instance) (*Pinger, error) {
	l, err := open(in)
	return &Pinger{l, 0}, err
}

func (p *Pinger) Ping(out *PingerSender) error {
	p.n++
	if err := p.write("beat", p.n); err != nil {
		return err
	}
	out.SendBeat(Beat{os.Getpid(), p.n})
	return nil
}

// Collector counts the messages that it receives.
type Collector struct {
	Notes, Results map[int]int
	Early          []int // results that arrived before their note
	Samples        int
	Extras         map[Extra]int
	Beats          map[Beat]int
}

func NewCollector() *Collector {
	return &Collector{Notes: make(map[int]int), Results: make(map[int]int), Extras: make(map[Extra]int), Beats: make(map[Beat]int)}
}

func (c *Collector) ReceiveNote(m Note) { c.Notes[m.ID]++ }
func (c *Collector) ReceiveResult(m Result) {
	if c.Notes[m.ID] == 0 {
		c.Early = append(c.Early, m.ID)
	}
	c.Results[m.ID]++
}
func (c *Collector) ReceiveSample(Sample) { c.Samples++ }
func (c *Collector) ReceiveExtra(m Extra) { c.Extras[m]++ }
func (c *Collector) ReceiveBeat(m Beat)   { c.Beats[m]++ }

// Morgue counts the jobs that became dead letters.
type Morgue struct {
	Jobs   map[int]int
	Others []topo.DeadLetter
}

func NewMorgue() *Morgue { return &Morgue{Jobs: make(map[int]int)} }

func (m *Morgue) ReceiveDeadLetter(d topo.DeadLetter) {
	if spin, ok := DeadLetterStageTurnerSpin(d); ok {
		m.Jobs[spin.ID]++
		return
	}
	m.Others = append(m.Others, d)
}
