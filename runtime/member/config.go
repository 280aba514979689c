package member

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Names of the values of [Config.Fence].
const (
	FenceMajority = "majority"
	FenceOff      = "off"
)

// Config has the settings of failure detection: the keys membership, fence and
// tie_breaker of the cluster section. All nodes of a cluster should have the same. A zero
// field has the value of the profile.
//
// # How long detection takes
//
// A node that stops at the worst moment is Dead for every other node after at most
//
//	(n-1)*Interval + DirectTimeout + IndirectTimeout + Suspicion + spreading
//
// for a cluster of n nodes: a node sends one probe per Interval, in a fixed order, so in
// the worst case it has just probed the node that stops. All n-1 other nodes do the same
// in different orders, and each tells the others. So the first failed probe starts after
// about Interval*n/(n-1), whatever n is, and (n-1)*Interval counts only for a node whose
// messages about suspicions are all lost. Spreading the news to all nodes takes about
// log3(n) rounds of Interval/5.
//
// Suspicion is multiplied by up to the spread of the profile while fewer than three other
// nodes confirm that they cannot reach the node, for example because the suspecting node is
// itself cut off. With the profile document the spread is 1. Then the bound is
// 18 s + (n-1)*2 s, where the document states 18 s.
//
// A node that is slow itself multiplies its Interval and DirectTimeout by up to the health
// limit of the profile (1 in the profile document).
type Config struct {
	// Profile is the set of defaults: document, lan (the default) or local. See
	// [Profiles].
	Profile string

	// Interval is the time between two probes of a node. Each probe costs two messages.
	// Half of it halves the time to the first probe and doubles the messages.
	Interval time.Duration

	// DirectTimeout is how long a probe waits for its answer. The probe is repeated twice
	// in this time. It must be longer than most round trips, including pauses of garbage
	// collection. A shorter one costs messages, because indirect probes start in vain.
	DirectTimeout time.Duration

	// IndirectTimeout is how long a node waits for its helpers. A helper answers after
	// three fifths of it at the latest, also if it has not reached the node.
	IndirectTimeout time.Duration

	// Helpers is the number of nodes that probe a node after a failed direct probe. Each
	// costs up to four messages. More helpers make a mistake less likely when messages
	// are lost. A negative value means none: then a failed direct probe leads to a
	// suspicion at once.
	Helpers int

	// Suspicion is the least time between a suspicion and the death. In this time, the
	// suspected node can refute. A pause of a node that is longer than the whole
	// detection looks like a death, so a shorter Suspicion declares more paused nodes
	// dead.
	Suspicion time.Duration

	// Fence is majority (the default) or off. With majority, a node is fenced while half
	// of the known members or more are Suspected or Dead, where known members include
	// itself and the first members, and not members that have left. So half is not a
	// majority: if four nodes are split two and two, both sides are fenced, and in a
	// cluster of two nodes, each is fenced when the other fails.
	Fence string

	// TieBreaker names the node that decides for its side if exactly half of the known
	// members can be reached: this side is not fenced. With two nodes, the tie breaker
	// continues alone, and the other node does not.
	TieBreaker string

	// ForgetDead and ForgetLeft are the times after which a member that is Dead or Left is
	// removed from the list. A node that reaches no majority forgets no dead member, so that
	// it never counts itself as a majority. First members are never forgotten.
	ForgetDead, ForgetLeft time.Duration
}

const (
	timeMin = time.Millisecond // shorter intervals measure the scheduler, not the node
	timeMax = time.Hour        // longer ones are mistakes, such as a wrong unit

	// HelpersMax limits Helpers. With ten helpers and 20 % loss, one mistake in about
	// 50,000 failed probes is left, so more helpers only cost messages.
	HelpersMax = 10
)

// Check returns all mistakes, joined in one error of several lines, or nil. The nodes are the
// names of the first members.
func (c Config) Check(nodes []string) error {
	var wrong mistakes
	if _, ok := Profiles[c.profile()]; !ok {
		wrong.add("profile must be document, lan or local, got %q", c.Profile)
	}
	for _, f := range []struct {
		key   string
		value time.Duration
	}{
		{"interval", c.Interval}, {"direct_timeout", c.DirectTimeout},
		{"indirect_timeout", c.IndirectTimeout}, {"suspicion", c.Suspicion},
	} {
		if f.value != 0 && (f.value < timeMin || f.value > timeMax) {
			wrong.add("%s must be between %v and %v, got %v", f.key, timeMin, timeMax, f.value)
		}
	}
	if c.Helpers > HelpersMax {
		wrong.add("helpers must be at most %d, got %d", HelpersMax, c.Helpers)
	}
	if c.ForgetDead < 0 || c.ForgetLeft < 0 {
		wrong.add("the times after which members are forgotten must not be negative, got %v and %v", c.ForgetDead, c.ForgetLeft)
	}
	c.checkFence(nodes, &wrong)
	return wrong.err()
}

func (c Config) checkFence(nodes []string, wrong *mistakes) {
	switch {
	case c.Fence != "" && c.Fence != FenceMajority && c.Fence != FenceOff:
		wrong.add("fence must be majority or off, got %q", c.Fence)
	case c.Fence == FenceOff && c.TieBreaker != "":
		wrong.add("tie_breaker %q has no effect with fence: off; remove one of the two", c.TieBreaker)
	case c.TieBreaker != "" && len(nodes) > 0 && !slices.Contains(nodes, c.TieBreaker):
		wrong.add("tie_breaker must be one of the nodes %s, got %q", strings.Join(nodes, ", "), c.TieBreaker)
	case c.Fence != FenceOff && c.TieBreaker == "" && len(nodes) == 2:
		wrong.add("two nodes need a rule for the failure of one: with tie_breaker: %s, this node continues alone; with fence: off, both continue", nodes[0])
	}
}

// WithDefaults returns the config with the values of its profile in the fields that are zero.
func (c Config) WithDefaults() Config {
	s := c.complete()
	c.Profile, c.Helpers = c.profile(), s.Helpers
	c.Interval, c.DirectTimeout, c.IndirectTimeout = s.Interval, s.DirectTimeout, s.IndirectTimeout
	c.Suspicion, c.ForgetDead, c.ForgetLeft = s.Suspicion, s.ForgetDead, s.ForgetLeft
	if c.Fence == "" {
		c.Fence = FenceMajority
	}
	return c
}

// Lease returns Lease of the profile.
func (c Config) Lease() time.Duration { return Profiles[c.profile()].Lease }

func (c Config) profile() string {
	if c.Profile == "" {
		return ProfileLAN
	}
	return c.Profile
}

// complete returns the config with the values of its profile in all fields that are zero.
func (c Config) complete() settings {
	p := Profiles[c.profile()]
	s := settings{Profile: p, fence: c.Fence != FenceOff, tie: c.TieBreaker}
	replace(&s.Interval, c.Interval)
	replace(&s.DirectTimeout, c.DirectTimeout)
	replace(&s.IndirectTimeout, c.IndirectTimeout)
	replace(&s.Suspicion, c.Suspicion)
	replace(&s.ForgetDead, c.ForgetDead)
	replace(&s.ForgetLeft, c.ForgetLeft)
	if c.Helpers != 0 {
		s.Helpers = min(max(c.Helpers, 0), HelpersMax)
	}
	return s
}

func replace(value *time.Duration, by time.Duration) {
	if by > 0 {
		*value = by
	}
}

// mistakes collects sentences.
type mistakes []string

func (m *mistakes) add(format string, args ...any) { *m = append(*m, fmt.Sprintf(format, args...)) }

func (m mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrConfig, strings.Join(m, "\n"))
}
