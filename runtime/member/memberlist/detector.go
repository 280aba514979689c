package memberlist

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	ml "github.com/hashicorp/memberlist"

	"github.com/topogen/topogen/runtime/member"
)

// reconnectIntervals pass between two attempts to reach a member that is dead.
const reconnectIntervals = 5

// Detector is a [member.Detector] that uses hashicorp/memberlist.
type Detector struct {
	settings member.Settings
	config   member.Config
	events   *member.Events
	network  *network
	own      *delegate
	list     *ml.Memberlist

	mu      sync.Mutex
	start   time.Time
	started bool
	closed  bool
	members map[string]*entry // includes this node
	fenced  bool

	end     chan struct{}
	running sync.WaitGroup
}

// entry is a member.
type entry struct {
	member.Member
	first  bool
	leaves uint64 // the boot id of a process that has said that it ends on purpose
}

var _ member.Detector = (*Detector)(nil)

// New returns a detector. It fails with member.ErrConfig.
func New(s member.Settings) (*Detector, error) {
	if err := s.Complete(); err != nil {
		return nil, err
	}
	if s.Node.Boot == 0 {
		s.Node.Boot = uint64(time.Now().UnixNano())
	}
	if err := member.Check(s.Node, s.First, s.Config); err != nil {
		return nil, err
	}
	d := &Detector{
		settings: s, config: s.Config.WithDefaults(), events: member.NewEvents(s.Observe),
		network: newNetwork(s.Node.Name, s.Transport, s.Group, s.Logger), own: &delegate{node: s.Node},
		members: make(map[string]*entry), end: make(chan struct{}),
	}
	for name, address := range s.First {
		d.members[name] = &entry{Member: member.Member{Name: name, Address: address, State: member.Dead}, first: true}
	}
	d.members[s.Node.Name] = &entry{Member: member.Member{
		Name: s.Node.Name, Address: s.Node.Address, Meta: s.Node.Meta, Boot: s.Node.Boot,
	}}
	d.network.goodbye = d.goodbye
	d.fenced = d.isFenced()
	return d, nil
}

// Start implements [member.Detector].
func (d *Detector) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return member.ErrClosed
	}
	if d.started {
		return nil
	}
	d.start = time.Now()
	for name, address := range d.settings.First {
		d.network.setPeer(name, address)
	}
	c := Config(d.config, len(d.settings.First))
	c.Name, c.Transport = d.settings.Node.Name, d.network
	c.AdvertiseAddr, c.AdvertisePort, c.BindPort = ipOf(c.Name).String(), port, port
	c.Delegate, c.Events, c.Conflict = d.own, d, d
	c.Logger = slog.NewLogLogger(d.settings.Logger.Handler(), slog.LevelDebug)
	d.settings.Transport.Handle(d.settings.Group, d.network.receive)
	d.mu.Unlock()
	list, err := ml.Create(c) // calls NotifyJoin
	d.mu.Lock()
	if err != nil {
		d.settings.Transport.Handle(d.settings.Group, nil)
		return fmt.Errorf("memberlist: %w", err)
	}
	d.list, d.started = list, true
	d.events.Start()
	d.running.Go(d.maintain)
	return nil
}

// maintain joins members that are not connected, and forgets members that have been
// dead or have left for long.
func (d *Detector) maintain() {
	ticker := time.NewTicker(d.config.Interval)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if name := d.lost(); name != "" && (i%reconnectIntervals == 0 || d.alone()) {
			// An error means that the member is still dead.
			_, _ = d.list.Join([]string{name + "/" + hostPort(name)})
		}
		d.forget()
		select {
		case <-d.end:
			return
		case <-ticker.C:
		}
	}
}

// lost returns a random member that is dead, or "".
func (d *Detector) lost() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name, e := range d.members {
		if e.State == member.Dead {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return names[rand.IntN(len(names))]
}

// alone reports whether no other member is alive.
func (d *Detector) alone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, e := range d.members {
		if name != d.settings.Node.Name && e.State == member.Alive {
			return false
		}
	}
	return true
}

func (d *Detector) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Since(d.start)
	cutOff := member.CutOff(d.settings.Node.Name, d.sorted(), d.config.TieBreaker)
	for name, e := range d.members {
		age := now - e.Changed
		if e.first || !(e.State == member.Left && age >= d.config.ForgetLeft || e.State == member.Dead && age >= d.config.ForgetDead && !cutOff) {
			continue
		}
		delete(d.members, name)
		d.network.removePeer(name)
		d.events.Add(member.Event{Kind: member.EventForgotten, Member: e.Member})
	}
}

// Started implements [member.Detector].
func (d *Detector) Started() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.start
}

// Members implements [member.Detector].
func (d *Detector) Members() []member.Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sorted()
}

func (d *Detector) sorted() []member.Member {
	list := make([]member.Member, 0, len(d.members))
	for _, e := range d.members {
		list = append(list, e.Member)
	}
	slices.SortFunc(list, func(a, b member.Member) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Fenced implements [member.Detector].
func (d *Detector) Fenced() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fenced
}

func (d *Detector) isFenced() bool {
	return d.config.Fence == member.FenceMajority && member.CutOff(d.settings.Node.Name, d.sorted(), d.config.TieBreaker)
}

// Heard implements [member.Detector]. It has no effect: the library has no place for it.
func (d *Detector) Heard(string) {}

// Remove implements [member.Detector]. Unlike in package member, it has an effect on
// this node only.
func (d *Detector) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.members[name]
	switch {
	case e == nil:
		return fmt.Errorf("%w: %q", member.ErrUnknown, name)
	case e.State != member.Dead:
		return fmt.Errorf("%w: %s is %v", member.ErrAlive, name, e.State)
	}
	d.set(e, member.Left, member.EventLeft)
	return nil
}

// Leave implements [member.Detector]. The library knows no confirmations, so Leave waits a fifth of
// the interval for the transport, unless no other member is alive. It ends with Close.
func (d *Detector) Leave(ctx context.Context) error {
	d.mu.Lock()
	list, closed := d.list, d.closed
	d.mu.Unlock()
	if list == nil || closed {
		return member.ErrClosed
	}
	left := make(chan error, 1)
	go func() { left <- d.leave(list) }()
	select {
	case err := <-left:
		return err
	case <-d.end:
		return member.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave leaves the group. It may run while, or after, Close shuts down the library, which then panics.
func (d *Detector) leave(list *ml.Memberlist) (err error) {
	defer func() {
		select {
		case <-d.end:
			if recover() != nil {
				err = member.ErrClosed
			}
		default:
		}
	}()
	alone := true
	for _, m := range d.Members() {
		if m.State == member.Alive && m.Name != d.settings.Node.Name {
			d.network.sayGoodbye(m.Name, d.settings.Node.Boot)
			alone = false
		}
	}
	if err := list.Leave(10 * d.config.Interval); err != nil || alone {
		return err
	}
	// The library returns when it has passed its message to the transport, which drops
	// what it has not sent when it closes.
	<-time.After(gossipInterval(&d.config))
	return nil
}

// Close implements [member.Detector].
func (d *Detector) Close() error {
	d.mu.Lock()
	closed, started := d.closed, d.started
	d.closed = true
	d.mu.Unlock()
	if closed || !started {
		return nil
	}
	close(d.end)
	err := d.list.Shutdown()
	d.running.Wait()
	d.events.Close()
	return err
}
