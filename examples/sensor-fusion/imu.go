package main

import (
	"math/rand/v2"

	"github.com/topogen/topogen/runtime/topo"
)

// ImuConfig is the `with:` section in topology.yml.
type ImuConfig struct {
	Seed        uint64
	Noise       float64 // the standard deviation, in m/s²
	SilentAfter int     `yaml:"silent_after"` // number of readings; 0: never
	SilentFor   int     `yaml:"silent_for"`
}

// Imu measures accelerations. It does not fail or hang, but sometimes it sends nothing.
// The input_timeout of its edge detects that.
type Imu struct {
	config ImuConfig
	random *rand.Rand
	count  int
}

func NewImu(c ImuConfig) *Imu { return &Imu{config: c, random: newRandom(c.Seed)} }

func (i *Imu) ReceiveTick(t topo.Tick, out *ImuSender) {
	i.count++
	if c := i.config; c.SilentAfter > 0 && i.count%(c.SilentAfter+c.SilentFor) > c.SilentAfter {
		return
	}
	out.SendReading(Reading{t.Time, acceleration(t.Time).plus(noise(i.random, i.config.Noise))})
}
