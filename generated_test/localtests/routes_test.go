package localtests_test

import (
	"context"
	"errors"
	"testing"

	"github.com/topogen/topogen/generated_test/routes"
	"github.com/topogen/topogen/runtime/route"
	"github.com/topogen/topogen/runtime/topo"
)

const routesShards = 5

// gotRoutes runs the topology with sources that run the script, and returns the number of messages
// called name that each shard received.
func gotRoutes(t *testing.T, name string, script func(*routes.SourceSender)) (counts [routesShards]int) {
	t.Helper()
	top, err := routes.New(routes.Processors{Source: func(i topo.Instance) (*routes.Source, error) {
		if i.Index != 1 {
			return new(routes.Source), nil
		}
		return &routes.Source{Script: script}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	top.Api().Close()
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range routesShards {
		counts[i] = top.Shard(i).Got[name]
	}
	return counts
}

func onlyRoutes(i int) (counts [routesShards]int) {
	counts[i] = 1
	return counts
}

func TestRoutesInternal(t *testing.T) {
	some := routes.ByMethod{Name: "acme"}
	for _, c := range []struct {
		name string
		send func(*routes.SourceSender)
		want [routesShards]int
	}{
		{"ByString", func(o *routes.SourceSender) { o.SendByString(routes.ByString{Key: "acme"}) }, onlyRoutes(route.String("acme", routesShards))},
		{"ByName", func(o *routes.SourceSender) { o.SendByName(routes.ByName{Key: "acme"}) }, onlyRoutes(route.String("acme", routesShards))},
		{"ByBytes", func(o *routes.SourceSender) { o.SendByBytes(routes.ByBytes{Key: []byte("acme")}) }, onlyRoutes(route.String("acme", routesShards))},
		{"ByInt", func(o *routes.SourceSender) { o.SendByInt(routes.ByInt{Key: -3}) }, onlyRoutes(route.Int(-3, routesShards))},
		{"ByUint", func(o *routes.SourceSender) { o.SendByUint(routes.ByUint{Key: 1 << 63}) }, onlyRoutes(route.Uint(uint64(1<<63), routesShards))},
		{"ByBool", func(o *routes.SourceSender) { o.SendByBool(routes.ByBool{Key: true}) }, onlyRoutes(route.Bool(true, routesShards))},
		{"ByPath", func(o *routes.SourceSender) { o.SendByPath(routes.ByPath{Header: routes.Header{Account: "acme"}}) }, onlyRoutes(route.String("acme", routesShards))},
		{"ByMethod", func(o *routes.SourceSender) { o.SendByMethod(some) }, onlyRoutes(route.String("acme", routesShards))},
		{"ByPointer", func(o *routes.SourceSender) {
			o.SendByPointer(routes.ByPointer{Header: &routes.Header{Account: "acme"}})
		}, onlyRoutes(route.String("acme", routesShards))},
		{"ByPointer", func(o *routes.SourceSender) { o.SendByPointer(routes.ByPointer{}) }, onlyRoutes(route.String("", routesShards))},
		{"Local", func(o *routes.SourceSender) { o.SendLocal(routes.Local{}) }, onlyRoutes(1)},
		{"Numbered", func(o *routes.SourceSender) { o.SendNumberedToShard(routes.Numbered{To: 3}) }, onlyRoutes(3)},
		{"Some", func(o *routes.SourceSender) { o.SendSome(routes.Some{}) }, [routesShards]int{0, 1, 1, 1, 0}},
		{"Single", func(o *routes.SourceSender) { o.SendSingle(routes.Single{}) }, onlyRoutes(4)},
		{"All", func(o *routes.SourceSender) { o.SendAll(routes.All{}) }, [routesShards]int{1, 1, 1, 1, 1}},
	} {
		if counts := gotRoutes(t, c.name, c.send); counts != c.want {
			t.Errorf("%s went to %v, want %v", c.name, counts, c.want)
		}
	}
}

func TestRoutesNoInstance(t *testing.T) {
	counts := gotRoutes(t, "Numbered", func(o *routes.SourceSender) {
		for _, to := range []int{-1, 5} {
			if err := o.SendNumberedToShard(routes.Numbered{To: to}); !errors.Is(err, topo.ErrNoInstance) {
				t.Errorf("to %d: %v", to, err)
			}
		}
		if err := o.SendNumbered(routes.Numbered{To: 1}); !errors.Is(err, topo.ErrNoInstance) { // the receiver has only instance 0
			t.Error(err)
		}
		if err := o.SendNumbered(routes.Numbered{To: 0}); err != nil {
			t.Error(err)
		}
	})
	if want := [routesShards]int{0: 1, 1: 1}; counts != want { // shard 1 exists, so it gets its copy of the message to an instance that one does not have
		t.Errorf("it went to %v, want %v", counts, want)
	}
}

func TestRoutesExternal(t *testing.T) {
	top, err := routes.New(routes.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s, api := top.Stepper(1), top.Api()
	for _, err := range []error{
		api.SendByString(t.Context(), routes.ByString{Key: "acme"}),
		api.SendByPointer(t.Context(), routes.ByPointer{}),
		api.SendByPointer(t.Context(), routes.ByPointer{Header: &routes.Header{Account: "acme"}}),
		api.SendNumbered(t.Context(), routes.Numbered{To: 2}),
		api.SendSome(t.Context(), routes.Some{}),
		api.SendSingle(t.Context(), routes.Single{}),
		api.SendAll(t.Context(), routes.All{}),
		api.SendAllToShard(t.Context(), routes.All{}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := api.SendNumbered(t.Context(), routes.Numbered{To: 5}); !errors.Is(err, topo.ErrNoInstance) {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := api.SendNumbered(ended, routes.Numbered{To: 5}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	api.Close()
	if err := api.SendNumbered(t.Context(), routes.Numbered{To: 5}); !errors.Is(err, topo.ErrClosed) {
		t.Error(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	want := map[string][routesShards]int{
		"ByString": onlyRoutes(route.String("acme", routesShards)), "Numbered": onlyRoutes(2), "Single": onlyRoutes(4),
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
	for i := range routesShards {
		pointers += top.Shard(i).Got["ByPointer"]
	}
	if pointers != 2 || top.One(0).All != 1 {
		t.Errorf("%d, %+v", pointers, top.One(0))
	}
	e := top.Tree().Edge(routes.EdgeApiShardNumbered)
	if e.Sent() != 2 || e.Dropped() != 1 || e.Received() != 1 {
		t.Errorf("sent %d, dropped %d, received %d", e.Sent(), e.Dropped(), e.Received())
	}
}

func TestRoutesStrings(t *testing.T) {
	if s := routes.ProcessorShard.String() + ", " + routes.EdgeSourceShardByInt.String() + ", " + routes.EdgeIndex(-1).String(); s != "shard, source -> shard: ByInt, EdgeIndex(-1)" {
		t.Error(s)
	}
}
