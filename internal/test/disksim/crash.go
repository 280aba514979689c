package disksim

import (
	"os"
	"path/filepath"
)

// Crash writes to a new directory what the files are after a power failure: everything that
// is synced, and what the loss leaves of the rest. It returns the disk below that directory.
// The disk itself does not change, so that a test can look at several outcomes of one moment.
func (d *Disk) Crash(dir string, loss Loss) *Disk {
	check(os.RemoveAll(dir))
	check(os.Mkdir(dir, 0o700))
	after := &Disk{dir: dir, rng: d.rng}
	for name, f := range d.names() {
		c := d.survivor(f, loss)
		path := filepath.Join(dir, name)
		check(c.write(path, &content{}))
		info, err := os.Stat(path)
		check(err)
		after.files = append(after.files, &file{info: info, name: name, diskName: name, cached: c, onDisk: c.clone()})
	}
	return after
}

// survivor returns a file after a power failure.
func (d *Disk) survivor(f *file, loss Loss) content {
	c := f.onDisk.clone()
	for _, w := range f.pending {
		if w.data == nil {
			if d.rng.Float64() >= loss.probability {
				c.apply(w)
			}
			continue
		}
		for at := 0; at < len(w.data); at += loss.unit {
			if d.rng.Float64() >= loss.probability {
				c.apply(write{w.at + at, w.data[at:min(at+loss.unit, len(w.data))]})
			}
		}
	}
	return c
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
