package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// coverage counts the responses of each kind with each status.
type coverage struct {
	mu     *sync.Mutex
	counts map[string]int
}

func newCoverage() coverage { return coverage{new(sync.Mutex), map[string]int{}} }

func (c coverage) add(response []byte) {
	if c.counts == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[fmt.Sprintf("%s %d", kindOf(response), statusOf(response))]++
}

func kindOf(response []byte) string {
	var r struct{ Kind string }
	_ = json.Unmarshal(response, &r)
	return r.Kind
}

// missing returns the outcomes of the table that no response had.
func (c coverage) missing() []string {
	var all []string
	for kind, statuses := range outcomes {
		for _, status := range statuses {
			if outcome := fmt.Sprintf("%s %d", kind, status); c.counts[outcome] == 0 {
				all = append(all, outcome)
			}
		}
	}
	slices.Sort(all)
	return all
}

func (c coverage) String() (text string) {
	for _, outcome := range slices.Sorted(maps.Keys(c.counts)) {
		text += fmt.Sprintf("%7d %s\n", c.counts[outcome], outcome)
	}
	return text
}

// outcomes are the statuses that each kind can have, from the table.
var outcomes = map[string][]int{
	"promise.get":               {200, 400, 404},
	"promise.create":            {200, 400},
	"promise.settle":            {200, 400, 404},
	"promise.register_callback": {200, 400, 404, 422},
	"promise.register_listener": {200, 400, 404, 422},
	"promise.search":            {200, 400},
	"task.get":                  {200, 400, 404},
	"task.create":               {200, 400, 409, 422},
	"task.acquire":              {200, 400, 404, 409},
	"task.release":              {200, 400, 404, 409},
	"task.fulfill":              {200, 400, 404, 409},
	"task.suspend":              {200, 300, 400, 404, 409, 422},
	"task.fence":                {200, 400, 404, 409},
	"task.heartbeat":            {200, 400},
	"task.halt":                 {200, 400, 404, 409},
	"task.continue":             {200, 400, 404, 409},
	"task.search":               {200, 400},
	"schedule.get":              {200, 400, 404},
	"schedule.create":           {200, 400},
	"schedule.delete":           {200, 400, 404},
	"schedule.search":           {200, 400},
	"debug.start":               {200},
	"debug.reset":               {200},
	"debug.tick":                {200, 400},
	"debug.snap":                {200},
	"debug.stop":                {200},
}
