package durable_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// idParts are texts of which random ids consist.
var idParts = []string{
	"a", "b", "1", "2", "17", ".", ":", "#", "~", "!", "..", "::", "##", ":#", ":##", ":#1", ":#~2", ":#1!2", ".1", ":1", ".~2",
	"%", "%2E", "/", " ", "\n", "\x1b[31m", "\u00e9", "e\u0301", "\u2028", "☕", "\U0001F600", "shop:api.rolls.Roll:", "test:root", "topogen:id",
}

// randomIDs are different ids, many of which look like the ids of records of the others.
func randomIDs(r *rand.Rand, n int) (ids []string) {
	seen := map[string]bool{"": true}
	for len(ids) < n {
		id := ""
		if len(ids) > 0 && r.IntN(3) > 0 {
			id = ids[r.IntN(len(ids))]
		}
		switch r.IntN(20) {
		case 0:
			id = strings.Repeat(idParts[r.IntN(len(idParts))], 1000)
			id = strings.ToValidUTF8(id[:min(len(id), 1000)], "")
		case 1:
			id = durable.PromiseID(id)
		case 2:
			id = strings.ToValidUTF8(id[:r.IntN(len(id)+1)], "")
		default:
			for range 1 + r.IntN(3) {
				id += idParts[r.IntN(len(idParts))]
			}
		}
		if !seen[id] && len(durable.PromiseID(id)) < 1500 {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// TestPromiseIDs checks that no two ids have the same promise, and that no id has the promise of
// a record of an execution with another one.
func TestPromiseIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	made := map[string]string{}
	for _, id := range randomIDs(random, 20_000) {
		p := durable.PromiseID(id)
		if other, exists := made[p]; exists {
			t.Errorf("%q and %q have the promise %q", id, other, p)
		}
		made[p] = id
	}
	for p, id := range made {
		for i := range len(p) {
			if root, rest := p[:i], p[i:]; made[root] != "" && strings.HasPrefix(rest, ":#") && !strings.HasPrefix(rest, ":##") {
				t.Errorf("the promise %q of %q is a record of %q", p, id, made[root])
			}
		}
	}
	for _, id := range []string{"order-17", "1.2", "a:b", "a..b", "a##", "#", "::", "%23", "a:%23"} {
		if p := durable.PromiseID(id); p != id {
			t.Errorf("the promise of %q is %q", id, p)
		}
	}
}

// TestRandomIDs runs random workflows with random ids at the same time, with kills and pauses. The
// result of each is the same as without the others and without kills.
func TestRandomIDs(t *testing.T) {
	first, end := speed.Seeds(t, 4, 100, 2000)
	end = first + speed.Tenth(t, end-first)
	var killed, paused, ran uint64
	for seed := first; seed < end; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			var scripts []script
			var want []string
			for _, id := range randomIDs(random, 2+random.IntN(8)) {
				s := randomScript(random, id, 2)
				scripts = append(scripts, s)
				want = append(want, runScript(t, s, seed, nil, nil).results[0])
			}
			r := runScripts(t, scripts, seed, random, &paused, nil)
			for i, s := range scripts {
				if got := r.results[i]; got != want[i] {
					t.Errorf("with the others the result of %q is\n%s\nand alone\n%s", s.Label, got, want[i])
				}
			}
			killed, ran = killed+uint64(r.w.killed), ran+uint64(r.ran)
		})
		if t.Failed() {
			t.Error(speed.Repeat(t, seed))
			break
		}
	}
	t.Logf("%d workers killed, %d paused, %d steps", killed, paused, ran)
}

// TestRandomStoresWithoutMarks begins random workflows with workers that write ids without a mark, as
// an earlier version did, and continues them at a random time with workers of this version. Then it
// runs workflows whose ids are those of records of the earlier version.
func TestRandomStoresWithoutMarks(t *testing.T) {
	first, end := speed.Seeds(t, 12, 250, 5000)
	end = first + speed.Tenth(t, end-first)
	var paused uint64
	updated, written := 0, 0
	for seed := first; seed < end; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			id := ""
			for id == "" || strings.Contains(id, "#") {
				id = randomIDs(random, 1)[0]
			}
			s := randomScript(random, id, 2).withoutMarks()
			want := runScript(t, s, seed, nil, nil).results[0]
			former := &formerIDs{left: random.IntN(60), now: make(map[string]string)}
			r := runScripts(t, []script{s}, seed, random, &paused, func(w *world) { w.former = former })
			if former.left < 0 {
				updated++
			}
			written += len(former.now)
			if got := r.results[0]; got != want {
				t.Errorf("after an update the result of %q is\n%s\nand without\n%s", id, got, want)
			}
			former.left, r.w.former = 0, nil // the last workers of the earlier version die, too
			records := slices.Sorted(maps.Keys(former.now))
			random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
			for _, id := range records[:min(3, len(records))] {
				s := randomScript(random, id, 1).withoutMarks()
				want := runScript(t, s, seed, nil, nil).results[0]
				h := r.w.call(s.Label, "script", s)
				r.w.start(0, false)
				r.w.run(nil)
				if got := r.w.result(h.ID()); got != want {
					t.Errorf("the result of %q, which is the id of a record, is\n%s\nand in another store\n%s", id, got, want)
				}
			}
			r.w.check()
		})
		if t.Failed() {
			t.Error(speed.Repeat(t, seed))
			break
		}
	}
	t.Logf("%d stores were continued, %d ids have another form now", updated, written)
	if n := int(end - first); n >= 12 && (updated < n/4 || written < n) {
		t.Error("too little was written by the earlier version")
	}
}

// withoutMarks is the script with ids that do not contain the mark. The earlier version used such an
// id as it is.
func (s script) withoutMarks() script {
	s.Label = strings.ReplaceAll(s.Label, "#", "")
	s.Ops = slices.Clone(s.Ops)
	for i := range s.Ops {
		s.Ops[i].Child = s.Ops[i].Child.withoutMarks()
	}
	return s
}

// formerIDs writes the ids of records in their former form into the requests of a worker, and in the
// form of today into the responses. The processes that use it die after some operations.
type formerIDs struct {
	left int
	now  map[string]string // ids by their former form
}

func (f *formerIDs) around(do func(protocol.Operation) (protocol.Result, error)) func(protocol.Operation) (protocol.Result, error) {
	return func(op protocol.Operation) (protocol.Result, error) {
		r := protocol.Request{Op: op}
		request, err := protocol.DecodeRequest(mapTexts(protocol.AppendRequest(nil, &r), f.formerOf))
		if err != nil {
			return protocol.Result{}, err
		}
		result, err := do(request.Op)
		if err != nil {
			return protocol.Result{}, err
		}
		return protocol.DecodeResponse(mapTexts(protocol.AppendResponse(nil, &request, &result), f.nowOf), &r)
	}
}

// formerOf is the former form of the id of a record.
func (f *formerIDs) formerOf(id string) string {
	root, rest, marked := strings.Cut(id, ":#")
	if !marked {
		return id
	}
	separator := ":"
	if strings.Contains(root, ":") {
		separator = "."
	}
	former := root + separator + rest
	f.now[former] = id
	return former
}

func (f *formerIDs) nowOf(former string) string { return cmp.Or(f.now[former], former) }

// mapTexts replaces the strings in JSON, but not the keys.
func mapTexts(text []byte, to func(string) string) []byte {
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		panic(err)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return to(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for key := range v {
				v[key] = walk(v[key])
			}
		}
		return v
	}
	mapped, err := json.Marshal(walk(value))
	if err != nil {
		panic(err)
	}
	return mapped
}
