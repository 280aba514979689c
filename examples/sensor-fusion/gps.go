package main

import (
	"fmt"
	"os"

	"github.com/topogen/topogen/runtime/topo"
)

// Gps crashes in a way that nothing in its process survives. That is why it has one of
// its own. Nothing here knows.
type Gps struct{ sensor }

func NewGps(c SensorConfig) *Gps {
	fmt.Println("looking for satellites") // goes to the log of the parent
	return &Gps{newSensor(c)}
}

func (g *Gps) ReceiveTick(t topo.Tick, out *GpsSender) {
	if g.fails() {
		os.Exit(3)
	}
	out.SendFix(Fix(g.measure(t.Time)))
}
