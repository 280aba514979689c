package machinelog

// The tests of this case are in another package, and look at encodings and at a field that
// a log has although it is not exported.

// Count is the number of transfers in a state.
func Count(a *Accounts) int { return a.count }

// AppendAccounts appends the generated encoding of a state.
func AppendAccounts(b []byte, a *Accounts) ([]byte, error) { return appendAccounts(b, a) }

// ConsumeAccounts decodes a state.
func ConsumeAccounts(b []byte, a *Accounts) error { return consumeAccounts(b, a) }

// AppendPages appends the generated encoding of a journal.
func AppendPages(b []byte, p *Pages) ([]byte, error) { return appendPages(b, p) }

// ConsumePages decodes a journal.
func ConsumePages(b []byte, p *Pages) error { return consumePages(b, p) }
