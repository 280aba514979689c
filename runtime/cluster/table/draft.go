package table

import (
	"cmp"
	"slices"
)

// draft is the result of a transaction's changes while they are checked. The state does
// not change before commit.
type draft struct {
	state     *State
	before    *layout
	plan      string
	define    *Define
	instances map[string]int   // instances by processor, if define is not nil
	nodes     map[string]*Node // changed nodes; a forgotten one has the state Forgotten
	emptied   map[string]error // nodes that must have no containers afterwards
	assigns   []Assign
	agree     *Agree
}

// add checks the change with an index, and adds it.
func (d *draft) add(i int, change Change) *refusal {
	switch c := change.(type) {
	case Define:
		if i > 0 {
			return refuse(codeInvalid, "Define must be the first change, got it as change %d", i)
		}
		return d.addDefine(&c)
	case Join:
		return d.addJoin(&c.Node)
	case SetState:
		return d.addState(&c)
	case Forget:
		return d.addForget(c.Name)
	case Assign:
		d.assigns = append(d.assigns, c)
		return nil
	case Agree:
		return d.addAgree(&c)
	}
	return refuse(codeInvalid, "change %d has an unknown kind", i)
}

func (d *draft) addAgree(c *Agree) *refusal {
	for _, g := range c.Groups {
		if g.Group < 0 || g.Group >= ProcessorsMax || g.Phase == 0 {
			return refuse(codeInvalid, "a group must have a number from 0 to %d and a phase above 0, got group %d and phase %d", ProcessorsMax-1, g.Group, g.Phase)
		}
	}
	if d.agree != nil {
		c = &Agree{append(d.agree.Groups, c.Groups...)}
	}
	d.agree = c
	return nil
}

func (d *draft) addDefine(c *Define) *refusal {
	if c.Plan == "" || len(c.Plan) > PlanBytesMax {
		return refuse(codeInvalid, "a plan must have 1 to %d bytes, got %d", PlanBytesMax, len(c.Plan))
	}
	if len(c.Description) > DescriptionBytesMax {
		return refuse(codeLimit, "the description of a plan must have at most %d bytes, got %d", DescriptionBytesMax, len(c.Description))
	}
	if len(c.Processors) > ProcessorsMax {
		return refuse(codeLimit, "a table has at most %d processors, got %d", ProcessorsMax, len(c.Processors))
	}
	all := 0
	d.instances = make(map[string]int, len(c.Processors))
	for _, p := range c.Processors {
		if err := checkName("processor", p.Name); err != nil {
			return refuse(codeInvalid, "%v", err)
		}
		if _, twice := d.instances[p.Name]; twice || p.Instances < 0 || p.Instances > ContainersMax {
			return refuse(codeInvalid, "each processor must be defined once with 0 to %d instances, got %q with %d", ContainersMax, p.Name, p.Instances)
		}
		d.instances[p.Name] = p.Instances
		all += p.Instances
	}
	if all > ContainersMax {
		return refuse(codeLimit, "a table has at most %d containers, got %d", ContainersMax, all)
	}
	d.define, d.plan = c, c.Plan
	return nil
}

// node returns a node as the changes so far leave it, or nil.
func (d *draft) node(name string) *Node {
	if n := d.nodes[name]; n != nil {
		if n.State == Forgotten {
			return nil
		}
		return n
	}
	return d.before.named(name)
}

func (d *draft) setNode(n *Node) {
	if d.nodes == nil {
		d.nodes = map[string]*Node{}
	}
	d.nodes[n.Name] = n
}

