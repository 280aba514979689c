package member

import "time"

// Names of the profiles.
const (
	ProfileDocument = "document"
	ProfileLAN      = "lan"
	ProfileLocal    = "local"
)

// Profile is a set of defaults for [Config]. The fields that Config does not have are
// constants that need no change for one cluster.
type Profile struct {
	Interval, DirectTimeout, IndirectTimeout, Suspicion time.Duration
	Helpers                                             int

	// Spread multiplies Suspicion while no other node has confirmed that it cannot reach
	// the suspected node. Three confirmations reduce the factor to 1.
	Spread float64

	// Health limits the factor by which a slow node multiplies its interval and timeouts.
	Health int

	ForgetDead, ForgetLeft time.Duration

	// Lease is how long the lease of a node's name lasts in the address table. See package cluster.
	Lease time.Duration
}

// Profiles are the defaults by name. They must not be changed.
//
// The comment at the end of a line gives the reason for a value, and its cost.
var Profiles = map[string]Profile{
	// The constants of the document (chimaera-reliability, section 3.4).
	ProfileDocument: {
		Interval:        2 * time.Second,  // one message per node and second, with answers; a failed node waits up to 2 s for its first probe
		DirectTimeout:   5 * time.Second,  // survives pauses of up to 5 s without any message about it; adds 5 s to each detection
		IndirectTimeout: 3 * time.Second,  // adds 3 s to each detection
		Helpers:         3,                // up to 12 messages for each failed probe
		Suspicion:       10 * time.Second, // a node that wakes within 18 s is never declared dead; this is most of the time that a detection takes
		Spread:          1,                // a fixed time, as in the document
		Health:          1,                // fixed timeouts, as in the document
		ForgetDead:      24 * time.Hour,   // an operator looks at the list once a day; about 200 bytes per dead member
		ForgetLeft:      time.Hour,        // much longer than news about it can travel; about 200 bytes per member
		Lease:           10 * time.Second, // below the time that a detection takes, so that a replacement does not wait for it
	},
	// Hosts in one data center: round trips of about a millisecond, and pauses below a
	// second.
	ProfileLAN: {
		Interval:        time.Second,            // two messages per node and second, with answers; the first probe of a failed node starts after 1 s on average
		DirectTimeout:   500 * time.Millisecond, // hundreds of round trips; three attempts in this time survive 20 % loss
		IndirectTimeout: 500 * time.Millisecond, // the helper's round trip has 300 ms; adds 0.5 s to each detection
		Helpers:         3,                      // up to 12 messages for each failed probe
		Suspicion:       2 * time.Second,        // time for about six attempts to tell the suspected node, and for its answer
		Spread:          5,                      // a node whose suspicion no other confirms may be cut off itself: it waits 10 s
		Health:          8,                      // an overloaded node makes 8 times fewer mistakes, and detects 8 times slower
		ForgetDead:      24 * time.Hour,         // an operator looks at the list once a day; about 200 bytes per dead member
		ForgetLeft:      time.Hour,              // much longer than news about it can travel; about 200 bytes per member
		Lease:           6 * time.Second,        // survives the election of a leader, and syncs of a slow disk; a commit each 1.5 s for all nodes
	},
	// Processes on one host, for tests and development.
	ProfileLocal: {
		Interval:        200 * time.Millisecond, // ten messages per node and second: cheap on loopback
		DirectTimeout:   200 * time.Millisecond, // thousands of round trips; must survive a busy scheduler
		IndirectTimeout: 200 * time.Millisecond, // the helper's round trip has 120 ms
		Helpers:         2,                      // loopback loses nothing; helpers show that the process itself is fine
		Suspicion:       400 * time.Millisecond, // a stopped process is Dead within about a second
		Spread:          3,                      // 1.2 s without confirmations
		Health:          8,                      // hosts that run tests are overloaded at times
		ForgetDead:      time.Hour,              // tests and development do not last longer
		ForgetLeft:      10 * time.Minute,       // much longer than news about it can travel
		Lease:           3 * time.Second,        // hosts that run tests are overloaded at times
	},
}

// settings are a completed config.
type settings struct {
	Profile
	fence bool
	tie   string
}
