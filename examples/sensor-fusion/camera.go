package main

import "github.com/topogen/topogen/runtime/topo"

// Camera has a driver that panics. The panic ends its instance, and restart makes a new
// one.
type Camera struct{ sensor }

func NewCamera(c SensorConfig) *Camera { return &Camera{newSensor(c)} }

func (c *Camera) ReceiveTick(t topo.Tick, out *CameraSender) {
	if c.fails() {
		panic("the camera is gone from the bus")
	}
	out.SendFrame(Frame(c.measure(t.Time)))
}
