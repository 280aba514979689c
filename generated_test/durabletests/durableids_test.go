package durabletests_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/durableids"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func newIDs(t *testing.T, w *durableids.World, opts ...pool.Option) *durableids.Topology {
	t.Helper()
	topology, err := durableids.New(durableids.Processors{
		Rolls: func(topo.Instance) (*durableids.Rolls, error) { return &durableids.Rolls{World: w}, nil },
		Parts: func(topo.Instance) (*durableids.Parts, error) { return &durableids.Parts{World: w}, nil },
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// TestDurableIDsIDsOfVersions rolls out a version whose number is that of a child of another one.
func TestDurableIDsIDsOfVersions(t *testing.T) {
	w, store := new(durableids.World), edges.NewMemory()
	topology := newIDs(t, w, pool.DurableMemory(store))
	topology.Stepper(1)
	for _, version := range []string{"1.2", "1.2.1", "1.2.2", "1", "1.1", "1.2.2.1"} {
		result, err := topology.Api().AskRoll(t.Context(), durableids.Roll{Version: version, Children: 1})
		if want := "roll " + version + ", part " + version; err != nil || result.Text != want {
			t.Errorf("version %s: %q, %v, want %q", version, result.Text, err, want)
		}
		if n := w.Runs["roll "+version]; n != 1 {
			t.Errorf("version %s was rolled out %d times", version, n)
		}
	}
}

// parts are texts of which random ids consist.
var parts = []string{
	"a", "1", "2", ".", ":", "#", "~", "!", "..", "::", ":#", ":##", ":#1", ":#~2", ":#1!2", ".1", ".2", ".~2", ":1", "%2E", "/", " ", "\n",
	"\u00e9", "e\u0301", "☕", "shop:api.rolls.Roll:",
}

// randomRolls are rollouts with different ids, many of which look like the ids of records of the
// others.
func randomRolls(r *rand.Rand, n int) (rolls []durableids.Roll) {
	seen := map[string]bool{"": true}
	for len(rolls) < n {
		m := durableids.Roll{Fails: r.IntN(3) == 0, Repeats: r.IntN(3) == 0, Children: r.IntN(3), Sleep: time.Duration(r.IntN(2)) * time.Hour}
		if len(rolls) > 0 && r.IntN(3) > 0 {
			m.Version = rolls[r.IntN(len(rolls))].Version
		}
		for range 1 + r.IntN(2) {
			m.Version += parts[r.IntN(len(parts))]
		}
		if r.IntN(20) == 0 {
			m.Version += strings.Repeat("x", 1000)
		}
		if r.IntN(2) == 0 {
			m.Named = m.Version + parts[r.IntN(len(parts))]
		}
		if !seen[m.Version] && len(m.Version) < 1200 {
			seen[m.Version] = true
			rolls = append(rolls, m)
		}
	}
	return rolls
}

// replyTo is the text of the reply to a rollout.
func replyTo(m durableids.Roll) string {
	text := "roll " + m.Version
	for i := range m.Children {
		text += ", " + []string{"part ", "deep "}[min(i, 1)] + m.Version
	}
	if m.Named != "" {
		text += ", named " + m.Named
	}
	return text
}

// TestDurableIDsRandomIDs rolls out versions with random ids at the same time. The process crashes a few times,
// and its successor sends all of them again. Each version has its own reply. Without a crash, each
// step ran once.
func TestDurableIDsRandomIDs(t *testing.T) {
	crashes := 0
	first, end := speed.Seeds(t, 20, 60, 10_000)
	for seed := first; seed < end; seed++ {
		random := rand.New(rand.NewPCG(seed, 1))
		rolls := randomRolls(random, 2+random.IntN(10))
		w, store := new(durableids.World), edges.NewMemory()
		crashed := 0
		for left := random.IntN(4); ; left-- {
			store.CrashAfter(-1)
			if left > 0 {
				store.CrashAfter(random.IntN(200))
			}
			topology := newIDs(t, w, pool.DurableMemory(store))
			steps := topology.Stepper(seed)
			var handles []durable.Handle[durableids.Result]
			for _, m := range rolls {
				h, err := topology.Api().StartRoll(t.Context(), m)
				if err != nil && !store.Crashed() {
					t.Fatalf("seed %d: version %q: %v\n%s", seed, m.Version, err, speed.Repeat(t, seed))
				}
				handles = append(handles, h)
			}
			err := steps.Run()
			if store.Crashed() {
				crashed++
				continue
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, speed.Repeat(t, seed))
			}
			store.CrashAfter(-1)
			for i, m := range rolls {
				result, settled, err := handles[i].Result(t.Context())
				if err != nil || !settled || result.Text != replyTo(m) {
					t.Errorf("seed %d: version %q: %q, %v, %v, want %q", seed, m.Version, result.Text, settled, err, replyTo(m))
				}
			}
			break
		}
		crashes += crashed
		for _, m := range rolls {
			most := 1
			if m.Repeats {
				most++
			}
			if n := w.Runs["roll "+m.Version]; n < most || n > most+crashed {
				t.Errorf("seed %d: version %q was rolled out %d times, with %d crashes", seed, m.Version, n, crashed)
			}
		}
		if t.Failed() {
			t.Fatal(speed.Repeat(t, seed))
		}
	}
	if seeds := end - first; seeds >= 20 && uint64(crashes) < seeds/2 {
		t.Errorf("there were only %d crashes of %d seeds", crashes, seeds)
	}
}

// TestDurableIDsInvalidIDs sends versions that cannot be ids.
func TestDurableIDsInvalidIDs(t *testing.T) {
	topology := newIDs(t, new(durableids.World))
	topology.Stepper(1)
	for _, version := range []string{"a\x00", "\xff", strings.Repeat("☕", 1000), strings.Repeat(":#", 700)} {
		if err := topology.Api().SendRoll(t.Context(), durableids.Roll{Version: version}); !errors.Is(err, durable.ErrInvalidID) {
			t.Errorf("version %.20q: %v", version, err)
		}
	}
	if err := topology.Api().SendRoll(t.Context(), durableids.Roll{}); !errors.Is(err, edges.ErrNoID) {
		t.Errorf("no version: %v", err)
	}
	if n := topology.Snapshot().Edges[durableids.EdgeApiRollsRoll].Sent; n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// TestDurableIDsTakenIDs sends messages whose promises other programs have made. No send returns without an
// error, and no result of the others is a reply.
func TestDurableIDsTakenIDs(t *testing.T) {
	store, w := edges.NewMemory(), new(durableids.World)
	topology := newIDs(t, w, pool.DurableMemory(store))
	topology.Stepper(1)
	call := func(function, target string) (create protocol.PromiseCreate) {
		data := base64.StdEncoding.EncodeToString([]byte(`{"func":"` + function + `","args":[{"Version":"x"}],"version":1}`))
		create.Param.Data = &data
		create.Tags = map[string]string{protocol.TagTarget: "poll://any@" + target}
		return create
	}
	reply := base64.StdEncoding.EncodeToString([]byte(`{"Text":"another reply"}`))
	for version, other := range map[string]struct {
		create protocol.PromiseCreate
		maker  string
	}{
		"by hand":          {maker: "a program that calls no function"},
		"function":         {call("api.rolls.Other", "shop"), `a call of "api.rolls.Other" with the id "shop:api.rolls.Roll:function"`},
		"topology":         {call("api.rolls.Roll", "other"), `for poll://any@other`},
		"of the same call": {call("api.rolls.Roll", "shop"), ""},
	} {
		create := other.create
		create.ID, create.TimeoutAt = "shop:api.rolls.Roll:"+version, 1<<50
		settle := protocol.PromiseSettle{ID: create.ID, State: protocol.Resolved, Value: protocol.Value{Data: &reply}}
		for _, op := range []protocol.Operation{create, settle} {
			if r, err := store.Do(t.Context(), op); err != nil || r.Status != protocol.OK {
				t.Fatal(r, err)
			}
		}
		m := durableids.Roll{Version: version}
		_, started := topology.Api().StartRoll(t.Context(), m)
		result, asked := topology.Api().AskRoll(t.Context(), m)
		_, found := topology.Api().FindRoll(t.Context(), create.ID)
		if other.maker == "" {
			if err := errors.Join(started, asked, found, topology.Api().SendRoll(t.Context(), m)); err != nil || result.Text != "another reply" {
				t.Errorf("a promise %s: %q, %v", version, result.Text, err)
			}
			continue
		}
		for name, err := range map[string]error{"Start": started, "Ask": asked, "Send": topology.Api().SendRoll(t.Context(), m), "Find": found} {
			if !errors.Is(err, durable.ErrTaken) || !strings.Contains(err.Error(), other.maker) || !strings.Contains(err.Error(), `not by a call of "api.rolls.Roll"`) {
				t.Errorf("a promise %s: %s: %v", version, name, err)
			}
		}
	}
	if len(w.Runs) != 0 {
		t.Errorf("steps ran: %v", w.Runs)
	}
}

// TestDurableIDsFindRecord looks for an execution with the id of a record.
func TestDurableIDsFindRecord(t *testing.T) {
	topology := newIDs(t, new(durableids.World))
	topology.Stepper(1)
	h, err := topology.Api().StartRoll(t.Context(), durableids.Roll{Version: ":#", Children: 1})
	if err != nil || h.ID() != "shop:api.rolls.Roll::##" {
		t.Fatal(h.ID(), err)
	}
	if _, err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := topology.Api().FindRoll(t.Context(), h.ID()); err != nil {
		t.Error(err)
	}
	for position, maker := range []string{"durable.", `"roll"`, `"durable.Call rolls.parts.Part"`, `"durable.Sleep"`} {
		_, err := topology.Api().FindRoll(t.Context(), fmt.Sprint(h.ID(), ":#", position))
		if position > 0 && (!errors.Is(err, edges.ErrOtherEdge) || !strings.Contains(err.Error(), maker)) || err == nil {
			t.Errorf("record %d: %v", position, err)
		}
	}
}
