package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// leaseDefault is the lease of tasks acquired by hand, as in the SDKs.
const leaseDefault = time.Minute

// ownPID is the process name of tasks acquired by hand.
const ownPID = "topoctl"

func newDurableTasks(chosen *command) *cobra.Command {
	s := &Server{}
	cmd := &cobra.Command{
		Use:     "tasks",
		Aliases: []string{"task"},
		Short:   "Show tasks, stop them, and act as a worker",
		Long: `Show tasks, stop and continue them, and act as a worker by hand. The task of a promise has
the id of the promise.

"halt" stops an execution until "continue". The other commands are those of a worker: it
acquires a task, which gives it a lease and a version, and then fulfills, suspends or
releases it. A command without --version uses the present version of the task.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return helpFirst(cmd) },
	}
	s.addFlags(cmd.PersistentFlags())
	cmd.AddCommand(newTasksGet(chosen, s), newTasksSearch(chosen, s), newTasksHalt(chosen, s), newTasksContinue(chosen, s),
		newTasksCreate(chosen, s), newTasksAcquire(chosen, s), newTasksHeartbeat(chosen, s), newTasksRelease(chosen, s),
		newTasksSuspend(chosen, s), newTasksFence(chosen, s), newTasksFulfill(chosen, s))
	return cmd
}

func newTasksGet(chosen *command, s *Server) *cobra.Command {
	return newTaskCommand(chosen, s, protocolTask{
		use: "get", short: "Show a task", long: "Show the task of a promise: its state, its version, and the process that has it.",
		op: func(id string) protocol.Operation { return protocol.TaskGet{ID: id} },
	})
}

func newTasksHalt(chosen *command, s *Server) *cobra.Command {
	return newTaskCommand(chosen, s, protocolTask{
		use: "halt", short: "Stop an execution until it is continued",
		long: `Stop the task of a promise: no worker gets it, and the worker that has it can record
nothing more. Its promise stays pending, and its deadline stays as it is.`,
		done: "is halted",
		op:   func(id string) protocol.Operation { return protocol.TaskHalt{ID: id} },
	})
}

func newTasksContinue(chosen *command, s *Server) *cobra.Command {
	return newTaskCommand(chosen, s, protocolTask{
		use: "continue", short: "Continue an execution that was halted",
		long: "Send a task that was halted to a worker again.",
		done: "is pending",
		op:   func(id string) protocol.Operation { return protocol.TaskContinue{ID: id} },
	})
}

// protocolTask describes a command that sends the id of a task, and nothing else.
type protocolTask struct {
	use, short, long, done string
	op                     func(id string) protocol.Operation
}

func newTaskCommand(chosen *command, s *Server, p protocolTask) *cobra.Command {
	e := Exchange{}
	cmd := &cobra.Command{
		Use:     p.use + " ID",
		Short:   p.short,
		Long:    p.long,
		Example: "  topoctl durable tasks " + p.use + " order-17",
		Args:    oneOf("the task"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.Server, e.Op, e.Done = *s, p.op(args[0]), args[0]+" "+p.done
			*chosen = e
			return s.check()
		},
	}
	e.flags(cmd, false)
	return cmd
}

var taskStates = []string{
	"", string(protocol.TaskPending), string(protocol.TaskAcquired), string(protocol.TaskSuspended), string(protocol.TaskHalted), string(protocol.TaskFulfilled),
}

func newTasksSearch(chosen *command, s *Server) *cobra.Command {
	e, p := Exchange{}, page{}
	cmd := &cobra.Command{
		Use:   "search",
		Short: "List tasks",
		Long: `List tasks in the order of their ids. If there are more tasks than --limit, the command
prints the --cursor with which to continue.`,
		Example: `  topoctl durable tasks search --state halted
  topoctl durable tasks search --state acquired --json | jq '.tasks[].pid'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e.Server, e.Op = *s, protocol.TaskSearch{State: protocol.TaskState(p.state), Limit: p.limit, Cursor: p.cursor}
			*chosen = e
			return errors.Join(p.check(taskStates), s.check())
		},
	}
	p.flags(cmd.Flags(), taskStates, false)
	e.flags(cmd, false)
	return cmd
}

// holder are the flags that name the version of a task and the process that has it.
type holder struct {
	version int64
	pid     string
	ttl     time.Duration
}

func (h *holder) versionFlag(flags *pflag.FlagSet) {
	flags.Int64Var(&h.version, "version", 0, "the version of the task (default: its present version)")
}

