package finding

// catalogueMeaning explains the findings about what a topology says.
var catalogueMeaning = []Explanation{
	{
		Code:  Name,
		Title: "a name that no Go can be made of",
		Reason: "Names become parts of Go identifiers and of file names. Those of processors are letters and digits joined by - or _, those of messages Go identifiers, " +
			"all of at most 100 ASCII characters, and none is a keyword, a predeclared name, init or main.",
		Wrong: "version: 1\nname: demo\nprocessors: {feed: {}, \"line parser\": {}}\nedges:\n  - feed -> line parser: Raw\n",
		Right: "version: 1\nname: demo\nprocessors: {feed: {}, line-parser: {}}\nedges:\n  - feed -> line-parser: Raw\n",
	},
	{
		Code:   NamesCollide,
		Title:  "names that are the same in Go",
		Reason: "In Go a name is split at - and _ and joined in camel case, so that line-parser and line_parser are both LineParser. Names that then differ only by case are refused too: some file systems do not tell them apart, and readers hardly do.",
		Wrong:  "version: 1\nname: demo\nprocessors: {line-parser: {}, line_parser: {}}\nedges:\n  - line-parser -> line_parser: Raw\n",
		Right:  "version: 1\nname: demo\nprocessors: {line-parser: {}, record-parser: {}}\nedges:\n  - line-parser -> record-parser: Raw\n",
	},
	{
		Code:  EdgeTwice,
		Title: "an edge stands twice",
		Reason: "Two edges have the same ends and the same message. A message would be sent along both, and both would have one name. " +
			"Where two edges are meant, the type gets a second name under messages, and one of the edges carries it.",
		Wrong: "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n  - feed -> parser: {message: Raw, capacity: 64}\n",
		Right: "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: {message: Raw, capacity: 64}\n",
	},
	{
		Code:  NotDeclared,
		Title: "a processor is not declared",
		Reason: "An edge, a group or a dead letter names a processor that does not stand under processors. Every one is declared, so that a wrong letter does not make a new processor. " +
			"Where code outside of the topology sends the messages, the processor is declared with external: true.",
		Wrong: "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {}}\nedges:\n  - feed -> pricng: Order\n",
		Right: "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {}}\nedges:\n  - feed -> pricing: Order\n",
	},
	{
		Code:   NoRoute,
		Title:  "an edge to several instances has no key and no route",
		Reason: "The receiver has several instances, and the edge does not say which of them a message goes to. A key keeps messages of the same value together; a route is local, broadcast, an id or a range.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {instances: 8}}\nedges:\n  - feed -> pricing: Order\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {instances: 8}}\nedges:\n  - feed -> pricing: {message: Order, key: Account}\n",
	},
	{
		Code:   KeyAndRoute,
		Title:  "an edge chooses the instance twice",
		Reason: "A key and a route both choose the receiver's instance, as do two routes. Only one can.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {instances: 8}}\nedges:\n  - feed -> pricing: {message: Order, key: Account, route: local}\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {instances: 8}}\nedges:\n  - feed -> pricing: {message: Order, key: Account}\n",
	},
	{
		Code:   RangeOutside,
		Title:  "a range outside of the instances",
		Reason: "A constant range names instances that the receiver does not have. Instances are counted from 0.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {instances: 8}}\nedges:\n  - feed -> pricing: {message: Order, route: {range: {offset: 4, count: 8}}}\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, pricing: {instances: 8}}\nedges:\n  - feed -> pricing: {message: Order, route: {range: {offset: 4, count: 4}}}\n",
	},
	{
		Code:   ExternalHas,
		Title:  "an option that an external processor does not have",
		Reason: "An external processor stands for code outside of the pool. It has no Go type, is not constructed, has no instances and cannot fail: any goroutine may send for it.",
		Wrong:  "version: 1\nname: demo\nprocessors: {api: {external: true, instances: 4}, pricing: {}}\nedges:\n  - api -> pricing: Quote\n",
		Right:  "version: 1\nname: demo\nprocessors: {api: {external: true}, pricing: {}}\nedges:\n  - api -> pricing: Quote\n",
	},
	{
		Code:   IntoExternal,
		Title:  "an edge into an external processor",
		Reason: "Messages come from an external processor, and none go to one, nor dead letters: nothing there would handle them. Where it wants an answer, its own edge has a reply, and Ask returns it.",
		Wrong:  "version: 1\nname: demo\nprocessors: {api: {external: true}, pricing: {}}\nedges:\n  - api -> pricing: Quote\n  - pricing -> api: Price\n",
		Right:  "version: 1\nname: demo\nprocessors: {api: {external: true}, pricing: {}}\nedges:\n  - api -> pricing: {message: Quote, reply: Price}\n",
	},
	{
		Code:   TimerHas,
		Title:  "an option that a timer does not have",
		Reason: "A timer sends topo.Tick to every instance of its receiver. A tick has no key and no reply, and none waits behind another, so that there is no capacity either.",
		Wrong:  "version: 1\nname: demo\nprocessors: {audit: {}}\nedges:\n  - every 1s -> audit: {capacity: 16}\n",
		Right:  "version: 1\nname: demo\nprocessors: {audit: {}}\nedges:\n  - every 1s -> audit\n",
	},
	{
		Code:   ReplyCollides,
		Title:  "a reply travels where an edge does",
		Reason: "Between processors a reply is a message that travels back. An edge that carries the same message the same way would have the same handler.",
		Wrong:  "version: 1\nname: demo\nprocessors: {cart: {}, pricing: {}}\nedges:\n  - cart -> pricing: {message: Quote, reply: Price}\n  - pricing -> cart: Price\n",
		Right:  "version: 1\nname: demo\nprocessors: {cart: {}, pricing: {}}\nedges:\n  - cart -> pricing: {message: Quote, reply: Price}\n",
	},
	{
		Code:  Type,
		Title: "an expression that is not a type",
		Reason: "Types are Go type expressions with import paths written out: names with type arguments, pointers, slices, arrays and maps of them. " +
			"A function, a channel, an interface or a struct wants a name that is declared in Go. A processor's type has methods, so it is a name.",
		Wrong: "version: 1\nname: demo\nmessages: {Raw: \"chan int\"}\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
		Right: "version: 1\nname: demo\nmessages: {Raw: \"[]byte\"}\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:  Output,
		Title: "an output that cannot be",
		Reason: "The generated file stands in the folder of the topology file or below, and is compiled on every system. So its path has no \"..\" and no backslash, is not absolute, " +
			"ends with .go, and does not end with what the go command reads as a test or a system: _test.go, _linux.go, _amd64.go.",
		Wrong: "version: 1\nname: demo\noutput: ../demo_linux.go\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
		Right: "version: 1\nname: demo\noutput: demo_gen.go\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:  Generated,
		Title: "names that meet in the generated code",
		Reason: "Names in the generated code are joined of the names of processors and messages, and a few are always there: Processors, Topology, New and the methods Run, Tree, Snapshot and Stepper. " +
			"Here two different things would get one name.",
		Wrong: "version: 1\nname: demo\nprocessors: {feed: {}, run: {}}\nedges:\n  - feed -> run: Raw\n",
		Right: "version: 1\nname: demo\nprocessors: {feed: {}, runner: {}}\nedges:\n  - feed -> runner: Raw\n",
	},
	{
		Code:   NoEffect,
		Title:  "an option without effect",
		Reason: "The option changes something that is not there: a timeout where nobody waits for a reply, a configuration for which there is no new function, delays of restarts that there are not.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {with: {dir: ./in}}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {new: NewFeed, with: {dir: ./in}}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   RouteUnfit,
		Title:  "a route that does not fit the edge",
		Reason: "An external sender and a timer have no instance for the route local, a tick has no field for an id, and one Ask cannot have the replies of several instances.",
		Wrong:  "version: 1\nname: demo\nprocessors: {api: {external: true}, pricing: {instances: 8}}\nedges:\n  - api -> pricing: {message: Quote, route: local}\n",
		Right:  "version: 1\nname: demo\nprocessors: {api: {external: true}, pricing: {instances: 8}}\nedges:\n  - api -> pricing: {message: Quote, key: Account}\n",
	},
	{
		Code:  Member,
		Title: "a processor that cannot be in a group",
		Reason: "A group says which instances are restarted together. A processor is in one group at most, once, because its place decides what is restarted with it. " +
			"An external processor cannot fail.",
		Wrong: "version: 1\nname: demo\nprocessors: {camera: {}, lidar: {}, planner: {}}\ngroups:\n  sensors: {processors: [camera, lidar]}\n  others: {processors: [lidar, planner]}\nedges:\n  - camera -> planner: Frame\n  - lidar -> planner: Points\n",
		Right: "version: 1\nname: demo\nprocessors: {camera: {}, lidar: {}, planner: {}}\ngroups:\n  sensors: {processors: [camera, lidar]}\n  others: {processors: [planner]}\nedges:\n  - camera -> planner: Frame\n  - lidar -> planner: Points\n",
	},
	{
		Code:   MaxDelay,
		Title:  "a longest delay below the first",
		Reason: "A restart waits for delay, each further one of the window twice as long, and none longer than max_delay. So max_delay is at least delay; where both are the same, all wait as long.",
		Wrong:  "version: 1\nname: demo\nprocessors:\n  camera: {restart: {policy: on-failure, max_restarts: 5, delay: 30s, max_delay: 2s, window: 5m}}\n  planner: {}\nedges:\n  - camera -> planner: Frame\n",
		Right:  "version: 1\nname: demo\nprocessors:\n  camera: {restart: {policy: on-failure, max_restarts: 5, delay: 2s, max_delay: 30s, window: 5m}}\n  planner: {}\nedges:\n  - camera -> planner: Frame\n",
	},
	{
		Code:  DeadLetter,
		Title: "dead letters that do not come to rest",
		Reason: "A dead letter is a message that could not be handled. It goes to another processor, whose own dead letters do not come back, " +
			"and which has one instance, because a dead letter has no key by which one would be chosen.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  feed: {}\n  parser: {on_error: {then: skip, dead_letter: parser}}\nedges:\n  - feed -> parser: Raw\n",
		Right: "version: 1\nname: demo\nprocessors:\n  feed: {}\n  parser: {on_error: {then: skip, dead_letter: morgue}}\n  morgue: {}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   IsolatedFails,
		Title:  "a send from a process of its own that could fail",
		Reason: "With full: fail a send tells its sender at once whether the queue had room. A processor with isolation: process sends from another process, from where that cannot be seen.",
		Wrong:  "version: 1\nname: demo\nprocessors: {camera: {isolation: process}, planner: {}}\nedges:\n  - camera -> planner: {message: Frame, full: fail}\n",
		Right:  "version: 1\nname: demo\nprocessors: {camera: {isolation: process}, planner: {}}\nedges:\n  - camera -> planner: {message: Frame, full: drop-oldest}\n",
	},
}