func (d *draft) addJoin(n *Node) *refusal {
	if err := n.check(); err != nil {
		return refuse(codeInvalid, "%v", err)
	}
	next, old := n.clone(), d.node(n.Name)
	next.State, next.Epoch = Joining, 0
	switch {
	case n.State != Joining:
		return refuse(codeInvalid, "node %q must join in the state joining, got %v", n.Name, n.State)
	case n.Boot == 0 && (old != nil || n.Plan != ""):
		return refuse(codeInvalid, "node %q has no boot id, but a plan, or is in the table already", n.Name)
	case n.Boot != 0 && d.plan == "":
		return refuse(codeInvalid, "the table has no plan yet, so node %q cannot join", n.Name)
	case n.Boot != 0 && n.Plan != d.plan:
		return refuse(codePlan, "node %q has the plan %q, but the cluster has the plan %q; start the same program on all nodes", n.Name, n.Plan, d.plan)
	case old != nil && old.Boot == n.Boot && n.Boot != 0:
		next.State, next.Epoch = old.State, old.Epoch // a repeated transaction
	}
	d.setNode(&next)
	return nil
}

func (d *draft) addState(c *SetState) *refusal {
	old := d.node(c.Name)
	switch {
	case old == nil:
		return refuse(codeInvalid, "node %q is not in the table", c.Name)
	case old.Boot != c.Boot:
		return refuse(codeSuperseded, "the process of node %q has the boot id %v, not %v", c.Name, old.Boot, c.Boot)
	case c.State == Joining || c.State > Left, old.State == Left && c.State != Left, c.State == Member && c.Boot == 0:
		return refuse(codeInvalid, "node %q cannot become %v: it is %v, with the boot id %v", c.Name, c.State, old.State, old.Boot)
	}
	next := *old
	next.State = c.State
	d.setNode(&next)
	if c.State == Left {
		d.mustBeEmpty(c.Name)
	}
	return nil
}

func (d *draft) addForget(name string) *refusal {
	old := d.node(name)
	if old == nil {
		return refuse(codeInvalid, "node %q is not in the table", name)
	}
	next := *old
	next.State = Forgotten
	d.setNode(&next)
	d.mustBeEmpty(name)
	return nil
}

func (d *draft) mustBeEmpty(name string) {
	if d.emptied == nil {
		d.emptied = map[string]error{}
	}
	d.emptied[name] = nil
}

// finish checks the assignments, and the conditions that depend on all changes.
func (d *draft) finish() *refusal {
	slices.SortStableFunc(d.assigns, func(a, b Assign) int {
		return cmp.Or(cmp.Compare(a.Processor, b.Processor), cmp.Compare(a.First, b.First))
	})
	for i, a := range d.assigns {
		instances, known := d.instancesOf(a.Processor)
		if !known || a.First < 0 || a.Count < 1 || a.First > instances-a.Count {
			return refuse(codeInvalid, "the instances %d to %d of processor %q are not in the table", a.First, a.First+a.Count-1, a.Processor)
		}
		if n := d.node(a.Node); n == nil || !n.State.places() {
			return refuse(codeInvalid, "node %q must be joining or a member to get containers of %q", a.Node, a.Processor)
		}
		if i > 0 && d.assigns[i-1].Processor == a.Processor && d.assigns[i-1].First+d.assigns[i-1].Count > a.First {
			return refuse(codeInvalid, "instance %d of processor %q is assigned twice", a.First, a.Processor)
		}
		if _, removed := d.emptied[a.Node]; removed {
			return refuse(codeInvalid, "node %q leaves the table and cannot get containers", a.Node)
		}
	}
	nodes := len(d.before.slots)
	for name, n := range d.nodes {
		switch had := d.before.slots[name] != 0; {
		case n.State == Forgotten && had:
			nodes--
		case n.State != Forgotten && !had:
			nodes++
		}
	}
	if nodes > NodesMax {
		return refuse(codeLimit, "a table has at most %d nodes", NodesMax)
	}
	return d.checkEmpty()
}

func (d *draft) instancesOf(processor string) (n int, known bool) {
	if d.define != nil {
		n, known = d.instances[processor]
		return n, known
	}
	at, known := d.before.byName[processor]
	if !known {
		return 0, false
	}
	return len(d.before.processors[at].places), true
}

