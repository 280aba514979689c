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

// daysMax is how long a certificate for development may be valid: as long as the
// authority, which nobody renews.
const daysMax = 3650

// Certs makes certificates for development.
type Certs struct {
	Dir         string
	TrustDomain string
	Topology    string
	Nodes       []string
	Operators   []string
	Days        int
	Force       bool
}

func newCerts(chosen *command) *cobra.Command {
	c := Certs{Days: 90}
	cmd := &cobra.Command{
		Use:   "certs DIR",
		Short: "Make certificates for the nodes of a topology, for development",
		Long: `Make certificates for the nodes of a topology in the folder DIR: NODE.crt and
NODE.key for each node, operator-NAME.crt and operator-NAME.key for each
operator, and ca.crt and ca.key for the authority that has signed them. An
authority that is there already is used again, so nodes can be added. No file
is replaced, unless --force is given; the authority never is.

A certificate says whom it is for as spiffe://DOMAIN/TOPOLOGY/NODE.

They are for development: the authority's key lies beside them in the clear.`,
		Example: `  topoctl certs ./certs --trust-domain example.org --topology bank --nodes n1,n2,n3
  topoctl certs ./certs --trust-domain example.org --topology bank --operator ann
  topoctl certs ./certs --trust-domain example.org --topology bank --nodes n1 --force   # a new one`,
		Args: oneOf("the folder that the certificates go to"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.Dir = args[0]
			*chosen = c
			return c.check()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.TrustDomain, "trust-domain", "", "the trust domain of the nodes, example.org")
	flags.StringVar(&c.Topology, "topology", "", "the name of the topology")
	flags.StringSliceVar(&c.Nodes, "nodes", nil, "the names of the nodes, n1,n2,n3")
	flags.StringSliceVar(&c.Operators, "operator", nil, "the names of those who may give the nodes orders")
	flags.IntVar(&c.Days, "days", c.Days, "how long the certificates are valid")
	flags.BoolVar(&c.Force, "force", false, "replace certificates and keys of these names")
	return cmd
}

// ids are those whom certificates are asked for, by the names of their files.
func (c *Certs) ids() (names []string, ids []certs.ID) {
	for _, node := range c.Nodes {
		names, ids = append(names, node), append(ids, certs.ID{TrustDomain: c.TrustDomain, Topology: c.Topology, Node: node})
	}
	for _, operator := range c.Operators {
		names, ids = append(names, "operator-"+operator), append(ids, certs.ID{TrustDomain: c.TrustDomain, Topology: c.Topology, Operator: operator})
	}
	return names, ids
}

func (c *Certs) check() error {
	switch {
	case c.TrustDomain == "":
		return errors.New("name the trust domain, --trust-domain example.org")
	case c.Topology == "":
		return errors.New("name the topology, --topology bank")
	case len(c.Nodes)+len(c.Operators) == 0:
		return errors.New("name nodes, --nodes n1,n2,n3, or operators, --operator ann")
	case c.Days < 1 || c.Days > daysMax:
		return fmt.Errorf("--days %d: want 1 to %d", c.Days, daysMax)
	}
	names, ids := c.ids()
	for i, id := range ids {
		if err := id.Check(); err != nil {
			return err
		}
		switch {
		case names[i] == "ca":
			return errors.New(`a node named "ca" would have the files of the authority`)
		case slices.Contains(names[:i], names[i]):
			return fmt.Errorf("%q is named twice, or would have the files of another", names[i])
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
	defer files.forget()
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
	fmt.Fprintf(s.Err, "topoctl: these are for development: who reads %s can be any node\n", oneLine(filepath.Join(c.Dir, "ca.key")))
	return nil
}

// authority is the one in the folder, or a new one.
func (c *Certs) authority(now time.Time) (a *certs.Authority, made bool, err error) {
	cert, errCert := certs.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	key, errKey := certs.ReadFile(filepath.Join(c.Dir, "ca.key"))
	switch {
	case errors.Is(errCert, fs.ErrNotExist) && errors.Is(errKey, fs.ErrNotExist):
		a, err = certs.NewAuthority(c.TrustDomain, now)
		return a, true, err
	case errCert != nil || errKey != nil:
		return nil, false, fmt.Errorf("an authority is its certificate and its key, and here is not both: %w", errors.Join(errCert, errKey))
	}
	if a, err = certs.LoadAuthority(certs.Pair{Cert: cert, Key: key}, now); err != nil {
		return nil, false, c.wrongAuthority(err)
	}
	return a, false, nil
}

func (c *Certs) wrongAuthority(err error) error {
	return fmt.Errorf("the authority in %s cannot be used: %w\nName another folder, or remove ca.crt and ca.key there, and all that they have signed", oneLine(c.Dir), err)
}
