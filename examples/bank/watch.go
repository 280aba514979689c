package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// watch observes a bank under load, and kills its leaders.
type watch struct {
	screen  *screen
	cluster *cluster
	load    *load
	reader  *client
	total   int64 // of all accounts; must not change
	checker checker
	took    time.Duration

	mu       sync.Mutex
	states   []status // of the nodes that answer
	balances balances
	kills    int
	killed   time.Time // time of the last kill; zero: transfers have succeeded since then
	term     uint64    // of the killed leader
	gaps     []time.Duration
}

func newWatch(s *screen, c *cluster, o options) *watch {
	w := &watch{screen: s, cluster: c, states: make([]status, len(c.nodes))}
	w.load = &load{
		http: newHTTPClient(o.clients * len(cities)), urls: c.urls, clients: o.clients, began: time.Now(),
		rounds: make(chan *round, len(cities)), booked: w.booked,
	}
	w.reader = w.load.newClient(0)
	return w
}

// booked is called for each booked transfer. The first transfer in a later term than the
// term of the killed leader ends the gap.
func (w *watch) booked(r receipt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.killed.IsZero() && r.Term > w.term {
		w.gaps = append(w.gaps, time.Since(w.killed))
		w.killed = time.Time{}
	}
}

// recovered returns the times from a kill to the next booked transfer, ascending.
func (w *watch) recovered() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.gaps))
}

// poll requests the status of the nodes and shows it.
func (w *watch) poll(ctx context.Context) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	shown, before := time.Now(), int64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for i, n := range w.cluster.nodes {
			w.ask(ctx, i, n)
		}
		w.screen.draw(w.block())
		if took := time.Since(shown); took >= lineEvery && !w.screen.terminal {
			now := w.load.transfers.Load()
			w.screen.print("%s", w.line(float64(now-before)/took.Seconds()))
			shown, before = time.Now(), now
		}
	}
}

// ask requests the status of a node. If the node does not answer at once, the status is
// empty.
func (w *watch) ask(ctx context.Context, i int, n *node) {
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var s status
	url := n.serves()
	if url == "" || w.reader.attempt(soon, http.MethodGet, url+"/status", nil, &s) != nil {
		s = status{Node: n.name}
	}
	if ctx.Err() != nil {
		return // the request was cancelled
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[i] = s
}

// leader returns the index of the leader, or -1 if it is unknown.
func (w *watch) leader() (at int, term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at = -1
	for i, s := range w.states {
		if s.Role == "leader" && s.Term > term {
			at, term = i, s.Term
		}
	}
	return at, term
}

// audit reads the total repeatedly.
func (w *watch) audit(ctx context.Context) error {
	c := w.load.newClient(1)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		b, err := c.balances(ctx, "")
		if err != nil {
			return nil // the time is over
		}
		w.mu.Lock()
		w.balances = b
		w.mu.Unlock()
		if b.Total != w.total {
			return fmt.Errorf("the total is %d, but it was %d at the beginning", b.Total, w.total)
		}
	}
}

// kill repeatedly kills the leader, or any node, and restarts it.
func (w *watch) kill(ctx context.Context, o options) error {
	for o.every > 0 {
		wait := o.every
		if o.any {
			wait = wait/2 + rand.N(wait)
		}
		if !pause(ctx, wait) {
			return nil
		}
		leader, term := w.leader()
		at := leader
		if o.any {
			at = rand.IntN(len(w.cluster.nodes))
		}
		if at < 0 {
			continue
		}
		n := w.cluster.nodes[at]
		w.mu.Lock()
		w.kills++
		if at == leader {
			w.killed, w.term = time.Now(), term
		}
		w.mu.Unlock()
		n.kill()
		if at == leader {
			w.logEvent("%s, leader of term %d, is killed", n.name, term)
		} else {
			w.logEvent("%s is killed", n.name)
		}
		pause(ctx, o.down)
		// Restart the node even if the time is over, because all nodes are compared at
		// the end.
		if err := w.cluster.start(context.WithoutCancel(ctx), n); err != nil {
			return err
		}
		w.logEvent("%s is back", n.name)
	}
	return nil
}

// pause waits, and returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// logEvent prints an event with its time.
func (w *watch) logEvent(format string, a ...any) {
	w.screen.print("%6.1f s  %s", time.Since(w.load.began).Seconds(), fmt.Sprintf(format, a...))
}

// line returns the status in one line.
func (w *watch) line(rate float64) string {
	at, term := w.leader()
	leader := "no node"
	if at >= 0 {
		leader = w.cluster.nodes[at].name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%6.1f s  total %d; %s leads, term %d; %.0f transfers/s, %d kills, %d retries",
		time.Since(w.load.began).Seconds(), w.balances.Total, leader, term, rate, w.kills, w.load.retries.Load())
}

// block returns the status for a terminal.
func (w *watch) block() string {
	var b strings.Builder
	took := time.Since(w.load.began).Seconds()
	fmt.Fprintln(&b, w.line(float64(w.load.transfers.Load())/took))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.states {
		if s.Role == "" {
			s.Role = "down"
		}
		fmt.Fprintf(&b, "  %-3s %-13s term %-5d applied %d\n", w.cluster.nodes[i].name, s.Role, s.Term, s.Applied)
	}
	for branch, city := range cities {
		fmt.Fprintf(&b, "  %-7s", city)
		for owner, cents := range centsOf(branch, w.balances) {
			fmt.Fprintf(&b, " %s %5d ", owners[owner], cents)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}
