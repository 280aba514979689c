// Package certs says what the certificates of nodes look like, and makes them for
// development.
//
// A certificate names its node in the form of SPIFFE, as its only URI:
//
//	spiffe://example.org/bank/n1             node n1 of topology bank
//	spiffe://example.org/bank/operator/ann   somebody who may give it orders
//
// [Of] reads that name, and [Authority] is a certificate authority for development:
//
//	ca, err := certs.NewAuthority("example.org", time.Now())
//	pair, err := ca.Issue(certs.ID{TrustDomain: "example.org", Topology: "bank", Node: "n1"}, time.Now(), 90*24*time.Hour)
//
// # Limits
//
// An Authority keeps its key in the clear and revokes nothing. `topoctl certs`
// writes its files; in production certificates come from elsewhere, from SPIRE or
// a corporate authority for example, under the same names.
package certs
