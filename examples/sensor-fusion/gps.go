package main

import (
	"fmt"
	"os"

	"github.com/topogen/topogen/runtime/topo"
)

// Gps crashes in a way that ends its process. Therefore topology.yml declares a separate
// process for it. The code would be the same without a separate process.
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
