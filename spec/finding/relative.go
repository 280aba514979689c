package finding

import (
	"path/filepath"
	"slices"
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

// Relative returns the findings with files as they are called from dir.
func Relative(dir string, findings []Finding) []Finding {
	relative := slices.Clone(findings)
	for i := range relative {
		relative[i].File = RelativePath(dir, relative[i].File)
	}
	return relative
}
