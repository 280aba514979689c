package placement

import (
	"cmp"
	"slices"
)

// refinement improves a placement by single moves: away from the heaviest worker, or to
// the heaviest worker if the instance exchanges messages with instances there.
type refinement struct {
	p      *Measured
	at     []int   // by instance: its worker
	active []int   // instances that may move
	loads  []int64 // by worker: its load
	// By active instance: the cost for each side of its messages to the instances on
	// each worker, and to all instances, as if they all were on other workers.
	hopCost    [][]int64
	hopCostAll []int64
}

// refine makes single moves while they help. It changes at.
func (p *Measured) refine(at []int) []int {
	r := newRefinement(p, at)
	for range movesMax {
		instance, worker := r.best()
		if instance < 0 || p.Ended() {
			break
		}
		r.move(instance, worker)
	}
	return at
}

func newRefinement(p *Measured, at []int) *refinement {
	r := &refinement{p: p, at: at, loads: p.loads(at), hopCost: make([][]int64, len(at)), hopCostAll: make([]int64, len(at))}
	for i := range at {
		if p.active(i) {
			r.active = append(r.active, i)
		}
	}
	if len(r.active) > activeMax { // the costliest instances matter most
		slices.SortStableFunc(r.active, func(a, b int) int { return cmp.Compare(p.Cost[b], p.Cost[a]) })
		r.active = r.active[:activeMax]
	}
	for _, i := range r.active {
		r.hopCost[i] = make([]int64, p.Workers)
		for _, n := range p.Traffic[i] {
			if w := at[n.Other]; w >= 0 && n.Other != i {
				r.hopCost[i][w] += n.nanos()
				r.hopCostAll[i] += n.nanos()
			}
		}
	}
	return r
}

// best returns the move after which the heavier of the two workers has the lowest load,
// if that is lower than the highest load now. Otherwise it returns -1.
func (r *refinement) best() (instance, worker int) {
	heaviest := 0
	for w, load := range r.loads {
		if load > r.loads[heaviest] {
			heaviest = w
		}
	}
	instance, worker = -1, -1
	least := r.loads[heaviest]
	try := func(i, w int) {
		if from, to := r.after(i, w); max(from, to) < least {
			instance, worker, least = i, w, max(from, to)
		}
	}
	for _, i := range r.active {
		if r.at[i] != heaviest {
			try(i, heaviest)
			continue
		}
		for w := range r.loads {
			if w != heaviest {
				try(i, w)
			}
		}
	}
	return instance, worker
}

// after returns the loads of the worker of instance i and of worker w, as if i had
// moved to w. A message that begins or ceases to cross workers changes the cost on both
// sides.
func (r *refinement) after(i, w int) (from, to int64) {
	at := r.at[i]
	return r.loads[at] - r.p.Cost[i] - r.hopCostAll[i] + 2*r.hopCost[i][at], r.loads[w] + r.p.Cost[i] + r.hopCostAll[i] - 2*r.hopCost[i][w]
}

func (r *refinement) move(i, w int) {
	at := r.at[i]
	r.loads[at], r.loads[w] = r.after(i, w)
	r.at[i] = w
	for _, n := range r.p.Traffic[i] {
		if talk := r.hopCost[n.Other]; talk != nil && n.Other != i {
			talk[at] -= n.nanos()
			talk[w] += n.nanos()
		}
	}
}
