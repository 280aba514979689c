package cache

import (
	"os"
	"path/filepath"
)

// ModuleFiles returns the files that determine the modules for the packages of a folder:
// go.mod and go.work in the folder and above it, with the files that belong to them. It
// includes files that do not exist but would matter if they did. gowork is the value of
// GOWORK: "off", a file, or "" to search for it.
func ModuleFiles(dir, gowork string) []string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	files, module := Above(dir, "go.mod")
	add := func(dir string, names ...string) {
		for _, name := range names {
			files = append(files, filepath.Join(dir, name))
		}
	}
	if module != "" {
		add(module, "go.sum", "vendor", filepath.Join("vendor", "modules.txt"))
	}
	switch gowork {
	case "off":
	case "":
		tried, workspace := Above(dir, "go.work")
		files = append(files, tried...)
		if workspace != "" {
			add(workspace, "go.work.sum", filepath.Join("vendor", "modules.txt"))
		}
	default:
		files = append(files, gowork)
		add(filepath.Dir(gowork), "go.work.sum")
	}
	return files
}

// Above searches for a file in dir and the folders above it, as the go command does. It
// returns the paths that it tried, and the folder of the file, or "" if there is none.
func Above(dir, name string) (tried []string, found string) {
	for at := dir; ; at = filepath.Dir(at) {
		file := filepath.Join(at, name)
		tried = append(tried, file)
		if _, err := os.Stat(file); err == nil {
			return tried, at
		}
		if at == filepath.Dir(at) {
			return tried, ""
		}
	}
}
