package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// promiseTimeout is the default time until the deadline of a promise, as in the SDKs.
const promiseTimeout = 24 * time.Hour

// searchLimit is the default number of records that a search prints.
const searchLimit = 100

func newDurablePromises(chosen *command) *cobra.Command {
	s := &Server{}
	cmd := &cobra.Command{
		Use:     "promises",
		Aliases: []string{"promise"},
		Short:   "Create, settle and show promises",
		Long: `Create, settle and show promises. A promise has an id, a parameter, a deadline, and later
a value. It is settled once: it is resolved, rejected or canceled, or its deadline passes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return helpFirst(cmd) },
	}
	s.addFlags(cmd.PersistentFlags())
	cmd.AddCommand(newPromisesGet(chosen, s), newPromisesCreate(chosen, s),
		newPromisesSettle(chosen, s, "resolve", "Resolve", protocol.Resolved, `42`),
		newPromisesSettle(chosen, s, "reject", "Reject", protocol.Rejected, `"card declined"`),
		newPromisesSettle(chosen, s, "cancel", "Cancel", protocol.RejectedCancel, `"not needed"`),
		newPromisesSearch(chosen, s), newPromisesCallback(chosen, s), newPromisesListener(chosen, s))
	return cmd
}

func newPromisesGet(chosen *command, s *Server) *cobra.Command {
	e := Exchange{}
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show a promise",
		Long:  `Show a promise as it is now: if its deadline has passed, it is settled.`,
		Example: `  topoctl durable promises get order-17
  topoctl durable promises get order-17 --json | jq .value.data`,
		Args: oneOf("the promise"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.Server, e.Op = *s, protocol.PromiseGet{ID: args[0]}
			*chosen = e
			return s.check()
		},
	}
	e.flags(cmd, true)
	return cmd
}

func newPromisesCreate(chosen *command, s *Server) *cobra.Command {
	e, data := Exchange{}, dataFlags{}
	var p newPromise
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Create a promise",
		Long: `Create a promise. If the promise exists, it is shown and not changed, whatever the flags
are. With --target a worker of the address gets a task to settle the promise.`,
		Example: `  topoctl durable promises create approval-17 --timeout 72h --data '{"amount":900}' --tag resonate:external=true
  topoctl durable promises create report --target poll://any@reports --data '{"func":"report","args":[],"version":1}'`,
		Args: oneOf("the promise"),
		RunE: func(cmd *cobra.Command, args []string) error {
			create, err := p.operation(args[0])
			if err != nil {
				return err
			}
			data.given, data.raw = cmd.Flags().Changed("data"), e.Raw
			if create.Param, err = data.value(); err != nil {
				return err
			}
			e.Server, e.Op = *s, create
			*chosen = e
			return s.check()
		},
	}
	p.flags(cmd.Flags())
	data.flags(cmd.Flags(), "the parameter: JSON, or text that becomes a JSON string")
	e.flags(cmd, true)
	return cmd
}

// newPromise are the flags that describe a promise.
type newPromise struct {
	timeout time.Duration
	target  string
	delay   time.Duration
	tags    []string
}

func (p *newPromise) flags(flags *pflag.FlagSet) {
	flags.DurationVarP(&p.timeout, "timeout", "t", promiseTimeout, "the time until the deadline of the promise")
	flags.StringVar(&p.target, "target", p.target, "the address of the workers that settle the promise")
	flags.DurationVar(&p.delay, "delay", 0, "the time until a worker gets the task; the deadline is that much later")
	flags.StringArrayVar(&p.tags, "tag", nil, "a tag NAME=VALUE; repeat it for several tags")
}

// operation returns the request that creates the promise. It has no parameter.
func (p *newPromise) operation(id string) (protocol.PromiseCreate, error) {
	tags, err := pairs("tag", p.tags)
	switch {
	case err != nil:
		return protocol.PromiseCreate{}, err
	case p.timeout <= 0:
		return protocol.PromiseCreate{}, fmt.Errorf("--timeout must be more than 0, got %v", p.timeout)
	case p.delay < 0:
		return protocol.PromiseCreate{}, fmt.Errorf("--delay must not be negative, got %v", p.delay)
	case p.timeout > math.MaxInt64-p.delay:
		return protocol.PromiseCreate{}, fmt.Errorf("--timeout and --delay must be at most %v together", time.Duration(math.MaxInt64))
	case p.delay > 0 && p.target == "":
		return protocol.PromiseCreate{}, errors.New("--delay needs --target: without one the promise has no task")
	}
	if tags == nil {
		tags = map[string]string{}
	}
	now := time.Now().UnixMilli()
	if p.target != "" {
		tags[protocol.TagTarget] = p.target
	}
	if p.delay > 0 {
		tags[protocol.TagDelay] = fmt.Sprint(now + p.delay.Milliseconds())
	}
	return protocol.PromiseCreate{ID: id, TimeoutAt: now + (p.timeout + p.delay).Milliseconds(), Tags: tags}, nil
}

