package disksim

import (
	"bytes"
	"os"
	"path/filepath"
)

// Crash writes to a new directory what the files are after a power failure: everything that
// is synced, and what the loss leaves of the rest. The disk itself does not change, so that
// a test can look at several outcomes of one moment.
func (d *Disk) Crash(dir string, loss Loss) {
	check(os.RemoveAll(dir))
	check(os.Mkdir(dir, 0o700))
	for name, f := range d.names() {
		check(os.WriteFile(filepath.Join(dir, name), d.survivor(f, loss), 0o600))
	}
}

// survivor returns a file after a power failure.
func (d *Disk) survivor(f *file, loss Loss) []byte {
	b := bytes.Clone(f.onDisk)
	for _, w := range f.pending {
		if w.data == nil {
			if d.rng.Float64() >= loss.probability {
				b = w.apply(b)
			}
			continue
		}
		for at := 0; at < len(w.data); at += loss.unit {
			if d.rng.Float64() >= loss.probability {
				b = write{w.at + at, w.data[at:min(at+loss.unit, len(w.data))]}.apply(b)
			}
		}
	}
	return b
}

// names returns the files by the names that a power failure leaves: for each name either
// the synced state or the current one. A file that was renamed has exactly one of its
// names.
func (d *Disk) names() map[string]*file {
	names := map[string]*file{}
	for _, group := range d.renames() {
		current := d.rng.IntN(2) == 0
		for _, f := range group {
			name := f.diskName
			if current {
				name = f.name
			}
			if name != "" {
				names[name] = f
			}
		}
	}
	return names
}

// renames returns groups of files whose names change together, because one has got the name
// of the other.
func (d *Disk) renames() [][]*file {
	var groups [][]*file
	of := map[string]int{} // the group of a name
	for _, f := range d.files {
		group := -1
		for _, name := range [...]string{f.name, f.diskName} {
			if g, ok := of[name]; ok && name != "" {
				if group >= 0 && g != group { // joins two groups
					groups[group] = append(groups[group], groups[g]...)
					for n, other := range of {
						if other == g {
							of[n] = group
						}
					}
					groups[g] = nil
				} else {
					group = g
				}
			}
		}
		if group < 0 {
			groups, group = append(groups, nil), len(groups)
		}
		groups[group] = append(groups[group], f)
		of[f.name], of[f.diskName] = group, group
	}
	return groups
}
