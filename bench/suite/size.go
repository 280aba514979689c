package suite

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/bench/topologies/burst"
	"github.com/topogen/topogen/bench/topologies/idlers"
	"github.com/topogen/topogen/bench/topologies/links"
	"github.com/topogen/topogen/bench/topologies/ring"
	"github.com/topogen/topogen/runtime/pool"
)

// Goals at size.
const (
	linkedBytesMax   = 1500
	slowCall         = 40 * time.Millisecond
	slowMax          = 2000 // goroutines
	slowRestMax      = 10   // goroutines
	slowRest         = 10 * time.Second
	keptBytesMax     = 30e6
	keptRest         = 5 * time.Second
	linkNodes        = 100_000
	linkNeighbors    = 10
	linksRest        = 5 * time.Second
	linkBytesMax     = 200 // a million instances with ten neighbors each in 2 GB
	linkNanosMax     = 2000
	stopNodes        = 20_000
	stopEach         = 70
	idlersShareMax   = 0.05
	idlersSettle     = 6 * time.Second
	burstNodes       = 10_000
	burstEach        = 1000
	slowMeasureEvery = 10 * time.Millisecond
)

// LinkedBytes is the memory of an instance that has sent a message to one of 10,000, in
// addition to that of an instance without messages.
func LinkedBytes() (float64, error) {
	r, err := ring.Start()
	if err != nil {
		return 0, err
	}
	if err := r.Pass(0, 1); err != nil {
		return 0, err
	}
	before := settled()
	if err := r.Pass(ring.Instances, 1); err != nil {
		return 0, err
	}
	after := settled()
	return float64(after-before) / ring.Instances, r.Stop()
}

// LinkFigures are what links cost.
type LinkFigures struct {
	Before   uint64  // heap before the first message, in bytes
	Peak     uint64  // most memory that the process had
	After    uint64  // heap after the last message
	Rest     uint64  // heap after a rest
	SendNano float64 // processor time of a first message to a neighbor, with its handler
}

// Links measures instances that send one message to each of some neighbors.
func Links(nodes, neighbors int) (f LinkFigures, err error) {
	l, err := links.Run(pool.Logger(silent))
	if err != nil {
		return f, err
	}
	f.Before = settled()
	cpu := measure.CPU()
	if err := l.Round(nodes, neighbors); err != nil {
		return f, err
	}
	for look := time.NewTicker(10 * time.Millisecond); !l.Done(); <-look.C {
		f.Peak = max(f.Peak, measure.Resident())
	}
	f.SendNano = float64(measure.CPU()-cpu) / float64(nodes*neighbors)
	f.After = measure.Heap()
	time.Sleep(linksRest)
	f.Rest = measure.Heap()
	return f, l.Stop()
}

// SlowGoroutines is the number of goroutines after two of 100,000 instances had one slow call: the
// most that were seen, and how many are left after a while.
func SlowGoroutines() (most, left int, err error) {
	began := runtime.NumGoroutine()
	stop := make(chan struct{})
	ended := make(chan int)
	go func() {
		most := 0
		for ticker := time.NewTicker(slowMeasureEvery); ; {
			select {
			case <-ticker.C:
				most = max(most, runtime.NumGoroutine())
			case <-stop:
				ended <- most
				return
			}
		}
	}()
	err = burst.Run(burst.Load{Nodes: burst.Instances, Each: 3, Slow: slowCall, Handled: func() {
		time.Sleep(slowRest)
		left = runtime.NumGoroutine() - began - 1 // of the caller of Run
	}}, pool.Logger(silent))
	close(stop)
	return <-ended - began, left - 1, err // without the goroutine that looks
}

// KeptBytes is the heap that remains after each of 10,000 instances has handled 1,000 messages of 64 bytes.
func KeptBytes() (kept uint64, err error) {
	before := measure.Heap()
	err = burst.Run(burst.Load{Nodes: burstNodes, Each: burstEach, Handled: func() {
		time.Sleep(keptRest)
		kept = measure.Heap() - before
	}}, pool.Logger(silent))
	return kept, err
}

