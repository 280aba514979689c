package spec

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

const (
	membersShown = 3  // members of a group in a message; more would not fit on a line
	doublingsMax = 16 // of a delay; the supervisor has the same limit
)

// checkRestarts warns of restarts without a limit, and of limits that are never reached or
// count all restarts since the start.
func (b *builder) checkRestarts() {
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		r := &p.Restart
		_, grouped := b.groupOf[i] // the intensity of a group is a limit
		constant := r.Delay > 0 && r.MaxDelay == r.Delay
		switch {
		case !r.Given || r.Policy == Never:
		case r.MaxRestarts > 0:
			if r.neverReached() {
				b.found.add(finding.NotReached, r.At, r.Pointer, fmt.Sprintf("window is %s, but the delays of %d restarts take at least %s, so the limit is never reached",
					duration(r.Window), r.MaxRestarts, seconds(r.least())), "write a longer window, or a lower max_delay")
			}
			if r.Window == 0 {
				f := b.entries[i].field("restart").Value.field("max_restarts")
				b.found.add(finding.NoWindow, f.Value.At, f.Value.Pointer,
					fmt.Sprintf("max_restarts of %s should have a window: without a window all restarts since the start are counted", quoted(p.Name.Value)), `write a window, such as "window: 5m"`)
			}
		case grouped || constant:
		case r.Delay == 0:
			b.found.add(finding.Unlimited, r.At, r.Pointer, "restarts of "+quoted(p.Name.Value)+" have neither a limit nor a delay", "write max_restarts and window, or delay and window")
		case r.Window == 0:
			b.found.add(finding.Unlimited, r.At, r.Pointer, "unlimited restarts of "+quoted(p.Name.Value)+" should have a window: without a window the delay grows and never becomes shorter", `write a window, such as "window: 5m"`)
		}
	}
}

// neverReached reports whether max_restarts restarts take longer than the window in which they
// are counted.
func (r *Restart) neverReached() bool { return r.Window > 0 && r.least() > r.Window.Seconds() }

// duration returns a duration as a user writes it: 1m in place of the 1m0s of its String method.
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// seconds returns a number of seconds as a duration. The number may be larger than a duration.
func seconds(n float64) string {
	if n < time.Duration(math.MaxInt64).Seconds() {
		d := time.Duration(n * float64(time.Second))
		if d > time.Hour {
			d = d.Truncate(time.Second)
		}
		return duration(d)
	}
	return fmt.Sprintf("%.6g s", n)
}

// least returns the sum, in seconds, of the shortest possible delays of max_restarts restarts.
func (r *Restart) least() float64 {
	var sum float64
	delay := r.Delay.Seconds()
	for k := 1; k <= r.MaxRestarts; k++ {
		if r.MaxDelay > 0 {
			delay = min(delay, r.MaxDelay.Seconds())
		}
		if k > doublingsMax { // further delays are equal
			sum += delay * float64(r.MaxRestarts-doublingsMax)
			break
		}
		sum += delay
		delay *= 2
	}
	return sum * (1 - r.Jitter)
}

// checkSiblings warns of groups in which a restart may wait for a member that hangs, unless the
// file gives a shutdown.
func (b *builder) checkSiblings() {
	for _, g := range b.topology.Groups {
		names := b.membersWithoutTimeout(g)
		if g.ShutdownGiven || len(names) == 0 {
			continue
		}
		have := "have"
		if len(names) == 1 {
			have = "has"
		}
		if more := len(names) - membersShown; more > 1 {
			names = append(names[:membersShown:membersShown], fmt.Sprintf("%d others", more))
		}
		b.found.add(finding.Hangs, g.Name.At, g.Pointer,
			fmt.Sprintf("%s of group %s %s no health timeout, so a hang is noticed only when another instance fails",
				enumerate(names, "and"), quoted(g.Name.Value), have),
			fmt.Sprintf("write health with a timeout, or %q in the group", "shutdown: "+duration(g.Shutdown)))
	}
}

// membersWithoutTimeout returns the members of a group that may be stopped with a failed
// sibling and have no health timeout.
func (b *builder) membersWithoutTimeout(g Group) (names []string) {
	instances := 0
	for _, i := range g.Processors {
		instances += b.topology.Processors[i].Instances
	}
	for place, i := range g.Processors {
		p := &b.topology.Processors[i]
		stopped := g.Strategy == OneForAll && instances > 1 || g.Strategy == RestForOne && place > 0
		if stopped && p.Health.Timeout == 0 {
			names = append(names, quoted(p.Name.Value))
		}
	}
	return names
}
