package supervise

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/runtime/pool"
)

var update = flag.Bool("update", false, "write what comes of the stories in testdata into them, except for those of Erlang/OTP")

// tell reads each story that glob names, and compares it with what line answers.
// A story is a file of lines. Those that begin with a letter or a digit are told
// to the line function of a fresh teller; the lines that are indented behind one
// are what comes of it. Other lines are for the reader.
func tell(t *testing.T, glob string, teller func() func(words []string) ([]string, error)) {
	t.Helper()
	names, err := filepath.Glob(glob)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no stories: %v", glob, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := retell(string(want), teller())
			if err != nil {
				t.Fatalf("%s:%v", name, err)
			}
			if *update && !strings.HasPrefix(glob, "testdata/otp") {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s went otherwise (-want +got)\n%s", name, cmp.Diff(string(want), got))
			}
		})
	}
}

// retell tells a story anew.
func retell(story string, line func([]string) ([]string, error)) (string, error) {
	var b strings.Builder
	n := 0
	for l := range strings.Lines(story) {
		n++
		if strings.HasPrefix(l, "  ") {
			continue // what came of it before
		}
		b.WriteString(l)
		if words := strings.Fields(l); len(words) > 0 && l[0] != '#' {
			answers, err := line(words)
			if err != nil {
				return "", fmt.Errorf("%d: %w", n, err)
			}
			for _, a := range answers {
				b.WriteString("  " + a + "\n")
			}
		}
	}
	return b.String(), nil
}

// cast is a Supervisor in a story. Its lines are
//
//	seed N
//	processor NAME [instances=N] [restart=never|on-failure|always] [max_restarts=N] [delay=D] [max_delay=D] [window=D] [jitter=F]
//	group NAME STRATEGY [intensity=N] [period=D] PROCESSOR...
//	TIME fails|hangs|ends|stopped|started|not-started|due|inputs-done CHILD [the error]
//
// where CHILD is NAME or NAME/INSTANCE.
type cast struct {
	spec Spec
	s    *Supervisor
}

var (
	strategies = map[string]Strategy{"one-for-one": OneForOne, "one-for-all": OneForAll, "rest-for-one": RestForOne}
	policies   = map[string]Policy{"never": Never, "on-failure": OnFailure, "always": Always}
)

var eventWords = map[string]pool.ChildEventKind{
	"fails": pool.ChildFailed, "hangs": pool.ChildHung, "ends": pool.ChildEnded, "stopped": pool.ChildStopped,
	"started": pool.ChildStarted, "not-started": pool.ChildNotStarted, "due": pool.ChildDue,
	"inputs-done": pool.ChildInputsDone,
}

func newCast() func([]string) ([]string, error) {
	c := &cast{spec: Spec{Seed: 1}}
	return c.line
}

func (c *cast) line(words []string) ([]string, error) {
	switch words[0] {
	case "seed":
		n, err := strconv.ParseUint(words[1], 10, 64)
		c.spec.Seed = n
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

func (c *cast) parseGroup(words []string) (Group, error) {
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
			var child pool.Child
			child, err = c.child(w)
			g.Processors = append(g.Processors, child.Processor)
		}
		if err != nil {
			return g, fmt.Errorf("%s: %w", w, err)
		}
	}
	return g, nil
}

func (c *cast) event(words []string) (pool.ChildEvent, error) {
	kind, ok := eventWords[words[0]]
	if !ok {
		return pool.ChildEvent{}, errors.New(words[0])
	}
	e := pool.ChildEvent{Kind: kind}
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

func (c *cast) child(word string) (pool.Child, error) {
	name, instance, _ := strings.Cut(word, "/")
	for i, p := range c.spec.Processors {
		if p.Name == name {
			n := 0
			var err error
			if instance != "" {
				n, err = strconv.Atoi(instance)
			}
			return pool.Child{Processor: i, Instance: n}, err
		}
	}
	return pool.Child{}, fmt.Errorf("who is %s?", word)
}

func (c *cast) name(id pool.Child) string {
	p := c.spec.Processors[id.Processor]
	if p.Instances == 1 {
		return p.Name
	}
	return fmt.Sprintf("%s/%d", p.Name, id.Instance)
}

func (c *cast) effect(f pool.ChildEffect) string {
	switch f.Kind {
	case pool.EffectWait:
		return fmt.Sprintf("wait %v for %s", f.Delay, c.name(f.Child))
	case pool.EffectStart:
		return "start " + c.name(f.Child)
	case pool.EffectStop:
		return "stop " + c.name(f.Child)
	case pool.EffectDone:
		return c.name(f.Child) + " is done"
	case pool.EffectGiveUp:
		return fmt.Sprintf("give %s up: %v%s", c.name(f.Child), f.Err, kind(f.Err))
	case pool.EffectEnd:
		return fmt.Sprintf("the topology ends: %v%s", f.Err, kind(f.Err))
	}
	return fmt.Sprint(f)
}

// kind says which of the errors of this package err matches.
func kind(err error) string {
	switch {
	case errors.Is(err, ErrLimit):
		return " (ErrLimit)"
	case errors.Is(err, ErrIntensity):
		return " (ErrIntensity)"
	}
	return ""
}

func TestRestart(t *testing.T) { tell(t, "testdata/restart/*.txt", newCast) }

func TestGroups(t *testing.T) { tell(t, "testdata/group/*.txt", newCast) }
