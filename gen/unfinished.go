package gen

import (
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// refuseCluster reports a topology with a cluster section, for which package emit writes no code
// yet. The change that lets emit write it deletes this file and the call in Result.emit.
func refuseCluster(t *spec.Topology) []finding.Finding {
	if t.Cluster == nil {
		return nil
	}
	return []finding.Finding{finding.New(finding.GoType, t.File, t.Cluster.At, t.Cluster.Pointer,
		"topogen cannot generate the code of a topology with a cluster yet", "remove the section")}
}
