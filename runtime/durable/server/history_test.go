package server_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/core/oracle"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/internal/race"
)

// noRetry is a retry timeout that no history reaches.
const noRetry = 300 * 24 * 3600e3

// histories checks the histories of concurrent clients against the oracle: each response
// must be the one that a server would give that carries out the requests one after the
// other, each between its call and its response.
//
// Requests concern the promises of one tree, because promises of different trees do not
// concern each other. So the history of each tree is checked alone.
var histories = porcupine.NondeterministicModel{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		trees := map[int][]porcupine.Operation{}
		for _, op := range all {
			trees[op.Input.(recorded).tree] = append(trees[op.Input.(recorded).tree], op)
		}
		var parts [][]porcupine.Operation
		for _, ops := range trees {
			parts = append(parts, ops)
		}
		return parts
	},
	Init: func() []any { return []any{newState(oracle.New(oracle.Config{RetryTimeout: noRetry}))} },
	Step: func(state, input, _ any) []any {
		var next []any
		for _, s := range state.(modelState).server.Follow(input.(recorded).event) {
			next = append(next, newState(s))
		}
		return next
	},
	Equal: func(a, b any) bool { return a.(modelState).key == b.(modelState).key },
	DescribeOperation: func(input, _ any) string {
		return input.(recorded).event.String()
	},
}

type modelState struct {
	server *oracle.Server
	key    string
}

func newState(s *oracle.Server) modelState { return modelState{s, s.Key()} }

// recorded is an event of the history of a tree.
type recorded struct {
	tree    int
	event   oracle.Event
	unknown bool // no response was received
}

// TestHistories checks the histories of clients of an engine in the same process and of
// clients over HTTP. TOPOGEN_HISTORIES sets the number of trees, of which each client sends
// 12 requests.
func TestHistories(t *testing.T) {
	trees := 20
	if testing.Short() || race.Enabled {
		trees = 5
	}
	if n, err := strconv.Atoi(os.Getenv("TOPOGEN_HISTORIES")); err == nil {
		trees = n
	}
	for _, over := range []string{"engine", "http"} {
		for _, disk := range []string{"memory", "disk"} {
			t.Run(over+"/"+disk, func(t *testing.T) {
				config := engine.Config{Core: core.Config{RetryTimeout: noRetry}, Clock: clock{time.Now()}}
				if disk == "disk" {
					config.Store = openDisk(t)
				}
				e := openEngine(t, config)
				l := &load{clock: config.Clock.(clock), trees: trees, each: 12, send: inProcess(e)}
				if over == "http" {
					l.send = overHTTP(listen(t, server.Config{Backend: e}).URL())
				}
				check(t, l.run(t, 8, uint64(trees)))
			})
		}
	}
}

func openDisk(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check fails if the history of a tree is wrong.
func check(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	outcomes := map[string]int{}
	for _, tree := range histories.Partition(history) {
		slices.SortFunc(tree, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
		whole := prefix(tree, len(tree)-1)
		for _, op := range whole {
			outcomes[op.Input.(recorded).event.Outcome()]++
		}
		if result := porcupine.CheckOperationsTimeout(histories.ToModel(), whole, time.Minute); result != porcupine.Ok {
			t.Fatalf("the history of a tree is %s:\n%s", result, wrong(tree))
		}
	}
	t.Logf("%d requests: %v", len(history), outcomes)
}

// prefix returns the history until the request with index last, in the order of responses,
// has its response. The responses of other requests are unknown if they come later.
func prefix(tree []porcupine.Operation, last int) []porcupine.Operation {
	var known []oracle.Event
	for _, op := range tree[:last+1] {
		if r := op.Input.(recorded); !r.unknown {
			known = append(known, r.event)
		}
	}
	var ops []porcupine.Operation
	for i, op := range tree {
		r := op.Input.(recorded)
		if op.Call > tree[last].Return {
			continue
		}
		if i > last || r.unknown {
			r.event = oracle.NewUnknown(r.event.Request, r.event.Call, known)
			op.Return = math.MaxInt64
		}
		op.Input = r
		ops = append(ops, op)
	}
	return ops
}

// wrong returns the end of the shortest history that is wrong.
func wrong(tree []porcupine.Operation) string {
	last := sort.Search(len(tree)-1, func(i int) bool {
		return porcupine.CheckOperationsTimeout(histories.ToModel(), prefix(tree, i), 10*time.Second) != porcupine.Ok
	})
	var lines []string
	for _, op := range prefix(tree, last) {
		lines = append(lines, fmt.Sprintf("client %d, %d to %d ns, %s", op.ClientId, op.Call, op.Return, op.Input.(recorded).event))
	}
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
