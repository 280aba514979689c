package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
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
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 { // each number has one encoding
		r.fail("a number is incomplete")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of things, each of which takes at least one byte.
func (r *reader) count(limit int) int {
	v := r.uint()
	if v > uint64(limit) || v > uint64(len(r.b)) {
		r.fail("a list has %d elements", v)
		return 0
	}
	return int(v)
}

// number reads a number up to a limit.
func (r *reader) number(limit int) int {
	v := r.uint()
	if v > uint64(limit) {
		r.fail("a number is %d, at most %d", v, limit)
		return 0
	}
	return int(v)
}

// uint32 reads a number that may overflow an int of 32 bits.
func (r *reader) uint32() uint32 {
	v := r.uint()
	if v > math.MaxUint32 {
		r.fail("a number is %d, at most %d", v, uint32(math.MaxUint32))
		return 0
	}
	return uint32(v)
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("a byte is missing")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) text(limit int) string {
	n := r.uint()
	if n > uint64(limit) || n > uint64(len(r.b)) {
		r.fail("a text has %d bytes", n)
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// end returns the error, also if bytes are left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes follow the end", len(r.b))
	}
	return r.err
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
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
		b = appendText(appendText(b, c.Name), c.Holder)
		b = binary.AppendUvarint(b, uint64(c.TTL))
	case CommandRenew, CommandRelease:
		b = binary.AppendUvarint(appendText(b, c.Name), c.Token)
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
		return appendText(append(b, guardPlan), g.Plan)
	case EpochIs:
		if g.Instance < 0 {
			return nil
		}
		b = appendInt(appendText(append(b, guardEpoch), g.Processor), g.Instance)
		return binary.AppendUvarint(b, g.Epoch)
	case BootIs:
		return binary.AppendUvarint(appendText(append(b, guardBoot), g.Name), uint64(g.Boot))
	case StateIs:
		return append(appendText(append(b, guardState), g.Name), byte(g.State))
	case LeaseIs:
		return binary.AppendUvarint(appendText(append(b, guardLease), g.Name), g.Token)
	case ProcessesAre:
		return binary.AppendUvarint(append(b, guardProcs), g.Hash)
	}
	return nil
}

func (r *reader) guard() Guard {
	switch kind := r.byte(); kind {
	case guardPlan:
		return PlanIs{r.text(PlanBytesMax)}
	case guardEpoch:
		return EpochIs{r.text(NameBytesMax), r.number(ContainersMax), r.uint()}
	case guardBoot:
		return BootIs{r.text(NameBytesMax), Boot(r.uint())}
	case guardState:
		return StateIs{r.text(NameBytesMax), NodeState(r.byte())}
	case guardLease:
		return LeaseIs{r.text(NameBytesMax), r.uint()}
	case guardProcs:
		return ProcessesAre{r.uint()}
	default:
		r.fail("%d is not a kind of guard", kind)
		return nil
	}
}

// description reads a description that is not empty: an empty one is not written.
func (r *reader) description() string {
	s := r.text(DescriptionBytesMax)
	if s == "" {
		r.fail("a description is empty")
	}
	return s
}

