package finding

// catalogueSyntax explains the findings about YAML and the schema.
var catalogueSyntax = []Explanation{
	{
		Code:  Syntax,
		Title: "the file is not YAML",
		Reason: "The text cannot be read as YAML. The YAML library says only a line, and sometimes the one before, so the lines around it are shown. " +
			"Frequent reasons are a tab in the indentation, a bracket or quote that is not closed, and a text with \": \" that wants quotes.",
		Wrong: "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}\nedges:\n  - feed -> parser: Raw\n",
		Right: "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   Empty,
		Title:  "the file is empty",
		Reason: "The file holds nothing, or comments only. A topology has at least a version, a name, processors and edges.",
		Wrong:  "# to be written\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   Documents,
		Title:  "several documents in one file",
		Reason: "A file holds one topology. A second document would be ignored by most tools that read YAML, and what is written there would silently not exist.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n---\nversion: 1\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   DuplicateKey,
		Title:  "a key stands twice",
		Reason: "A mapping has each key once. Tools differ in which of two they use, so neither is.",
		Wrong:  "version: 1\nname: demo\nprocessors:\n  feed: {}\n  parser: {}\n  feed: {instances: 2}\nedges:\n  - feed -> parser: Raw\n",
		Right:  "version: 1\nname: demo\nprocessors:\n  feed: {instances: 2}\n  parser: {}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:  KeyNotText,
		Title: "a key is not a text",
		Reason: "YAML takes a key such as 1, 1.5 or null for a number or nothing, true for a truth value, and {…} for a mapping. " +
			"Every key of a topology is a text; where one looks like something else it wants quotes.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  feed: {new: NewFeed, with: {ports: {8080: http}}}\n  parser: {}\nedges:\n  - feed -> parser: Raw\n",
		Right: "version: 1\nname: demo\nprocessors:\n  feed: {new: NewFeed, with: {ports: {\"8080\": http}}}\n  parser: {}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:  Limit,
		Title: "a limit is exceeded",
		Reason: "The file is larger, deeper or more numerous than a topology can be. The limits keep a file from a stranger from costing much time or memory: " +
			"4 MiB, 64 levels, 524,288 keys and values, 131,072 more by aliases, 16,384 processors, 65,536 edges.",
	},
	{
		Code:   Alias,
		Title:  "an alias leads nowhere",
		Reason: "An alias (*name) repeats what an anchor (&name) marks earlier in the file. Here the anchor does not exist, or the alias stands inside of what it repeats, which has no end.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: *worker}\nedges:\n  - feed -> parser: Raw\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: &worker {}, parser: *worker}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:  Scalar,
		Title: "a value that a topology does not have",
		Reason: "YAML reads some texts as values that surprise: 2024-01-01 is a date, .nan a number, 0123 octal to some readers and decimal to others, 10_000 a number to some and a text to others. " +
			"A topology has texts, numbers, truth values, lists and mappings; put quotes around what is meant as a text.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  feed: {new: NewFeed, with: {since: 2024-01-01}}\n  parser: {}\nedges:\n  - feed -> parser: Raw\n",
		Right: "version: 1\nname: demo\nprocessors:\n  feed: {new: NewFeed, with: {since: \"2024-01-01\"}}\n  parser: {}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   UnknownKey,
		Title:  "an unknown key",
		Reason: "No such key exists here. A key that is passed over would be a wish that is silently not granted. Keys that begin with x- are ignored anywhere and may hold what you like.",
		Wrong:  "version: 1\nname: demo\nprocessors:\n  feed: {}\n  parser: {instanses: 4}\nedges:\n  - feed -> parser: {message: Raw, key: Account}\n",
		Right:  "version: 1\nname: demo\nprocessors:\n  feed: {}\n  parser: {instances: 4}\nedges:\n  - feed -> parser: {message: Raw, key: Account}\n",
	},
	{
		Code:   MissingKey,
		Title:  "a key is missing",
		Reason: "Without this key the file does not say what is meant. A topology has version, name, processors and edges; an edge has a message; a range has an offset and a count; a group has processors, and an intensity where it has a period.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: {capacity: 64}\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: {message: Raw, capacity: 64}\n",
	},
	{
		Code:  WrongType,
		Title: "a value of the wrong kind",
		Reason: "The key wants another kind of value: a text, a whole number, true or false, a list or a mapping. " +
			"A number in quotes is a text, yes is a text too, and a processor without options is written {}.",
		Wrong: "version: 1\nname: demo\nprocessors:\n  feed: {}\n  parser: {blocking: yes}\nedges:\n  - feed -> parser: Raw\n",
		Right: "version: 1\nname: demo\nprocessors:\n  feed: {}\n  parser: {blocking: true}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   NotAllowed,
		Title:  "a value that is not one of the choices",
		Reason: "The key has a fixed set of values.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: {message: Raw, full: drop-old}\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: {message: Raw, full: drop-oldest}\n",
	},
	{
		Code:   OutOfRange,
		Title:  "a number out of range",
		Reason: "The number or duration is below what has a meaning, or above what any machine can hold.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {instances: 0}}\nedges:\n  - feed -> parser: Raw\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {instances: 1}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   Form,
		Title:  "a text of the wrong form",
		Reason: "Durations are written as in Go: numbers with units, 500ms, 5s, 1m30s; amounts of memory with KiB, MiB or GiB. Keys and ids are a field path or a method of the message, as after a value in Go and without parentheses.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\npool: {rebalance: 5}\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\npool: {rebalance: 5s}\n",
	},
	{
		Code:   EdgeForm,
		Title:  "an edge of the wrong form",
		Reason: "An item of edges is \"from -> to: Message\", \"from -> to: {message: Message, …}\" or \"every 1s -> to\". YAML wants a space after the colon, no quotes around the edge, and a dash before each.",
		Wrong:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   Merge,
		Title:  "what is merged is not a mapping",
		Reason: "A merge key (<<) takes over the keys of a mapping, or of each mapping in a list. Nothing else has keys.",
		Wrong:  "version: 1\nname: demo\nx-workers: &workers 4\nprocessors:\n  feed: {}\n  parser: {<<: *workers}\nedges:\n  - feed -> parser: Raw\n",
		Right:  "version: 1\nname: demo\nx-workers: &workers {blocking: true}\nprocessors:\n  feed: {}\n  parser: {<<: *workers}\nedges:\n  - feed -> parser: Raw\n",
	},
	{
		Code:   Version,
		Title:  "a version that is not read",
		Reason: "The version names the format of the file, not of your program. This topogen reads version 1; nothing else is said about a file of another.",
		Wrong:  "version: 2\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
		Right:  "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	},
}
