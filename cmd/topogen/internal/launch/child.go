package launch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
)

// child is the running program.
type child struct {
	values  values
	streams Streams
	command *exec.Cmd

	control   *os.File // closing it makes the supplied main function drain
	figures   *os.File // the program's figures are read from it
	childEnds []*os.File
	screen    *screen
}

func newChild(p Program, s Streams) *child {
	return &child{values: values{Program: p}, streams: s}
}

// open creates the pipes that the program expects.
func (c *child) open() (err error) {
	if !pipes {
		return nil
	}
	const first = 3 // after the standard streams
	if c.values.Package != "main" {
		var childEnd *os.File
		if childEnd, c.control, err = os.Pipe(); err != nil {
			return err
		}
		c.values.Control = first + len(c.childEnds)
		c.childEnds = append(c.childEnds, childEnd)
	}
	if c.streams.Status {
		var childEnd *os.File
		if c.figures, childEnd, err = os.Pipe(); err != nil {
			return err
		}
		c.values.Status = first + len(c.childEnds)
		c.childEnds = append(c.childEnds, childEnd)
	}
	return nil
}

func (c *child) close() {
	for _, file := range append(c.childEnds, c.control, c.figures) {
		if file != nil {
			file.Close() // closing twice is harmless
		}
	}
}

func (c *child) start(binary string) error {
	c.prepare(binary)
	if c.figures != nil {
		c.screen = &screen{out: c.streams.Err}
		c.command.Stderr = c.screen
		if c.streams.Shared {
			c.command.Stdout = c.screen // the same pipe, which keeps the order of both streams
		}
	}
	if err := c.begin(); err != nil {
		return err
	}
	if c.figures != nil {
		go c.show()
	}
	return nil
}

// prepare makes the command of the program.
func (c *child) prepare(binary string) {
	c.command = exec.Command(binary, c.values.Args...)
	c.command.Env = slices.Concat(c.streams.Env, c.streams.Secrets)
	c.command.Stdin, c.command.Stdout, c.command.Stderr = c.streams.In, c.streams.Out, c.streams.Err
	c.command.ExtraFiles = c.childEnds
	c.command.WaitDelay = lingerMax
}

// begin starts the command.
func (c *child) begin() error {
	isolate(c.command, c.control == nil, c.foreground())
	if err := c.command.Start(); err != nil {
		return err
	}
	for _, file := range c.childEnds {
		file.Close()
	}
	return nil
}

// foreground reports whether the program must share the process group of topogen. This
// is so if it reads from a terminal in whose foreground topogen runs.
func (c *child) foreground() bool {
	in, ok := c.streams.In.(*os.File)
	return ok && inForeground(in)
}

// wait passes interrupts to the program until it has ended.
func (c *child) wait(ctx context.Context, signals *interrupts) (code int, err error) {
	ended := make(chan error, 1)
	go func() { ended <- c.command.Wait() }()
	stopping := false // the program was told to drain
	done := ctx.Done()
	for {
		select {
		case sig := <-signals.signals:
			switch {
			case signals.repeated():
			case stopping:
				_ = c.command.Process.Kill() // an error means that it has ended
			default:
				stopping = true
				c.stop(sig)
			}
		case <-done:
			done = nil
			stopping = true
			c.stop(os.Interrupt)
		case err := <-ended:
			if c.screen != nil {
				c.screen.close()
			}
			return c.code(err)
		}
	}
}

// stop makes the program drain.
func (c *child) stop(sig os.Signal) {
	if c.control != nil {
		c.control.Close()
		return
	}
	if sig == os.Interrupt && (c.foreground() || !pipes) {
		return // the terminal has sent the signal to the program too
	}
	_ = c.command.Process.Signal(sig) // an error means that it has ended
}

func (c *child) code(err error) (int, error) {
	state := c.command.ProcessState
	_, exited := errors.AsType[*exec.ExitError](err)
	if state == nil || err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, err
	}
	return exitCode(state), nil
}
