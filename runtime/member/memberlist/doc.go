// Package memberlist puts hashicorp/memberlist behind the interface [member.Detector], for
// clusters with detector: memberlist. Only programs that use this package link the library. Six of
// its modules are under the Mozilla Public License 2.0.
//
//	d, err := memberlist.New(member.Settings{…}) // as for member.New
//
// All packets and streams of the library travel over the [transport.Transport] of the
// settings. So there is no second port, and the identities of the transport hold: a node
// is addressed by its name, and the IP addresses that the library shows are derived from
// names.
//
// # Differences from package member
//
// The library knows no state ProbeFailed, and reports no suspicions: a member is Alive until
// it is Dead. Heard has no effect, because the library has no place for it. The settings
// are mapped to those of the library ([Config]), which has no IndirectTimeout, and whose
// times of suspicion grow with the logarithm of the cluster.
//
// Joining again after a partition, the fence, boot ids and forgetting are from this
// package, with the same rules as in package member, except that duplicates are only
// reported for equal names with different addresses.
//
// # Limits
//
// A stream is limited to 4 MiB in each direction, and a node has at most 64 at a time, of which
// one peer opens at most 8. A stream fails if the transport drops one of its messages.
//
// The library allocates what a message announces. So each packet and each stream is checked before
// the library gets it: it must have come completely, and must be a message that this package
// sends. Compressed and encrypted messages and messages of users are refused.
package memberlist
