package cache

import (
	"os"
	"path/filepath"
)

// ModuleFiles returns the files that say which modules the packages of a folder
// are built from: go.mod and go.work up the tree with what belongs to them,
// those included that do not exist but would count if they did. Gowork is the
// value of GOWORK: "off", a file, or "" to look for it.
func ModuleFiles(dir, gowork string) []string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	var files []string
	add := func(dir string, names ...string) {
		for _, name := range names {
			files = append(files, filepath.Join(dir, name))
		}
	}
	if gowork != "" && gowork != "off" {
		files = append(files, gowork)
		add(filepath.Dir(gowork), "go.work.sum")
	}
	module, workspace := false, gowork != ""
	for !module || !workspace {
		if !module {
			add(dir, "go.mod")
			if module = exists(dir, "go.mod"); module {
				add(dir, "go.sum", "vendor", filepath.Join("vendor", "modules.txt"))
			}
		}
		if !workspace {
			add(dir, "go.work")
			if workspace = exists(dir, "go.work"); workspace {
				add(dir, "go.work.sum", filepath.Join("vendor", "modules.txt"))
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return files
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
