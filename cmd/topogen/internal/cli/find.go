package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// topologyNames are the names of a topology file for which a folder is enough.
var topologyNames = [...]string{defaultTopology, "topology.yaml"}

// below ends an argument that means all topologies below a folder, as in the go command.
const below = "..."

// topologyIn returns the topology file in a folder.
func topologyIn(dir string) (string, error) {
	var found []string
	for _, name := range topologyNames {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("it is a folder without a %s; name the file in it", strings.Join(topologyNames[:], " or "))
	case 1:
		return filepath.Join(dir, found[0]), nil
	}
	return "", fmt.Errorf("it is a folder with a %s; name one of them", strings.Join(found, " and a "))
}

// expand replaces arguments such as ./... by the topology files below that folder, or
// reports that the folder has none.
func (r *report) expand(names []string) (files []string) {
	for _, name := range names {
		dir, ok := strings.CutSuffix(filepath.ToSlash(name), below)
		if !ok || dir != "" && !strings.HasSuffix(dir, "/") {
			files = append(files, name)
			continue
		}
		list, err := topologiesBelow(filepath.Clean(filepath.FromSlash(dir)))
		if err == nil && len(list) == 0 {
			err = errors.New("no " + strings.Join(topologyNames[:], " or ") + " below that folder")
		}
		if err != nil {
			r.add(*unreadable(name, name, err))
			continue
		}
		files = append(files, list...)
	}
	return files
}

// topologiesBelow lists the topology files in a folder and below it. Like the go command
// with ./..., it skips folders such as testdata, and follows a symbolic link only if root
// is one.
func topologiesBelow(root string) (files []string, err error) {
	root += string(filepath.Separator) // makes WalkDir follow root if it is a link
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && path != root && (strings.ContainsAny(name[:1], "._") || name == "vendor" || name == "testdata" || name == "node_modules"):
			return filepath.SkipDir
		case !d.IsDir() && (name == topologyNames[0] || name == topologyNames[1]):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
