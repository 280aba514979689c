package supervise

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/runtime/piper"
)

// transcript is a Supervisor in a transcript. Its lines are
//
//	seed N
//	processor NAME [instances=N] [restart=never|on-failure|always] [max_restarts=N] [delay=D] [max_delay=D] [window=D] [jitter=F]
//	group NAME STRATEGY [intensity=N] [period=D] PROCESSOR...
//	TIME fails|hangs|ends|stopped|not-stopped|started|not-started|due|inputs-done CHILD [the error]
//
// where CHILD is NAME or NAME/INSTANCE.
type transcript struct {
	spec Spec
	seed uint64
	s    *Supervisor
}

var (
	strategies = map[string]Strategy{"one-for-one": OneForOne, "one-for-all": OneForAll, "rest-for-one": RestForOne}
	policies   = map[string]Policy{"never": Never, "on-failure": OnFailure, "always": Always}
)

var eventWords = map[string]piper.ChildEventKind{
	"fails": piper.ChildFailed, "hangs": piper.ChildHung, "ends": piper.ChildEnded, "stopped": piper.ChildStopped, "not-stopped": piper.ChildNotStopped,
	"started": piper.ChildStarted, "not-started": piper.ChildNotStarted, "due": piper.ChildDue,
	"inputs-done": piper.ChildInputsDone,
}

func newTranscript(*testing.T) func([]string) ([]string, error) {
	c := &transcript{seed: 1}
	return c.line
}

func (c *transcript) line(words []string) ([]string, error) {
	switch words[0] {
	case "seed":
		n, err := strconv.ParseUint(words[1], 10, 64)
		c.seed = n
		return nil, err
	case "processor":
		p, err := parseProcessor(words[1:])
		c.spec.Processors = append(c.spec.Processors, p)
		return nil, err
	case "group":
		g, err := c.parseGroup(words[1:])
		c.spec.Groups = append(c.spec.Groups, g)
		return nil, err
	}
	if c.s == nil {
		c.s = New(c.spec)
		c.s.Seed(c.seed)
	}
	now, err := time.ParseDuration(words[0])
	if err != nil {
		return nil, err
	}
	e, err := c.event(words[1:])
	if err != nil {
		return nil, err
	}
	var answers []string
	for _, f := range c.s.Step(now, e) {
		answers = append(answers, c.effect(f))
	}
	if answers == nil {
		answers = []string{"nothing"}
	}
	return answers, nil
}

func parseProcessor(words []string) (Processor, error) {
	p := Processor{Name: words[0], Instances: 1}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "instances":
			p.Instances, err = strconv.Atoi(value)
		case "restart":
			p.Supervised = true
			var ok bool
			if p.Policy, ok = policies[value]; !ok {
				err = errors.New(value)
			}
		case "max_restarts":
			p.MaxRestarts, err = strconv.Atoi(value)
		case "delay":
			p.Delay, err = time.ParseDuration(value)
		case "max_delay":
			p.MaxDelay, err = time.ParseDuration(value)
		case "window":
			p.Window, err = time.ParseDuration(value)
		case "jitter":
			p.Jitter, err = strconv.ParseFloat(value, 64)
		default:
			err = errors.New("unknown key")
		}
		if err != nil {
			return p, fmt.Errorf("%s: %w", w, err)
		}
	}
	return p, nil
}

func (c *transcript) parseGroup(words []string) (Group, error) {
	g := Group{Name: words[0]}
	var ok bool
	if g.Strategy, ok = strategies[words[1]]; !ok {
		return g, errors.New(words[1])
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "intensity":
			g.Intensity, err = strconv.Atoi(value)
		case "period":
			g.Period, err = time.ParseDuration(value)
		default:
			var child piper.Child
			child, err = c.child(w)
			g.Processors = append(g.Processors, child.Processor)
		}
		if err != nil {
			return g, fmt.Errorf("%s: %w", w, err)
		}
	}
	return g, nil
}

func (c *transcript) event(words []string) (piper.ChildEvent, error) {
	kind, ok := eventWords[words[0]]
	if !ok {
		return piper.ChildEvent{}, errors.New(words[0])
	}
	e := piper.ChildEvent{Kind: kind}
	if len(words) > 2 {
		e.Err = errors.New(strings.Join(words[2:], " "))
	}
	if len(words) == 1 {
		return e, nil
	}
	var err error
	e.Child, err = c.child(words[1])
	return e, err
}

func (c *transcript) child(word string) (piper.Child, error) {
	name, instance, _ := strings.Cut(word, "/")
	for i, p := range c.spec.Processors {
		if p.Name == name {
			n := 0
			var err error
			if instance != "" {
				n, err = strconv.Atoi(instance)
			}
			return piper.Child{Processor: i, Instance: n}, err
		}
	}
	return piper.Child{}, fmt.Errorf("unknown child %s", word)
}

func (c *transcript) name(id piper.Child) string {
	p := c.spec.Processors[id.Processor]
	if p.Instances == 1 {
		return p.Name
	}
	return fmt.Sprintf("%s/%d", p.Name, id.Instance)
}

func (c *transcript) effect(f piper.ChildEffect) string {
	switch f.Kind {
	case piper.EffectWait:
		return fmt.Sprintf("wait %v for %s", f.Delay, c.name(f.Child))
	case piper.EffectStart:
		return "start " + c.name(f.Child)
	case piper.EffectStop:
		return "stop " + c.name(f.Child)
	case piper.EffectDone:
		return c.name(f.Child) + " is done"
	case piper.EffectGiveUp:
		return fmt.Sprintf("give %s up: %v%s", c.name(f.Child), f.Err, kind(f.Err))
	case piper.EffectEnd:
		return fmt.Sprintf("the topology ends: %v%s", f.Err, kind(f.Err))
	}
	return fmt.Sprint(f)
}

// kind names the error of this package that err matches.
func kind(err error) string {
	switch {
	case errors.Is(err, ErrLimit):
		return " (ErrLimit)"
	case errors.Is(err, ErrIntensity):
		return " (ErrIntensity)"
	}
	return ""
}

func TestRestart(t *testing.T) { script.Run(t, "testdata/restart/*.txt", newTranscript) }

func TestGroups(t *testing.T) { script.Run(t, "testdata/group/*.txt", newTranscript) }
