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
	{"promise.create", 14, (*generator).creation},
	{"promise.settle", 8, (*generator).settlement},
	{"promise.register_callback", 8, (*generator).callback},
	{"promise.register_listener", 7, (*generator).listener},
	{"promise.search", 3, (*generator).promiseQuery},
	{"task.get", 2, (*generator).idData},
	{"task.create", 7, (*generator).taskCreation},
	{"task.acquire", 12, (*generator).acquisition},
	{"task.release", 4, (*generator).held1},
	{"task.fulfill", 4, (*generator).fulfillment},
	{"task.suspend", 12, (*generator).suspension},
	{"task.fence", 6, (*generator).fence},
	{"task.heartbeat", 5, (*generator).heartbeat},
	{"task.halt", 3, (*generator).idData},
	{"task.continue", 4, (*generator).idData},
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
	if kind == "debug.tick" && !g.debug || kind == "debug.reset" && !g.chance(20) {
		return g.request()
	}
	head := object{"corrId": strconv.Itoa(len(g.steps)), "version": version}
	if g.chance(10) {
		head["resonate:origin"] = pick(g.Rand, g.pool...)
	}
	if g.chance(1) {
		head["version"] = "2025-01-15"
	}
	d := data(g)
	if g.chance(4) {
		g.spoil(d)
	}
	return object{"kind": kind, "head": head, "data": d}
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
		data[name] = pick[any](g.Rand, "", "?", -1, 0, 1.5, true, []any{}, []any{1}, object{}, "a\x00b", 1<<62)
	}
}

func (g *generator) nothing() object { return object{} }

func (g *generator) id() string {
	if g.chance(4) {
		return "missing"
	}
	if ids := sorted(g.server.promises); g.chance(30) && len(ids) > 0 { // also of schedules
		return pick(g.Rand, ids...)
	}
	return pick(g.Rand, g.pool...)
}

func (g *generator) idData() object { return object{"id": g.id()} }

func (g *generator) pid() string { return pick(g.Rand, "w1", "w2") }

func (g *generator) ttl() int64 { return pick[int64](g.Rand, 1, 20, 60, 60_000) }

// deadline returns an instant near now, or later.
func (g *generator) deadline() int64 {
	return g.clocks.wall + pick[int64](g.Rand, -20, 0, 1, 30, 60, 100, 200, 500, 100_000, 1e9)
}

func (g *generator) value() object {
	return pick(g.Rand, object{}, object{"data": "ImEi"}, object{"data": ""}, object{"headers": object{"h": "1"}, "data": "é\n"})
}

var addresses = []string{"poll://any@g", "poll://any@g/w1", "poll://uni@g/w2", "http://h/x", "https://h:8/"}

func (g *generator) address() string {
	if g.chance(4) {
		return pick(g.Rand, "", "g", "poll://g", "poll://any@", "poll://uni@g", "poll://uni@g/", "poll://all@g", "ftp://h", "http://")
	}
	return pick(g.Rand, addresses...)
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
	if g.chance(60) {
		tags["resonate:origin"] = pick(g.Rand, "a", "a", "a", "b")
	}
	if g.chance(30) {
		tags["color"] = pick(g.Rand, "red", "blue")
	}
	return tags
}

func (g *generator) creation() object {
	return object{"id": g.id(), "timeoutAt": g.deadline(), "param": g.value(), "tags": g.tags(g.chance(60))}
}

func (g *generator) settlement() object {
	state := pick(g.Rand, "resolved", "rejected", "rejected_canceled")
	if g.chance(3) {
		state = pick(g.Rand, "pending", "rejected_timedout", "done")
	}
	return object{"id": g.id(), "state": state, "value": g.value()}
}

func (g *generator) callback() object {
	awaited := g.id()
	if ids := g.promisesWith(func(p promise) bool { return p.external() && p.State == "pending" }); len(ids) > 0 && g.chance(70) {
		awaited = pick(g.Rand, ids...)
	}
	return object{"awaited": awaited, "awaiter": g.id()}
}

func (g *generator) listener() object {
	return object{"awaited": g.callback()["awaited"], "address": g.address()}
}

