package memberlist

import (
	"math"
	"time"

	ml "github.com/hashicorp/memberlist"

	"github.com/topogen/topogen/runtime/member"
)

// Config returns the settings of the library for a cluster with a number of first members.
//
//   - ProbeInterval is Interval, and IndirectChecks is Helpers.
//   - ProbeTimeout is DirectTimeout, but at most half of ProbeInterval, because the library
//     waits for direct and indirect probes within one interval.
//   - SuspicionMult is the least number with which the library suspects a node for at least
//     Suspicion. The library multiplies it by the interval and the logarithm of the number
//     of nodes.
//   - The other settings are those of the library for a LAN, and for the profile local its
//     local ones.
func Config(c member.Config, first int) *ml.Config {
	c = c.WithDefaults()
	l := ml.DefaultLANConfig()
	if c.Profile == member.ProfileLocal {
		l = ml.DefaultLocalConfig()
	}
	l.ProbeInterval = c.Interval
	l.ProbeTimeout = min(c.DirectTimeout, c.Interval/2)
	l.IndirectChecks = c.Helpers
	scale := max(1, math.Log10(max(1, float64(first))))
	l.SuspicionMult = max(1, int(math.Ceil(float64(c.Suspicion)/float64(c.Interval)/scale)))
	l.GossipInterval = gossipInterval(&c)
	l.GossipToTheDeadTime = 10 * c.Interval
	l.PushPullInterval = 30 * c.Interval
	l.TCPTimeout = max(5*c.Interval, time.Second)
	l.DeadNodeReclaimTime = time.Millisecond // the transport has verified the name
	l.RequireNodeNames = true
	l.EnableCompression = false // the transport decides about compression
	return l
}

// gossipInterval is the time between two messages of gossip to the same node.
func gossipInterval(c *member.Config) time.Duration { return c.Interval / 5 }
