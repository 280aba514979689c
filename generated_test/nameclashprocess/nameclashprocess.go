// Package nameclashprocess has names that generated code for isolated processors would
// use.
package nameclashprocess

import (
	gotime "time"

	"github.com/topogen/topogen/runtime/topo"
)

// Declared at package level, like imports and helpers of the generated files.
var (
	newProcess     = 1
	outsideLink    = newProcess
	processProcess = outsideLink
	processRemote  = processProcess
	appendEdge     = processRemote
	consumeEdge    = appendEdge
	supervise      = consumeEdge
	protowire      = supervise
	time           = protowire
	Used           = time
)

type (
	edge     struct{ Kind string }
	kind     struct{ Kind string }
	payload  struct{ b, m, r []*payload }
	put      struct{ err map[string]kind }
	instance struct{ x, n, i int }
	send     string
	process  struct{ Kind int }
	c        *instance
	send2    struct{ time gotime.Time }
)

type wire[T any] struct{ Kind T }

type (
	Kind          struct{ Edge int }
	Info          struct{ topo.Tick }
	Tick          struct{ At gotime.Duration }
	DeadLetter    struct{ Nil, End, Next, Read, Failed [2]bool }
	Reader        struct{ b *wire[wire[process]] }
	Remote        []map[string][]send
	Err           struct{ string string }
	Nested        struct{ Nested *Nested }
	AnswerBuilder map[send2]complex64
)

func (Reader) Sum() uint8 { return 0 }

type ProcessP struct{}

func (p *ProcessP) ReceiveEdge(m edge, out *ProcessSender) (kind, error) {
	out.SendPayload(payload{m: []*payload{nil, {}}})
	out.SendPut(&put{err: map[string]kind{m.Kind: kind(m)}})
	out.SendInstance(instance{n: 3})
	out.SendInfo(Info{})
	return kind(m), nil
}
func (*ProcessP) ReceiveKind(*Kind) payload             { return payload{} }
func (*ProcessP) ReceiveTick(topo.Tick, *ProcessSender) {}

type RemoteP struct{}

func (RemoteP) ReceivePayload(payload) {}
func (RemoteP) ReceivePut(*put) error  { return nil }

type OutsideP struct{ got int }

func (o *OutsideP) ReceiveInstance(i instance, out *OutsideSender) {
	out.SendSend("a")
	out.SendTick(Tick{At: gotime.Duration(i.n)})
	o.got += i.n
}
func (*OutsideP) ReceiveInfo(Info) {}

type ProcessRemote struct{}

func (*ProcessRemote) ReceiveSend(_ send, out *ProcessRemoteSender) {
	out.SendWire(wire[process]{})
	out.SendDeadLetter(DeadLetter{Nil: [2]bool{false, true}})
}
func (*ProcessRemote) ReceiveTickFromOutside(m *Tick, out *ProcessRemoteSender) {
	out.SendNil(&instance{i: int(m.At)})
	out.SendNil(nil)
}

type b struct{}

func (*b) ReceiveWire(m *wire[process], out *ProcessProcessSender) { out.SendWire(*m) }
func (*b) ReceiveDeadLetter(m DeadLetter, out *ProcessProcessSender) {
	out.SendReader(Reader{&wire[wire[process]]{}})
}
func (*b) ReceiveNil(c) {}

type x struct{}

func (x) ReceiveWire(wire[process]) {}
func (x) ReceiveReader(_ Reader, out *ProcessOutsideSender) {
	out.SendRemote(Remote{nil, {"a": {"b"}}})
}

type Deep struct{}

func (Deep) ReceiveRemote(m Remote, out *ProcessToOutsideSender) {
	if len(m) == 2 && m[0] == nil && m[1]["a"][0] == "b" {
		out.SendErr(Err{"right"})
		out.SendNested(Nested{&Nested{}})
	}
}
func (Deep) ReceiveAnswerBuilder(AnswerBuilder) {}

type InfoP struct{ got []string }

func (i *InfoP) ReceiveErr(m Err) { i.got = append(i.got, m.string) }
func (i *InfoP) ReceiveNested(m Nested) AnswerBuilder {
	if m.Nested != nil {
		i.got = append(i.got, "nested")
	}
	return AnswerBuilder{send2{}: 1i}
}

type (
	Buffer struct{ Buffer []byte }
	Flush  struct{ flush [3]byte }
)

func (*OutsideP) ReceiveBuffer(Buffer) {}
func (*OutsideP) ReceiveFlush(Flush)   {}
