package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// The kinds of guards and changes in an encoded command. They must not change.
const (
	guardPlan  = 1
	guardEpoch = 2
	guardBoot  = 3
	guardState = 4
	guardLease = 5
	guardProcs = 6

	changeDefine   = 1
	changeJoin     = 2
	changeSetState = 3
	changeForget   = 4
	changeAssign   = 5
	changeDescribe = 6 // a Define with a description
	changeAgree    = 7
)

// reader reads an encoded value. After the first error it returns zero values.
type reader struct{ fields.Reader }

func newReader(b []byte) *reader { return &reader{fields.Reader{B: b, Damaged: ErrDamaged}} }

func (r *reader) duration() time.Duration {
	n := r.Uint()
	if n > math.MaxInt64 {
		r.Fail("a duration has %d nanoseconds", n)
	}
	return time.Duration(n)
}

func appendInt(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// AppendCommand appends an encoded command to b. Numbers below zero, and commands that
// exceed a limit or that ReadCommand refuses, are errors.
func AppendCommand(b []byte, c *Command) ([]byte, error) {
	if err := c.Check(); err != nil {
		return b, err
	}
	begin := len(b)
	b = append(b, byte(c.Kind))
	switch c.Kind {
	case CommandTxn:
		b = appendInt(b, len(c.Guards))
		for i, g := range c.Guards {
			if b = appendGuard(b, g); b == nil {
				return nil, fmt.Errorf("%w: guard %d is a %T", ErrInvalid, i, g)
			}
		}
		b = appendInt(b, len(c.Changes))
		for i, change := range c.Changes {
			if b = appendChange(b, change); b == nil {
				return nil, fmt.Errorf("%w: change %d is a %T, or has a number below 0", ErrInvalid, i, change)
			}
		}
	case CommandAcquire:
		b = fields.AppendText(fields.AppendText(b, c.Name), c.Holder)
		b = binary.AppendUvarint(b, uint64(c.TTL))
	case CommandRelease:
		b = binary.AppendUvarint(fields.AppendText(b, c.Name), c.Token)
	case CommandRenew:
		b = appendInt(b, len(c.Renewals))
		for _, w := range c.Renewals {
			b = binary.AppendUvarint(binary.AppendUvarint(fields.AppendText(b, w.Name), w.Token), uint64(w.Asked))
		}
	default:
		return nil, fmt.Errorf("%w: %d is not a kind of command", ErrInvalid, c.Kind)
	}
	if n := len(b) - begin; n > CommandBytes {
		return nil, fmt.Errorf("%w: a transaction has at most %d bytes, got %d; split it", ErrLimit, CommandBytes, n)
	}
	if _, err := ReadCommand(b[begin:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return b, nil
}

// appendGuard returns nil for an unknown guard.
func appendGuard(b []byte, g Guard) []byte {
	switch g := g.(type) {
	case PlanIs:
		return fields.AppendText(append(b, guardPlan), g.Plan)
	case EpochIs:
		if g.Instance < 0 {
			return nil
		}
		b = appendInt(fields.AppendText(append(b, guardEpoch), g.Processor), g.Instance)
		return binary.AppendUvarint(b, g.Epoch)
	case BootIs:
		return binary.AppendUvarint(fields.AppendText(append(b, guardBoot), g.Name), uint64(g.Boot))
	case StateIs:
		return append(fields.AppendText(append(b, guardState), g.Name), byte(g.State))
	case LeaseIs:
		return binary.AppendUvarint(fields.AppendText(append(b, guardLease), g.Name), g.Token)
	case ProcessesAre:
		return binary.AppendUvarint(append(b, guardProcs), g.Hash)
	}
	return nil
}

func (r *reader) guard() Guard {
	switch kind := r.Byte(); kind {
	case guardPlan:
		return PlanIs{r.Text(PlanBytesMax)}
	case guardEpoch:
		return EpochIs{r.Text(NameBytesMax), r.Number(ContainersMax), r.Uint()}
	case guardBoot:
		return BootIs{r.Text(NameBytesMax), Boot(r.Uint())}
	case guardState:
		return StateIs{r.Text(NameBytesMax), NodeState(r.Byte())}
	case guardLease:
		return LeaseIs{r.Text(NameBytesMax), r.Uint()}
	case guardProcs:
		return ProcessesAre{r.Uint()}
	default:
		r.Fail("%d is not a kind of guard", kind)
		return nil
	}
}

// description reads a description that is not empty: an empty one is not written.
func (r *reader) description() string {
	s := r.Text(DescriptionBytesMax)
	if s == "" {
		r.Fail("a description is empty")
	}
	return s
}

// appendChange returns nil for a change that cannot be encoded.
func appendChange(b []byte, change Change) []byte {
	switch c := change.(type) {
	case Define:
		if c.Description == "" {
			b = fields.AppendText(append(b, changeDefine), c.Plan)
		} else {
			b = fields.AppendText(fields.AppendText(append(b, changeDescribe), c.Plan), c.Description)
		}
		b = appendInt(b, len(c.Processors))
		for _, p := range c.Processors {
			if p.Instances < 0 {
				return nil
			}
			b = appendInt(fields.AppendText(b, p.Name), p.Instances)
		}
		return b
	case Join:
		return appendNode(append(b, changeJoin), &c.Node)
	case SetState:
		b = binary.AppendUvarint(fields.AppendText(append(b, changeSetState), c.Name), uint64(c.Boot))
		return append(b, byte(c.State))
	case Forget:
		return fields.AppendText(append(b, changeForget), c.Name)
	case Assign:
		if c.First < 0 || c.Count < 0 {
			return nil
		}
		b = appendInt(appendInt(fields.AppendText(append(b, changeAssign), c.Processor), c.First), c.Count)
		return fields.AppendText(b, c.Node)
	case Agree:
		b = appendInt(append(b, changeAgree), len(c.Groups))
		for _, g := range c.Groups {
			if g.Group < 0 {
				return nil
			}
			b = append(appendInt(b, g.Group), g.Phase)
		}
		return b
	}
	return nil
}

func (r *reader) change() Change {
	switch kind := r.Byte(); kind {
	case changeDefine, changeDescribe:
		c := Define{Plan: r.Text(PlanBytesMax)}
		if kind == changeDescribe {
			c.Description = r.description()
		}
		if n := r.Count(ProcessorsMax); n > 0 {
			c.Processors = make([]Processor, n)
		}
		for i := range c.Processors {
			c.Processors[i] = Processor{r.Text(NameBytesMax), r.Number(ContainersMax)}
		}
		return c
	case changeJoin:
		return Join{r.node()}
	case changeSetState:
		return SetState{r.Text(NameBytesMax), Boot(r.Uint()), NodeState(r.Byte())}
	case changeForget:
		return Forget{r.Text(NameBytesMax)}
	case changeAssign:
		return Assign{r.Text(NameBytesMax), r.Number(ContainersMax), r.Number(ContainersMax), r.Text(NameBytesMax)}
	case changeAgree:
		c := Agree{}
		for range r.Count(ProcessorsMax) {
			c.Groups = append(c.Groups, GroupPhase{r.Number(ProcessorsMax - 1), r.Byte()})
		}
		return c
	default:
		r.Fail("%d is not a kind of change", kind)
		return nil
	}
}

func appendNode(b []byte, n *Node) []byte {
	b = appendInt(fields.AppendText(fields.AppendText(b, n.Name), n.Address), len(n.Roles))
	for _, role := range n.Roles {
		b = fields.AppendText(b, role)
	}
	b = fields.AppendText(binary.AppendUvarint(b, uint64(n.Boot)), n.Plan)
	return append(b, byte(n.State))
}

func (r *reader) node() (n Node) {
	n.Name, n.Address = r.Text(NameBytesMax), r.Text(NameBytesMax)
	if roles := r.Count(RolesMax); roles > 0 {
		n.Roles = make([]string, roles)
	}
	for i := range n.Roles {
		n.Roles[i] = r.Text(NameBytesMax)
	}
	n.Boot, n.Plan, n.State = Boot(r.Uint()), r.Text(PlanBytesMax), NodeState(r.Byte())
	return n
}

// ReadCommand decodes a command. b may come from a disk or from another node. The command
// keeps no reference to b.
func ReadCommand(b []byte) (*Command, error) {
	if len(b) > CommandBytes {
		return nil, fmt.Errorf("%w: a command has %d bytes", ErrDamaged, len(b))
	}
	r := newReader(b)
	c := &Command{Kind: CommandKind(r.Byte())}
	switch c.Kind {
	case CommandTxn:
		for range r.Count(ChangesMax) {
			c.Guards = append(c.Guards, r.guard())
		}
		for range r.Count(ChangesMax) {
			c.Changes = append(c.Changes, r.change())
		}
	case CommandAcquire:
		c.Name, c.Holder = r.Text(NameBytesMax), r.Text(NameBytesMax)
		c.TTL = r.duration()
	case CommandRelease:
		c.Name, c.Token = r.Text(NameBytesMax), r.Uint()
	case CommandRenew:
		for range r.Count(LeasesMax) {
			c.Renewals = append(c.Renewals, Renewal{r.Text(NameBytesMax), r.Uint(), r.duration()})
		}
	default:
		r.Fail("%d is not a kind of command", c.Kind)
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return c, nil
}

// AppendOutcome appends an encoded outcome to b.
func AppendOutcome(b []byte, o *Outcome) []byte {
	b = binary.AppendUvarint(append(b, o.Code), uint64(o.Position))
	b = binary.AppendUvarint(appendInt(b, o.Index), o.Number)
	return fields.AppendText(b, cut(o.Text))
}

// outcomeTextMax limits the text of an outcome, which the log keeps for a while: two names
// and a sentence.
const outcomeTextMax = 3 * NameBytesMax

func cut(s string) string { return s[:min(len(s), outcomeTextMax)] }

// ReadOutcome decodes an outcome.
func ReadOutcome(b []byte) (o Outcome, err error) {
	r := newReader(b)
	o.Code = r.Byte()
	o.Position = r.Uint32()
	o.Index, o.Number, o.Text = r.Number(ChangesMax), r.Uint(), r.Text(outcomeTextMax)
	return o, r.End()
}
