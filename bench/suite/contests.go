package suite

import (
	"context"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/bench/topologies/ask"
	"github.com/topogen/topogen/bench/topologies/busy"
	"github.com/topogen/topogen/bench/topologies/door"
	"github.com/topogen/topogen/bench/topologies/fanin"
	"github.com/topogen/topogen/bench/topologies/hop"
	"github.com/topogen/topogen/bench/topologies/neighbours"
	"github.com/topogen/topogen/bench/topologies/pingpong"
	"github.com/topogen/topogen/bench/topologies/pipeline"
	"github.com/topogen/topogen/bench/topologies/scatter"
	"github.com/topogen/topogen/bench/work"
	"github.com/topogen/topogen/runtime/pool"
)

const (
	ours       = "topogen"
	channels   = "channels"
	protoactor = "protoactor-go"
	watermill  = "watermill gochannel"

	channelsHeld = "channels, each goroutine locked to a thread"
	channelsFree = "channels, scheduled freely"
)

// stageWork is the work of each stage of the pipeline with work, per message.
const stageWork = 200 * time.Nanosecond

// scatterLong makes a run so long that the 10,000 queues are made in a small part of it.
const scatterLong = 20

// sure makes a contender of a function that cannot fail.
func sure(name string, run func(n int)) measure.Contender {
	return measure.Contender{Name: name, Run: func(n int) error { run(n); return nil }}
}

// Contests returns all contests.
func Contests() []Contest {
	flows := []Contest{pipelines(), fanIns(), pingPongs(), besideIdle(), stages()}
	flows = append(flows, hops()...)
	flows = append(flows, scattered(), placed())
	flows = append(flows, rebalanced()...)
	flows = append(flows, crowded()...)
	flows = append(flows, sizesOfMessages()...)
	flows = append(flows, sends()...)
	flows = append(flows, asks()...)
	flows = append(flows, bursts())
	return append(flows, queues()...)
}

// through returns how many messages cause n handler calls in a pipeline of three.
func through(n int) int { return max(n/3, 1) }

func pipelines() Contest {
	return Contest{
		Name: "pipeline", title: "Pipeline of three handlers", unit: "handler call",
		note: "A source sends through three handlers that only pass the message on. topogen has two workers, and the others have two threads.",
		Contenders: []measure.Contender{
			{Name: ours, Run: func(n int) error { return pipeline.Run(through(n), 0) }},
			sure(channels, func(n int) { peers.ChannelPipeline(through(n), 0) }),
			sure(protoactor, func(n int) { peers.ActorPipeline(through(n)) }),
			sure(watermill, func(n int) { peers.MillPipeline(through(n)) }),
		},
		steady: true,
		goals:  []goal{{"pipeline, against channels", 6, channels}, {"pipeline, against protoactor-go", 15, protoactor}},
	}
}

func fanIns() Contest {
	return Contest{
		Name: "fan-in", title: "Fan-in, eight to one", unit: "message",
		note: "Eight sources send to one sink.",
		Contenders: []measure.Contender{
			{Name: ours, Run: func(n int) error { return fanin.Run(n) }},
			sure(channels, peers.ChannelFanIn),
			sure(protoactor, peers.ActorFanIn),
			sure(watermill, peers.MillFanIn),
		},
		steady: true,
		goals:  []goal{{"fan-in 8 to 1, against channels", 6, channels}},
	}
}

func pingPongs() Contest {
	return Contest{
		Name: "ping-pong", title: "Ping-pong, one message in flight", unit: "hop",
		note: "One message goes back and forth between two instances, so nothing can be batched.",
		Contenders: []measure.Contender{
			{Name: ours, Run: func(n int) error { return pingpong.Run(n) }},
			sure(channels, func(n int) { peers.ChannelPingPong(n, 1, false) }),
			sure(protoactor, peers.ActorPingPong),
			sure(watermill, peers.MillPingPong),
		},
		steady: true,
		goals:  []goal{{"ping-pong, against channels", 5, channels}},
	}
}

func besideIdle() Contest {
	return Contest{
		Name: "ping-pong-1000", title: "Ping-pong beside 1,000 idle instances", unit: "hop",
		note: "The same, with a thousand idle instances on the same workers.",
		Contenders: []measure.Contender{
			{Name: ours, Run: func(n int) error { return neighbours.Run(n) }},
			sure(channels, func(n int) { peers.ChannelPingPong(n, 1, false) }),
			{Name: "topogen without idle instances", Run: func(n int) error { return pingpong.Run(n) }},
		},
		goals: []goal{{"ping-pong beside 1,000 idle instances, against channels", 5, channels}},
	}
}

