package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// defaultTarget are the workers of the SDKs that have no group of their own.
const defaultTarget = "poll://any@default"

// Invoke calls a function, and waits for its result if Wait is set.
type Invoke struct {
	Exchange
	Wait bool
}

// functionFlags are the flags that describe a call of a function.
type functionFlags struct {
	name     string
	args     []string
	jsonArgs string
	version  int
	target   string
}

func (f *functionFlags) flags(flags *pflag.FlagSet) {
	flags.StringVarP(&f.name, "func", "f", "", "the function to call")
	flags.StringArrayVar(&f.args, "arg", nil, "an argument: JSON, or text that becomes a JSON string; repeat it for several arguments")
	flags.StringVar(&f.jsonArgs, "json-args", "", "all arguments as a JSON array, in place of --arg")
	flags.IntVar(&f.version, "version", 1, "the version of the function")
	flags.StringVar(&f.target, "target", defaultTarget, "the address of the workers that have the function")
}

// value returns the parameter of a promise that calls the function.
func (f *functionFlags) value() (protocol.Value, error) {
	c := call{Func: f.name, Version: f.version}
	switch {
	case f.version < 1:
		return protocol.Value{}, fmt.Errorf("--version must be at least 1, got %d", f.version)
	case f.jsonArgs != "" && len(f.args) > 0:
		return protocol.Value{}, errors.New("--arg and --json-args exclude each other")
	case f.jsonArgs != "":
		if json.Unmarshal([]byte(f.jsonArgs), &c.Args) != nil || c.Args == nil {
			return protocol.Value{}, fmt.Errorf("--json-args must be a JSON array, got %q", f.jsonArgs)
		}
	}
	for _, arg := range f.args {
		c.Args = append(c.Args, jsonOf(arg))
	}
	return c.value()
}

func newDurableInvoke(chosen *command) *cobra.Command {
	s, i, f, p := &Server{}, Invoke{}, functionFlags{}, newPromise{}
	cmd := &cobra.Command{
		Use:   "invoke ID",
		Short: "Call a durable function",
		Long: `Call a durable function. ID is the id of the call: a second call with the same ID does not
run the function again, and shows the first one.

A durable edge of a topology is called with the name of the topology as the group, and
with the names of the edge: --target poll://any@shop --func api.orders.PlaceOrder. The
program finds the call by its own id if ID has the same form as the ids that it makes:
shop:api.orders.PlaceOrder:17.

With --wait the command waits until the function has returned. It exits with 1 if the
function returns an error, is canceled, or does not return before its deadline.`,
		Example: `  topoctl durable invoke countdown-1 --func countdown --arg 5 --arg 60
  topoctl durable invoke order-17 --func checkout --arg '{"Item":"lamp"}' --target poll://any@shop --wait`,
		Args: oneOf("the id of the call"),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.name == "" {
				return errors.New("name the function: --func NAME")
			}
			p.target = f.target
			create, err := p.operation(args[0])
			if err != nil {
				return err
			}
			if create.Param, err = f.value(); err != nil {
				return err
			}
			// These are the tags of a root in the SDKs. Without them the tree would be empty.
			for _, tag := range []string{protocol.TagOrigin, protocol.TagBranch, protocol.TagParent} {
				if create.Tags[tag] == "" {
					create.Tags[tag] = args[0]
				}
			}
			create.Tags[protocol.TagScope] = "global"
			i.Server, i.Op = *s, create
			*chosen = i
			return s.check()
		},
	}
	f.flags(cmd.Flags())
	p.callFlags(cmd.Flags())
	cmd.Flags().BoolVar(&i.Wait, "wait", false, "wait until the function has returned")
	s.addFlags(cmd.Flags())
	i.flags(cmd, true)
	return cmd
}

// callFlags adds the flags of a promise that calls a function.
func (p *newPromise) callFlags(flags *pflag.FlagSet) {
	flags.DurationVarP(&p.timeout, "timeout", "t", promiseTimeout, "the time until the deadline of the call")
	flags.DurationVar(&p.delay, "delay", 0, "the time until a worker gets the call; the deadline is that much later")
	flags.StringArrayVar(&p.tags, "tag", nil, "a tag NAME=VALUE; repeat it for several tags")
}

func (i Invoke) run(ctx context.Context, s Streams) error {
	if !i.Wait {
		return i.Exchange.run(ctx, s)
	}
	b, err := i.connect()
	if err != nil {
		return err
	}
	first, cancel := context.WithTimeout(ctx, i.Timeout)
	defer cancel()
	r, err := i.do(first, b, i.Op)
	if err != nil {
		return err
	}
	p, err := i.await(ctx, b, r.Promise)
	if err != nil {
		return err
	}
	if err := i.print(&protocol.Result{Status: protocol.OK, Promise: p}, s); err != nil {
		return err
	}
	if p.State != protocol.Resolved {
		text := p.ID + " is " + stateText(p.State)
		if reason := errorOf(p); reason != "" {
			text += ": " + reason
		}
		return negative(text)
	}
	return nil
}

// reviewInterval is how often the promise is read while the command waits for a message. The
// server keeps messages that could not be delivered, but the connection may be gone for long.
const reviewInterval = 5 * time.Second

// await waits until a promise is settled.
func (i *Invoke) await(ctx context.Context, b protocol.Backend, p *protocol.Promise) (*protocol.Promise, error) {
	pid := rand.Text() // each process has messages of its own
	connection, err := b.Connect(ownPID, pid)
	if err != nil {
		return nil, i.explain(err)
	}
	defer connection.Close()
	request := func(op protocol.Operation) (*protocol.Promise, error) {
		ctx, cancel := context.WithTimeout(ctx, i.Timeout)
		defer cancel()
		r, err := i.do(ctx, b, op)
		return r.Promise, err
	}
	if p.State == protocol.Pending {
		p, err = request(protocol.RegisterListener{Awaited: p.ID, Address: "poll://uni@" + ownPID + "/" + pid})
	}
	review := time.NewTicker(reviewInterval)
	defer review.Stop()
	messages := connection.Messages()
	for err == nil && p.State == protocol.Pending {
		select {
		case m, open := <-messages:
			if !open {
				messages = nil // the reviews go on
			} else if m.Unblock != nil && m.Unblock.ID == p.ID {
				p = m.Unblock
			}
		case <-review.C:
			p, err = request(protocol.PromiseGet{ID: p.ID})
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return p, err
}
