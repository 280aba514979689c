package main

import "time"

// Measurement says where a sensor saw the robot.
type Measurement struct {
	At       time.Time // when, which may be before it was sent
	Position Vector
}

type (
	Frame  Measurement // of the camera
	Points Measurement // of the lidar
	Fix    Measurement // of the gps
)

// Reading is what the inertial sensor feels.
type Reading struct {
	At           time.Time
	Acceleration Vector
}

// State is what the fusion makes of it all.
type State struct {
	At       time.Time
	Position Vector
	Velocity Vector
	Silent   [len(sensors)]time.Time // since when nothing comes; zero: something does
	Restarts [len(sensors)]int
}

// sensors are the names of the inputs of fusion that fall silent.
var sensors = [...]string{
	FusionInputFrame:   "camera",
	FusionInputPoints:  "lidar",
	FusionInputReading: "imu",
	FusionInputFix:     "gps",
}

// Mode is how well the robot knows where it is.
type Mode int

const (
	Healthy   Mode = iota
	Degraded       // a sensor is silent; the others make up for it
	Emergency      // the inertial sensor is: nobody should drive on
	modeCount
)

func (m Mode) String() string { return [...]string{"healthy", "degraded", "emergency"}[m] }

// Mode follows from who is silent.
func (s *State) Mode() Mode {
	switch {
	case !s.Silent[FusionInputReading].IsZero():
		return Emergency
	case s.Silent != [len(sensors)]time.Time{}:
		return Degraded
	}
	return Healthy
}
