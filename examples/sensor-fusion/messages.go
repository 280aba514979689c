package main

import "time"

// Measurement is a position of the robot as measured by a sensor.
type Measurement struct {
	At       time.Time // time of the measurement, which may be before it was sent
	Position Vector
}

type (
	Frame  Measurement // from the camera
	Points Measurement // from the lidar
	Fix    Measurement // from the gps
)

// Reading is an acceleration measured by the inertial sensor.
type Reading struct {
	At           time.Time
	Acceleration Vector
}

// State is the result of the fusion.
type State struct {
	At       time.Time
	Position Vector
	Velocity Vector
	Silent   [len(sensors)]time.Time // when the sensor became silent; zero: it is not silent
	Restarts [len(sensors)]int
}

// sensors are the names of the inputs of fusion that can become silent.
var sensors = [...]string{
	FusionInputFrame:   "camera",
	FusionInputPoints:  "lidar",
	FusionInputReading: "imu",
	FusionInputFix:     "gps",
}

// Mode says how well the robot's position is known.
type Mode int

const (
	Healthy   Mode = iota
	Degraded       // a sensor is silent; the others compensate
	Emergency      // the inertial sensor is silent: the robot should stop
	modeCount
)

func (m Mode) String() string { return [...]string{"healthy", "degraded", "emergency"}[m] }

// Mode depends on which sensors are silent.
func (s *State) Mode() Mode {
	switch {
	case !s.Silent[FusionInputReading].IsZero():
		return Emergency
	case s.Silent != [len(sensors)]time.Time{}:
		return Degraded
	}
	return Healthy
}
