package routes

import (
	"errors"
	"testing"

	"github.com/topogen/topogen/runtime/route"
	"github.com/topogen/topogen/runtime/topo"
)

const shards = 5

// got runs the topology with sources that run the script, and returns the number of messages
// called name that each shard received.
func got(t *testing.T, name string, script func(*SourceSender)) (counts [shards]int) {
	t.Helper()
	top, err := New(Processors{Source: func(i topo.Instance) (*Source, error) {
		if i.Index != 1 {
			return new(Source), nil
		}
		return &Source{Script: script}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	top.Api().Close()
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range shards {
		counts[i] = top.Shard(i).Got[name]
	}
	return counts
}

func only(i int) (counts [shards]int) {
	counts[i] = 1
	return counts
}

func TestInternal(t *testing.T) {
	some := ByMethod{"acme"}
	for _, c := range []struct {
		name string
		send func(*SourceSender)
		want [shards]int
	}{
		{"ByString", func(o *SourceSender) { o.SendByString(ByString{"acme"}) }, only(route.String("acme", shards))},
		{"ByName", func(o *SourceSender) { o.SendByName(ByName{"acme"}) }, only(route.String("acme", shards))},
		{"ByBytes", func(o *SourceSender) { o.SendByBytes(ByBytes{[]byte("acme")}) }, only(route.String("acme", shards))},
		{"ByInt", func(o *SourceSender) { o.SendByInt(ByInt{-3}) }, only(route.Int(-3, shards))},
		{"ByUint", func(o *SourceSender) { o.SendByUint(ByUint{1 << 63}) }, only(route.Uint(uint64(1<<63), shards))},
		{"ByBool", func(o *SourceSender) { o.SendByBool(ByBool{true}) }, only(route.Bool(true, shards))},
		{"ByPath", func(o *SourceSender) { o.SendByPath(ByPath{Header{"acme"}}) }, only(route.String("acme", shards))},
		{"ByMethod", func(o *SourceSender) { o.SendByMethod(some) }, only(route.String("acme", shards))},
		{"ByPointer", func(o *SourceSender) { o.SendByPointer(ByPointer{&Header{"acme"}}) }, only(route.String("acme", shards))},
		{"ByPointer", func(o *SourceSender) { o.SendByPointer(ByPointer{}) }, only(route.String("", shards))},
		{"Local", func(o *SourceSender) { o.SendLocal(Local{}) }, only(1)},
		{"Numbered", func(o *SourceSender) { o.SendNumberedToShard(Numbered{3}) }, only(3)},
		{"Some", func(o *SourceSender) { o.SendSome(Some{}) }, [shards]int{0, 1, 1, 1, 0}},
		{"Single", func(o *SourceSender) { o.SendSingle(Single{}) }, only(4)},
		{"All", func(o *SourceSender) { o.SendAll(All{}) }, [shards]int{1, 1, 1, 1, 1}},
	} {
		if counts := got(t, c.name, c.send); counts != c.want {
			t.Errorf("%s went to %v, want %v", c.name, counts, c.want)
		}
	}
}

func TestNoInstance(t *testing.T) {
	counts := got(t, "Numbered", func(o *SourceSender) {
		for _, to := range []int{-1, 5} {
			if err := o.SendNumberedToShard(Numbered{to}); !errors.Is(err, topo.ErrNoInstance) {
				t.Errorf("to %d: %v", to, err)
			}
		}
		if err := o.SendNumbered(Numbered{1}); !errors.Is(err, topo.ErrNoInstance) { // the receiver has only instance 0
			t.Error(err)
		}
		if err := o.SendNumbered(Numbered{0}); err != nil {
			t.Error(err)
		}
	})
	if counts != only(0) {
		t.Errorf("it went to %v", counts)
	}
}

func TestExternal(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s, api := top.Stepper(1), top.Api()
	for _, err := range []error{
		api.SendByString(t.Context(), ByString{"acme"}),
		api.SendByPointer(t.Context(), ByPointer{}),
		api.SendByPointer(t.Context(), ByPointer{&Header{"acme"}}),
		api.SendNumbered(t.Context(), Numbered{2}),
		api.SendSome(t.Context(), Some{}),
		api.SendSingle(t.Context(), Single{}),
		api.SendAll(t.Context(), All{}),
		api.SendAllToShard(t.Context(), All{}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := api.SendNumbered(t.Context(), Numbered{5}); !errors.Is(err, topo.ErrNoInstance) {
		t.Error(err)
	}
	api.Close()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	want := map[string][shards]int{
		"ByString": only(route.String("acme", shards)), "Numbered": only(2), "Single": only(4),
		"Some": {0, 1, 1, 1, 0}, "All": {2, 2, 2, 2, 2},
	}
	for name, counts := range want {
		for i, n := range counts {
			if top.Shard(i).Got[name] != n {
				t.Errorf("%s: instance %d got %d", name, i, top.Shard(i).Got[name])
			}
		}
	}
	pointers := 0
	for i := range shards {
		pointers += top.Shard(i).Got["ByPointer"]
	}
	if pointers != 2 || top.One(0).All != 1 {
		t.Errorf("%d, %+v", pointers, top.One(0))
	}
	e := top.Tree().Edge(EdgeApiShardNumbered)
	if e.Sent() != 2 || e.Dropped() != 1 || e.Received() != 1 {
		t.Errorf("sent %d, dropped %d, received %d", e.Sent(), e.Dropped(), e.Received())
	}
}

func TestStrings(t *testing.T) {
	if s := ProcessorShard.String() + ", " + EdgeSourceShardByInt.String() + ", " + EdgeIndex(-1).String(); s != "shard, source -> shard: ByInt, EdgeIndex(-1)" {
		t.Error(s)
	}
}
