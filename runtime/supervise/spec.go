package supervise

import "time"

// Policy says which ends of a child it is restarted after. Erlang/OTP calls the
// restart types, from the last to the first, permanent, transient and temporary.
type Policy uint8

const (
	Never     Policy = iota // after none; outside a group a failure ends the topology
	OnFailure               // after a failure
	Always                  // after a clean end too
)

// Strategy says what becomes of the other children of a group when one is
// restarted, as in Erlang/OTP.
type Strategy uint8

const (
	OneForOne  Strategy = iota // nothing
	OneForAll                  // all are restarted
	RestForOne                 // those behind it are restarted
)

// Spec is what the topology file says.
type Spec struct {
	Processors []Processor // by index, all of the topology; the zero value is one that is not supervised
	Groups     []Group
	Seed       uint64 // of the jitter; 0: drawn
}

// Processor says what becomes of the instances of a processor.
type Processor struct {
	Name      string
	Instances int

	// Supervised: the file says restart. Processors in a group are supervised in any
	// case. A failure of one that is not ends the topology.
	Supervised bool
	Policy     Policy

	MaxRestarts int           // of one instance within Window; 0: any number
	Delay       time.Duration // before the first restart in a window; it doubles with each
	MaxDelay    time.Duration // what it doubles to; 0: 65536 times Delay
	Window      time.Duration // from its first restart; when it has passed, counting begins anew; 0: never
	Jitter      float64       // a delay d is drawn from d*(1-Jitter) to d; 0 to 1
}

// Group is a group of processors whose instances are restarted together. Its
// children are the instances of the first processor in order, then those of the
// next. A processor belongs to the first group that lists it.
type Group struct {
	Name       string
	Processors []int // by index
	Strategy   Strategy

	// More than Intensity restarts within Period end the topology. Period 0: any
	// number may be.
	Intensity int
	Period    time.Duration
}
