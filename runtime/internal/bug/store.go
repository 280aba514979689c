package bug

// Bugs in package durable/store. Its simulated disk detects them.
const (
	SingleSync        Bug = "single-sync"          // a commit syncs once, after it has written the meta page
	NumbersIgnored    Bug = "numbers-ignored"      // the tables of an earlier commit are accepted
	CacheTrusted      Bug = "cache-trusted"        // Open reads what the system has in memory after a sync has failed
	ReadErrorIsDamage Bug = "read-error-is-damage" // a page that cannot be read counts as damaged
	LostMetaPage      Bug = "lost-meta-page"       // Open continues with the other meta page if one is damaged
)

// InStore lists the deliberate bugs of package durable/store.
var InStore = []Bug{SingleSync, NumbersIgnored, CacheTrusted, ReadErrorIsDamage, LostMetaPage}
