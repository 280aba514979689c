package suite

import (
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/bench/topologies/chains"
	"github.com/topogen/topogen/bench/topologies/hop"
	"github.com/topogen/topogen/bench/topologies/pipeline"
	"github.com/topogen/topogen/bench/topologies/sizes"
	"github.com/topogen/topogen/bench/work"
	"github.com/topogen/topogen/runtime/pool"
)

const (
	// rebalanceOften is short enough that the placement is reconsidered many times in one
	// run. The default of topologies is five seconds.
	rebalanceOften = 10 * time.Millisecond
	// longer is the factor for the length of runs in which the placement is reconsidered.
	longer = 5
	// chainWork is the work of a chain per message. The first chain does skew times as
	// much.
	chainWork = 200 * time.Nanosecond
	skew      = 10
	// manyWorkers is far above the number of threads.
	manyWorkers = 16
)

// placed is ping-pong between two instances that start on different workers.
func placed() Contest {
	between := func(options ...pool.Option) func(int) error {
		return func(n int) error { return hop.Run(n, 1, append(options, pool.Workers(2))...) }
	}
	return Contest{
		Name: "ping-pong-placed", title: "Ping-pong, from two workers", unit: "hop",
		note: "Two instances start on two workers, with one message in flight. In the first row the pool reconsiders the placement every 10 ms and moves both to one worker. In the second row they stay apart.",
		long: longer,
		Contenders: []measure.Contender{
			{Name: "topogen, may move", Run: between(pool.Rebalance(rebalanceOften))},
			{Name: "topogen, kept on two workers", Run: between(pool.Rebalance(0))},
			sure(channelsFree, func(n int) { peers.ChannelPingPong(n, 1, false) }),
			sure(channelsHeld, func(n int) { peers.ChannelPingPong(n, 1, true) }),
		},
	}
}

// rebalanced compares topologies whose placement is reconsidered with topologies whose
// placement is not.
func rebalanced() []Contest {
	steps := work.Steps(chainWork)
	run := func(times int, period time.Duration) func(int) error {
		return func(n int) error { return chains.Run(n, steps, times, pool.Workers(2), pool.Rebalance(period)) }
	}
	const on, off = "rebalanced every 10 ms", "not rebalanced"
	contenders := func(times int) []measure.Contender {
		return []measure.Contender{{Name: on, Run: run(times, rebalanceOften)}, {Name: off, Run: run(times, 0)}}
	}
	both := sure("the work alone, on two goroutines", func(n int) {
		// A message of the first chain takes skew times as long as a message of the others.
		peers.Parallel(n, steps*(chains.Chains-1+skew)/chains.Chains)
	})
	return []Contest{{
		Name: "rebalance-idle", title: "Rebalancing if nothing needs to move", unit: "message",
		note:       "A source feeds sixteen equal chains of two processors in turn, on two workers. Placement is reconsidered 500 times as often as by default.",
		long:       longer,
		Contenders: contenders(1),
		goals:      []goal{{"sixteen equal chains: rebalanced against not", 0.97, off}},
	}, {
		Name: "rebalance-skew", title: "Rebalancing if one chain has ten times the work", unit: "message",
		note:       "The same chains, but the first one takes ten times as long for a message. In the first placement one worker has twice as much work as the other, and all instances wait for it. Without rebalancing, too, an idle worker takes over an instance whose turns are long.",
		long:       longer,
		Contenders: append(contenders(skew), both),
	}}
}

// crowded compares sixteen workers with two, on the same threads. Sixteen workers wake each other
// more often, and their goroutines share the threads.
func crowded() (list []Contest) {
	steps := work.Steps(chainWork)
	for _, of := range []struct {
		name, title, note, goal string
		run                     func(n int, options ...pool.Option) error
	}{
		{
			"crowded-chains", "Sixteen workers, sixteen chains", "The sixteen equal chains from above.", "sixteen workers against two, sixteen chains",
			func(n int, options ...pool.Option) error { return chains.Run(n, steps, 1, options...) },
		},
		{
			"crowded-stages", "Sixteen workers, three stages of 200 ns of work", "The three stages from above.", "sixteen workers against two, three stages",
			func(n int, options ...pool.Option) error { return pipeline.Run(through(n), steps, options...) },
		},
	} {
		const two = "two workers"
		list = append(list, Contest{
			Name: of.name, title: of.title, unit: "message", note: of.note, long: longer,
			Contenders: []measure.Contender{
				{Name: "sixteen workers", Run: func(n int) error { return of.run(n, pool.Workers(manyWorkers)) }},
				{Name: two, Run: func(n int) error { return of.run(n, pool.Workers(2)) }},
			},
			limits: []goal{{of.goal, 1.2, two}},
		})
	}
	return list
}

// sizesOfMessages returns contests for several sizes of messages.
func sizesOfMessages() (list []Contest) {
	type flow struct {
		name string
		kind sizes.Kind
		peer func(n int)
	}
	number := new(uint64)
	flows := []flow{
		{"8 bytes", sizes.KindPlain8, func(n int) { peers.ChannelFlow(n, sizes.Plain8{}) }},
		{"8 bytes, a pointer", sizes.KindPointer8, func(n int) { peers.ChannelFlow(n, sizes.Pointer8{P: number}) }},
		{"64 bytes", sizes.KindPlain64, func(n int) { peers.ChannelFlow(n, sizes.Plain64{}) }},
		{"64 bytes of pointers", sizes.KindPointer64, func(n int) { peers.ChannelFlow(n, sizes.Pointer64{P: [8]*uint64{number}}) }},
		{"1,024 bytes", sizes.KindPlain1024, func(n int) { peers.ChannelFlow(n, sizes.Plain1024{}) }},
		{"1,024 bytes of pointers", sizes.KindPointer1024, func(n int) { peers.ChannelFlow(n, sizes.Pointer1024{P: [128]*uint64{number}}) }},
	}
	names := []string{"size-8", "size-8p", "size-64", "size-64p", "size-1024", "size-1024p"}
	for i, f := range flows {
		on := func(workers int) func(int) error {
			return func(n int) error { return sizes.Run(n, f.kind, pool.Workers(workers), pool.Rebalance(0)) }
		}
		list = append(list, Contest{
			Name: names[i], title: "Messages of " + f.name, unit: "message",
			Contenders: []measure.Contender{
				{Name: "topogen, one worker", Run: on(1)},
				sure(channels, f.peer),
				{Name: "topogen, between two workers", Run: on(2)},
			},
		})
	}
	list[0].note = "From a source to a sink. topogen copies each message into the queue once, and the handler reads it there. A channel copies each message in and out."
	return list
}
