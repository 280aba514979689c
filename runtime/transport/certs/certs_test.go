package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/transport/certs"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]certs.ID{
		"spiffe://example.org/bank/n1":           {TrustDomain: "example.org", Topology: "bank", Node: "n1"},
		"spiffe://example.org/bank/operator":     {TrustDomain: "example.org", Topology: "bank", Node: "operator"},
		"spiffe://example.org/bank/operator/ann": {TrustDomain: "example.org", Topology: "bank", Operator: "ann"},
	} {
		got, err := certs.Parse(name)
		if err != nil || got != want || got.String() != name {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{
		"", "spiffe://", "spiffe://example.org", "spiffe://example.org/bank", "spiffe://example.org//n1",
		"spiffe://example.org/bank/", "spiffe://example.org/bank/n1/", "spiffe://example.org/bank/..",
		"spiffe://Example.org/bank/n1", "spiffe://example.org:1/bank/n1", "spiffe://a@example.org/bank/n1",
		"spiffe://example.org/bank/n1?a", "spiffe://example.org/bank/n1#a", "spiffe://example.org/bank/n%31",
		"spiffe://example.org/bank/admin/ann", "spiffe://example.org/bank/operator/", "https://example.org/bank/n1",
		"spiffe://example.org/bank/" + strings.Repeat("n", 3000), "spiffe://" + strings.Repeat("a", 256) + "/bank/n1",
	} {
		var id certs.ID
		var err error
		allocated.Within(t, 8*len(name), func() { id, err = certs.Parse(name) })
		if err == nil {
			t.Errorf("%.60s was parsed as %+v", name, id)
		}
	}
}

func TestAuthority(t *testing.T) {
	now := time.Now()
	ca, err := certs.NewAuthority("example.org", now)
	if err != nil {
		t.Fatal(err)
	}
	id := certs.ID{TrustDomain: "example.org", Topology: "bank", Node: "n1"}
	pair, err := ca.Issue(id, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := certs.Of(both.Leaf); err != nil || got != id {
		t.Errorf("%+v, %v", got, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := both.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := both.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(2 * time.Hour)}); err == nil {
		t.Error("the certificate is valid after its end")
	}

	// The authority does not sign for another trust domain, nor for longer than it is
	// valid itself.
	if _, err := ca.Issue(certs.ID{TrustDomain: "example.com", Topology: "bank", Node: "n1"}, now, time.Hour); err == nil {
		t.Error("the authority signed for another trust domain")
	}
	if _, err := ca.Issue(certs.ID{TrustDomain: "example.org", Topology: "bank"}, now, time.Hour); err == nil {
		t.Error("the authority signed an empty ID")
	}
	pair, err = ca.Issue(id, now, 100*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	both, _ = tls.X509KeyPair(pair.Cert, pair.Key)
	if both.Leaf.NotAfter.After(now.Add(11 * 365 * 24 * time.Hour)) {
		t.Errorf("valid until %v", both.Leaf.NotAfter)
	}

	again, err := certs.LoadAuthority(ca.Pair, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Issue(id, now, time.Hour); err != nil {
		t.Error(err)
	}
	if _, err := certs.LoadAuthority(pair, now); err == nil {
		t.Error("the certificate of a node was accepted as an authority")
	}
	if _, err := certs.LoadAuthority(ca.Pair, now.Add(11*365*24*time.Hour)); err == nil {
		t.Error("an expired authority was loaded")
	}
}

// TestEveryTrustDomainIsVerified: the verification of name constraints accepts every
// valid trust domain.
func TestEveryTrustDomainIsVerified(t *testing.T) {
	now := time.Now()
	for _, domain := range []string{"localhost", "a.b-c.d", "with_underscore.org", "x1", "1x.2"} {
		ca, err := certs.NewAuthority(domain, now)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := ca.Issue(certs.ID{TrustDomain: domain, Topology: "bank", Node: "n1"}, now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		both, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca.Cert)
		if _, err := both.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", domain, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("spiffe://example.org/bank/n1")
	f.Add("spiffe://example.org/bank/operator/ann")
	f.Add("spiffe://g/C/" + strings.Repeat("\xd1", 2000))          // in a URL, each byte takes three
	f.Add("spiffe://" + strings.Repeat("\xd1", 2000) + "/bank/n1") // in an error, each byte takes four
	f.Fuzz(func(t *testing.T, name string) {
		var id certs.ID
		var err error
		allocated.Within(t, 8*len(name), func() { id, err = certs.Parse(name) })
		if err == nil && id.String() != name {
			t.Errorf("%q was parsed as %+v, which is %q", name, id, id)
		}
	})
}
