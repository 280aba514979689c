// Package upgradenewer is package upgradeolder with a field more.
package upgradenewer

// Accounts is what all have, and what the transfers were for.
type Accounts struct {
	Cents map[string]int64
	Notes map[string]string
}

// Transfer adds to an account.
type Transfer struct {
	To    string
	Cents int64
	Note  string
}

// Update returns what the account has.
func (t *Transfer) Update(a *Accounts) (int64, error) {
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	a.Cents[t.To] += t.Cents
	if t.Note != "" { // no transfer of the older program has one
		if a.Notes == nil {
			a.Notes = make(map[string]string)
		}
		a.Notes[t.To] = t.Note
	}
	return a.Cents[t.To], nil
}
