package member

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	three := []string{"n1", "n2", "n3"}
	for _, c := range []struct {
		config Config
		nodes  []string
		want   string // "": no mistake
	}{
		{Config{}, three, ""},
		{Config{Profile: ProfileDocument, Interval: 500 * time.Millisecond, Helpers: -1}, three, ""},
		{Config{TieBreaker: "n2"}, []string{"n1", "n2"}, ""},
		{Config{Fence: FenceOff}, []string{"n1", "n2"}, ""},
		{Config{Profile: "wan"}, three, `profile must be document, lan or local, got "wan"`},
		{Config{Interval: time.Microsecond}, three, "interval must be between 1ms and 1h0m0s, got 1µs"},
		{Config{DirectTimeout: -1}, three, "direct_timeout must be between"},
		{Config{IndirectTimeout: 2 * time.Hour}, three, "indirect_timeout must be between"},
		{Config{Suspicion: 1}, three, "suspicion must be between"},
		{Config{Helpers: 11}, three, "helpers must be at most 10, got 11"},
		{Config{ForgetDead: -1}, three, "must not be negative"},
		{Config{Fence: "on"}, three, `fence must be majority or off, got "on"`},
		{Config{Fence: FenceOff, TieBreaker: "n1"}, three, `tie_breaker "n1" has no effect with fence: off`},
		{Config{TieBreaker: "n4"}, three, `tie_breaker must be one of the nodes n1, n2, n3, got "n4"`},
		{Config{}, []string{"n1", "n2"}, "two nodes need a rule for the failure of one: with tie_breaker: n1"},
	} {
		err := c.config.Check(c.nodes)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v, want %q", c.config, err, c.want)
		}
	}
	if err := (Config{Interval: 1, Helpers: 99}).Check(three); !strings.Contains(err.Error(), "interval") || !strings.Contains(err.Error(), "helpers") {
		t.Errorf("only one of two mistakes: %v", err)
	}
}

// TestCheckOfANode: Check reports each mistake in what a node is started with.
func TestCheckOfANode(t *testing.T) {
	three := map[string]string{"n1": "a", "n2": "b", "n3": "c"}
	many := map[string]string{}
	for i := range membersMax + 1 {
		many[strconv.Itoa(i)] = "a"
	}
	own := Node{Name: "n1", Address: "a", Boot: 1}
	for _, c := range []struct {
		node  func(*Node)
		first map[string]string
		want  string // "": no mistake
	}{
		{func(*Node) {}, three, ""},
		{func(n *Node) { n.Name = "another" }, three, ""},
		{func(n *Node) { n.Name = "" }, three, "the name of a node must have 1 to 128 bytes, got \"\""},
		{func(n *Node) { n.Name = strings.Repeat("n", NameMax+1) }, three, "the name of a node must have 1 to 128 bytes"},
		{func(n *Node) { n.Address = strings.Repeat("a", AddressMax+1) }, three, "the address of n1 must have at most 259 bytes, got 260"},
		{func(n *Node) { n.Meta = make([]byte, MetaMax+1) }, three, "the meta data of a node must have at most 256 bytes, got 257"},
		{func(n *Node) { n.Boot = 0 }, three, "the boot id must be between 1 and"},
		{func(n *Node) { n.Boot = countMax + 1 }, three, "the boot id must be between 1 and"},
		{func(*Node) {}, map[string]string{"n1": "a", "n2": strings.Repeat("b", AddressMax+1), "n3": "c"}, "the address of n2 must have at most 259 bytes, got 260"},
		{func(*Node) {}, map[string]string{"n1": "a", strings.Repeat("n", NameMax+1): "b", "n3": "c"}, "the name of a node must have 1 to 128 bytes"},
		{func(*Node) {}, map[string]string{"n1": "a", "n2": "b"}, "two nodes need a rule"},
		{func(*Node) {}, many, "there must be at most 10000 first members, got 10001"},
	} {
		n := own
		c.node(&n)
		err := Check(n, c.first, Config{})
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v, want %q", n, err, c.want)
		}
	}
}

// TestConstantsOfTheDocument: row C10, and flaw C-F7: interval has an effect.
func TestConstantsOfTheDocument(t *testing.T) {
	s := Config{Profile: ProfileDocument}.complete()
	if s.Interval != 2*time.Second || s.DirectTimeout != 5*time.Second || s.IndirectTimeout != 3*time.Second || s.Helpers != 3 || s.Suspicion != 10*time.Second {
		t.Errorf("got %+v", s.Profile)
	}
	if got := (Config{Profile: ProfileDocument, Interval: time.Second}).complete().Interval; got != time.Second {
		t.Errorf("interval: 1s results in %v", got)
	}
	for _, p := range Profiles {
		if helper := p.IndirectTimeout * helperNumerator / helperDenominator; helper >= p.IndirectTimeout {
			t.Errorf("a helper answers after %v, its requester gives up after %v", helper, p.IndirectTimeout)
		}
	}
}

func TestSuspicionTime(t *testing.T) {
	for _, c := range []struct {
		confirmed, needed int
		spread            float64
		want              time.Duration
	}{
		{0, 3, 5, 10 * time.Second},
		{1, 3, 5, 6 * time.Second},
		{2, 3, 5, 3660 * time.Millisecond},
		{3, 3, 5, 2 * time.Second},
		{9, 3, 5, 2 * time.Second},
		{0, 0, 5, 2 * time.Second}, // no other node could confirm
		{0, 3, 1, 2 * time.Second}, // the profile document
		{0, 1, 5, 10 * time.Second},
	} {
		got := suspicionTime(2*time.Second, c.spread, c.confirmed, c.needed).Round(time.Millisecond)
		if got != c.want {
			t.Errorf("%d of %d confirmations, spread %v: %v, want %v", c.confirmed, c.needed, c.spread, got, c.want)
		}
	}
}

func TestLeader(t *testing.T) {
	members := []Member{{Name: "n3", Boot: 1}, {Name: "n1", Boot: 1, State: Dead}, {Name: "n0", State: Alive}, {Name: "n2", Boot: 1}, {Name: "n10", Boot: 1, State: Suspected}}
	if got := Leader(members); got != "n2" {
		t.Errorf("leader %q, want n2, the lowest that is alive", got)
	}
	if got := Leader(nil); got != "" {
		t.Errorf("leader %q of no members", got)
	}
}
