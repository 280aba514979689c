package piper

import "log/slog"

// NodeSettings are the options of a node, for Spec.Cluster. Empty fields are not set.
type NodeSettings struct {
	Name, Address, Dir string
	Roles              []string
	Transport          any // a transport.Transport
	Client             any // a *cluster.ClientConfig: the process is a client of the cluster and no node
	Logger             *slog.Logger
}

// Node makes this process the node with a name of the topology's cluster. Without a name,
// the process runs the whole topology. Environment: TOPOGEN_NODE.
func Node(name string) Option {
	return func(o *options) error { o.node.Name = name; return nil }
}

// NodeAddress sets the host and port where the node listens, in place of the address in
// the topology file. Environment: TOPOGEN_ADDRESS.
func NodeAddress(address string) Option {
	return func(o *options) error { o.node.Address = address; return nil }
}

// NodeDir sets the folder for what the node must remember. Environment: TOPOGEN_DIR.
func NodeDir(dir string) Option {
	return func(o *options) error { o.node.Dir = dir; return nil }
}

// UseBorder sets the Border in place of Spec.Cluster.
func UseBorder(open func() Border) Option {
	return func(o *options) error { o.border = open; return nil }
}

// NodeTransport connects the node with the others through t, a transport.Transport, in
// place of gRPC. The caller closes it after Run. Tests put faults between nodes with it.
func NodeTransport(t any) Option {
	return func(o *options) error { o.node.Transport = t; return nil }
}

// Client makes this process a client of the topology's cluster. It runs no instances, and
// does not open the error store. config is a *cluster.ClientConfig.
func Client(config any) Option {
	return func(o *options) error { o.node.Client, o.errors = config, nil; return nil }
}

// NodeRoles sets the roles of the node. Environment: TOPOGEN_ROLES, separated by commas.
func NodeRoles(roles ...string) Option {
	return func(o *options) error { o.node.Roles = roles; return nil }
}
