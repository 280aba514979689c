package table

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plan is what all nodes of a cluster must agree upon: names, numbers of instances, places,
// keys, and the types of messages.
type Plan struct {
	Hash string // the same on all nodes
	// Description has a line for each thing, of the form "KIND NAME = VALUE, VALUE…", and
	// serves only to say how two plans differ. "": not known, or longer than
	// DescriptionBytesMax.
	Description string
}

// NewPlan returns the plan with a hash and the lines of its description.
func NewPlan(hash string, lines []string) Plan {
	p := Plan{hash, strings.Join(lines, "\n")}
	if len(p.Description) > DescriptionBytesMax {
		p.Description = ""
	}
	return p
}

// PlanError is an ErrPlan that says how the plan of a node differs from that of the cluster.
type PlanError struct{ Node, Cluster Plan }

func (e *PlanError) Error() string {
	return fmt.Sprintf("%v: %s. Use the program of the cluster, or stop all nodes, delete the address table (the folder dir of each node, or the keys in etcd), and start the new program on all nodes",
		ErrPlan, strings.Join(e.differences(), "; "))
}

// Unwrap makes the error an ErrPlan.
func (e *PlanError) Unwrap() error { return ErrPlan }

// Limits of the text of a PlanError. The description of a cluster may come from another node.
const (
	differencesMax     = 5   // a reader needs the first ones; one cause has often several
	differenceBytesMax = 300 // of each
)

// differences lists how the plans differ, in sentences.
func (e *PlanError) differences() []string {
	switch {
	case e.Cluster.Description == "":
		return []string{fmt.Sprintf("the cluster has the plan %.64q, without a description: it was founded by another version of topogen, or its topology is very large; this program has the plan %.64q", e.Cluster.Hash, e.Node.Hash)}
	case e.Node.Description == "":
		return []string{fmt.Sprintf("the cluster has the plan %.64q, and this program has the plan %.64q", e.Cluster.Hash, e.Node.Hash)}
	}
	list := compare(parseDescription(e.Cluster.Description), parseDescription(e.Node.Description), false)
	if len(list) == 0 {
		list = compare(parseDescription(e.Cluster.Description), parseDescription(e.Node.Description), true)
	}
	if len(list) == 0 {
		return []string{fmt.Sprintf("the descriptions are equal, but the cluster has the plan %.64q and this program has the plan %.64q", e.Cluster.Hash, e.Node.Hash)}
	}
	for i, text := range list {
		list[i] = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) && r != utf8.RuneError {
				return r
			}
			return '?'
		}, text[:min(len(text), differenceBytesMax)])
	}
	if more := len(list) - differencesMax; more > 0 {
		list = append(list[:differencesMax], fmt.Sprintf("and %d more differences", more))
	}
	return list
}

// described is a description: the values of each thing.
type described struct {
	names  []string // "processor counter", in order, each once
	values map[string][]string
}

func parseDescription(description string) described {
	d := described{values: map[string][]string{}}
	for line := range strings.SplitSeq(description, "\n") {
		name, values, _ := strings.Cut(line, " =")
		if _, known := d.values[name]; !known {
			d.names = append(d.names, name)
		}
		d.values[name] = append(d.values[name], strings.Split(strings.TrimPrefix(values, " "), ", ")...)
	}
	return d
}

// compare lists the differences of two descriptions. A number is a place in the topology
// file. It differs for all that follows an insertion, so it is compared only if numbered.
func compare(cluster, node described, numbered bool) (list []string) {
	for _, name := range node.names {
		if _, known := cluster.values[name]; !known {
			list = append(list, fmt.Sprintf("this program has the %s, and the cluster does not", name))
		}
	}
	for _, name := range cluster.names {
		theirs := cluster.values[name]
		ours, known := node.values[name]
		if !known {
			list = append(list, fmt.Sprintf("the cluster has the %s, and this program does not", name))
			continue
		}
		switch there, here := without(theirs, ours, numbered), without(ours, theirs, numbered); {
		case there != "" && here != "":
			list = append(list, fmt.Sprintf("the %s has %s in the cluster and %s here", name, there, here))
		case there != "":
			list = append(list, fmt.Sprintf("the %s has %s in the cluster and not here", name, there))
		case here != "":
			list = append(list, fmt.Sprintf("the %s has %s here and not in the cluster", name, here))
		}
	}
	return list
}

// without returns the values that others lack.
func without(values, others []string, numbered bool) string {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		return slices.Contains(others, v) || !numbered && strings.HasPrefix(v, "number ")
	})
	return strings.Join(values, ", ")
}
