package supervise

import "time"

// Policy says after which ends a child is restarted. In Erlang/OTP the restart types are
// called temporary, transient and permanent, in this order.
type Policy uint8

const (
	Never     Policy = iota // never; outside a group a failure ends the topology
	OnFailure               // after a failure
	Always                  // after a failure and after a clean end
)

// Strategy says what happens to the other children of a group when one is restarted, as
// in Erlang/OTP.
type Strategy uint8

const (
	OneForOne  Strategy = iota // the others keep running
	OneForAll                  // all are restarted
	RestForOne                 // the children after it are restarted
)

// Spec is the supervision part of a topology file.
type Spec struct {
	Processors []Processor // all processors of the topology, by index; the zero value is not supervised
	Groups     []Group
}

// Processor says how the instances of a processor are restarted.
type Processor struct {
	Name      string
	Instances int

	// Supervised: the file has a restart section. A processor in a group is always
	// supervised. A failure of a processor that is not supervised ends the topology.
	Supervised bool
	Policy     Policy

	MaxRestarts int           // of one instance within Window; 0: no limit
	Delay       time.Duration // before the first restart in a window; it doubles with each restart
	MaxDelay    time.Duration // limit of the doubled delay; 0: 65536 times Delay
	Window      time.Duration // begins with its first restart; after it the count starts at 0 again; 0: it never ends
	Jitter      float64       // a delay d is drawn from d*(1-Jitter) to d; 0 to 1
}

// Group is a group of processors whose instances are restarted together. Its children are
// the instances of the first processor in order, then those of the next. A processor
// belongs to the first group that lists it.
type Group struct {
	Name       string
	Processors []int // by index
	Strategy   Strategy

	// More than Intensity restarts within Period end the topology. Period 0: no limit.
	Intensity int
	Period    time.Duration
}
