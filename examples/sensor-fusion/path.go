package main

import (
	"math"
	"time"
)

// Vector is a position in m, a velocity or an acceleration in the plane.
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

// path returns the true position of the robot: on a figure of eight, depending only on
// the time. Each sensor can therefore compute it, even in another process, and the error
// of an estimate is known.
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
