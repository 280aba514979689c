package main

import (
	"math/rand/v2"
	"time"
)

// SensorConfig is the `with:` section in topology.yml for a sensor that measures
// positions.
type SensorConfig struct {
	Seed       uint64
	Noise      float64 // the standard deviation, in m
	FailsAfter int     `yaml:"fails_after"` // number of measurements; 0: never
}

// sensor measures with noise, which is the same for each seed, until it fails.
type sensor struct {
	config SensorConfig
	random *rand.Rand
	count  int
}

func newSensor(c SensorConfig) sensor {
	return sensor{config: c, random: newRandom(c.Seed)}
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// fails is called once for each measurement.
func (s *sensor) fails() bool {
	s.count++
	return s.config.FailsAfter > 0 && s.count > s.config.FailsAfter
}

// measure uses the time of the tick, not the current time. If a tick waited for a restart
// of the sensor, the measurement is old, and its time shows this.
func (s *sensor) measure(at time.Time) Measurement {
	return Measurement{at, path(at).plus(noise(s.random, s.config.Noise))}
}

func noise(random *rand.Rand, deviation float64) Vector {
	return Vector{deviation * random.NormFloat64(), deviation * random.NormFloat64()}
}
