package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Exchange sends one operation to a server of durable promises, and prints the answer.
type Exchange struct {
	Server
	Op   protocol.Operation
	JSON bool
	Raw  bool
	Done string // printed to stderr if the answer has no record

	// Current says that the version in Op must be replaced by the version that the task has now.
	Current bool
}

// flags adds the flags of a command that prints records. values says whether they have
// values that can be shown decoded.
func (e *Exchange) flags(cmd *cobra.Command, values bool) {
	addJSON(cmd, &e.JSON)
	if values {
		cmd.Flags().BoolVar(&e.Raw, "raw", false, "show and send values as they are stored")
	}
}

func (e Exchange) run(ctx context.Context, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	b, err := e.connect()
	if err != nil {
		return err
	}
	if e.Current {
		if e.Op, err = e.atCurrentVersion(ctx, b); err != nil {
			return err
		}
	}
	r, err := e.do(ctx, b, e.Op)
	if err != nil {
		return err
	}
	return e.print(&r, s)
}

// print prints the records of a result.
func (e *Exchange) print(r *protocol.Result, s Streams) error {
	switch e.Op.(type) {
	case protocol.PromiseSearch:
		if e.JSON {
			return printJSON(s.Out, struct {
				Promises []promiseObject `json:"promises"`
				Cursor   string          `json:"cursor,omitempty"`
			}{newPromiseObjects(r.Promises, e.Raw), r.Cursor})
		}
		return printPage(promiseTable(r.Promises), r.Cursor, s)
	case protocol.TaskSearch:
		if e.JSON {
			return printJSON(s.Out, struct {
				Tasks  []protocol.Task `json:"tasks"`
				Cursor string          `json:"cursor,omitempty"`
			}{newTaskObjects(r.Tasks), r.Cursor})
		}
		return printPage(taskTable(r.Tasks), r.Cursor, s)
	case protocol.ScheduleSearch:
		if e.JSON {
			list := []scheduleObject{}
			for i := range r.Schedules {
				list = append(list, newScheduleObject(&r.Schedules[i], e.Raw))
			}
			return printJSON(s.Out, struct {
				Schedules []scheduleObject `json:"schedules"`
				Cursor    string           `json:"cursor,omitempty"`
			}{list, r.Cursor})
		}
		return printPage(scheduleTable(r.Schedules), r.Cursor, s)
	}
	if r.Action != nil { // of task.fence
		r = r.Action
		if r.Status >= protocol.BadRequest {
			return &refusal{e.url(), r.Status, r.Error}
		}
	}
	if e.JSON {
		return e.printObject(r, s)
	}
	return e.printRecord(r, s)
}

// printPage prints a part of a search, and how to get the next one.
func printPage(t table, cursor string, s Streams) error {
	if err := t.print(s.Out); err != nil {
		return err
	}
	if cursor != "" {
		fmt.Fprintf(s.Err, "topoctl: there are more: --cursor %s\n", oneLine(cursor))
	}
	return nil
}

// printObject prints the record of a result as JSON. A task with its promise is an object
// of both.
func (e *Exchange) printObject(r *protocol.Result, s Streams) error {
	switch {
	case r.Task != nil && r.Promise != nil:
		return printJSON(s.Out, struct {
			Task    *protocol.Task  `json:"task"`
			Promise promiseObject   `json:"promise"`
			Preload []promiseObject `json:"preload"`
		}{newTaskObject(r.Task), newPromiseObject(r.Promise, e.Raw), newPromiseObjects(r.Preload, e.Raw)})
	case r.Promise != nil:
		return printJSON(s.Out, newPromiseObject(r.Promise, e.Raw))
	case r.Task != nil:
		return printJSON(s.Out, newTaskObject(r.Task))
	case r.Schedule != nil:
		return printJSON(s.Out, newScheduleObject(r.Schedule, e.Raw))
	}
	return printJSON(s.Out, struct {
		Status int `json:"status"`
	}{r.Status})
}

// printRecord prints the record of a result for people.
func (e *Exchange) printRecord(r *protocol.Result, s Streams) error {
	switch {
	case r.Task != nil && r.Promise != nil:
		f := taskFields(r.Task)
		f = append(f, [2]string{"param", dataText(r.Promise.Param, e.Raw)}, [2]string{"timeout", millis(r.Promise.TimeoutAt)})
		var recorded []string
		for i := range r.Preload {
			recorded = append(recorded, r.Preload[i].ID+" "+stateText(r.Preload[i].State))
		}
		return f.add("preload", recorded).print(s.Out)
	case r.Promise != nil:
		return promiseFields(r.Promise, e.Raw).print(s.Out)
	case r.Task != nil:
		return taskFields(r.Task).print(s.Out)
	case r.Schedule != nil:
		return scheduleFields(r.Schedule, e.Raw).print(s.Out)
	}
	done := e.Done
	if _, suspend := e.Op.(protocol.TaskSuspend); suspend && r.Status == protocol.Redirect {
		done = "the task is not suspended, because an awaited promise is settled already"
	}
	fmt.Fprintf(s.Err, "topoctl: %s\n", oneLine(done))
	return nil
}

// atCurrentVersion returns the operation with the version that the task has now.
func (e *Exchange) atCurrentVersion(ctx context.Context, b protocol.Backend) (protocol.Operation, error) {
	version := func(id string) (int64, error) {
		r, err := e.do(ctx, b, protocol.TaskGet{ID: id})
		if err != nil {
			return 0, err
		}
		return r.Task.Version, nil
	}
	var err error
	switch op := e.Op.(type) {
	case protocol.TaskAcquire:
		op.Version, err = version(op.ID)
		return op, err
	case protocol.TaskRelease:
		op.Version, err = version(op.ID)
		return op, err
	case protocol.TaskFulfill:
		op.Version, err = version(op.ID)
		return op, err
	case protocol.TaskSuspend:
		op.Version, err = version(op.ID)
		return op, err
	case protocol.TaskFence:
		op.Version, err = version(op.ID)
		return op, err
	case protocol.TaskHeartbeat:
		for i := range op.Tasks {
			if op.Tasks[i].Version, err = version(op.Tasks[i].ID); err != nil {
				return op, err
			}
		}
		return op, nil
	}
	return e.Op, nil
}
