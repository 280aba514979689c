package main

import (
	"math"
	"time"
)

// Vector is a place in m, or a velocity or an acceleration, in the plane.
type Vector struct{ X, Y float64 }

func (v Vector) plus(w Vector) Vector        { return Vector{v.X + w.X, v.Y + w.Y} }
func (v Vector) minus(w Vector) Vector       { return Vector{v.X - w.X, v.Y - w.Y} }
func (v Vector) times(f float64) Vector      { return Vector{v.X * f, v.Y * f} }
func (v Vector) length() float64             { return math.Hypot(v.X, v.Y) }
func (v Vector) over(d time.Duration) Vector { return v.times(d.Seconds()) }

const (
	lap           = 20 * time.Second
	width, height = 10.0, 5.0 // m
)

// path is where the robot truly is: on a figure of eight, at a place that depends on
// the time alone. So each sensor knows it, in whatever process, and the error of an
// estimate can be told.
func path(t time.Time) Vector {
	a := angle(t)
	return Vector{width * math.Sin(a), height * math.Sin(2*a)}
}

// acceleration is the second derivative of path.
func acceleration(t time.Time) Vector {
	a, w := angle(t), 2*math.Pi/lap.Seconds()
	return Vector{-w * w * width * math.Sin(a), -4 * w * w * height * math.Sin(2*a)}
}

func angle(t time.Time) float64 {
	return 2 * math.Pi * float64(t.UnixNano()%int64(lap)) / float64(lap)
}