func stages() Contest {
	steps := work.Steps(stageWork)
	run := func(workers int) func(int) error {
		return func(n int) error { return pipeline.Run(through(n), steps, pool.Workers(workers)) }
	}
	const one, both = "topogen, one worker", "the work alone, on two goroutines"
	return Contest{
		Name: "stages", title: "Three stages of 200 ns of work", unit: "handler call",
		note: "Each handler computes for 200 ns. The last two rows do the same work without messages. They show what the computer could give at that time.",
		Contenders: []measure.Contender{
			{Name: "topogen, two workers", Run: run(2)},
			{Name: one, Run: run(1)},
			sure(channels, func(n int) { peers.ChannelPipeline(through(n), steps) }),
			sure(both, func(n int) { peers.Parallel(n, steps) }),
			sure("the work alone, on one goroutine", func(n int) {
				for range n {
					work.Do(steps)
				}
			}),
		},
		goals: []goal{{"three stages of 200 ns: two workers against one", 1.8, one}},
	}
}

func hops() (list []Contest) {
	for _, of := range []struct {
		name, title string
		balls       int
	}{
		{"hop-1", "Between two workers, one message in flight", 1},
		{"hop-64", "Between two workers, 64 in flight", 64},
		{"hop-4096", "Between two workers, 4,096 in flight", 4096},
	} {
		c := Contest{
			Name: of.name, title: of.title, unit: "hop",
			Contenders: []measure.Contender{
				{Name: ours, Run: func(n int) error { return hop.Run(n, of.balls, pool.Workers(2), pool.Rebalance(0)) }},
				sure(channelsHeld, func(n int) { peers.ChannelPingPong(n, of.balls, true) }),
				sure(channelsFree, func(n int) { peers.ChannelPingPong(n, of.balls, false) }),
			},
		}
		if of.balls == 1 {
			c.limits = []goal{{"a hop between two workers, one in flight, against channels", 1.7, channelsFree}}
			c.note = "Two instances on two workers. This is the worst case of the pool, which otherwise puts instances on one worker if they exchange many messages and do little work."
		}
		list = append(list, c)
	}
	return list
}

func scattered() Contest {
	const one = "topogen, one worker"
	return Contest{
		Name: "scatter", title: "1,000 balls among 100 instances", unit: "hop",
		note: "Each instance passes each ball to a random instance, so most of the 10,000 queues are empty and a turn handles one or two messages.",
		Contenders: []measure.Contender{
			{Name: "topogen, two workers", Run: func(n int) error { return scatter.Run(n, pool.Workers(2)) }},
			{Name: one, Run: func(n int) error { return scatter.Run(n, pool.Workers(1)) }},
			sure(channels, func(n int) { peers.ChannelScatter(n, scatter.Instances, scatter.Balls) }),
		},
		long:  scatterLong,
		costs: []goal{{"1,000 balls among 100 instances, processor time against channels", 0.8, channels}},
	}
}

func sends() (list []Contest) {
	for _, of := range []struct {
		name, title string
		goroutines  int
		goals       []goal
	}{
		{"send", "Sends from outside, one goroutine", 1, nil},
		{"send-8", "Sends from outside, eight goroutines", 8, []goal{{"sends from outside by eight goroutines, against channels", 1.3, channels}}},
	} {
		list = append(list, Contest{
			Name: of.name, title: of.title, unit: "message",
			note: "`SendMessage(ctx, m)` of an external processor: it takes a lock, checks the context and the length of the queue, and publishes.",
			Contenders: []measure.Contender{
				{Name: ours, Run: func(n int) error { return door.Run(n, of.goroutines) }},
				sure(channels, func(n int) { peers.ChannelSend(n, of.goroutines) }),
			},
			goals: of.goals,
		})
	}
	return list
}

func asks() (list []Contest) {
	for _, of := range []struct {
		name, title string
		goroutines  int
		goals       []goal
	}{
		{"ask", "Ask, one caller", 1, []goal{{"Ask by one caller, against channels", 0.85, channels}}},
		{"ask-8", "Ask, eight callers", 8, nil},
	} {
		list = append(list, Contest{
			Name: of.name, title: of.title, unit: "call",
			note: "`AskQuestion(ctx, m)`, compared with a goroutine that replies on a channel of the caller. The context cannot end, so a caller that finds the pool idle runs the handler itself.",
			Contenders: []measure.Contender{
				{Name: ours, Run: func(n int) error { return ask.Run(n, of.goroutines) }},
				sure(channels, func(n int) { peers.ChannelAsk(n, of.goroutines) }),
			},
			goals: of.goals,
		})
	}
	list = append(list, Contest{
		Name: "ask-within", title: "Ask, one caller that may give up", unit: "call",
		note: "The context of the caller can end, so the caller cannot run the handler itself: it wakes a worker, and the reply wakes the caller.",
		Contenders: []measure.Contender{
			{Name: ours, Run: func(n int) error {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				return ask.RunWith(ctx, n, 1)
			}},
			sure(channels, func(n int) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				peers.ChannelAskWithin(ctx, n)
			}),
		},
	})
	return append(list, Contest{
		Name: "ask-busy", title: "Ask, while all workers are busy", unit: "call",
		note: "One caller, while eight pairs of instances, or of goroutines, pass a message back and forth without a pause.",
		Contenders: []measure.Contender{
			{Name: ours, Run: func(n int) error { return busy.Run(n) }},
			sure(channels, func(n int) { peers.ChannelAskBusy(n, busy.Pairs) }),
		},
		goals: []goal{{"Ask while all workers are busy, against channels", 0.5, channels}},
	})
}

