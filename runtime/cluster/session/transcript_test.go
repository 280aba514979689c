package session_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/runtime/cluster/session"
)

// TestTranscripts runs the scripts in testdata/transcripts. Their output shows the frames,
// deliveries and events of two nodes; read them to see how a session works. "go test
// -update" writes the output.
func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata/transcripts/*.txt", func(t *testing.T) func([]string) ([]string, error) {
		c := &transcript{names: []string{"n1", "n2"}}
		return c.line
	})
}

// transcript runs the commands of a transcript on the nodes n1 and n2. The commands are
//
//	start NAME BOOT [PLAN]      start a process; a process that was running is killed
//	send NAME LANE TEXT         queue a message
//	fill NAME LANE SIZE [N]     queue N messages of a size
//	run                         pass frames until there are none
//	quiet COMMAND...            run a command without output
//	frame NAME [N]              pass N frames of a node
//	lose NAME N                 lose the next N frames of a node
//	late NAME                   pass the last frame that a former process of the node has sent
//	wait [DURATION]             let the time pass until the next deadline, or for a duration, and run
//	connected NAME yes|no       the hint of the transport
//	status NAME                 print the counts
type transcript struct {
	names  []string
	ends   [2]*session.Session
	lose   [2]int
	last   [2][]byte // the last frame of the process
	former [2][]byte // the last frame of the process before
	now    time.Duration
	lines  []string
	silent bool
}

func (c *transcript) print(format string, args ...any) {
	if !c.silent {
		c.lines = append(c.lines, fmt.Sprintf(format, args...))
	}
}

func (c *transcript) line(words []string) ([]string, error) {
	c.lines, c.silent = nil, words[0] == "quiet"
	if c.silent {
		words = words[1:]
	}
	return c.lines, c.do(words)
}

func (c *transcript) do(words []string) error {
	defer func() { c.silent = false }()
	arg := func(i, otherwise int) int {
		if i < len(words) {
			if n, err := strconv.Atoi(words[i]); err == nil {
				return n
			}
		}
		return otherwise
	}
	switch words[0] {
	case "run":
		c.run()
		return nil
	case "wait":
		return c.wait(words[1:])
	}
	i := slices.Index(c.names, words[1])
	if i < 0 {
		return fmt.Errorf("no node %q", words[1])
	}
	s := c.ends[i]
	switch words[0] {
	case "start":
		conf := config(c.names[i], c.names[1-i], uint64(arg(2, 0)))
		if len(words) > 3 {
			conf.Plan = words[3]
		}
		c.former[i], c.last[i] = c.last[i], nil
		var err error
		c.ends[i], err = session.New(conf)
		return err
	case "send":
		return s.Send(uint64(arg(2, 0)), []byte(words[3]))
	case "fill":
		for range arg(4, 1) {
			if err := s.Send(uint64(arg(2, 0)), make([]byte, arg(3, 0))); err != nil {
				return err
			}
		}
	case "frame":
		for range arg(2, 1) {
			c.pass(i)
		}
	case "lose":
		c.lose[i] = arg(2, 0)
	case "late":
		c.arrive(i, c.former[i], "late ")
	case "connected":
		s.Connected(c.now, words[2] == "yes")
	case "status":
		v := s.Stats()
		c.print("acknowledged %d, pending %d, forgotten %d; received %d; frames sent again %d, duplicates %d, stale %d, timeouts %d",
			v.MessagesAcked, v.Pending, v.Forgotten, v.MessagesReceived, v.FramesResent, v.Duplicates, v.Stale, v.Timeouts)
	default:
		return fmt.Errorf("no line begins with %q", words[0])
	}
	return nil
}

func (c *transcript) run() {
	for busy := true; busy; {
		busy = false
		for i := range c.ends {
			for c.pass(i) {
				busy = true
			}
		}
	}
}

func (c *transcript) wait(words []string) error {
	if len(words) > 0 {
		d, err := time.ParseDuration(words[0])
		c.now += d
		c.run()
		return err
	}
	next := time.Duration(1<<63 - 1)
	for _, s := range c.ends {
		if s == nil {
			continue
		}
		if at, ok := s.Next(); ok {
			next = min(next, at)
		}
	}
	if next == 1<<63-1 {
		c.print("no deadline")
		return nil
	}
	c.print("after %v", (next - c.now).Round(time.Millisecond))
	c.now = max(c.now, next)
	c.run()
	return nil
}

// pass passes a frame of a node to the other one.
func (c *transcript) pass(from int) bool {
	if c.ends[from] == nil {
		return false
	}
	f := c.ends[from].Frame(c.now)
	if f == nil {
		return false
	}
	c.last[from] = f
	if c.lose[from] > 0 || c.ends[1-from] == nil {
		c.lose[from] = max(c.lose[from]-1, 0)
		c.print("%s %s (lost)", c.names[from], session.Describe(f))
		return true
	}
	c.arrive(from, f, "")
	return true
}

func (c *transcript) arrive(from int, f []byte, prefix string) {
	to := c.ends[1-from]
	c.print("%s%s %s", prefix, c.names[from], session.Describe(f))
	got, err := to.Receive(c.now, f, nil)
	if err != nil {
		c.print("  %s refuses the frame: %v", c.names[1-from], err)
	}
	for _, d := range got {
		if len(d.Message) < 40 && d.Message[0] != 0 {
			c.print("  %s gets %q in lane %d", c.names[1-from], d.Message, d.Lane)
		} else {
			c.print("  %s gets %d bytes in lane %d", c.names[1-from], len(d.Message), d.Lane)
		}
	}
	for _, e := range to.Events() {
		c.print("  %s: %s%+v", c.names[1-from], fmt.Sprintf("%T", e)[len("session."):], e)
	}
}
