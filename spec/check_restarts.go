package spec

import "fmt"

const (
	doublingsMax = 16 // of a delay, as the supervisor has it
)

// checkRestarts warns of limits of restarts that do not limit, or limit more than
// was meant.
func (b *builder) checkRestarts() {
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		r := &p.Restart
		_, grouped := b.groupOf[i] // whose intensity is a limit
		constant := r.Delay > 0 && r.MaxDelay == r.Delay
		switch {
		case !r.Given || r.Policy == Never:
		case r.MaxRestarts > 0:
			if r.unreached() {
				b.found.add(codeNotReached, r.At, r.Pointer, fmt.Sprintf("the delays of %d restarts are %.6g s or more, and with each window of %v counting begins anew: max_restarts is never reached",
					r.MaxRestarts, r.least(), r.Window), "write a longer window, or a lower max_delay")
			}
		case grouped || constant:
		case r.Delay == 0:
			b.found.add(codeUnlimited, r.At, r.Pointer, "restarts of "+quoted(p.Name.Value)+" have neither a limit nor a delay", "write max_restarts and window, or a delay and window")
		case r.Window == 0:
			b.found.add(codeUnlimited, r.At, r.Pointer, "unlimited restarts without a window: the delay of "+quoted(p.Name.Value)+" grows and never begins anew", "write a window")
		}
	}
}

// unreached reports whether so many restarts take longer than the window in which
// they are counted.
func (r *Restart) unreached() bool { return r.Window > 0 && r.least() > r.Window.Seconds() }

// least is the sum, in seconds, of the shortest delays that max_restarts restarts
// can have.
func (r *Restart) least() float64 {
	var sum float64
	delay := r.Delay.Seconds()
	for k := 1; k <= r.MaxRestarts; k++ {
		if r.MaxDelay > 0 {
			delay = min(delay, r.MaxDelay.Seconds())
		}
		if k > doublingsMax { // the others are the same
			sum += delay * float64(r.MaxRestarts-doublingsMax)
			break
		}
		sum += delay
		delay *= 2
	}
	return sum * (1 - r.Jitter)
}