func (g *generator) promisesWith(condition func(promise) bool) (ids []string) {
	for _, id := range sorted(g.server.promises) {
		if condition(g.server.promises[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// taskIn returns the id of a task that is stored in a state, if there is one, and its version.
func (g *generator) taskIn(state string) (id string, version int64) {
	var ids []string
	for _, id := range sorted(g.server.tasks) {
		if g.server.tasks[id].State == state {
			ids = append(ids, id)
		}
	}
	id = g.id()
	if len(ids) > 0 && g.chance(85) {
		id = pick(g.Rand, ids...)
	}
	version = g.server.tasks[id].Version
	if g.chance(8) {
		version = max(0, version+pick[int64](g.Rand, -1, 1))
	}
	return id, version
}

func (g *generator) held1() object {
	id, version := g.taskIn("acquired")
	return object{"id": id, "version": version}
}

func (g *generator) acquisition() object {
	id, version := g.taskIn("pending")
	return object{"id": id, "version": version, "pid": g.pid(), "ttl": g.ttl()}
}

func (g *generator) action(kind string, data object) object {
	return object{"kind": kind, "head": object{"corrId": "inner", "version": version}, "data": data}
}

func (g *generator) taskCreation() object {
	c := g.creation()
	tags := g.tags(g.chance(95))
	if g.chance(95) {
		delete(tags, "resonate:delay")
	}
	c["tags"] = tags
	return object{"pid": g.pid(), "ttl": g.ttl(), "action": g.action("promise.create", c)}
}

func (g *generator) fulfillment() object {
	d, action := g.held1(), g.settlement()
	if g.chance(95) {
		action["id"] = d["id"]
	}
	d["action"] = g.action("promise.settle", action)
	return d
}

func (g *generator) suspension() object {
	d := g.held1()
	actions := []any{}
	for range g.IntN(4) {
		c := g.callback()
		if g.chance(95) {
			c["awaiter"] = d["id"]
		}
		if c["awaited"] != d["id"] || g.chance(5) {
			actions = append(actions, g.action("promise.register_callback", c))
		}
	}
	d["actions"] = actions
	return d
}

func (g *generator) fence() object {
	d := g.held1()
	if g.chance(50) {
		d["action"] = g.action("promise.create", g.creation())
	} else {
		d["action"] = g.action("promise.settle", g.settlement())
	}
	return d
}

func (g *generator) heartbeat() object {
	tasks := []any{}
	for range g.IntN(4) {
		tasks = append(tasks, g.held1())
	}
	return object{"pid": g.pid(), "tasks": tasks}
}

func (g *generator) debugTick() object {
	g.clocks.advance(g.Int64N(g.longest()))
	return object{"time": g.clocks.wall}
}

func (g *generator) query(states ...string) object {
	q := object{}
	if g.chance(60) {
		q["limit"] = 1 + g.IntN(3)
	}
	if g.chance(60) && len(states) > 0 {
		q["state"] = pick(g.Rand, states...)
	}
	return q
}

func (g *generator) promiseQuery() object {
	q := g.query("pending", "resolved", "rejected", "rejected_canceled", "rejected_timedout")
	if g.chance(60) {
		tags := g.tags(g.chance(20))
		for len(tags) > 2 {
			delete(tags, pick(g.Rand, sorted(tags)...))
		}
		q["tags"] = tags
	}
	return q
}

func (g *generator) taskQuery() object {
	return g.query("pending", "acquired", "suspended", "halted", "fulfilled", "unknown")
}

func (g *generator) scheduleQuery() object { return g.query() }

func (g *generator) scheduleID() object { return object{"id": pick(g.Rand, "s1", "s2")} }

func (g *generator) schedule() object {
	d := g.scheduleID()
	cron := pick(g.Rand, "* * * * * *", "*/10 * * * * *", "5-9,30 * * * * 1-5", "* * * * *", "*/5 3 1,15 * 2", "0 0 29 2 *", "? 1-20/3 * 6-9 ?")
	if g.chance(5) {
		cron = pick(g.Rand, "", "* * * *", "60 * * * *", "* * * * * * *", "x * * * *", "@daily", "5-1 * * * *")
	}
	tags := g.tags(g.chance(95))
	d["cron"], d["promiseId"] = cron, pick(g.Rand, "{{.id}}.{{.timestamp}}", "{{.id}}:{{.timestamp}}", "x{{.timestamp}}")
	if g.chance(5) {
		d["promiseId"] = "{{.id}}"
	}
	d["promiseTimeout"] = pick[int64](g.Rand, 0, 100, 1_500, 100_000)
	d["promiseParam"], d["promiseTags"] = g.value(), tags
	return d
}
