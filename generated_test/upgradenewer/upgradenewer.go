// Package upgradenewer is a newer version of package upgradeolder, with an additional field.
package upgradenewer

// Accounts has the balances and the notes of transfers.
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

// Update returns the balance of the account.
func (t *Transfer) Update(a *Accounts) (int64, error) {
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	a.Cents[t.To] += t.Cents
	if t.Note != "" { // transfers of the older program have no note
		if a.Notes == nil {
			a.Notes = make(map[string]string)
		}
		a.Notes[t.To] = t.Note
	}
	return a.Cents[t.To], nil
}