// catalogueWarnings explains what works and is hardly meant.
var catalogueWarnings = []Explanation{
	{
		Code:   NoEdges,
		Title:  "a processor without edges",
		Reason: "No edge begins or ends at the processor: it neither sends nor receives. It still runs if it has Ping or Serve.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}, audit: {}}\nedges:\n  - feed -> parser: Raw\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}, audit: {}}\nedges:\n  - feed -> parser: Raw\n  - parser -> audit: Rejected\n",
	},
	{
		Code:   Unreachable,
		Title:  "a processor that no message reaches",
		Reason: "Nothing leads to the processor: no external processor, no timer, and no processor that starts by itself with Ping or Serve. It waits until the end.",
		Wrong:  "version: 1\nname: demo\nprocessors: {ask: {}, answer: {}}      # neither has Ping or Serve\nedges:\n  - ask -> answer: Question\n  - answer -> ask: Reply\n",
		Right:  "version: 1\nname: demo\nprocessors: {ask: {}, answer: {}}\nedges:\n  - every 1s -> ask\n  - ask -> answer: Question\n  - answer -> ask: Reply\n",
	},
	{
		Code:   GrowingRing,
		Title:  "a ring that can only grow",
		Reason: "In each lap of the ring an edge makes several messages of one, and no edge drops any. Unless a handler lets messages end there, the ring fills, and Run ends with an error when one of its queues reaches cycle_limit of pool.",
		Wrong:  "version: 1\nname: demo\nprocessors: {hub: {}, peer: {instances: 4}}\nedges:\n  - every 1s -> hub\n  - hub -> peer: {message: News, route: broadcast}\n  - peer -> hub: Echo\n",
		Right:  "version: 1\nname: demo\nprocessors: {hub: {}, peer: {instances: 4}}\nedges:\n  - every 1s -> hub\n  - hub -> peer: {message: News, route: broadcast, full: drop-oldest}\n  - peer -> hub: Echo\n",
	},
	{
		Code:  Unlimited,
		Title: "restarts without a limit",
		Reason: "Nothing limits the restarts of the processor: neither max_restarts nor the intensity of a group. Without a delay a fault that stays keeps it failing as fast as it can; " +
			"with one the delay doubles with each failure there ever was, unless a window lets it begin anew. Equal delays (max_delay the same as delay) want no window.",
		Wrong: "version: 1\nname: demo\nprocessors: {camera: {restart: on-failure}, planner: {}}\nedges:\n  - camera -> planner: Frame\n",
		Right: "version: 1\nname: demo\nprocessors:\n  camera: {restart: {policy: on-failure, max_restarts: 5, delay: 1s, window: 5m}}\n  planner: {}\nedges:\n  - camera -> planner: Frame\n",
	},
	{
		Code:  Early,
		Title: "a timeout that passes between two ticks",
		Reason: "A timer, or a processor that sends only when its timer ticks, is silent between two ticks. A timeout that is not longer than the period takes that for a failure, again and again. " +
			"Three to five times the period is a good start.",
		Wrong: "version: 1\nname: demo\nprocessors: {gps: {}, planner: {}}\nedges:\n  - every 10s -> gps: {input_timeout: 5s}\n  - gps -> planner: Fix\n",
		Right: "version: 1\nname: demo\nprocessors: {gps: {}, planner: {}}\nedges:\n  - every 10s -> gps: {input_timeout: 30s}\n  - gps -> planner: Fix\n",
	},
	{
		Code:  NotReached,
		Title: "a limit of restarts that is never reached",
		Reason: "Restarts are counted within a window, and their delays pass in it too. Where the delays of max_restarts restarts are longer than the window, counting begins anew before the limit is reached: " +
			"there is none.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  camera: {restart: {policy: on-failure, max_restarts: 5, delay: 10s, window: 1m}}\n  planner: {}\nedges:\n  - camera -> planner: Frame\n",
		Right: "version: 1\nname: demo\nprocessors:\n  camera: {restart: {policy: on-failure, max_restarts: 5, delay: 1s, window: 1m}}\n  planner: {}\nedges:\n  - camera -> planner: Frame\n",
	},
	{
		Code:  UsedUp,
		Title: "restarts that one message uses up",
		Reason: "With then: stop, which is the default, each attempt at a message that fails ends an instance, as does each that panics. Where a message has more attempts than there are restarts, a single one that fails each time " +
			"uses them all up: the instance is given up, and the message is not the dead letter that it would be after its last attempt. In a process of its own a message has three attempts by default.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  camera: {}\n  planner: {isolation: process, restart: {policy: on-failure, max_restarts: 2, window: 1m}}\nedges:\n  - camera -> planner: Frame\n",
		Right: "version: 1\nname: demo\nprocessors:\n  camera: {}\n  planner: {isolation: process, restart: {policy: on-failure, max_restarts: 5, window: 1m}}\nedges:\n  - camera -> planner: Frame\n",
	},
	{
		Code:  Hangs,
		Title: "a restart that waits for an instance that hangs",
		Reason: "With one-for-all and rest-for-one, siblings of a failed instance are stopped before all of them are started again. A handler that hangs does not stop. Without health the hang is noticed only then, " +
			"and the instance is abandoned after the shutdown of the group, which is 5s by default as in Erlang/OTP. With a health timeout the hang is noticed whenever it happens. There is no warning where the file gives a shutdown.",
		Wrong: "version: 1\nname: demo\nprocessors: {camera: {}, lidar: {}, planner: {}}\ngroups:\n  sensors: {processors: [camera, lidar], strategy: one-for-all}\nedges:\n  - camera -> planner: Frame\n  - lidar -> planner: Points\n",
		Right: "version: 1\nname: demo\nx-health: &health {timeout: 30s}\nprocessors: {camera: {health: *health}, lidar: {health: *health}, planner: {}}\ngroups:\n  sensors: {processors: [camera, lidar], strategy: one-for-all}\nedges:\n  - camera -> planner: Frame\n  - lidar -> planner: Points\n",
	},
	{
		Code:  NoWindow,
		Title: "a limit of restarts for the whole life of the topology",
		Reason: "Without a window, max_restarts counts all restarts of an instance since the topology was started. A program that runs for months uses them up with one harmless failure in a month. " +
			"With a window only restarts within that time are counted: three to five within one to five minutes are a good start.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  camera: {restart: {policy: on-failure, max_restarts: 5}}\n  planner: {}\nedges:\n  - camera -> planner: Frame\n",
		Right: "version: 1\nname: demo\nprocessors:\n  camera: {restart: {policy: on-failure, max_restarts: 5, window: 5m}}\n  planner: {}\nedges:\n  - camera -> planner: Frame\n",
	},
}
