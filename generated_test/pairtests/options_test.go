// Package pairtests_test generates topologies. Each pair of options of processors and edges is in at
// least one of them. Package pairs runs the topologies with failures, and compares the figures of the
// runtime with a ledger.
package pairtests_test

import (
	"maps"
	"strings"
)

// A factor is an option in which the topologies differ. The first value is the default.
type factor struct {
	name   string
	values []string
}

// factors are all options that the topologies combine. Package pairs reads the values of some.
var factors = []factor{
	{"feed", []string{"ping", "serve", "outside"}},
	{"feed.instances", []string{"1", "2"}},
	{"work.instances", []string{"3", "1"}},
	{"work", []string{"pool", "blocking", "process"}},
	{"restart", []string{"on-failure", "none", "never", "always", "limited", "delayed", "always-limited"}},
	{"health", []string{"none", "timeout", "startup"}},
	{"on_error", []string{"none", "stop", "skip", "retry", "delayed", "attempts"}},
	{"letters", []string{"no", "yes"}},
	{"route", []string{"key", "id", "broadcast", "local", "range"}},
	{"full", []string{"block", "drop-oldest", "drop-newest", "fail"}},
	{"capacity", []string{"default", "1", "4"}},
	{"out", []string{"block", "drop-oldest", "drop-newest", "fail"}},
	{"two", []string{"no", "feed", "other"}},
	{"reply", []string{"no", "yes"}},
	{"timer", []string{"no", "tick", "named", "watched"}},
	{"group", []string{"no", "one-for-one", "one-for-all", "rest-for-one"}},
	{"input", []string{"no", "default", "first-message", "start"}},
	{"loop", []string{"no", "yes"}},
	{"form", []string{"value", "pointer", "clone", "shared"}},
	{"sink", []string{"pool", "blocking", "process", "watched", "never"}},
	{"workers", []string{"default", "one", "many"}},
	{"errors", []string{"no", "yes"}},
	{"machine", []string{"no", "memory", "several", "log", "unsynced", "raft"}},
	{"machine.form", []string{"first", "second"}}, // two ways to route, to sync, or to replicate
	{"applied", []string{"no", "yes"}},
	{"revert", []string{"no", "yes"}},
	{"durable", []string{"no", "in", "out", "all", "beside"}},
	{"kept", []string{"plain", "id", "limit", "each", "deadline"}},
}

// A design is what a covering array is made of.
type design struct {
	factors  []factor
	refusals []refusal
	rowsMin  int // smallest number of topologies
}

// oneProcess is the design of the topologies that run in one process.
var oneProcess = design{factors, refusals, rowsMin}

// A row describes a topology: it has the value of each factor.
type row map[string]string

// defaults returns the row in which all factors have their default.
func defaults() row {
	r := make(row)
	for _, f := range factors {
		r[f.name] = f.values[0]
	}
	return r
}

// A refusal is a combination of options that topogen refuses with a finding of the given code. In
// when, a factor has one value, or several values with | between them.
type refusal struct {
	when row
	code string
}

// refusals are all combinations that topogen refuses, which TestRefusals checks. The covering array
// has all other pairs.
var refusals = []refusal{
	{row{"feed": "outside", "feed.instances": "2"}, "TG208"},
	{row{"feed": "serve", "reply": "yes"}, "TG313"},
	{row{"feed": "outside", "route": "local"}, "TG216"},
	{row{"work.instances": "1", "route": "range"}, "TG207"},
	{row{"work": "process", "out": "fail"}, "TG220"},
	{row{"work": "process", "machine": "memory|several|log|unsynced|raft"}, "TG222"},
	{row{"sink": "process", "machine": "memory|several|log|unsynced|raft", "applied": "yes"}, "TG223"},
	{row{"machine": "several|raft", "revert": "yes"}, "TG221"},
	{row{"machine": "memory|log|unsynced", "applied": "yes", "revert": "yes"}, "TG223"},
	{row{"feed": "outside", "reply": "yes", "route": "broadcast|range"}, "TG216"},
	{row{"restart": "never", "letters": "yes", "on_error": "none|stop"}, "TG215"},
	{row{"restart": "never", "on_error": "attempts"}, "TG215"},
	{row{"restart": "none", "group": "no", "letters": "yes", "on_error": "none|stop"}, "TG215"},
	{row{"restart": "none", "group": "no", "on_error": "attempts"}, "TG215"},
	{row{"durable": "in|out|all", "work": "pool|process"}, "TG237"},
	{row{"durable": "out|all", "sink": "pool|process|watched|never"}, "TG237"},
	{row{"durable": "out|all", "out": "drop-oldest|drop-newest|fail"}, "TG236"},
	{row{"durable": "in|all", "route": "broadcast|local|range"}, "TG236"},
	{row{"durable": "in|all", "full": "drop-oldest|drop-newest|fail"}, "TG236"},
	{row{"durable": "in|all", "capacity": "1|4"}, "TG236"},
	{row{"durable": "in|all", "form": "shared"}, "TG236"},
	{row{"durable": "in|all", "input": "default|first-message|start"}, "TG236"},
	{row{"durable": "in", "work": "blocking", "on_error": "stop|attempts", "two": "no", "loop": "no", "timer": "no", "machine": "no"}, "TG236"},
	{row{"durable": "in", "work": "blocking", "on_error": "none", "letters": "yes", "two": "no", "loop": "no", "timer": "no", "machine": "no"}, "TG236"},
	{row{"durable": "all", "work": "blocking", "sink": "blocking", "on_error": "stop|attempts", "two": "no", "timer": "no", "machine": "no"}, "TG236"},
	{row{"durable": "all", "work": "blocking", "sink": "blocking", "on_error": "none", "letters": "yes", "two": "no", "timer": "no", "machine": "no"}, "TG236"},
}

// rows returns a row for each combination of values. All other factors are as in base.
func (x refusal) rows(base row) []row {
	list := []row{base}
	for name, values := range x.when {
		var more []row
		for _, r := range list {
			for v := range strings.SplitSeq(values, "|") {
				c := maps.Clone(r)
				c[name] = v
				more = append(more, c)
			}
		}
		list = more
	}
	return list
}