// checkEmpty checks that the nodes that leave have no containers.
func (d *draft) checkEmpty() *refusal {
	if len(d.emptied) == 0 {
		return nil
	}
	moved := map[int]int{} // containers that leave a slot
	for _, a := range d.assigns {
		at, known := d.before.byName[a.Processor]
		if !known {
			continue
		}
		places := d.before.processors[at].places
		for i := a.First; i < min(a.First+a.Count, len(places)); i++ {
			slot, _ := unpackCell(places[i].Load())
			moved[slot]++
		}
	}
	if d.define != nil {
		for _, c := range d.before.processors {
			for i := min(d.instances[c.name], len(c.places)); i < len(c.places); i++ {
				slot, _ := unpackCell(c.places[i].Load())
				moved[slot]++
			}
		}
	}
	for name := range d.emptied {
		slot := d.before.slots[name]
		if slot != 0 && d.state.count(slot) > moved[slot] {
			return refuse(codeInUse, "node %q has %d containers; move them first", name, d.state.count(slot)-moved[slot])
		}
	}
	return nil
}

func (s *State) count(slot int) int {
	if slot >= len(s.counts) {
		return 0
	}
	return s.counts[slot]
}

// commit applies the changes, and describes them in e. Nodes are published before the
// cells that refer to them, and removed after the last cell that refers to them.
func (d *draft) commit(e *Event) {
	s := d.state
	l := d.before
	epoch := s.nextEpoch()
	kept, removed := map[string]*Node{}, map[string]*Node{}
	for name, n := range d.nodes {
		if n.Boot != 0 && n.Epoch == 0 {
			n.Epoch, s.epoch = epoch, epoch
		}
		e.Nodes = append(e.Nodes, *n)
		if n.State == Forgotten {
			removed[name] = n
		} else {
			kept[name] = n
		}
	}
	slices.SortFunc(e.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	if d.define != nil {
		e.Define = d.define
		l = s.define(l, d.define)
	}
	if len(kept) > 0 {
		l = l.withNodes(kept)
	}
	if d.agree != nil {
		if next := l.withAgreed(d.agree.Groups); next != l {
			l, e.End = next, next.end
		}
	}
	if l != d.before {
		s.layout.Store(l)
	}
	if n := len(l.nodes) + 1; n > len(s.counts) {
		s.counts = append(s.counts, make([]int, n-len(s.counts))...)
	}
	for _, a := range d.assigns {
		s.assign(l, a, epoch, e)
	}
	if len(removed) > 0 {
		s.layout.Store(l.withNodes(removed))
	}
}

// define returns a layout with other processors, and counts the removed containers out.
func (s *State) define(l *layout, c *Define) *layout {
	kept := make(map[string]int, len(c.Processors))
	for _, p := range c.Processors {
		kept[p.Name] = p.Instances
	}
	for _, p := range l.processors {
		for i := min(kept[p.name], len(p.places)); i < len(p.places); i++ {
			if slot, _ := unpackCell(p.places[i].Load()); slot != 0 {
				s.counts[slot]--
			}
		}
	}
	return l.withProcessors(c, s.epoch)
}

// assign moves the containers of one assignment. Consecutive containers with the same
// previous node and the same epoch are one move in the event.
func (s *State) assign(l *layout, a Assign, epoch uint64, e *Event) {
	s.epoch = epoch
	slot := l.slots[a.Node]
	places := l.processors[l.byName[a.Processor]].places
	last := ^uint64(0)
	for i := a.First; i < a.First+a.Count; i++ {
		c := places[i].Load()
		from, _ := unpackCell(c)
		if c != last {
			last = c
			m := Move{Processor: a.Processor, First: i, To: a.Node, Epoch: epoch}
			if n := l.node(from); n != nil {
				m.From = n.Name
			}
			e.Moves = append(e.Moves, m)
		}
		e.Moves[len(e.Moves)-1].Count++
		if from != 0 {
			s.counts[from]--
		}
		s.counts[slot]++
		places[i].Store(packCell(slot, epoch))
	}
}