func (d *dataFlags) flags(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&d.text, "data", "", usage)
	flags.StringArrayVar(&d.headers, "header", nil, "a header NAME=VALUE of the value; repeat it for several headers")
}

func newPromisesSettle(chosen *command, s *Server, name, title string, state protocol.PromiseState, example string) *cobra.Command {
	e, data := Exchange{}, dataFlags{}
	cmd := &cobra.Command{
		Use:   name + " ID",
		Short: title + " a promise",
		Long: title + ` a promise. A promise that is settled already is shown and not changed. The
programs that wait for it are notified, and its task is fulfilled.`,
		Example: "  topoctl durable promises " + name + " approval-17 --data '" + example + "'",
		Args:    oneOf("the promise"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data.given, data.raw = cmd.Flags().Changed("data"), e.Raw
			value, err := data.value()
			if err != nil {
				return err
			}
			e.Server, e.Op = *s, protocol.PromiseSettle{ID: args[0], State: state, Value: value}
			*chosen = e
			return s.check()
		},
	}
	data.flags(cmd.Flags(), "the value: JSON, or text that becomes a JSON string")
	e.flags(cmd, true)
	return cmd
}

// promiseStates are the states for which promises can be searched.
var promiseStates = []string{
	"", string(protocol.Pending), string(protocol.Resolved), string(protocol.Rejected), string(protocol.RejectedCancel), string(protocol.RejectedTimeout),
}

// page are the flags of a search.
type page struct {
	state  string
	tags   []string
	limit  int
	cursor string
}

func (p *page) flags(flags *pflag.FlagSet, states []string, tags bool) {
	if states != nil {
		flags.StringVar(&p.state, "state", "", "only records in this state: "+strings.Join(states[1:], ", "))
	}
	if tags {
		flags.StringArrayVar(&p.tags, "tag", nil, "only records with this tag NAME=VALUE; repeat it for several tags")
	}
	flags.IntVar(&p.limit, "limit", searchLimit, "the highest number of records")
	flags.StringVar(&p.cursor, "cursor", "", "continue a search; the command before has printed the value")
}

func (p *page) check(states []string) error {
	switch {
	case states != nil && !slices.Contains(states, p.state):
		return fmt.Errorf("--state must be %s, got %q", strings.Join(states[1:], ", "), p.state)
	case p.limit < 1 || p.limit > protocol.MaxSearch:
		return fmt.Errorf("--limit must be from 1 to %d, got %d", protocol.MaxSearch, p.limit)
	}
	return nil
}

func newPromisesSearch(chosen *command, s *Server) *cobra.Command {
	e, p := Exchange{}, page{}
	cmd := &cobra.Command{
		Use:   "search",
		Short: "List promises",
		Long: `List promises in the order of their ids. All given tags must match. If there are more
promises than --limit, the command prints the --cursor with which to continue.`,
		Example: `  topoctl durable promises search --state pending
  topoctl durable promises search --tag resonate:origin=order-17 --json | jq '.promises[].id'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			tags, err := pairs("tag", p.tags)
			if err = errors.Join(err, p.check(promiseStates)); err != nil {
				return err
			}
			e.Server, e.Op = *s, protocol.PromiseSearch{State: protocol.PromiseState(p.state), Tags: tags, Limit: p.limit, Cursor: p.cursor}
			*chosen = e
			return s.check()
		},
	}
	p.flags(cmd.Flags(), promiseStates, true)
	e.flags(cmd, true)
	return cmd
}

func newPromisesCallback(chosen *command, s *Server) *cobra.Command {
	e := Exchange{}
	cmd := &cobra.Command{
		Use:   "register-callback AWAITED AWAITER",
		Short: "Resume a task when a promise is settled",
		Long: `Resume the task of the promise AWAITER when the promise AWAITED is settled. Both must
have the same origin. The command shows AWAITED. If it is settled already, nothing is
registered.`,
		Example: `  topoctl durable promises register-callback order-17:2 order-17`,
		Args:    texts(2, "the awaited promise and the awaiter"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.Server, e.Op = *s, protocol.RegisterCallback{Awaited: args[0], Awaiter: args[1]}
			*chosen = e
			return s.check()
		},
	}
	e.flags(cmd, true)
	return cmd
}

func newPromisesListener(chosen *command, s *Server) *cobra.Command {
	e := Exchange{}
	cmd := &cobra.Command{
		Use:   "register-listener AWAITED ADDRESS",
		Short: "Notify an address when a promise is settled",
		Long: `Send a message to ADDRESS when the promise AWAITED is settled. The command shows the
promise. If it is settled already, nothing is registered.`,
		Example: `  topoctl durable promises register-listener order-17 https://shop.example.com/settled`,
		Args:    texts(2, "the promise and the address"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.Server, e.Op = *s, protocol.RegisterListener{Awaited: args[0], Address: args[1]}
			*chosen = e
			return s.check()
		},
	}
	e.flags(cmd, true)
	return cmd
}
