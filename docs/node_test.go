package docs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/internal/test/nodejs"
)

// sdkFolder has the package.json and package-lock.json with the packages that the
// pages use.
const sdkFolder = "generated_test/durablesdk/programs"

// provideNode gives a page node, and an npm that installs the packages of sdkFolder
// without a network. It skips a page on a computer that cannot have node.
func (s *script) provideNode() {
	tools := nodejs.Need(s.T, filepath.Join(repository, sdkFolder))
	npm := `#!/bin/sh
[ "$*" = "install @resonatehq/sdk@0.11.5" ] && exec ln -s 'MODULES' node_modules
echo "docs_test: npm $*?" >&2
exit 1
`
	commands := filepath.Join(s.root, "commands")
	err := errors.Join(
		os.Mkdir(commands, 0o777),
		os.Symlink(tools.Node, filepath.Join(commands, "node")),
		os.WriteFile(filepath.Join(commands, "npm"), []byte(strings.ReplaceAll(npm, "MODULES", tools.Modules)), 0o777),
	)
	if err != nil {
		s.Fatal(err)
	}
}
