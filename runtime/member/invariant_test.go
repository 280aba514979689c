package member

import "slices"

// checkCore checks that the lists of a core fit together.
func checkCore(t tb, c *Core) {
	t.Helper()
	digest, count, down := c.self.digest(), [Left + 1]int{}, 0
	for _, p := range c.ring {
		digest ^= p.digest()
		count[p.state]++
		if p.state >= Suspected {
			down++
		}
		if c.peers[p.name] != p {
			t.Fatalf("%s is in the ring and not in the map", p.name)
		}
		if (p.state >= Suspected) != slices.Contains(c.down, p) {
			t.Fatalf("%s is %v: it is in the wrong lists", p.name, p.state)
		}
		if p.probe != nil && !slices.Contains(c.probes, p.probe) {
			t.Fatalf("the probe of %s is not in the list", p.name)
		}
		if p.state == Suspected && p.status == statusAlive != (p.spreadAt > 0) || p.state == Dead && p.boot > 0 && p.status != statusDead || p.status >= statusDead && p.state < Dead {
			t.Fatalf("%s is %v, and its claim says %v", p.name, p.state, p.status)
		}
		if queued := slices.Contains(c.rumors[rank(p.urgent)], p); queued != (p.transmissions > 0) {
			t.Fatalf("%s has %d transmissions, and is queued: %v", p.name, p.transmissions, queued)
		}
	}
	switch {
	case digest != c.digest:
		t.Fatal("the digest is not that of the claims")
	case count != c.count:
		t.Fatalf("the states are %v, counted %v", count, c.count)
	case down != len(c.down) || len(c.ring) != len(c.peers):
		t.Fatalf("%d members are down, listed %d; %d in the ring, %d in the map", down, len(c.down), len(c.ring), len(c.peers))
	case len(c.ring) > membersMax || len(c.relays) > relaysMax:
		t.Fatalf("%d members, %d relays", len(c.ring), len(c.relays))
	}
	for _, p := range c.probes {
		if p.target.probe != p {
			t.Fatalf("a probe of %s is in the list after its end", p.target.name)
		}
	}
}