// IdlersShare is the share of one CPU that 100,000 idle sources use.
func IdlersShare() (share float64, err error) {
	topology, err := idlers.New(idlers.Processors{})
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := startRun(ctx, topology.Run)
	time.Sleep(idlersSettle) // until the pauses are as long as they get
	before := measure.CPU()
	time.Sleep(idleFor)
	share = float64(measure.CPU()-before) / float64(idleFor)
	stop()
	return share, <-ended
}

func bursts() Contest {
	return Contest{
		Name: "burst", title: "70 messages to each of 20,000 instances", unit: "message",
		note: "The topology, or the goroutines with their channels, are made, get messages of 64 bytes, and are stopped.",
		Contenders: []measure.Contender{
			{Name: ours, Run: func(n int) error {
				return burst.Run(burst.Load{Nodes: min(stopNodes, max(n/stopEach, 1)), Each: stopEach}, pool.Logger(silent))
			}},
			sure(channels, func(n int) { peers.ChannelBurst(min(stopNodes, max(n/stopEach, 1)), stopEach) }),
		},
	}
}

func atSize(Effort) (Section, error) {
	s := Section{
		Title: "At size",
		Note: fmt.Sprintf("Memory of an instance that has sent one message to one of 10,000 others. Memory of a link of 100,000 instances, %v after each has sent a message to %d neighbors, and CPU time of such a message with its handler. Goroutines after two of 100,000 instances had a call of %v, and %v later. Heap %v after each of %d instances has handled %d messages of 64 bytes. CPU time of 100,000 idle sources.",
			linksRest, linkNeighbors, slowCall, slowRest, keptRest, burstNodes, burstEach),
		Columns: []string{"", ""},
	}
	linked, err := LinkedBytes()
	if err != nil {
		return s, err
	}
	link, err := Links(linkNodes, linkNeighbors)
	if err != nil {
		return s, err
	}
	rest := float64(link.Rest-min(link.Rest, link.Before)) / (linkNodes * linkNeighbors)
	most, left, err := SlowGoroutines()
	if err != nil {
		return s, err
	}
	kept, err := KeptBytes()
	if err != nil {
		return s, err
	}
	idle, err := IdlersShare()
	if err != nil {
		return s, err
	}
	s.Rows = [][]string{
		{"an instance with one neighbor, bytes", fmt.Sprintf("%.0f", linked)},
		{"a link, after a rest, bytes", fmt.Sprintf("%.0f", rest)},
		{"first message to a neighbor, CPU ns", fmt.Sprintf("%.0f", link.SendNano)},
		{"goroutines after two slow calls, at most", fmt.Sprint(most)},
		{"goroutines later", fmt.Sprint(left)},
		{"heap after a burst, MB", fmt.Sprintf("%.0f", float64(kept)/1e6)},
		{"100,000 idle sources", percent(idle)},
	}
	s.Claims = []Claim{
		{"an instance with one neighbor of 10,000", fmt.Sprintf("≤ %d B", linkedBytesMax), fmt.Sprintf("%.0f B", linked), linked <= linkedBytesMax},
		{"a link of 100,000 instances with 10 neighbors each, after 5 s", fmt.Sprintf("≤ %d B", linkBytesMax), fmt.Sprintf("%.0f B", rest), rest <= linkBytesMax},
		{"first message to a new neighbor", fmt.Sprintf("≤ %d ns", linkNanosMax), fmt.Sprintf("%.0f ns", link.SendNano), link.SendNano <= linkNanosMax},
		{"goroutines after two slow calls among 100,000 instances", fmt.Sprintf("≤ %d", slowMax), fmt.Sprint(most), most <= slowMax},
		{"the same, ten seconds later", fmt.Sprintf("≤ %d", slowRestMax), fmt.Sprint(left), left <= slowRestMax},
		{"heap after 1,000 messages to each of 10,000 instances", fmt.Sprintf("≤ %.0f MB", keptBytesMax/1e6), fmt.Sprintf("%.0f MB", float64(kept)/1e6), kept <= keptBytesMax},
		{"100,000 idle sources", "≤ 5 %", percent(idle), idle <= idlersShareMax},
	}
	return s, nil
}
