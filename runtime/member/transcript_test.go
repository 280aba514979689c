package member

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/runtime/transport"
)

// TestTranscripts runs the scripts in testdata/transcript. Their output shows what nodes send and
// report; read them to see how the protocol works. "go test -update" writes the output.
func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata/transcript/*.txt", func(t *testing.T) func([]string) ([]string, error) {
		return newTranscript(t).line
	})
}

// transcript runs the commands of a transcript on a cluster. Messages take a millisecond,
// and the profile is local. The times in the output count from the last command nodes or
// clock. The commands are
//
//	config KEY=VALUE...    settings of nodes that are created later
//	nodes NAME...          create and start the first members, without output
//	node NAME [FIRST...]   create a node that does not run, with its first members
//	start NAME [BOOT]      start a process, with a higher boot id than before or with this one
//	kill|leave NAME        end a process at once, or on purpose
//	pause NAME TIME        stop a process like SIGSTOP
//	remove NAME NAME       the first node removes the second
//	heard NAME NAME        the first node got a message of the second on the data path
//	cut|mend NAME NAME     lose the messages from the first node to the second, or stop losing them
//	isolate NAME, heal     cut a node off, end all cuts
//	run TIME               run the cluster
//	clock                  the times of the output begin at zero
//	quiet|events COMMAND   run a command without output, or without messages
//	status [NAME]          print what nodes know
type transcript struct {
	t      *testing.T
	w      *world
	config Config
	first  []string
	zero   time.Duration
	lines  []string
	quiet  string // the prefix of the command
}

func newTranscript(t *testing.T) *transcript {
	w := &world{t: t, rng: rand.New(rand.NewPCG(1, 1))}
	w.net = transport.NewNetwork[[]byte](rand.New(rand.NewPCG(1, 2)), transport.Faults{DelayMin: int64(time.Millisecond), DelayMax: int64(time.Millisecond)})
	c := &transcript{t: t, w: w, config: Config{Profile: ProfileLocal}}
	w.print = func(format string, args ...any) {
		args[0] = (args[0].(time.Duration) - c.zero).Round(time.Millisecond)
		line := fmt.Sprintf(format, args...)
		if c.quiet == "" || c.quiet == "events" && !strings.Contains(line, "->") {
			c.lines = append(c.lines, line)
		}
	}
	return c
}

func (c *transcript) line(words []string) ([]string, error) {
	c.lines, c.quiet = nil, ""
	if words[0] == "quiet" || words[0] == "events" {
		c.quiet, words = words[0], words[1:]
	}
	err := c.do(words[0], words[1:])
	return c.lines, err
}

func (c *transcript) do(verb string, words []string) error {
	switch verb {
	case "config":
		return c.configure(words)
	case "nodes":
		c.quiet, c.first = "quiet", words
		for _, name := range words {
			c.w.add(name, c.config, words...)
		}
		for _, n := range c.w.nodes {
			n.boot()
		}
		c.w.run(2 * time.Second)
		c.zero = c.w.now
		return nil
	case "node":
		c.w.add(words[0], c.config, words[1:]...)
		return nil
	case "heal":
		c.w.net.Heal()
		return nil
	case "clock":
		c.zero = c.w.now
		return nil
	case "run":
		d, err := time.ParseDuration(words[0])
		c.w.run(d)
		return err
	case "status":
		for _, n := range c.w.nodes {
			if len(words) == 0 || n.name == words[0] {
				c.status(n)
			}
		}
		return nil
	}
	return c.doNode(verb, words)
}

func (c *transcript) doNode(verb string, words []string) error {
	n := c.node(words[0])
	if n == nil {
		return fmt.Errorf("no node %q", words[0])
	}
	switch verb {
	case "start":
		if len(words) == 1 {
			n.boot()
			return nil
		}
		var boot uint64
		_, err := fmt.Sscan(words[1], &boot)
		n.bootAs(boot)
		return err
	case "kill":
		n.kill()
	case "leave":
		n.core.Leave(n.age())
		n.effects()
	case "remove":
		if err := n.core.Remove(n.age(), words[1]); err != nil {
			c.lines = append(c.lines, err.Error())
		}
		n.effects()
	case "heard":
		n.core.Heard(n.age(), words[1])
		n.effects()
	case "pause":
		d, err := time.ParseDuration(words[1])
		n.pause(d)
		return err
	case "isolate":
		c.w.net.Isolate(n.number)
	case "cut", "mend":
		c.w.net.Cut(n.number, c.node(words[1]).number, verb == "cut")
	default:
		return fmt.Errorf("no line begins with %q", verb)
	}
	return nil
}

func (c *transcript) configure(words []string) (err error) {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "profile":
			c.config.Profile = value
		case "fence":
			c.config.Fence = value
		case "tie_breaker":
			c.config.TieBreaker = value
		case "forget":
			c.config.ForgetDead, err = time.ParseDuration(value)
			c.config.ForgetLeft = c.config.ForgetDead
		default:
			err = errors.New("no setting " + key)
		}
	}
	return err
}

func (c *transcript) node(name string) *simNode {
	for _, n := range c.w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (c *transcript) status(n *simNode) {
	if n.core == nil {
		c.lines = append(c.lines, n.name+" is down")
		return
	}
	var list []string
	for _, m := range n.core.Members() {
		if m.Name != n.name {
			list = append(list, fmt.Sprintf("%s %v/%d", m.Name, m.State, m.Incarnation))
		}
	}
	text := fmt.Sprintf("%s/%d knows %s; leader %s", n.name, n.core.self.incarnation, strings.Join(list, ", "), Leader(n.core.Members()))
	if n.core.Fenced() {
		text += "; fenced"
	}
	c.lines = append(c.lines, text)
}
