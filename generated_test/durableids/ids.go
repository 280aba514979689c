// Package durableids has a topology that gives any text as the id of an execution.
package durableids

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable"
)

// Roll rolls out a version. Its other fields say what the handler does.
type Roll struct {
	Version  string
	Fails    bool // the first attempt, after the child
	Repeats  bool // a step, at its first attempt
	Children int
	Named    string // the id of another child; "": there is none
	Sleep    time.Duration
}

type Result struct{ Text string }

type Part struct {
	Of     string
	Number int
}

type Named struct{ Version string }

type Deep struct{ Of string }

// World is what the handlers change outside of the topology. It survives crashes.
type World struct {
	mu   sync.Mutex
	Runs map[string]int // of steps, by the name and the message
}

func (w *World) run(step string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Runs == nil {
		w.Runs = make(map[string]int)
	}
	w.Runs[step]++
	return w.Runs[step]
}

// step is a step with the message as its result.
func (w *World) step(ctx durable.Context, name, message string, options ...durable.StepOption) (string, error) {
	return durable.Step(ctx, name, func(context.Context) (string, error) {
		if w.run(name+" "+message) == 1 && len(options) > 0 {
			return "", errors.New("the first attempt fails")
		}
		return name + " " + message, nil
	}, options...)
}

type Rolls struct{ World *World }

func (r *Rolls) ReceiveRoll(ctx durable.Context, m Roll, out *RollsSender) (Result, error) {
	var options []durable.StepOption
	if m.Repeats {
		options = append(options, durable.Retry{Attempts: 2, Delay: time.Minute})
	}
	text, err := r.World.step(ctx, "roll", m.Version, options...)
	if err != nil {
		return Result{}, err
	}
	var children []durable.Handle[Result]
	for i := range m.Children {
		h, err := out.StartPart(ctx, Part{m.Version, i})
		if err != nil {
			return Result{}, err
		}
		children = append(children, h)
	}
	if err := durable.Sleep(ctx, m.Sleep); err != nil {
		return Result{}, err
	}
	if m.Fails && ctx.Attempt() == 1 {
		return Result{}, errors.New("the first attempt fails")
	}
	results, err := durable.All(ctx, children...)
	if err != nil {
		return Result{}, err
	}
	for _, result := range results {
		text += ", " + result.Text
	}
	if m.Named != "" {
		result, err := out.AskNamed(ctx, Named{m.Named})
		if err != nil {
			return Result{}, err
		}
		text += ", " + result.Text
	}
	return Result{text}, nil
}

func (r *Rolls) ReceiveDeep(ctx durable.Context, m Deep) (Result, error) {
	text, err := r.World.step(ctx, "deep", m.Of)
	return Result{text}, err
}

type Parts struct{ World *World }

func (p *Parts) ReceivePart(ctx durable.Context, m Part, out *PartsSender) (Result, error) {
	if m.Number > 0 {
		return out.AskDeep(ctx, Deep{m.Of})
	}
	text, err := p.World.step(ctx, "part", m.Of)
	return Result{text}, err
}

func (p *Parts) ReceiveNamed(ctx durable.Context, m Named) (Result, error) {
	text, err := p.World.step(ctx, "named", m.Version)
	return Result{text}, err
}
