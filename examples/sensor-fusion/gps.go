package main

import (
	"fmt"
	"os"

	"github.com/topogen/topogen/runtime/topo"
)

// Gps crashes in a way that its process does not survive. topology.yml therefore gives it
// a separate process; the code is the same as without.
type Gps struct{ sensor }

func NewGps(c SensorConfig) *Gps {
	fmt.Println("looking for satellites") // is logged by the parent
	return &Gps{newSensor(c)}
}

func (g *Gps) ReceiveTick(t topo.Tick, out *GpsSender) {
	if g.fails() {
		os.Exit(3)
	}
	out.SendFix(Fix(g.measure(t.Time)))
}
