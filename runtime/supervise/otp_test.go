package supervise

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/runtime/piper"
)

// fakePool is a pool for a group of the children a, b and c. It executes the effects of a
// Supervisor and reports the results to it.
type fakePool struct {
	s        *Supervisor
	runs     map[string]bool
	refusals map[string]int // how often the start of each child will fail
	log      []string
	ended    bool
}

var names = []string{"a", "b", "c"}

// types maps the restart types of OTP to policies.
var types = map[string]Policy{"permanent": Always, "transient": OnFailure, "temporary": Never}

// TestOTP replays what supervisors of Erlang/OTP did, as recorded by
// testdata/otp/record.escript. The recordings contain, for each strategy and restart
// type, each way in which a child can end and the restart of a sibling, and also children
// that fail to start, that have ended before, or that end too often.
func TestOTP(t *testing.T) {
	script.Run(t, "testdata/otp/*.txt", func(*testing.T) func([]string) ([]string, error) { return new(fakePool).line })
}

func (g *fakePool) line(words []string) ([]string, error) {
	g.log = nil
	switch {
	case words[0] == "group":
		return nil, g.begin(words[1:])
	case words[1] == "does":
		n, err := strconv.Atoi(words[len(words)-1])
		g.refusals[words[0]] = n
		return nil, err
	case g.ended || !g.runs[words[0]]:
		return []string{"it does not run"}, nil
	}
	e := piper.ChildEvent{Child: piper.Child{Processor: slices.Index(names, words[0])}, Err: errors.New(words[1])}
	switch words[1] {
	case "ends":
		e.Kind, e.Err = piper.ChildEnded, nil
	case "fails", "panics":
		e.Kind = piper.ChildFailed
	case "hangs":
		e.Kind = piper.ChildHung
	default:
		return nil, errors.New(words[1])
	}
	g.runs[words[0]] = false
	g.step(e)
	if g.ended {
		return []string{"the supervisor ends"}, nil
	}
	var running []string
	for _, name := range names {
		if g.runs[name] {
			running = append(running, name)
		}
	}
	return append(g.log, "running: "+strings.Join(running, " ")), nil
}

func (g *fakePool) begin(words []string) error {
	*g = fakePool{runs: make(map[string]bool), refusals: make(map[string]int)}
	strategy, ok := strategies[words[0]]
	intensity, err := strconv.Atoi(strings.TrimPrefix(words[1], "intensity="))
	if !ok || err != nil {
		return errors.New(words[0] + " " + words[1])
	}
	spec := Spec{Groups: []Group{{Name: "g", Strategy: strategy, Intensity: intensity, Period: time.Hour, Processors: []int{0, 1, 2}}}}
	for i, name := range names {
		spec.Processors = append(spec.Processors, Processor{Name: name, Instances: 1, Policy: types[words[2+i]]})
		g.runs[name] = true
	}
	g.s = New(spec)
	return nil
}

func (g *fakePool) step(e piper.ChildEvent) {
	for _, f := range g.s.Step(0, e) {
		name := names[f.Child.Processor]
		switch f.Kind {
		case piper.EffectStop:
			if g.runs[name] { // else it has ended before, and only confirms the stop
				g.log = append(g.log, "stop "+name)
			}
			g.runs[name] = false
			g.step(piper.ChildEvent{Kind: piper.ChildStopped, Child: f.Child})
		case piper.EffectStart:
			if g.refusals[name] > 0 {
				g.refusals[name]--
				g.log = append(g.log, fmt.Sprintf("start %s, which fails", name))
				g.step(piper.ChildEvent{Kind: piper.ChildNotStarted, Child: f.Child, Err: errors.New("refused")})
				continue
			}
			g.log = append(g.log, "start "+name)
			g.runs[name] = true
			g.step(piper.ChildEvent{Kind: piper.ChildStarted, Child: f.Child})
		case piper.EffectEnd:
			g.ended = true
		}
	}
}
