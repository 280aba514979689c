package oracle

// taskIn returns the id of a task that is stored in a state, if there is one, and its version.
func (g *generator) taskIn(state string) (id string, version int64) {
	id = g.id()
	if ids := g.tasksIn(state); len(ids) > 0 && g.chance(95) {
		id = pick(g.Rand, ids...)
	}
	version = g.server.tasks[id].Version
	if g.chance(8) {
		version = max(0, version+pick[int64](g.Rand, -1, 1))
	}
	return id, version
}

// tasksIn returns the tasks that are stored in a state. Most of them are alive.
func (g *generator) tasksIn(state string) (ids []string) {
	for _, id := range sorted(g.server.tasks) {
		if p := g.server.promises[id].at(g.clocks.wall); g.server.tasks[id].State == state && (alive(p) || g.chance(10)) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (g *generator) heldTask() object {
	id, version := g.taskIn("acquired")
	return object{"id": id, "version": version}
}

func (g *generator) taskID() object {
	id, _ := g.taskIn(pick(g.Rand, "pending", "acquired", "suspended", "halted", "fulfilled"))
	return object{"id": id}
}

func (g *generator) haltedID() object {
	id, _ := g.taskIn("halted")
	return object{"id": id}
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
	d, action := g.heldTask(), g.settlement()
	if g.chance(95) {
		action["id"] = d["id"]
	}
	d["action"] = g.action("promise.settle", action)
	return d
}

func (g *generator) suspension() object {
	d := g.heldTask()
	actions := []any{}
	for n := 1 + g.IntN(3); len(actions) < n && !g.chance(3); {
		c := object{"awaited": g.awaited(), "awaiter": d["id"]}
		if g.chance(2) {
			c = g.callback()
		}
		if c["awaited"] != d["id"] || g.chance(5) {
			actions = append(actions, g.action("promise.register_callback", c))
		}
	}
	d["actions"] = actions
	return d
}

func (g *generator) fence() object {
	d := g.heldTask()
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
		tasks = append(tasks, g.heldTask())
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
	d["cron"], d["promiseId"] = cron, pick(g.Rand, "{{.id}}.{{.timestamp}}", "{{.id}}:{{.timestamp}}", "x{{.timestamp}}/{{.id}}")
	if g.chance(5) {
		d["promiseId"] = "{{.id}}"
	}
	d["promiseTimeout"] = pick[int64](g.Rand, 0, 100, 1_500, 100_000)
	d["promiseParam"], d["promiseTags"] = g.value(), tags
	return d
}
