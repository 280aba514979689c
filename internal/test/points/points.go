// Package points stops a process at a named point, until its test lets it go on.
//
// # Usage
//
// The test builds the program with "go build -overlay", and the overlay has calls in the code under
// test, which has none otherwise:
//
//	points.At("before commit")
//
// It starts the program with the environment of a [Point], and waits for the file Reached. Then it does to
// the process what it likes, for example SIGKILL, and the process goes on when the file Released exists.
package points

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// variable has the point of a process.
const variable = "TOPOGEN_TEST_POINT"

// poll is how often a process looks whether it may go on.
const poll = 5 * time.Millisecond

// Point is where a process stops.
type Point struct {
	Name string
	Call int    // which call of At with this name stops, from 1
	Dir  string // of the files
}

// Environment is the entry of the environment for the process.
func (p Point) Environment() string {
	return variable + "=" + strings.Join([]string{p.Name, strconv.Itoa(p.Call), p.Dir}, "|")
}

// Reached is a file. The process makes it when it stops at the point.
func (p Point) Reached() string { return filepath.Join(p.Dir, "reached") }

// Released is a file. The process continues when the file exists.
func (p Point) Released() string { return filepath.Join(p.Dir, "released") }

// own is the point of this process.
var own = sync.OnceValue(func() (p Point) {
	if part := strings.Split(os.Getenv(variable), "|"); len(part) == 3 {
		p.Name, p.Dir = part[0], part[2]
		p.Call, _ = strconv.Atoi(part[1])
	}
	return p
})

var calls atomic.Int64 // with the name of the point

// At waits if this process stops at the point.
func At(name string) {
	p := own()
	if p.Name != name || calls.Add(1) != int64(p.Call) {
		return
	}
	if err := os.WriteFile(p.Reached(), nil, 0o600); err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(p.Released()); err == nil {
			return
		}
		<-time.After(poll)
	}
}
