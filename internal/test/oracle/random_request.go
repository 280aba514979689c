package oracle

import (
	"math/rand/v2"
	"strconv"
)

// kinds of requests with the weight that each has in a sequence.
var kinds = []struct {
	kind   string
	weight int
	data   func(*generator) object
}{
	{"promise.get", 2, (*generator).idData},
	{"promise.create", 12, (*generator).creation},
	{"promise.settle", 8, (*generator).settlement},
	{"promise.register_callback", 8, (*generator).callback},
	{"promise.register_listener", 7, (*generator).listener},
	{"promise.search", 2, (*generator).promiseQuery},
	{"task.get", 2, (*generator).idData},
	{"task.create", 7, (*generator).taskCreation},
	{"task.acquire", 16, (*generator).acquisition},
	{"task.release", 4, (*generator).heldTask},
	{"task.fulfill", 4, (*generator).fulfillment},
	{"task.suspend", 16, (*generator).suspension},
	{"task.fence", 9, (*generator).fence},
	{"task.heartbeat", 5, (*generator).heartbeat},
	{"task.halt", 3, (*generator).taskID},
	{"task.continue", 4, (*generator).haltedID},
	{"task.search", 2, (*generator).taskQuery},
	{"schedule.get", 1, (*generator).scheduleID},
	{"schedule.create", 2, (*generator).schedule},
	{"schedule.delete", 1, (*generator).scheduleID},
	{"schedule.search", 1, (*generator).scheduleQuery},
	{"debug.snap", 1, (*generator).nothing},
	{"debug.start", 1, (*generator).nothing},
	{"debug.stop", 1, (*generator).nothing},
	{"debug.tick", 3, (*generator).debugTick},
	{"debug.reset", 1, (*generator).nothing},
}

