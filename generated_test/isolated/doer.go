package isolated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Order is a command for a Doer.
type Order struct {
	Do   string
	Size int
	Load string
}

// Outcome is the reply to an Order.
type Outcome struct {
	Process, Orders int
	Text            string
	Odd             Odd
}

// Parcel is a message that a Doer sends.
type Parcel struct {
	From    string
	Process int
	Load    string
	Odd     Odd
}

// Odd cannot always be encoded.
type Odd struct{ Fails bool }

var errOdd = errors.New("this cannot be written")

func (o Odd) MarshalBinary() ([]byte, error) {
	if o.Fails {
		return nil, errOdd
	}
	return nil, nil
}

func (o *Odd) UnmarshalBinary([]byte) error { return nil }

// Doer executes orders.
type Doer struct {
	name   string
	orders int
}

// scriptOf returns the command for a processor in the environment.
func scriptOf(processor, when string) string {
	return os.Getenv("ISOLATED_" + strings.ToUpper(processor+"_"+when))
}

// mark appends a line to the file in the environment.
func mark(what string) {
	file, err := os.OpenFile(os.Getenv("ISOLATED_MARKS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintf(file, "%s\n", what)
		file.Close()
	}
}

// NewDoer fails if the environment says so.
func NewDoer(in topo.Instance) (*Doer, error) {
	mark("new " + in.Processor)
	switch scriptOf(in.Processor, "new") {
	case "error":
		return nil, errJob
	case "panic":
		panic("no doer")
	case "exit":
		os.Exit(9)
	case "hang":
		select {}
	}
	return &Doer{name: in.Processor}, nil
}

func (d *Doer) Init() error {
	if scriptOf(d.name, "init") == "error" {
		return errJob
	}
	return nil
}

func (d *Doer) Close() error {
	mark("close " + d.name)
	return nil
}

func (d *Doer) ReceiveOrder(ctx context.Context, o Order, out interface{ SendParcel(Parcel) }) (Outcome, error) {
	d.orders++
	outcome := Outcome{Process: os.Getpid(), Orders: d.orders}
	later := func(f func()) { time.AfterFunc(10*time.Millisecond, f) }
	switch o.Do {
	case "error":
		return outcome, errJob
	case "panic":
		panic("told to")
	case "exit":
		os.Exit(o.Size)
	case "exit-later":
		later(func() { os.Exit(o.Size) })
	case "kill-later":
		later(func() { signalSelf(syscall.SIGTERM + syscall.Signal(o.Size)) })
	case "crash-later":
		later(func() { panic("elsewhere") })
	case "hang":
		select {}
	case "alive":
		for began := time.Now(); time.Since(began) < 1500*time.Millisecond; <-time.After(50 * time.Millisecond) {
			topo.Alive(ctx)
		}
	case "grow":
		for all := []byte("x"); ; {
			all = append(all, all...)
		}
	case "print":
		fmt.Println("on stdout")
		fmt.Fprintln(os.Stderr, "on stderr\x1b[31m")
		fmt.Println(strings.Repeat("long", o.Size))
	case "odd-reply":
		outcome.Odd.Fails = true
	case "odd-parcel":
		out.SendParcel(Parcel{From: d.name, Process: 1})
		out.SendParcel(Parcel{From: d.name, Odd: Odd{true}})
		out.SendParcel(Parcel{From: d.name, Process: 2})
	case "parcel":
		out.SendParcel(Parcel{From: d.name, Process: os.Getpid(), Load: strings.Repeat("x", o.Size)})
	case "rubbish":
		writeTo(3, "\x00\x00\x00\x02\x09ab and so on")
	case "close-files":
		closeFiles(10)
	case "start":
		c := exec.Command("sleep", "1000")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			return outcome, err
		}
		outcome.Text = fmt.Sprint(c.Process.Pid)
	case "wait":
		mark("waits")
		<-ctx.Done()
		mark("context ended")
		return outcome, ctx.Err()
	case "slow":
		<-time.After(time.Duration(o.Size))
	}
	return outcome, nil
}

// Server sends a parcel from Serve, and executes the command in the environment.
type Server struct{ name string }

func NewServer(in topo.Instance) *Server { return &Server{in.Processor} }

func (s *Server) Serve(ctx context.Context, out interface{ SendParcel(Parcel) error }) error {
	if err := out.SendParcel(Parcel{From: s.name, Process: os.Getpid()}); err != nil {
		return err
	}
	switch scriptOf(s.name, "serve") {
	case "return":
		return nil
	case "exit 0":
		os.Exit(0)
	case "exit 3":
		os.Exit(3)
	case "error":
		return errJob
	case "panic":
		panic("told to")
	case "odd":
		if err := out.SendParcel(Parcel{From: s.name, Odd: Odd{true}}); !errors.Is(err, errOdd) {
			return fmt.Errorf("the send returns %w", err)
		}
		return out.SendParcel(Parcel{From: s.name, Process: -1})
	}
	<-ctx.Done()
	return nil
}

// Heard reports a call of a listener's method.
type Heard struct{ What string }

// Listener has methods for changes of its inputs, which run in its process.
type Listener struct{ in *ListenerInputs }

func NewListener() *Listener                  { return new(Listener) }
func (l *Listener) Inputs(in *ListenerInputs) { l.in = in }
func (l *Listener) say(out *ListenerSender, s string) {
	last, ok := l.in.Parcel.Last()
	out.SendHeard(Heard{fmt.Sprintf("%s: %v, last of %s %v", s, l.in.Parcel.State(), last.From, ok)})
}
func (l *Listener) ReceiveParcel(p Parcel, out *ListenerSender) { l.say(out, "parcel") }
func (l *Listener) InputClosed(in ListenerInput, out *ListenerSender) {
	l.say(out, "closed "+in.String())
}
func (l *Listener) InputRecovered(in ListenerInput, out *ListenerSender) {
	l.say(out, "recovered "+in.String())
}
func (l *Listener) ProcessorRestarted(p ProcessorIndex, out *ListenerSender) {
	l.say(out, "restarted "+p.String())
}
func (l *Listener) AllInputsClosed(out *ListenerSender) { l.say(out, "all closed") }
func (l *Listener) Finish(out *ListenerSender)          { l.say(out, "finish") }
func (l *Listener) Close() error                        { mark("close listener"); return nil }
