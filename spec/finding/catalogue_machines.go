package finding

// catalogueMachines explains the findings about state machines.
var catalogueMachines = []Explanation{
	{
		Code:  KindHas,
		Title: "a key that does not go with the kind",
		Reason: "A processor of kind fsm or raft is of a type that the runtime brings. It is not restarted, and waits for its disk by itself, so that it has none of the keys which say such things of a type of your own. " +
			"What belongs to a machine belongs to no other processor.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: bank, blocking: true}\nedges:\n  - every 1s -> bank\n",
		Right: "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: bank}\nedges:\n  - every 1s -> bank\n",
	},
	{
		Code:  Controller,
		Title: "a processor that cannot control a machine",
		Reason: "The controller of a machine sends it what it is to do and receives its answers, in this process. An external processor receives nothing: leave the controller out, and propose by the method of the topology. " +
			"A machine controls none, and a process of its own cannot be reached by answers.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  api: {external: true}\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: api}\nedges:\n  - api -> bank: Order\n",
		Right: "version: 1\nname: demo\nprocessors:\n  api: {external: true}\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: bank}\nedges:\n  - api -> bank: Order\n",
	},
	{
		Code:  MachineEdge,
		Title: "an edge to or from a machine",
		Reason: "The edges between a machine and its controller follow from the controller: what the machine may be asked, and what it answers. The file declares no edge to a machine and no timer for it, and it takes no dead letters. " +
			"From a machine of kind fsm, such as ledger, edges of the file carry LedgerApplied, each update that was applied, and LedgerLeadership, who leads: to processors in this process, and not the updates of a machine with revert.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: bank}\nedges:\n  - every 1s -> bank\n  - bank -> ledger: Transfer\n",
		Right: "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: bank}\nedges:\n  - every 1s -> bank\n",
	},
	{
		Code:   Peers,
		Title:  "peers that cannot be",
		Reason: "The peers of a group are the nodes that vote, by name, each with an address of its own: a host and a port. There are at most 9: with more each commit is slower, and four may be lost of nine already.",
		Wrong:  "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger:\n    kind: fsm\n    state: Accounts\n    update: Transfer\n    controller: bank\n    log: {path: ./ledger}\n    raft: {peers: {n1: \"127.0.0.1:7101\", n2: \"127.0.0.1:7101\"}}\nedges:\n  - every 1s -> bank\n",
		Right:  "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger:\n    kind: fsm\n    state: Accounts\n    update: Transfer\n    controller: bank\n    log: {path: ./ledger}\n    raft: {peers: {n1: \"127.0.0.1:7101\", n2: \"127.0.0.1:7102\"}}\nedges:\n  - every 1s -> bank\n",
	},
	{
		Code:  UnsafeSync,
		Title: "a node that may forget what it has promised",
		Reason: "A node of a group tells others that it has written something only when it is on the disk: what a majority has written is committed. With another sync than always a machine that loses its power forgets it, " +
			"and the group may lose what was acknowledged.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger:\n    kind: fsm\n    state: Accounts\n    update: Transfer\n    controller: bank\n    log: {path: ./ledger, sync: none}\n    raft: {peers: {n1: \"127.0.0.1:7101\"}}\nedges:\n  - every 1s -> bank\n",
		Right: "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger:\n    kind: fsm\n    state: Accounts\n    update: Transfer\n    controller: bank\n    log: {path: ./ledger, sync: always}\n    raft: {peers: {n1: \"127.0.0.1:7101\"}}\nedges:\n  - every 1s -> bank\n",
	},
	{
		Code:   Election,
		Title:  "an election timeout that is too short",
		Reason: "A leader says each heartbeat that it is there, and a node that has not heard it for an election_timeout asks for votes. It is at least five heartbeats, so that one that comes late unseats nobody.",
		Wrong:  "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger:\n    kind: fsm\n    state: Accounts\n    update: Transfer\n    controller: bank\n    log: {path: ./ledger}\n    raft: {peers: {n1: \"127.0.0.1:7101\"}, election_timeout: 200ms}\nedges:\n  - every 1s -> bank\n",
		Right:  "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger:\n    kind: fsm\n    state: Accounts\n    update: Transfer\n    controller: bank\n    log: {path: ./ledger}\n    raft: {peers: {n1: \"127.0.0.1:7101\"}, election_timeout: 200ms, heartbeat: 20ms}\nedges:\n  - every 1s -> bank\n",
	},
	{
		Code:   Shared,
		Title:  "machines that would be one",
		Reason: "Two machines would keep their logs in one folder, or be one group for their peers. Each has a folder of its own, and a group, which is by default called after the processor.",
		Wrong:  "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: bank, log: {path: ./log}}\n  orders: {kind: fsm, state: Book, update: Order, controller: bank, log: {path: ./log}}\nedges:\n  - every 1s -> bank\n",
		Right:  "version: 1\nname: demo\nprocessors:\n  bank: {}\n  ledger: {kind: fsm, state: Accounts, update: Transfer, controller: bank, log: {path: ./log/ledger}}\n  orders: {kind: fsm, state: Book, update: Order, controller: bank, log: {path: ./log/orders}}\nedges:\n  - every 1s -> bank\n",
	},
}