// needs are the states in which some requests expect a task.
var needs = map[string]string{
	"task.acquire": "pending", "task.release": "acquired", "task.fulfill": "acquired", "task.suspend": "acquired", "task.fence": "acquired",
	"task.heartbeat": "acquired", "task.continue": "halted",
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// chance reports true in n of 100 cases.
func (g *generator) chance(n int) bool { return g.IntN(100) < n }

// request returns a new request.
func (g *generator) request() object {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	n := g.IntN(sum)
	i := 0
	for n >= kinds[i].weight {
		n -= kinds[i].weight
		i++
	}
	kind, data := kinds[i].kind, kinds[i].data
	if state := needs[kind]; state != "" && len(g.tasksIn(state)) == 0 && g.chance(95) {
		return g.request() // most of these requests find a task
	}
	if g.remote && (kind == "debug.start" || kind == "debug.stop") { // they concern the background loops
		return g.request()
	}
	if kind == "debug.tick" && !g.debug || kind == "debug.reset" && !g.chance(20) {
		return g.request()
	}
	d := data(g)
	if g.chance(4) {
		g.spoil(d)
	}
	return g.envelope(kind, d)
}

// envelope returns a request of a kind.
func (g *generator) envelope(kind string, data object) object {
	head := object{"corrId": strconv.Itoa(len(g.steps)), "version": version}
	if g.chance(10) {
		head["resonate:origin"] = pick(g.Rand, g.pool...)
	}
	if g.chance(1) {
		head["version"] = "2025-01-15"
	}
	return object{"kind": kind, "head": head, "data": data}
}

// spoil removes or changes one field.
func (g *generator) spoil(data object) {
	names := sorted(data)
	if len(names) == 0 {
		return
	}
	name := pick(g.Rand, names...)
	switch inner, isObject := data[name].(object); {
	case isObject && len(inner) > 0 && g.chance(60):
		g.spoil(inner)
	case g.chance(40):
		delete(data, name)
	default:
		data[name] = pick[any](g.Rand, "", "?", -1, 0, 1.5, true, []any{}, []any{1}, object{}, "a\x00b", int64(1<<62))
	}
}

func (g *generator) nothing() object { return object{} }

func (g *generator) id() string {
	if g.chance(4) {
		return "missing"
	}
	return g.promiseID(90, func(promise) bool { return true }) // also of schedules
}

// promiseID returns, with a chance, the id of a promise that meets a condition, if there is
// one. Otherwise it returns any id of the pool.
func (g *generator) promiseID(chance int, condition func(promise) bool) string {
	var ids []string
	for _, id := range sorted(g.server.promises) {
		if condition(g.server.promises[id].at(g.clocks.wall)) {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 && g.chance(chance) {
		return pick(g.Rand, ids...)
	}
	return pick(g.Rand, g.pool...)
}

func (g *generator) idData() object { return object{"id": g.id()} }

func (g *generator) pid() string { return pick(g.Rand, "w1", "w2") }

func (g *generator) ttl() int64 { return pick[int64](g.Rand, 1, 20, 60, 60_000) }

// deadline returns an instant near now, or later.
func (g *generator) deadline() int64 {
	if g.chance(10) {
		return g.clocks.wall + pick[int64](g.Rand, -20, -1, 0, 1)
	}
	return g.clocks.wall + pick[int64](g.Rand, 30, 60, 100, 200, 300, 500, 1_000, 2_000, 100_000, 1e9)
}

func (g *generator) value() object {
	return pick(g.Rand, object{}, object{"data": "ImEi"}, object{"data": ""}, object{"headers": object{"h": "1"}, "data": "é\n"})
}

var addresses = []string{"poll://any@g", "poll://any@g/w1", "poll://uni@g/w2", "http://h/x", "https://h:8/"}

func (g *generator) address() string {
	if g.chance(4) {
		return pick(g.Rand, "", "g", "poll://g", "poll://any@", "poll://uni@g", "poll://uni@g/", "poll://all@g", "ftp://h", "http://")
	}
	return pick(g.Rand, addresses[:1+g.IntN(len(addresses))]...)
}

// tags returns the tags of a promise. Most promises have a target, and most of the others
// are external.
func (g *generator) tags(target bool) object {
	tags := object{}
	if target {
		tags["resonate:target"] = g.address()
	}
	if g.chance(15) {
		tags["resonate:timer"] = pick(g.Rand, "true", "true", "false")
	}
	if !target && g.chance(50) {
		tags["resonate:external"] = pick(g.Rand, "true", "true", "yes")
	}
	if g.chance(15) {
		tags["resonate:scope"] = pick(g.Rand, "global", "local")
	}
	if g.chance(12) {
		tags["resonate:delay"] = strconv.FormatInt(g.deadline(), 10)
	}
	if g.chance(2) {
		tags["resonate:delay"] = pick(g.Rand, "", "soon", "-1", "1e3", "99999999999999999999")
	}
	if g.chance(40) {
		tags["resonate:branch"] = pick(g.Rand, g.pool[:2]...)
	}
	if g.chance(75) {
		tags["resonate:origin"] = pick(g.Rand, "a", "a", "a", "a", "a", "b")
	}
	if g.chance(30) {
		tags["color"] = pick(g.Rand, "red", "blue")
	}
	return tags
}

// newID returns the id of a promise that does not exist, most often.
func (g *generator) newID() string {
	var free []string
	for _, id := range g.pool {
		if _, exists := g.server.promises[id]; !exists {
			free = append(free, id)
		}
	}
	switch {
	case g.chance(20):
		return g.id()
	case len(free) > 0:
		return pick(g.Rand, free...)
	case g.chance(30):
		g.pool = append(g.pool, g.pool[0]+":"+strconv.Itoa(len(g.pool)))
	}
	return g.pool[len(g.pool)-1]
}

func (g *generator) creation() object {
	return object{"id": g.newID(), "timeoutAt": g.deadline(), "param": g.value(), "tags": g.tags(g.chance(60))}
}

func (g *generator) settlement() object {
	state := pick(g.Rand, "resolved", "rejected", "rejected_canceled")
	if g.chance(3) {
		state = pick(g.Rand, "pending", "rejected_timedout", "done")
	}
	id := g.id()
	if g.chance(40) {
		id = g.promiseID(95, func(p promise) bool { return alive(p) && len(p.callbacks)+len(p.listeners) > 0 })
	} else if g.chance(60) {
		id = g.promiseID(95, alive)
	}
	return object{"id": id, "state": state, "value": g.value()}
}

func alive(p promise) bool { return p.State == "pending" }

// awaited returns the id of a promise that a task can await, most often.
func (g *generator) awaited() string {
	return g.promiseID(90, func(p promise) bool { return p.external() && (alive(p) || g.chance(4)) })
}

func (g *generator) callback() object {
	awaiter := g.promiseID(95, func(p promise) bool { return alive(p) && p.has("resonate:target") })
	origin := promise{ID: awaiter}.origin()
	if p, exists := g.server.promises[awaiter]; exists {
		origin = p.origin()
	}
	awaited := g.promiseID(90, func(p promise) bool {
		return p.external() && (alive(p) || g.chance(4)) && p.origin() == origin && p.ID != awaiter
	})
	return object{"awaited": awaited, "awaiter": awaiter}
}

func (g *generator) listener() object {
	return object{"awaited": g.awaited(), "address": g.address()}
}
