package member

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Load is what happens to a cluster.
type Load struct {
	Nodes  int
	Loss   float64
	Paused int           // the first nodes are paused again and again
	Settle time.Duration // before the load begins
	Run    time.Duration // the time of the load
	Every  time.Duration // one node stops in this time
	Seed   uint64
}

// Standard is the load of the tables.
func Standard(loss float64, seed uint64) Load {
	return Load{Nodes: 100, Loss: loss, Paused: 10, Settle: 30 * time.Second, Run: 400 * time.Second, Every: 20 * time.Second, Seed: seed}
}

// Limits of the delay of a message and of pauses.
const (
	delayMin = 500 * time.Microsecond
	delayMax = time.Millisecond
	pauseMin = time.Second
	pauseMax = 15 * time.Second
)

// act is an event of a load.
type act struct {
	at   time.Duration
	node int
	kind actKind
}

type actKind uint8

const (
	pause actKind = iota
	resume
	stop
)

// acts returns the pauses and stops of a load in the order of time. The last stop leaves
// time for its detection.
func (l Load) acts() (list []act) {
	rng := rand.New(rand.NewPCG(l.Seed, 99))
	between := func() time.Duration { return pauseMin + time.Duration(rng.Int64N(int64(pauseMax-pauseMin))) }
	end := l.Settle + l.Run
	for n := range l.Paused {
		for at := l.Settle + between(); at < end; {
			length := between()
			list = append(list, act{at, n, pause}, act{at + length, n, resume})
			at += length + between()
		}
	}
	victims := rng.Perm(l.Nodes - l.Paused)
	for i, at := 0, l.Settle+l.Every/2; at < end-2*l.Every; i, at = i+1, at+l.Every {
		jitter := time.Duration(rng.Int64N(int64(time.Second)))
		list = append(list, act{at + jitter, l.Paused + victims[i], stop})
	}
	slices.SortStableFunc(list, func(a, b act) int { return cmp.Compare(a.at, b.at) })
	return list
}

// same is the time after a wrong declaration in which further ones about the same node count
// as the same mistake.
const same = 20 * time.Second

// Result is what a subject did under a load.
type Result struct {
	Detected  []time.Duration // from the stop of a node until all know, sorted; without stops whose last unaware node stopped itself
	Missed    int             // stops that not all nodes knew at the end
	Healthy   int             // false positives about nodes that were never paused
	Sleeping  int             // pauses with a false positive about the paused node
	Pauses    int
	PerSecond float64 // packets per node and second
}

// Quantile returns the detection time that a part of the detections did not exceed.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.Detected) == 0 {
		return 0
	}
	return r.Detected[min(int(q*float64(len(r.Detected))), len(r.Detected)-1)]
}

// record collects the declarations of a run.
type record struct {
	load    Load
	stopped []time.Duration       // of each node; 0: it runs
	known   []map[int]bool        // by stopped node: the observers that know
	last    map[int]time.Duration // when a mistake about a node began
	blamed  map[int]bool          // paused nodes that were declared dead since their last pause began
	result  Result
	packets uint64
}

func newRecord(l Load) *record {
	return &record{load: l, stopped: make([]time.Duration, l.Nodes), known: make([]map[int]bool, l.Nodes), last: make(map[int]time.Duration), blamed: make(map[int]bool)}
}

func (r *record) stop(now time.Duration, node int) {
	r.stopped[node], r.known[node] = now, make(map[int]bool)
}

// dead notes that an observer declared a node dead.
func (r *record) dead(now time.Duration, observer, node int) {
	if now < r.load.Settle || r.stopped[observer] > 0 {
		return
	}
	if r.stopped[node] == 0 {
		r.mistake(now, node)
		return
	}
	if observer < r.load.Paused || r.known[node][observer] {
		return
	}
	r.known[node][observer] = true
	if r.all(node) {
		r.result.Detected = append(r.result.Detected, now-r.stopped[node])
	}
}

func (r *record) mistake(now time.Duration, node int) {
	if node < r.load.Paused {
		if !r.blamed[node] {
			r.blamed[node] = true
			r.result.Sleeping++
		}
		return
	}
	if last, ok := r.last[node]; !ok || now-last > same {
		r.last[node] = now
		r.result.Healthy++
	}
}

// pause notes that a pause of a node begins.
func (r *record) pause(node int) {
	r.blamed[node] = false
	r.result.Pauses++
}

// all reports whether all nodes that run and are never paused know of a stop.
func (r *record) all(node int) bool {
	for o := r.load.Paused; o < r.load.Nodes; o++ {
		if o != node && r.stopped[o] == 0 && !r.known[node][o] {
			return false
		}
	}
	return true
}

func (r *record) end() Result {
	for node, at := range r.stopped {
		if at > 0 && !r.all(node) {
			r.result.Missed++
		}
	}
	slices.Sort(r.result.Detected)
	r.result.PerSecond = float64(r.packets) / float64(r.load.Nodes) / r.load.Run.Seconds()
	return r.result
}

// add adds the result of another run; PerSecond becomes the sum.
func (r *Result) add(o Result) {
	r.Detected = append(r.Detected, o.Detected...)
	slices.Sort(r.Detected)
	r.Missed += o.Missed
	r.Healthy += o.Healthy
	r.Sleeping += o.Sleeping
	r.Pauses += o.Pauses
	r.PerSecond += o.PerSecond
}
