package spec

// The codes of the findings that this package makes. They are stable: a code is
// never given another meaning. The catalogue says what each one means.
const (
	codeSyntax       = "TG101"
	codeEmpty        = "TG102"
	codeDocuments    = "TG103"
	codeDuplicateKey = "TG104"
	codeKeyNotText   = "TG105"
	codeLimit        = "TG106"
	codeAlias        = "TG107"
	codeScalar       = "TG108"
	codeUnknownKey   = "TG109"
	codeMissingKey   = "TG110"
	codeWrongType    = "TG111"
	codeNotAllowed   = "TG112"
	codeOutOfRange   = "TG113"
	codeForm         = "TG114"
	codeEdgeForm     = "TG115"
	codeMerge        = "TG116"
	codeVersion      = "TG117"

	codeName          = "TG201"
	codeNamesCollide  = "TG202"
	codeEdgeTwice     = "TG203"
	codeNotDeclared   = "TG204"
	codeNoRoute       = "TG205"
	codeKeyAndRoute   = "TG206"
	codeRangeOutside  = "TG207"
	codeExternalHas   = "TG208"
	codeIntoExternal  = "TG209"
	codeTimerHas      = "TG210"
	codeReplyCollides = "TG211"
	codeType          = "TG212"
	codeOutput        = "TG213"
	codeGenerated     = "TG214"
	codeNoEffect      = "TG215"
	codeRouteUnfit    = "TG216"
	codeMember        = "TG217"
	codeMaxDelay      = "TG218"
	codeDeadLetter    = "TG219"
	codeIsolatedFails = "TG220"

	codeNoEdges     = "TG401"
	codeUnreachable = "TG402"
	codeGrowingRing = "TG403"
	codeUnlimited   = "TG404"
	codeEarly       = "TG405"
	codeNotReached  = "TG406"
	codeUsedUp      = "TG407"
)

const ignoredPrefix = "x-" // keys that begin so belong to other tools
