package main

import "github.com/topogen/topogen/runtime/topo"

// Camera has a driver that panics: its instance ends, and restart makes another.
type Camera struct{ sensor }

func NewCamera(c SensorConfig) *Camera { return &Camera{newSensor(c)} }

func (c *Camera) ReceiveTick(t topo.Tick, out *CameraSender) {
	if c.fails() {
		panic("the camera is gone from the bus")
	}
	out.SendFrame(Frame(c.measure(t.Time)))
}
