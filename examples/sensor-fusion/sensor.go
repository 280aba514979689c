package main

import (
	"math/rand/v2"
	"time"
)

// SensorConfig is what `with:` in topology.yml gives to one that sees where the robot
// is.
type SensorConfig struct {
	Seed       uint64
	Noise      float64 // the standard deviation, in m
	FailsAfter int     `yaml:"fails_after"` // so many measurements; 0: never
}

// sensor measures with noise, the same with each seed, until it fails.
type sensor struct {
	config SensorConfig
	random *rand.Rand
	count  int
}

func newSensor(c SensorConfig) sensor {
	return sensor{config: c, random: newRandom(c.Seed)}
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// fails is asked once for each measurement.
func (s *sensor) fails() bool {
	s.count++
	return s.config.FailsAfter > 0 && s.count > s.config.FailsAfter
}

// measure is for the time of a tick, and not for now: a tick that has waited for a
// sensor to come back gives an old measurement, which says so.
func (s *sensor) measure(at time.Time) Measurement {
	return Measurement{at, path(at).plus(noise(s.random, s.config.Noise))}
}

func noise(random *rand.Rand, deviation float64) Vector {
	return Vector{deviation * random.NormFloat64(), deviation * random.NormFloat64()}
}
