package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// plan is what this node and the others must agree upon.
func (s *settings) plan() table.Plan { return table.NewPlan(s.Plan, s.Identity) }

// explain adds the description of this node's plan to an error that has only its hash.
func (s *settings) explain(err error) error {
	if other := new(table.PlanError); errors.As(err, &other) {
		return fmt.Errorf("the address table: %w", &table.PlanError{Node: s.plan(), Cluster: other.Cluster})
	}
	return err
}

// A hello has room for the hash of the plan, and for Config.Together.
const (
	planBytesMax     = 32
	togetherBytesMax = 72
)

// inCommon is what nodes must have in common. Of a client it is only the identity: the other
// settings are of nodes.
func inCommon(c *Config) string {
	together := c.Together
	switch {
	case together == "":
		return c.Plan
	case len(together) > togetherBytesMax:
		sum := sha256.Sum256([]byte(together))
		together = "settings " + hex.EncodeToString(sum[:8])
	}
	return c.Plan + " " + together
}