func (h *holder) leaseFlags(flags *pflag.FlagSet) {
	h.pidFlag(flags)
	flags.DurationVar(&h.ttl, "ttl", leaseDefault, "the lease: how long the process has the task without a heartbeat")
}

func (h *holder) pidFlag(flags *pflag.FlagSet) {
	flags.StringVar(&h.pid, "pid", ownPID, "the process that has the task")
}

func (h *holder) check() error {
	if h.ttl < time.Millisecond {
		return fmt.Errorf("--ttl must be at least 1ms, got %v", h.ttl)
	}
	return nil
}

func newTasksCreate(chosen *command, s *Server) *cobra.Command {
	e, data, h := Exchange{}, dataFlags{}, holder{}
	p := newPromise{target: defaultTarget}
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Create a promise with its task, and acquire the task",
		Long: `Create a promise with a task, and acquire the task in the same step. If the promise exists
and its task is pending, the task is acquired.`,
		Example: `  topoctl durable tasks create order-17 --pid me --ttl 5m`,
		Args:    oneOf("the promise"),
		RunE: func(cmd *cobra.Command, args []string) error {
			create, err := p.operation(args[0])
			if err = errors.Join(err, h.check()); err != nil {
				return err
			}
			data.given, data.raw = cmd.Flags().Changed("data"), e.Raw
			if create.Param, err = data.value(); err != nil {
				return err
			}
			e.Server, e.Op = *s, protocol.TaskCreate{PID: h.pid, TTL: h.ttl.Milliseconds(), Action: create}
			*chosen = e
			return s.check()
		},
	}
	p.flags(cmd.Flags())
	h.leaseFlags(cmd.Flags())
	data.flags(cmd.Flags(), "the parameter: JSON, or text that becomes a JSON string")
	e.flags(cmd, true)
	return cmd
}

func newTasksAcquire(chosen *command, s *Server) *cobra.Command {
	e, h := Exchange{}, holder{}
	cmd := &cobra.Command{
		Use:     "acquire ID",
		Aliases: []string{"claim"},
		Short:   "Acquire a pending task",
		Long: `Acquire a pending task. The answer has the parameter of its promise, and the recorded
steps of the execution. Without heartbeats the task is pending again after --ttl.`,
		Example: `  topoctl durable tasks acquire order-17 --ttl 5m`,
		Args:    oneOf("the task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Server, e.Op = *s, protocol.TaskAcquire{ID: args[0], Version: h.version, PID: h.pid, TTL: h.ttl.Milliseconds()}
			e.Current = !cmd.Flags().Changed("version")
			*chosen = e
			return errors.Join(h.check(), s.check())
		},
	}
	h.versionFlag(cmd.Flags())
	h.leaseFlags(cmd.Flags())
	e.flags(cmd, true)
	return cmd
}

func newTasksHeartbeat(chosen *command, s *Server) *cobra.Command {
	e, h := Exchange{}, holder{}
	cmd := &cobra.Command{
		Use:   "heartbeat ID [ID…]",
		Short: "Begin the leases of tasks again",
		Long: `Begin the leases of tasks again. A task that another process has, or that is not
acquired, is not changed, and this is not an error.`,
		Example: `  topoctl durable tasks heartbeat order-17 order-18 --pid me`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the tasks")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			op := protocol.TaskHeartbeat{PID: h.pid}
			for _, id := range args {
				op.Tasks = append(op.Tasks, protocol.TaskRef{ID: id})
			}
			e.Server, e.Op, e.Current, e.Done = *s, op, true, "sent a heartbeat of "+h.pid+" for "+strings.Join(args, ", ")
			*chosen = e
			return s.check()
		},
	}
	h.pidFlag(cmd.Flags())
	e.flags(cmd, false)
	return cmd
}

func newTasksRelease(chosen *command, s *Server) *cobra.Command {
	e, h := Exchange{}, holder{}
	cmd := &cobra.Command{
		Use:     "release ID",
		Short:   "Return an acquired task, so that another worker gets it",
		Long:    `Return an acquired task. It is pending again, and is sent to a worker at once.`,
		Example: `  topoctl durable tasks release order-17`,
		Args:    oneOf("the task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Server, e.Op, e.Done = *s, protocol.TaskRelease{ID: args[0], Version: h.version}, args[0]+" is released"
			e.Current = !cmd.Flags().Changed("version")
			*chosen = e
			return s.check()
		},
	}
	h.versionFlag(cmd.Flags())
	e.flags(cmd, false)
	return cmd
}

