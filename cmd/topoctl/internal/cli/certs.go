package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// daysMax is the longest validity of a certificate for development. The authority,
// which is never renewed, is valid as long.
const daysMax = 3650

// Certs creates certificates for development.
type Certs struct {
	Dir         string
	TrustDomain string
	Topology    string
	Nodes       []string
	Operators   []string
	Clients     []string
	Days        int
	Force       bool
}

func newCerts(chosen *command) *cobra.Command {
	c := Certs{Days: 90}
	cmd := &cobra.Command{
		Use:   "certs DIR",
		Short: "Create certificates for the nodes of a topology, for development",
		Long: `Create certificates for the nodes of a topology in the folder DIR: NODE.crt and
NODE.key for each node, operator-NAME.crt and operator-NAME.key for each
operator, client-NAME.crt and client-NAME.key for each client of a cluster, and
ca.crt and ca.key for the authority that signs them. An authority that exists in DIR
is used again, so that nodes can be added later. Existing files are replaced only
with --force. The authority is never replaced.

A certificate names its node as spiffe://DOMAIN/TOPOLOGY/NODE. The certificates
are for development only, because DIR contains the unencrypted key of the authority.`,
		Example: `  topoctl certs ./certs --trust-domain example.org --topology bank --nodes n1,n2,n3
  topoctl certs ./certs --trust-domain example.org --topology bank --operator ann
  topoctl certs ./certs --trust-domain example.org --topology bank --client web
  topoctl certs ./certs --trust-domain example.org --topology bank --nodes n1 --force   # a new one`,
		Args: oneOf("the folder for the certificates"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.Dir = args[0]
			*chosen = c
			return c.check()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.TrustDomain, "trust-domain", "", "the trust domain of the nodes, such as example.org")
	flags.StringVar(&c.Topology, "topology", "", "the name of the topology")
	flags.StringSliceVar(&c.Nodes, "nodes", nil, "the names of the nodes, such as n1,n2,n3")
	flags.StringSliceVar(&c.Operators, "operator", nil, "the names of operators; an operator may run topoctl raft and topoctl cluster")
	flags.StringSliceVar(&c.Clients, "client", nil, "the names of clients; a client may only send messages to a cluster")
	flags.IntVar(&c.Days, "days", c.Days, "how many days the certificates are valid")
	flags.BoolVar(&c.Force, "force", false, "replace existing certificates and keys")
	return cmd
}

// ids returns the requested identities and the base names of their files.
func (c *Certs) ids() (names []string, ids []certs.ID) {
	for _, node := range c.Nodes {
		names, ids = append(names, node), append(ids, certs.ID{TrustDomain: c.TrustDomain, Topology: c.Topology, Node: node})
	}
	for _, operator := range c.Operators {
		names, ids = append(names, "operator-"+operator), append(ids, certs.ID{TrustDomain: c.TrustDomain, Topology: c.Topology, Operator: operator})
	}
	for _, client := range c.Clients {
		names, ids = append(names, "client-"+client), append(ids, certs.ID{TrustDomain: c.TrustDomain, Topology: c.Topology, Client: client})
	}
	return names, ids
}

func (c *Certs) check() error {
	switch {
	case c.TrustDomain == "":
		return errors.New("name the trust domain: --trust-domain example.org")
	case c.Topology == "":
		return errors.New("name the topology: --topology bank")
	case len(c.Nodes)+len(c.Operators)+len(c.Clients) == 0:
		return errors.New("name nodes, such as --nodes n1,n2,n3, or operators, such as --operator ann, or clients, such as --client web")
	case c.Days < 1 || c.Days > daysMax:
		return fmt.Errorf("--days must be 1 to %d, got %d", daysMax, c.Days)
	}
	names, ids := c.ids()
	for i, id := range ids {
		if err := id.Check(); err != nil {
			return err
		}
		switch {
		case names[i] == "ca":
			return errors.New(`a node must not be named "ca": ca.crt and ca.key are the files of the authority`)
		case slices.Contains(names[:i], names[i]):
			return fmt.Errorf("two of the names have the same files, %[1]s.crt and %[1]s.key: name each node, operator and client once", names[i])
		}
	}
	return nil
}

func (c Certs) run(_ context.Context, s Streams) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	now := time.Now()
	names, ids := c.ids()
	authority, made, err := c.authority(now)
	if err != nil {
		return err
	}
	files := folder{dir: c.Dir}
	defer files.removeTemporary()
	if made {
		if err := files.prepare("ca", authority.Pair, false); err != nil {
			return err
		}
	}
	for i, id := range ids {
		pair, err := authority.Issue(id, now, time.Duration(c.Days)*24*time.Hour)
		if err != nil {
			return c.wrongAuthority(err)
		}
		if err := files.prepare(names[i], pair, c.Force); err != nil {
			return err
		}
	}
	written, err := files.commit()
	for _, name := range written {
		fmt.Fprintf(s.Err, "topoctl: wrote %s\n", oneLine(name))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "topoctl: use these for development only: a reader of %s can pose as any node\n", oneLine(filepath.Join(c.Dir, "ca.key")))
	return nil
}

// authority loads the authority in the folder, or creates one.
func (c *Certs) authority(now time.Time) (a *certs.Authority, made bool, err error) {
	cert, errCert := certs.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	key, errKey := certs.ReadFile(filepath.Join(c.Dir, "ca.key"))
	switch {
	case errors.Is(errCert, fs.ErrNotExist) && errors.Is(errKey, fs.ErrNotExist):
		a, err = certs.NewAuthority(c.TrustDomain, now)
		return a, true, err
	case errCert != nil || errKey != nil:
		return nil, false, fmt.Errorf("an authority needs both its certificate and its key: %w", errors.Join(errCert, errKey))
	}
	if a, err = certs.LoadAuthority(certs.Pair{Cert: cert, Key: key}, now); err != nil {
		return nil, false, c.wrongAuthority(err)
	}
	return a, false, nil
}

func (c *Certs) wrongAuthority(err error) error {
	return fmt.Errorf("the authority in %s is not usable: %w\nName another folder, or remove ca.crt, ca.key and all certificates that they have signed", oneLine(c.Dir), err)
}
