// Package member detects failures among the nodes of a cluster: each node has a list of
// all members with their states, and learns soon when one fails, returns, joins or
// leaves. It is the protocol of the document (chimaera-reliability, section 3), which is
// based on SWIM, with the additions that the document lacks.
//
//	d, err := member.New(member.Settings{
//		Node:      member.Node{Name: "n1", Address: "10.0.0.1:7400"},
//		First:     map[string]string{"n1": "10.0.0.1:7400", "n2": "10.0.0.2:7400", "n3": "10.0.0.3:7400"},
//		Config:    member.Config{Profile: member.ProfileLAN},
//		Transport: t, Group: transport.GroupID("orders", "member"),
//		Observe:   func(e member.Event) { fmt.Println(e.Member.Name, e.Kind) },
//	})
//	err = d.Start()
//	…
//	err = d.Leave(ctx)
//	err = d.Close()
//
// [Core] is the protocol as a state machine. [Swim] runs it on a [transport.Transport] with
// a clock. [Detector] is the interface of both Swim and package memberlist in this folder.
//
// # Guarantees
//
// A member that stops becomes Dead for every other node that runs and can reach a majority.
// [Config] states how long this takes. A member that runs and can exchange messages with
// any other node is Alive again soon after a mistake, by its own refutation. Any message of
// a member, also of the data path ([Detector.Heard]), is a sign of life.
//
// A node that cannot reach a majority of the known members is fenced, and a node that does
// not receive anything counts as dead for the others although it still sends. A process
// that did not run for a while (SIGSTOP, a frozen host) extends its timeouts by this
// pause. So it declares no member dead because of its own pause.
//
// A process with a higher boot id replaces the former process with the same name. Two
// processes with one name at the same time are reported ([EventDuplicate]), and the older
// one stops taking part when it learns of the other ([EventReplaced]).
//
// The list of members, the messages and all queues are bounded. A message that is not in
// the expected format has no effect and is counted.
//
// # Limits
//
// A failure detector makes mistakes: a network that loses everything and a host that has
// stopped look the same. So a Dead member may still run, and two nodes may disagree for
// some seconds. Do not use the states of members, the [Leader] or the fence alone to
// protect data.
//
// The names of senders must be verified by the transport. Members trust each other: a
// member with a valid certificate can spread wrong claims about others. They refute these
// claims, but a malicious member can disturb the detection.
//
// # Design
//
// [Core.Tick] executes the five steps of the document in their order: direct probes (probe.go),
// indirect probes, suspicions (suspicion.go), the fence (fence.go), and the next probe.
// Claims about processes are ordered by boot id, incarnation and status (record.go), so
// that nodes agree after they have received the same claims in any order. News travels
// in pings and acks, and urgent news also in messages of its own (gossip.go). Each message contains a
// digest of all claims, and nodes whose digests differ for long exchange all claims
// (join.go). Local health (pause.go), confirmed suspicions and the buddy system are from
// the paper about Lifeguard (Dadgar, Phillips, Currey, 2018).
//
// The tests are transcripts in testdata/transcript, and simulations of up to 1,000 nodes in virtual
// time. docs/reference/nodes.md lists the settings, and docs/explanation/clusters.md
// explains the protocol.
package member
