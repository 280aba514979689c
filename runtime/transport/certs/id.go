package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Limits of names, as in SPIFFE.
const (
	domainBytesMax = 255  // the trust domain
	nameBytesMax   = 2048 // the complete name
)

// ID is the subject of a certificate: a node of a topology, an operator of it, or a client
// that only sends messages to it.
type ID struct {
	TrustDomain string // lower case letters, digits, '.', '-' and '_'
	Topology    string // letters, digits, '.', '-' and '_', also in the names below
	Node        string // the name of the node; or
	Operator    string // the name of the operator; or
	Client      string // the name of the client
}

// String returns the name as it is written in a certificate.
func (id ID) String() string { return id.url().String() }

func (id ID) url() *url.URL {
	path := "/" + id.Topology + "/" + id.Node
	switch {
	case id.Operator != "":
		path = "/" + id.Topology + "/operator/" + id.Operator
	case id.Client != "":
		path = "/" + id.Topology + "/client/" + id.Client
	}
	return &url.URL{Scheme: "spiffe", Host: id.TrustDomain, Path: path}
}

// Check returns an error if the ID is not valid.
func (id ID) Check() error {
	if err := CheckTrustDomain(id.TrustDomain); err != nil {
		return err
	}
	if err := checkName("topology", id.Topology); err != nil {
		return err
	}
	what, name, names := "node", id.Node, 0
	for kind, other := range map[string]string{"node": id.Node, "operator": id.Operator, "client": id.Client} {
		if other != "" {
			what, name = kind, other
			names++
		}
	}
	if names > 1 {
		return errors.New("a certificate must be for a node, for an operator or for a client, not for several of them")
	}
	if err := checkName(what, name); err != nil {
		return err
	}
	if size := len(id.String()); size > nameBytesMax {
		return fmt.Errorf("the name must have at most %[2]d bytes, got %[1]d", size, nameBytesMax)
	}
	return nil
}

// CheckTrustDomain returns an error if the name of a trust domain is not valid.
func CheckTrustDomain(name string) error {
	if name == "" || len(name) > domainBytesMax || strings.ContainsFunc(name, func(r rune) bool { return !inName(r) || r >= 'A' && r <= 'Z' }) {
		return fmt.Errorf("%.100q is not a trust domain: use lower case letters, digits, '.', '-' and '_', as in example.org", name)
	}
	return nil
}

// DefaultTrustDomain returns the trust domain of a topology that names none: its name in lower case, because
// a trust domain has no capitals.
func DefaultTrustDomain(topology string) string { return strings.ToLower(topology) }

// CheckNode returns an error if the name of a node is not valid.
func CheckNode(name string) error { return checkName("node", name) }

func checkName(what, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsFunc(name, func(r rune) bool { return !inName(r) }) {
		return fmt.Errorf("%.100q is not a name of a %s: use letters, digits, '.', '-' and '_'", name, what)
	}
	return nil
}

func inName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_'
}

// Parse reads a name of the form spiffe://DOMAIN/TOPOLOGY/NODE,
// spiffe://DOMAIN/TOPOLOGY/operator/NAME or spiffe://DOMAIN/TOPOLOGY/client/NAME.
func Parse(name string) (ID, error) {
	rest, ok := strings.CutPrefix(name, "spiffe://")
	if !ok || len(name) > nameBytesMax {
		return ID{}, fmt.Errorf("%.100q is not a name of a node: use spiffe://DOMAIN/TOPOLOGY/NODE", name)
	}
	var id ID
	switch parts := strings.Split(rest, "/"); {
	case len(parts) == 3:
		id = ID{TrustDomain: parts[0], Topology: parts[1], Node: parts[2]}
	case len(parts) == 4 && parts[2] == "operator":
		id = ID{TrustDomain: parts[0], Topology: parts[1], Operator: parts[3]}
	case len(parts) == 4 && parts[2] == "client":
		id = ID{TrustDomain: parts[0], Topology: parts[1], Client: parts[3]}
	default:
		return ID{}, fmt.Errorf("%.100q is not a name of a node: use spiffe://DOMAIN/TOPOLOGY/NODE", name)
	}
	return id, id.Check()
}

// Of returns the subject of a certificate. It does not check the signature.
func Of(c *x509.Certificate) (ID, error) {
	if len(c.URIs) != 1 {
		return ID{}, fmt.Errorf("the certificate of %.100q must have one URI, spiffe://DOMAIN/TOPOLOGY/NODE, got %d", c.Subject.CommonName, len(c.URIs))
	}
	return Parse(c.URIs[0].String())
}
