package core

import "bytes"

// tx reads and writes the entries of a KV: it builds keys, and adds and checks seals. Its
// buffers are reused, because a KV keeps neither keys nor values.
type tx struct {
	kv   KV
	key  []byte // of the current Get, Put or Delete
	body []byte // of the current Put
}

// bodyKept is the size up to which a buffer is reused. The memory for a large promise is
// released after its step.
const bodyKept = 64 << 10

func (x *tx) trim() {
	if cap(x.body) > bodyKept {
		x.body = nil
	}
}

// get returns the body of a value until the next write, or nil.
func (x *tx) get(t Table, key []byte) []byte {
	v := x.kv.Get(t, key)
	if v == nil {
		return nil
	}
	return unseal(t, key, v)
}

// put writes a body, which must be at the beginning of x.body.
func (x *tx) put(t Table, key, body []byte) {
	x.body = appendSeal(body, t, key)
	x.kv.Put(t, key, x.body)
}

// mark writes an entry without a body.
func (x *tx) mark(t Table, key []byte) { x.put(t, key, x.body[:0]) }

// first returns the first key of a table at or above from.
func (x *tx) first(t Table, from []byte) []byte {
	for key := range x.kv.Ascend(t, from) {
		return key
	}
	return nil
}

// below yields the rests of the keys that begin with prefix, in order, with the bodies of
// the values. Both are valid until the next write.
func (x *tx) below(t Table, prefix []byte) func(yield func(rest, body []byte) bool) {
	return x.from(t, prefix, prefix)
}

// from yields as below does, for keys at or above start.
func (x *tx) from(t Table, prefix, start []byte) func(yield func(rest, body []byte) bool) {
	return func(yield func(rest, body []byte) bool) {
		for key, value := range x.kv.Ascend(t, start) {
			rest, ok := bytes.CutPrefix(key, prefix)
			if !ok || !yield(rest, unseal(t, key, value)) {
				return
			}
		}
	}
}

// rests returns copies of what below yields.
func (x *tx) rests(t Table, prefix []byte) []string {
	var list []string
	for rest := range x.below(t, prefix) {
		list = append(list, string(rest))
	}
	return list
}

// due returns the ids of the entries of an index by time that are due at ms, at most
// limit, with their times. It begins with the key from.
func (x *tx) due(t Table, from []byte, ms int64, limit int) []entry {
	var list []entry
	for key, value := range x.kv.Ascend(t, from) {
		at, id, ok := splitTime(key)
		if !ok {
			panic(corrupt(t, key, "the key has no time"))
		}
		if at > ms || len(list) >= limit {
			break
		}
		unseal(t, key, value)
		list = append(list, entry{at, string(id)})
	}
	return list
}

// entry is an entry of an index by time.
type entry struct {
	at int64
	id string
}

// promise returns a promise, or nil.
func (x *tx) promise(id string) *promise {
	p := new(promise)
	if !x.read(p, id) {
		return nil
	}
	return p
}

// read reads a promise, and reports whether it exists. The id may be any text, because a
// tag can name a promise.
func (x *tx) read(p *promise, id string) bool {
	if id == "" {
		return false
	}
	x.key = append(x.key[:0], id...)
	body := x.get(Promises, x.key)
	if body == nil {
		return false
	}
	if bad := p.decode(id, body); bad != "" {
		panic(corrupt(Promises, x.key, "%s", bad))
	}
	return true
}

// promiseHead returns the head of a promise, which costs less than the promise.
func (x *tx) promiseHead(id string) (promiseHead, bool) {
	if id == "" {
		return promiseHead{}, false
	}
	x.key = append(x.key[:0], id...)
	body := x.get(Promises, x.key)
	if body == nil {
		return promiseHead{}, false
	}
	h, bad := decodeHead(body)
	if bad != "" {
		panic(corrupt(Promises, x.key, "%s", bad))
	}
	return h, true
}

// task returns a task, or nil.
func (x *tx) task(id string) *task {
	t := new(task)
	if !x.readTask(t, id) {
		return nil
	}
	return t
}

// readTask reads a task, and reports whether it exists.
func (x *tx) readTask(t *task, id string) bool {
	x.key = append(x.key[:0], id...)
	body := x.get(Tasks, x.key)
	if body == nil {
		return false
	}
	if bad := t.decode(id, body); bad != "" {
		panic(corrupt(Tasks, x.key, "%s", bad))
	}
	return true
}

// mustTask returns the task that an entry of another table names.
func (x *tx) mustTask(id string, t Table) *task {
	found := x.task(id)
	if found == nil {
		panic(corrupt(t, []byte(id), "names a task that does not exist"))
	}
	return found
}

func (x *tx) mustPromise(id string, t Table) *promise {
	found := x.promise(id)
	if found == nil {
		panic(corrupt(t, []byte(id), "names a promise that does not exist"))
	}
	return found
}

func (x *tx) putPromise(p *promise) {
	x.key = append(x.key[:0], p.id...)
	x.put(Promises, x.key, appendPromise(x.body[:0], p))
}

func (x *tx) putTask(t *task) {
	x.key = append(x.key[:0], t.id...)
	x.put(Tasks, x.key, appendTask(x.body[:0], t))
}

// markTime and unmarkTime write and delete an entry of an index by time.
func (x *tx) markTime(t Table, ms int64, id string) {
	x.key = timeKey(x.key[:0], ms, id)
	x.mark(t, x.key)
}

func (x *tx) unmarkTime(t Table, ms int64, id string) {
	x.key = timeKey(x.key[:0], ms, id)
	x.kv.Delete(t, x.key)
}

func (x *tx) markPair(t Table, a, b string) {
	x.key = pairKey(x.key[:0], a, b)
	x.mark(t, x.key)
}

func (x *tx) unmarkPair(t Table, a, b string) {
	x.key = pairKey(x.key[:0], a, b)
	x.kv.Delete(t, x.key)
}
