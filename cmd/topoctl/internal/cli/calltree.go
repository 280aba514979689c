package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// tagStep is the name of a step of a durable function in Go.
const tagStep = "topogen:step"

// A callNode is a promise in the tree of calls of an execution.
type callNode struct {
	promise  *protocol.Promise
	task     *protocol.Task // of a pending promise with a target; nil: not known
	children []*callNode    // in the order of creation
}

// callTree makes the tree below the promise root, which must be in the list. The parent of a
// promise is in its tag resonate:parent. rest are the other promises of the list.
func callTree(list []protocol.Promise, root string) (tree *callNode, rest []*protocol.Promise) {
	nodes := make(map[string]*callNode, len(list))
	for i := range list {
		nodes[list[i].ID] = &callNode{promise: &list[i]}
	}
	for i := range list {
		p := &list[i]
		// The parent of the root may be below it: tags are written by clients.
		if parent := nodes[p.Tags[protocol.TagParent]]; parent != nil && p.ID != root && p.Tags[protocol.TagParent] != p.ID {
			parent.children = append(parent.children, nodes[p.ID])
		}
	}
	tree = nodes[root]
	below := make(map[string]bool, len(list))
	tree.each(func(n *callNode) {
		below[n.promise.ID] = true
		slices.SortFunc(n.children, func(a, b *callNode) int {
			return cmp.Or(cmp.Compare(a.promise.CreatedAt, b.promise.CreatedAt), compareNumbered(a.promise.ID, b.promise.ID))
		})
	})
	for i := range list {
		if !below[list[i].ID] {
			rest = append(rest, &list[i])
		}
	}
	return tree, rest
}

// each calls f for the node and all nodes below it, a parent before its children. A promise
// has one parent, so each node is visited once.
func (n *callNode) each(f func(*callNode)) {
	for list := []*callNode{n}; len(list) > 0; {
		next := list[len(list)-1]
		list = list[:len(list)-1]
		f(next)
		list = append(list, next.children...)
	}
}

// compareNumbered compares two ids. Numbers in them are compared by their values, so that
// step 10 comes after step 9.
func compareNumbered(a, b string) int {
	for a != "" && b != "" {
		x, restA := cutNumber(a)
		y, restB := cutNumber(b)
		if x != "" && y != "" {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			break
		}
		a, b = a[1:], b[1:]
	}
	return strings.Compare(a, b)
}

// cutNumber splits the decimal digits at the start of s from the rest.
func cutNumber(s string) (digits, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(rest)], rest
}

// A callRow is a line of the picture of a tree.
type callRow struct {
	*callNode
	branch string // the lines before the id
	depth  int
}

// rows returns the nodes of the tree in the order of its picture.
func (n *callNode) rows() (rows []callRow) {
	// Below this depth the picture does not move further to the right: a chain of ten
	// thousand calls would need gigabytes of blanks.
	const deepest = 40
	type open struct {
		callRow
		below string // the lines before the nodes below this one
	}
	for stack := []open{{callRow: callRow{callNode: n}}}; len(stack) > 0; {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		rows = append(rows, top.callRow)
		for i, child := range slices.Backward(top.children) {
			o := open{callRow{child, top.below + "├─ ", top.depth + 1}, top.below + "│  "}
			if i == len(top.children)-1 {
				o.branch, o.below = top.below+"└─ ", top.below+"   "
			}
			if o.depth > deepest {
				o.below = top.below
			}
			stack = append(stack, o)
		}
	}
	return rows
}

// draw returns a picture of the tree: the id behind its branch, the kind of promise, its
// state, its duration, and a remark.
func (n *callNode) draw(now int64) (t table) {
	for _, r := range n.rows() {
		t = append(t, []string{r.branch + r.promise.ID, kindOfPromise(r.promise), stateText(r.promise.State), durationText(r.promise, now), r.remark()})
	}
	return t
}

// kindOfPromise says what a promise is: a step, a sleep, or a call of a function.
func kindOfPromise(p *protocol.Promise) string {
	name, step := functionOf(p), p.Tags[tagStep]
	// The durable calls of Go other than steps are recorded as durable.Now and the like.
	call, internal := strings.CutPrefix(step, "durable.")
	switch {
	case p.Tags[protocol.TagTimer] == "true" && internal:
		return strings.ToLower(call) // sleep, or the timer before a retry or an attempt
	case p.Tags[protocol.TagTimer] == "true":
		return "sleep"
	case p.Tags[protocol.TagTarget] != "":
		return strings.TrimSpace("call " + name)
	case internal:
		verb, rest, _ := strings.Cut(call, " ")
		return strings.TrimSpace(strings.ToLower(verb) + " " + rest)
	case step != "":
		return "step " + step
	case p.Tags[protocol.TagScope] == "local":
		return strings.TrimSpace("step " + name)
	}
	return "promise"
}

// stateText returns a state in plain words.
func stateText(s protocol.PromiseState) string {
	switch s {
	case protocol.RejectedCancel:
		return "canceled"
	case protocol.RejectedTimeout:
		return "timed out"
	}
	return string(s)
}

// durationText returns the time between the creation of a promise and its settling, or now.
func durationText(p *protocol.Promise, now int64) string {
	end := now
	if p.SettledAt != nil {
		end = *p.SettledAt
	}
	d := time.Duration(max(0, end-p.CreatedAt)) * time.Millisecond
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	}
	text := d.String()
	if d >= time.Hour { // "2h5m0s"
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// remark is the error of a promise that was rejected, and the state of the task of a
// pending one.
func (n *callNode) remark() string {
	const longest = 80 // runes: a line of a terminal
	if n.promise.State != protocol.Pending {
		text, _, _ := strings.Cut(errorOf(n.promise), "\n")
		if utf8.RuneCountInString(text) > longest {
			text = string([]rune(text)[:longest]) + "…"
		}
		return text
	}
	if n.task == nil {
		return ""
	}
	text := string(n.task.State)
	if n.task.PID != nil {
		text += " by " + *n.task.PID
	}
	if n.task.Version > 0 {
		text += ", version " + strconv.FormatInt(n.task.Version, 10)
	}
	return text
}

// callObject is a node of the tree in JSON.
type callObject struct {
	Depth int `json:"depth"` // 0: the root
	promiseObject
	Task *protocol.Task `json:"task,omitempty"`
}

func newCallObjects(n *callNode, raw bool) (list []callObject) {
	for _, r := range n.rows() {
		o := callObject{Depth: r.depth, promiseObject: newPromiseObject(r.promise, raw)}
		if r.task != nil {
			o.Task = newTaskObject(r.task)
		}
		list = append(list, o)
	}
	return list
}