const (
	aChannel   = "channel"
	xsyncMPMC  = "xsync MPMC"
	xsyncSPSC  = "xsync SPSC"
	aMutex     = "slice behind a mutex"
	nodeList   = "list of nodes, corrected"
	lockFree   = "queue.LockFree"
	edgePairs  = "queue.Edge for each pair, published every 64"
	edgeBatch  = "queue.Edge, published every 64"
	edgeSingle = "queue.Edge, each message published"
	publishAt  = 64
)

func queues() []Contest {
	across := func(name string, lane func() peers.Lane) measure.Contender {
		return sure(name, func(n int) { peers.Across(lane(), n) })
	}
	crowd := func(sides int, name string, lane func() peers.Lane) measure.Contender {
		return sure(name, func(n int) { peers.Crowd(lane(), sides, n) })
	}
	alone := func(name string, lane func() peers.Lane) measure.Contender {
		return sure(name, func(n int) { peers.Alternate(lane(), n, publishAt) })
	}
	shared := func(sides int, name, who string) Contest {
		return Contest{
			Name: name, title: "One queue for many, " + who, unit: "message",
			note: "`queue.LockFree`, the slice and the list of nodes grow as needed. The other queues have room for 1,024 messages.",
			Contenders: []measure.Contender{
				crowd(sides, lockFree, peers.LockFreeLane), crowd(sides, aChannel, peers.ChannelLane), crowd(sides, aMutex, peers.MutexLane),
				crowd(sides, xsyncMPMC, peers.XsyncMPMC), crowd(sides, "queue.Ring", peers.RingLane), crowd(sides, nodeList, peers.NodeListLane),
			},
			goals: []goal{
				{"queue.LockFree, " + who + ", against a channel", 1, aChannel},
				{"queue.LockFree, " + who + ", against a slice behind a mutex", 1, aMutex},
			},
		}
	}
	edge := func(publish int) func() peers.Lane {
		return func() peers.Lane { return peers.EdgeLane(publish) }
	}
	one := Contest{
		Name: "queue", title: "Queues, one producer and one consumer", unit: "message",
		note: "Messages of 8 bytes between two goroutines, capacity 1,024. A goroutine that would have to wait tries again, and yields after 32 tries.",
		Contenders: []measure.Contender{
			across(edgeBatch, edge(publishAt)), across(aChannel, peers.ChannelLane), across(xsyncSPSC, peers.XsyncSPSC),
			across(xsyncMPMC, peers.XsyncMPMC), across("queue.Ring", peers.RingLane), across(edgeSingle, edge(1)),
			across(lockFree, peers.LockFreeLane), across(aMutex, peers.MutexLane),
		},
		goals: []goal{{"queue.Edge between two goroutines, against a channel", 8, aChannel}},
	}
	pairs := Contest{
		Name: "queue-2x2", title: "Queues, two producers and two consumers", unit: "message",
		note: "Each producer has messages for both consumers. `queue.Edge` has a queue for each pair, as in a topology. All four goroutines share one queue of the other kinds.",
		Contenders: []measure.Contender{
			sure(edgePairs, func(n int) { peers.EdgesTwoByTwo(publishAt, n) }),
			crowd(2, aChannel, peers.ChannelLane), crowd(2, xsyncMPMC, peers.XsyncMPMC),
			crowd(2, "queue.Ring", peers.RingLane), crowd(2, lockFree, peers.LockFreeLane),
		},
		goals: []goal{{"queue.Edge for each pair, two by two, against a channel", 5, aChannel}},
	}
	single := Contest{
		Name: "queue-alone", title: "Queues, on one goroutine", unit: "message",
		note: "One goroutine puts and takes bursts of 64 messages. This is the cost of a message that stays on its worker.",
		Contenders: []measure.Contender{
			alone(edgeBatch, edge(publishAt)), alone(aChannel, peers.ChannelLane), alone(xsyncSPSC, peers.XsyncSPSC),
			alone(xsyncMPMC, peers.XsyncMPMC), alone("queue.Ring", peers.RingLane), alone("queue.Latest", peers.LatestLane),
			alone(lockFree, peers.LockFreeLane), alone(aMutex, peers.MutexLane),
		},
	}
	return []Contest{
		one, pairs,
		shared(2, "queue-shared", "two producers and two consumers"),
		shared(8, "queue-shared-8", "eight producers and eight consumers"),
		single,
	}
}
