package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// durableGroup says which group of nodes keeps the promises.
type durableGroup struct {
	Node    string
	Peers   durablePeers // empty: one disk
	SetBack bool         // see replicated.Config
}

// durablePeers are the addresses of nodes, HOST:PORT, by name.
type durablePeers map[string]string

// Set adds the nodes of a flag.
func (p *durablePeers) Set(text string) error {
	if *p == nil {
		*p = durablePeers{}
	}
	for peer := range strings.SplitSeq(text, ",") {
		name, address, ok := strings.Cut(peer, "=")
		if !ok || name == "" || address == "" {
			return fmt.Errorf("%q is not NAME=HOST:PORT", peer)
		}
		if _, ok := (*p)[name]; ok {
			return fmt.Errorf("node %q has two addresses", name)
		}
		(*p)[name] = address
	}
	return nil
}

func (p *durablePeers) Type() string { return "peers" }

func (p *durablePeers) String() string {
	var peers []string
	for _, name := range slices.Sorted(maps.Keys(*p)) {
		peers = append(peers, name+"="+(*p)[name])
	}
	return strings.Join(peers, ",")
}

// Names of the group in certificates and logs. Peers of the group must have the same.
const (
	durableTopology = "durable"
	durableName     = "promises"
)

func (g *durableGroup) flags(flags *pflag.FlagSet) {
	flags.StringVar(&g.Node, "node", "", "the name of this node among --peers")
	flags.Var(&g.Peers, "peers", "the nodes that keep the promises, NAME=HOST:PORT,...; these addresses are for the log, not for --listen")
	flags.BoolVar(&g.SetBack, "set-clock-back", false, "with --peers: when this node leads, set the time of the promises back if it is ahead of the clocks of most nodes")
}

func (g *durableGroup) check(d *DurableServe) error {
	switch {
	case len(g.Peers) == 0 && g.Node != "":
		return errors.New("--node needs --peers")
	case len(g.Peers) == 0 && g.SetBack:
		return errors.New("--set-clock-back needs --peers; for a store on one disk, use \"topoctl durable clock\"")
	case len(g.Peers) == 0:
		return nil
	case g.Node == "":
		return errors.New("--peers needs --node, the name of this node")
	case g.Peers[g.Node] == "":
		return errors.New("--node must be one of the names in --peers")
	case d.Engine.ServerURL == "":
		return errors.New("--peers needs --url, the URL of this server for the other nodes")
	case d.Server.Debug:
		return errors.New("--debug cannot be used with --peers")
	case d.Store.MaxBytes != 0 || d.Store.TrustFile:
		return errors.New("--max-store and --trust-file cannot be used with --peers")
	}
	return nil
}

// config returns the configuration of this node.
func (g *durableGroup) config(d *DurableServe) (replicated.Config, error) {
	config := replicated.Config{
		Raft: raft.Config{
			Topology: durableTopology, Group: durableName, Node: g.Node, Peers: g.Peers, Dir: d.Dir, Logger: d.Engine.Logger,
		},
		Engine: d.Engine, SetBack: g.SetBack,
		URL: d.Engine.ServerURL,
	}
	if len(d.Server.Tokens) > 0 {
		config.Client.Token = d.Server.Tokens[0]
	}
	if d.Cert != "" {
		var err error
		if config.Client.Certificates, err = certs.Client(d.files(), tls.VersionTLS12, d.Engine.Logger); err != nil {
			return config, err
		}
	}
	var environment raft.Config // only its certificates
	if err := environment.FromEnvironment(); err != nil {
		return config, err
	}
	r := &config.Raft
	r.TLSCert, r.TLSKey, r.TLSCA = environment.TLSCert, environment.TLSKey, environment.TLSCA
	r.TrustDomain, r.Insecure = environment.TrustDomain, environment.Insecure
	_, err := client.New(config.URL, config.Client) // if this fails, the other nodes could not use it
	return config, err
}

// open starts this node.
func (g *durableGroup) open(d *DurableServe) (durableBackend, error) {
	config, err := g.config(d)
	if err != nil {
		return nil, err
	}
	n, err := replicated.Open(config)
	if err != nil {
		return nil, err // not a nil *Node
	}
	return n, nil
}
