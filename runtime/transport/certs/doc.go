// Package certs defines what the certificates of nodes contain, and makes certificates for
// development.
//
// The only URI of a certificate is the node's name in the form of SPIFFE:
//
//	spiffe://example.org/bank/n1             node n1 of topology bank
//	spiffe://example.org/bank/operator/ann   operator ann, with access to the services for operators
//	spiffe://example.org/bank/client/web     client web, with access to the services for clients
//
// [Of] reads this name. [Verify] verifies the certificates of the other end of a connection, and
// [Turns] makes the handshakes of a listener cost little. [Reloader] reads files of certificates
// again when they change. [Authority] is a certificate authority for development:
//
//	ca, err := certs.NewAuthority("example.org", time.Now())
//	pair, err := ca.Issue(certs.ID{TrustDomain: "example.org", Topology: "bank", Node: "n1"}, time.Now(), 90*24*time.Hour)
//
// # Limits
//
// An Authority does not encrypt its key and cannot revoke certificates. `topoctl certs`
// writes its files. In production, use certificates with the same names from another
// authority, for example SPIRE or your company's.
package certs
