// Package nameclash has names that generated code would use.
package nameclash

import (
	gocontext "context"

	"github.com/topogen/topogen/runtime/topo"
)

// Declared at package level, like imports and helpers of the generated files.
var (
	pool           = 1
	route          = 2
	strconv        = 3
	parserInstance = 4
	joiner         = 5
	processorNames = pool + route + strconv + parserInstance
	toInstance     = joiner + processorNames + supervise + slices + errors + time + callState + listen + letter
	supervise      = 0
	slices         = 0
	errors         = 0
	time           = 0
	callState      = 0
	listen         = 0
	letter         = 0
)

type (
	m       struct{ N int }
	l       struct{ N int }
	x       struct{}
	Link    struct{ Link string }
	Gate    struct{}
	To      struct{}
	Sender  struct{}
	Out     struct{}
	Context struct{ List []int }
	Err     struct{}

	LinkDelivery struct{}
	HandleLink   struct{}
	First        struct{}
)

func (c *Context) Clone() Context { return *c }

type Door struct{ done bool }

func (d *Door) Ping(out *PoolSender) error {
	if d.done {
		return topo.Done
	}
	d.done = true
	if err := out.SendGate(Gate{}); err != nil {
		return err
	}
	return out.SendLink(Link{"a"})
}

type Queue struct{}

func (*Queue) ReceiveLink(m Link, out *QueueSender) error {
	out.SendLink(m)
	return out.SendSmall(struct{ N int }{toInstance})
}

type (
	Joiner   struct{}
	Recorder struct{}
	StringEr struct{ In topo.Instance }
	MakePool struct{ N int }
	X        struct{ N int }
)

func s(in topo.Instance) (StringEr, error) { return StringEr{in}, nil }

func (c *x) ReceiveSmall(m *m, out *TSender) error {
	out.SendType(l(*m))
	out.SendFunc(c)
	out.SendTo(To{})
	out.SendLink(Link{})
	out.SendLinkDelivery(LinkDelivery{})
	out.SendHandleLink(HandleLink{})
	out.SendFirst(First{})
	return nil
}

func (r *X) ReceiveType(m l)        { r.N++ }
func (r *X) ReceiveFunc(m *x) error { r.N++; return nil }
func (r *X) ReceiveTo(*To)          { r.N++ }
func (r *X) ReceiveLink(Link)       { r.N++ }

func (r *X) ReceiveLinkDelivery(LinkDelivery) { r.N++ }
func (r *X) ReceiveHandleLink(*HandleLink)    { r.N++ }
func (r *X) ReceiveFirst(First) error         { r.N++; return nil }
func (r *X) ReceiveTick(topo.Tick)            {}
func (r *X) Inputs(x *XInputs)                {}
func (r *X) InputClosed(x XInput) error       { return nil }

func (r *X) ProcessorRestarted(x ProcessorIndex)       {}
func (r *X) AllInputsClosed(context gocontext.Context) {}
func (*Joiner) ReceiveLink(_ Link, out *JoinerSender) {
	out.SendSender(Sender{})
	out.SendOut(Out{})
	out.SendFirst(First{})
}

type OutP struct{}

type LinkP struct{ N int }

func (p *LinkP) ReceiveSender(*Sender) { p.N++ }
func (p *LinkP) ReceiveOut(Out)        { p.N++ }
func (p *LinkP) ReceiveFirst(*First)   { p.N++ }

func (*OutP) ReceiveLink(_ Link, out *OutSender)            { out.SendSender(Sender{}) }
func (*Recorder) ReceiveLink(_ *Link, out *RecorderSender)  { out.SendContext(Context{}) }
func (p *MakePool) ReceiveSender(Sender)                    { p.N++ }
func (p *StringEr) ReceiveContext(Context)                  {}
func (*ContextP) ReceiveGate(gocontext.Context, Gate) error { return nil }

type ContextP struct{}

type ToP struct{}

func (*ToP) ReceiveSmall(m m, out *ToSender) (l, error) {
	out.SendErr(Err{})
	return l(m), nil
}
func (*ToP) ReceiveSender(*Sender) l { return l{} }
func (*ToP) ReceiveType(l) error     { return nil }

type ErrP struct{ N int }

func (e *ErrP) ReceiveErr(m Err) (l, error) { e.N++; return l{}, nil }
func (e *ErrP) ReceiveTick(t topo.Tick)     {}

func (e *ErrP) ReceiveDeadLetter(topo.DeadLetter) {}
