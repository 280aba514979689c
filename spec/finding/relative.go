package finding

import (
	"path/filepath"
	"strings"
)

// RelativePath returns file as it is called from the folder dir, with slashes. A
// relative file is taken to be so already, and one that is not below dir stays
// as it is: "../../.." says less than a full path.
func RelativePath(dir, file string) string {
	if dir != "" && filepath.IsAbs(file) && filepath.IsAbs(dir) {
		if rel, err := filepath.Rel(dir, file); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			file = rel
		}
	}
	return filepath.ToSlash(file)
}