func newTasksSuspend(chosen *command, s *Server) *cobra.Command {
	e, h := Exchange{}, holder{}
	var awaited []string
	cmd := &cobra.Command{
		Use:   "suspend ID",
		Short: "Suspend an acquired task until a promise is settled",
		Long: `Suspend an acquired task until one of the promises --await is settled. If one of them is
settled already, the task stays acquired.`,
		Example: `  topoctl durable tasks suspend order-17 --await order-17:2 --await order-17:3`,
		Args:    oneOf("the task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(awaited) == 0 {
				return errors.New("name the promises to wait for: --await ID")
			}
			op := protocol.TaskSuspend{ID: args[0], Version: h.version}
			for _, id := range awaited {
				op.Actions = append(op.Actions, protocol.RegisterCallback{Awaited: id, Awaiter: args[0]})
			}
			e.Server, e.Op, e.Done = *s, op, args[0]+" is suspended"
			e.Current = !cmd.Flags().Changed("version")
			*chosen = e
			return s.check()
		},
	}
	cmd.Flags().StringArrayVar(&awaited, "await", nil, "a promise to wait for; repeat it for several promises")
	h.versionFlag(cmd.Flags())
	e.flags(cmd, true)
	return cmd
}

func newTasksFulfill(chosen *command, s *Server) *cobra.Command {
	e, h, data := Exchange{}, holder{}, dataFlags{}
	state := string(protocol.Resolved)
	cmd := &cobra.Command{
		Use:     "fulfill ID",
		Aliases: []string{"complete"},
		Short:   "Settle the promise of an acquired task",
		Long:    `Settle the promise of an acquired task. The command shows the promise.`,
		Example: `  topoctl durable tasks fulfill order-17 --data '{"Tracking":"Z9"}'
  topoctl durable tasks fulfill order-17 --state rejected --data '"out of stock"'`,
		Args: oneOf("the task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data.given, data.raw = cmd.Flags().Changed("data"), e.Raw
			value, err := data.value()
			if err != nil {
				return err
			}
			e.Server, e.Op = *s, protocol.TaskFulfill{ID: args[0], Version: h.version, Action: protocol.PromiseSettle{ID: args[0], State: protocol.PromiseState(state), Value: value}}
			e.Current = !cmd.Flags().Changed("version")
			*chosen = e
			return s.check()
		},
	}
	cmd.Flags().Var(choice{&state, []string{string(protocol.Resolved), string(protocol.Rejected), string(protocol.RejectedCancel)}}, "state", "the state of the promise")
	data.flags(cmd.Flags(), "the value: JSON, or text that becomes a JSON string")
	h.versionFlag(cmd.Flags())
	e.flags(cmd, true)
	return cmd
}

func newTasksFence(chosen *command, s *Server) *cobra.Command {
	e, h := Exchange{}, holder{}
	var action string
	cmd := &cobra.Command{
		Use:   "fence ID",
		Short: "Create or settle another promise while the task is acquired",
		Long: `Create or settle another promise, if the task is still acquired. --action is a request
promise.create or promise.settle of the protocol, as JSON. Its values are sent as they are.`,
		Example: `  topoctl durable tasks fence order-17 --action '{"kind":"promise.settle","data":{"id":"order-17:1","state":"resolved"}}'`,
		Args:    oneOf("the task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			op, err := fence(args[0], h.version, action)
			if err != nil {
				return err
			}
			e.Server, e.Op = *s, op
			e.Current = !cmd.Flags().Changed("version")
			*chosen = e
			return s.check()
		},
	}
	cmd.Flags().StringVar(&action, "action", "", "the request to carry out")
	h.versionFlag(cmd.Flags())
	e.flags(cmd, true)
	return cmd
}

// fence reads the action of a task.fence.
func fence(id string, version int64, action string) (protocol.TaskFence, error) {
	if !json.Valid([]byte(action)) {
		return protocol.TaskFence{}, fmt.Errorf("--action must be a JSON object, got %q", action)
	}
	text, err := json.Marshal(map[string]any{
		"kind": protocol.TaskFence{}.Kind(),
		"head": map[string]string{"corrId": "1", "version": protocol.Version},
		"data": map[string]any{"id": id, "version": version, "action": json.RawMessage(action)},
	})
	if err != nil {
		return protocol.TaskFence{}, err
	}
	r, err := protocol.DecodeRequest(text)
	if err != nil {
		return protocol.TaskFence{}, fmt.Errorf("--action: %w", err)
	}
	return r.Op.(protocol.TaskFence), nil
}
