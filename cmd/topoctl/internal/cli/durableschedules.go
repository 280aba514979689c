package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// promiseIDTemplate makes the ids of the promises of a schedule, as the SDKs do.
const promiseIDTemplate = "{{.id}}-{{.timestamp}}"

func newDurableSchedules(chosen *command) *cobra.Command {
	s := &Server{}
	cmd := &cobra.Command{
		Use:     "schedules",
		Aliases: []string{"schedule"},
		Short:   "Create, delete and show schedules",
		Long: `Create, delete and show schedules. A schedule creates a promise with a target at the times
of a cron expression. It makes up for times at which the server was down.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return helpFirst(cmd) },
	}
	s.addFlags(cmd.PersistentFlags())
	cmd.AddCommand(newSchedulesGet(chosen, s), newSchedulesCreate(chosen, s), newSchedulesDelete(chosen, s), newSchedulesSearch(chosen, s))
	return cmd
}

func newSchedulesGet(chosen *command, s *Server) *cobra.Command {
	e := Exchange{}
	cmd := &cobra.Command{
		Use:     "get ID",
		Short:   "Show a schedule",
		Long:    `Show a schedule, with the times of its last and its next promise.`,
		Example: `  topoctl durable schedules get nightly`,
		Args:    oneOf("the schedule"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.Server, e.Op = *s, protocol.ScheduleGet{ID: args[0]}
			*chosen = e
			return s.check()
		},
	}
	e.flags(cmd, true)
	return cmd
}

func newSchedulesCreate(chosen *command, s *Server) *cobra.Command {
	e, data, f := Exchange{}, dataFlags{}, functionFlags{}
	var op protocol.ScheduleCreate
	var timeout time.Duration
	var tags []string
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Create a schedule",
		Long: `Create a schedule that calls a function, or that creates promises with a parameter of
your own (--data). If the schedule exists, it is shown and not changed.

--cron has five fields: minute, hour, day of month, month, day of week, in UTC. In
--promise-id, {{.id}} is the id of the schedule and {{.timestamp}} the time of the
occurrence in milliseconds.`,
		Example: `  topoctl durable schedules create nightly --cron '0 3 * * *' --func report --target poll://any@reports
  topoctl durable schedules create poll --cron '*/5 * * * *' --data '{"url":"https://example.com"}' --timeout 5m`,
		Args: oneOf("the schedule"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if op.Cron == "" {
				return errors.New("name the times of the schedule: --cron '0 3 * * *'")
			} else if timeout <= 0 {
				return fmt.Errorf("--timeout must be more than 0, got %v", timeout)
			}
			data.given, data.raw = cmd.Flags().Changed("data"), e.Raw
			switch {
			case f.name != "" && data.given:
				return errors.New("--func and --data exclude each other")
			case f.name != "":
				op.PromiseParam, err = f.value()
			default:
				op.PromiseParam, err = data.value()
			}
			if err == nil {
				op.PromiseTags, err = pairs("tag", tags)
			}
			if err != nil {
				return err
			}
			if op.PromiseTags == nil {
				op.PromiseTags = map[string]string{}
			}
			op.PromiseTags[protocol.TagTarget] = f.target
			op.ID, op.PromiseTimeout = args[0], timeout.Milliseconds()
			e.Server, e.Op = *s, op
			*chosen = e
			return s.check()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&op.Cron, "cron", "", "the times: a cron expression with five fields")
	flags.StringVar(&op.PromiseID, "promise-id", promiseIDTemplate, "the ids of the promises")
	flags.DurationVarP(&timeout, "timeout", "t", promiseTimeout, "the time until the deadline of each promise")
	flags.StringArrayVar(&tags, "tag", nil, "a tag NAME=VALUE of the promises; repeat it for several tags")
	f.flags(flags)
	data.flags(flags, "the parameter of the promises: JSON, or text that becomes a JSON string")
	e.flags(cmd, true)
	return cmd
}

func newSchedulesDelete(chosen *command, s *Server) *cobra.Command {
	e := Exchange{}
	cmd := &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete a schedule",
		Long:    `Delete a schedule. The promises that it has created stay.`,
		Example: `  topoctl durable schedules delete nightly`,
		Args:    oneOf("the schedule"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.Server, e.Op, e.Done = *s, protocol.ScheduleDelete{ID: args[0]}, args[0]+" is deleted"
			*chosen = e
			return s.check()
		},
	}
	e.flags(cmd, false)
	return cmd
}

func newSchedulesSearch(chosen *command, s *Server) *cobra.Command {
	e, p := Exchange{}, page{}
	cmd := &cobra.Command{
		Use:   "search",
		Short: "List schedules",
		Long: `List schedules in the order of their ids. All given tags must match the tags of their
promises.`,
		Example: `  topoctl durable schedules search`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			tags, err := pairs("tag", p.tags)
			if err = errors.Join(err, p.check(nil)); err != nil {
				return err
			}
			e.Server, e.Op = *s, protocol.ScheduleSearch{Tags: tags, Limit: p.limit, Cursor: p.cursor}
			*chosen = e
			return s.check()
		},
	}
	p.flags(cmd.Flags(), nil, true)
	e.flags(cmd, true)
	return cmd
}
