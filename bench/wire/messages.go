package wire

import "time"

// Order is a typical business message: strings, small numbers, a list, a map.
type Order struct {
	Account string
	Number  uint64
	Cents   int
	Paid    bool
	At      time.Time
	Lines   []Line
	Tags    []string
	Totals  map[string]int64
	Note    []byte
}

// Line is a part of an Order.
type Line struct {
	Item  string
	Count uint32
	Price float64
	Parts []int32
}

// Scan is a typical message of a sensor.
type Scan struct {
	Sensor string
	Number uint64
	At     time.Time
	Pose   Pose
	Ranges []float32
	Echoes []uint32
	Raw    []byte
}

// Pose is the position of a sensor.
type Pose struct {
	X, Y, Z        float64
	Roll, Pitch, W float64
}
