package finding

import (
	"path/filepath"
	"strings"
)

// RelativePath returns file relative to the folder dir, with slashes. A relative file is returned
// unchanged. So is a file outside dir, because its full path says more than "../../..".
func RelativePath(dir, file string) string {
	if dir != "" && filepath.IsAbs(file) && filepath.IsAbs(dir) {
		if rel, err := filepath.Rel(dir, file); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			file = rel
		}
	}
	return filepath.ToSlash(file)
}