// appendChange returns nil for a change that cannot be encoded.
func appendChange(b []byte, change Change) []byte {
	switch c := change.(type) {
	case Define:
		if c.Description == "" {
			b = appendText(append(b, changeDefine), c.Plan)
		} else {
			b = appendText(appendText(append(b, changeDescribe), c.Plan), c.Description)
		}
		b = appendInt(b, len(c.Processors))
		for _, p := range c.Processors {
			if p.Instances < 0 {
				return nil
			}
			b = appendInt(appendText(b, p.Name), p.Instances)
		}
		return b
	case Join:
		return appendNode(append(b, changeJoin), &c.Node)
	case SetState:
		b = binary.AppendUvarint(appendText(append(b, changeSetState), c.Name), uint64(c.Boot))
		return append(b, byte(c.State))
	case Forget:
		return appendText(append(b, changeForget), c.Name)
	case Assign:
		if c.First < 0 || c.Count < 0 {
			return nil
		}
		b = appendInt(appendInt(appendText(append(b, changeAssign), c.Processor), c.First), c.Count)
		return appendText(b, c.Node)
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
	switch kind := r.byte(); kind {
	case changeDefine, changeDescribe:
		c := Define{Plan: r.text(PlanBytesMax)}
		if kind == changeDescribe {
			c.Description = r.description()
		}
		if n := r.count(ProcessorsMax); n > 0 {
			c.Processors = make([]Processor, n)
		}
		for i := range c.Processors {
			c.Processors[i] = Processor{r.text(NameBytesMax), r.number(ContainersMax)}
		}
		return c
	case changeJoin:
		return Join{r.node()}
	case changeSetState:
		return SetState{r.text(NameBytesMax), Boot(r.uint()), NodeState(r.byte())}
	case changeForget:
		return Forget{r.text(NameBytesMax)}
	case changeAssign:
		return Assign{r.text(NameBytesMax), r.number(ContainersMax), r.number(ContainersMax), r.text(NameBytesMax)}
	case changeAgree:
		c := Agree{}
		for range r.count(ProcessorsMax) {
			c.Groups = append(c.Groups, GroupPhase{r.number(ProcessorsMax - 1), r.byte()})
		}
		return c
	default:
		r.fail("%d is not a kind of change", kind)
		return nil
	}
}

func appendNode(b []byte, n *Node) []byte {
	b = appendInt(appendText(appendText(b, n.Name), n.Address), len(n.Roles))
	for _, role := range n.Roles {
		b = appendText(b, role)
	}
	b = appendText(binary.AppendUvarint(b, uint64(n.Boot)), n.Plan)
	return append(b, byte(n.State))
}

func (r *reader) node() (n Node) {
	n.Name, n.Address = r.text(NameBytesMax), r.text(NameBytesMax)
	if roles := r.count(RolesMax); roles > 0 {
		n.Roles = make([]string, roles)
	}
	for i := range n.Roles {
		n.Roles[i] = r.text(NameBytesMax)
	}
	n.Boot, n.Plan, n.State = Boot(r.uint()), r.text(PlanBytesMax), NodeState(r.byte())
	return n
}

// ReadCommand decodes a command. b may come from a disk or from another node. The command
// keeps no reference to b.
func ReadCommand(b []byte) (*Command, error) {
	if len(b) > CommandBytes {
		return nil, fmt.Errorf("%w: a command has %d bytes", ErrDamaged, len(b))
	}
	r := &reader{b: b}
	c := &Command{Kind: CommandKind(r.byte())}
	switch c.Kind {
	case CommandTxn:
		for range r.count(ChangesMax) {
			c.Guards = append(c.Guards, r.guard())
		}
		for range r.count(ChangesMax) {
			c.Changes = append(c.Changes, r.change())
		}
	case CommandAcquire:
		c.Name, c.Holder = r.text(NameBytesMax), r.text(NameBytesMax)
		c.TTL = time.Duration(min(r.uint(), math.MaxInt64))
	case CommandRenew, CommandRelease:
		c.Name, c.Token = r.text(NameBytesMax), r.uint()
	default:
		r.fail("%d is not a kind of command", c.Kind)
	}
	if err := r.end(); err != nil {
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
	return appendText(b, cut(o.Text))
}

// outcomeTextMax limits the text of an outcome, which the log keeps for a while: two names
// and a sentence.
const outcomeTextMax = 3 * NameBytesMax

func cut(s string) string { return s[:min(len(s), outcomeTextMax)] }

// ReadOutcome decodes an outcome.
func ReadOutcome(b []byte) (o Outcome, err error) {
	r := &reader{b: b}
	o.Code = r.byte()
	o.Position = r.uint32()
	o.Index, o.Number, o.Text = r.number(ChangesMax), r.uint(), r.text(outcomeTextMax)
	return o, r.end()
}
