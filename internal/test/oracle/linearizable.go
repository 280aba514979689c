package oracle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// NoRetry is a retry timeout that no history reaches. The server must have it: messages
// are not part of a history.
const NoRetry = 300 * 24 * 3600e3

// A History is a number of requests of concurrent clients with their responses.
type History []porcupine.Operation

// histories is the model of histories: each response
// must be the one that a server would give that carries out the requests one after the
// other, each between its call and its response.
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
	Init: func() []any { return []any{newState(New(Config{RetryTimeout: NoRetry}))} },
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
	server *Server
	key    string
}

func newState(s *Server) modelState { return modelState{s, s.Key()} }

// recorded is an event of the history of a tree.
type recorded struct {
	tree    int
	event   Event
	unknown bool // no response was received
}

// Check returns how many requests had which outcome, and an error if the history is wrong.
func (h History) Check() (outcomes map[string]int, err error) {
	outcomes = map[string]int{}
	for _, tree := range histories.Partition(h) {
		slices.SortFunc(tree, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
		whole := prefix(tree, len(tree)-1)
		for _, op := range whole {
			outcomes[op.Input.(recorded).event.Outcome()]++
		}
		if result := porcupine.CheckOperationsTimeout(histories.ToModel(), whole, 5*time.Minute); result != porcupine.Ok {
			return outcomes, fmt.Errorf("the history of a tree is %s:\n%s", result, wrong(tree))
		}
	}
	return outcomes, nil
}

// prefix returns the history until the request with index last, in the order of responses,
// has its response. The responses of other requests are unknown if they come later.
func prefix(tree []porcupine.Operation, last int) []porcupine.Operation {
	var known []Event
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
			r.event = NewUnknown(r.event.Request, r.event.Call, known)
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
