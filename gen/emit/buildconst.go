package emit

import (
	"crypto/sha256"
	"fmt"

	"github.com/dave/jennifer/jen"
)

// The wiring (topology_gen.go) depends on the ports (topology_ports_gen.go): it lists the
// processors in the order of their indices, and makes as many instances as the senders
// choose from. Ports and wiring of different builds may compile together, and would then
// deliver messages to the wrong handlers. Such a pair can be on disk: a build may be killed
// between its two renames, and a build writes only the ports if a processor does not bind.
// Therefore the ports declare a constant whose name contains their hash, and the wiring uses
// it. The name says what to do, because the error of the compiler contains only the name.

// hashBytes is the length of the hash in the name: enough against accidents, and short
// enough to read.
const hashBytes = 8

// buildConstantOf is the name of the constant for ports.
func buildConstantOf(parts [][]byte) Ident {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	return mustIdent(fmt.Sprintf("runTopogenBuild%x", h.Sum(nil)[:hashBytes]))
}

// declareBuildConstant is the declaration of the constant, for the end of a part.
func (m *model) declareBuildConstant() []byte {
	return fmt.Appendf(nil, "\n\n// %[2]s uses this constant: both files must come from the same build.\nconst %[1]s = 0\n", m.buildConstant, text(m.plan.Output))
}

// useBuildConstant makes the wiring compile only with the ports of the same build.
func (p *part) useBuildConstant() {
	p.doc("If this does not compile, %s and this file are from different builds of %s. Run:", p.plan.PortsFile, p.plan.Source)
	p.commandLine()
	p.add(jen.Const().Id("_").Op("=").Add(id(p.buildConstant)))
}
