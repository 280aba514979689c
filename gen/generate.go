package gen

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/gen/bind"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/emit"
	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/gen/internal/bounded"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/verify"
	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Input is one topology file.
type Input struct {
	Path   string // absolute
	Source []byte // its content

	quiet bool // it was added because another input imports its package
}

// Options apply to all files of a run. The zero value is ready to use.
type Options struct {
	// Flags are flags for the go command, such as "-tags=a,b". They override GOFLAGS.
	Flags []string
	// Cache keeps the go command's answers about packages; nil: there is no cache.
	Cache *cache.Cache
	Proto bool // make Result.Proto
}

// Result is the output for one topology file.
type Result struct {
	Findings []finding.Finding // findings about the file and the Go that it names, sorted
	Topology *spec.Topology    // nil if the file could not be read
	Plan     *plan.Plan        // nil if the package was not found
	Dir      string            // absolute folder of the topology file
	Files    []write.File      // files to write: the ports if file and message types have no errors, the wiring if all processors bind
	Keep     []string          // outputs that are not in Files this time but must not be removed, for write.Target
	Missing  []bind.Missing    // declarations that scaffolding could add
	Messages []bind.Struct     // message types that scaffolding could add
	Proto    []byte            // the .proto of its messages, if Options.Proto is set and all processors bind
	Inputs   []string          // absolute paths of the files and folders that were read, for the cache

	imported []string // topology files of imported packages that were not compiled together with it
}

// Generate compiles one topology file. It also returns the findings of the result. If ctx
// ends early, the result has no files and ctx.Err is not nil.
func Generate(ctx context.Context, in Input, options Options) (Result, []finding.Finding) {
	result := GenerateAll(ctx, []Input{in}, options)[0]
	return result, result.Findings
}

// GenerateAll compiles several topology files together, so that shared packages are
// loaded only once, and each package sees the code that is generated for packages that it
// imports. Results are in the order of the inputs.
//
// If a topology has errors and imports packages of other topologies, the generated code of
// these may be missing or old. Then GenerateAll also compiles these topologies, without
// results of their own, and keeps the result unless it has more errors.
func GenerateAll(ctx context.Context, in []Input, options Options) []Result {
	results := generate(ctx, in, options)
	last, all := results, in
	for ctx.Err() == nil {
		more := importedBy(last, all)
		if len(more) == 0 {
			break
		}
		all = slices.Concat(all, more)
		last = generate(ctx, all, options)
		for i := range results {
			if errorsOf(results[i].Findings) > 0 && errorsOf(last[i].Findings) <= errorsOf(results[i].Findings) {
				results[i] = last[i]
			}
		}
	}
	for _, added := range all[len(in):] {
		for i := range results {
			results[i].Inputs = append(results[i].Inputs, added.Path)
		}
	}
	return results
}

// sourceBytesMax bounds the size of a topology file. Package spec refuses a larger file.
const sourceBytesMax = 4 << 20

// importedBy reads topologies that results with errors import and that are not inputs.
func importedBy(results []Result, in []Input) (more []Input) {
	known := make(map[string]bool)
	for _, i := range in {
		known[i.Path] = true
	}
	for _, r := range results {
		if errorsOf(r.Findings) == 0 {
			continue
		}
		for _, path := range r.imported {
			if known[path] {
				continue
			}
			known[path] = true
			if text, err := bounded.ReadFile(path, sourceBytesMax); err == nil {
				more = append(more, Input{Path: path, Source: text, quiet: true})
			}
		}
	}
	return more
}

func errorsOf(findings []finding.Finding) (n int) {
	for _, f := range findings {
		if f.Severity == finding.Error {
			n++
		}
	}
	return n
}

// generate compiles the topology files in one run.
func generate(ctx context.Context, in []Input, options Options) []Result {
	results := parse(in)
	var inputs []bind.Input
	var of []int
	o := bind.Options{Flags: options.Flags, Cache: options.Cache}
	for i := range results {
		if t := results[i].Topology; t != nil {
			o.Imports = append(o.Imports, emit.Imports(t)...)
			inputs = append(inputs, bind.Input{Topology: t, Dir: results[i].Dir, Quiet: in[i].quiet})
			of = append(of, i)
		}
	}
	slices.Sort(o.Imports)
	o.Imports = slices.Compact(o.Imports)
	o.Bound = func(i int, b *bind.Result) { results[of[i]].complete(ctx, b, options) }
	_, _ = bind.Bind(ctx, inputs, o) // an error says that the context has ended
	for i := range results {
		results[i].Findings = finding.Sort(results[i].Findings)
	}
	return results
}

// parse reads the files and checks each without Go.
func parse(in []Input) []Result {
	results := make([]Result, len(in))
	for i := range in {
		t, findings := spec.Parse(in[i].Path, in[i].Source)
		results[i] = Result{Topology: t, Findings: findings, Dir: filepath.Dir(in[i].Path), Inputs: []string{in[i].Path}}
	}
	return results
}

// complete makes the result of a topology that is bound.
func (r *Result) complete(ctx context.Context, b *bind.Result, options Options) {
	r.Plan, r.Missing, r.Messages = plan.Complete(b.Outline, b.Facts), b.Missing, b.Messages
	r.Findings = append(r.Findings, b.Findings...)
	r.Findings = append(r.Findings, r.emit(ctx, b)...)
	r.Inputs = append(r.Inputs, b.Inputs()...) // Verify may have read more files
	if options.Proto && r.Plan != nil && r.Plan.Bound {
		text, findings := b.Proto()
		r.Proto, r.Findings = text, append(r.Findings, findings...)
	}
	if errorsOf(r.Findings) > 0 {
		r.imported = b.Topologies()
	}
	b.Done()
}

// emit makes the files of a bound topology and verifies them.
func (r *Result) emit(ctx context.Context, b *bind.Result) []finding.Finding {
	if r.Plan == nil {
		return nil
	}
	dir := path.Dir(r.Topology.Output.Value)
	ports, wiring := path.Join(dir, r.Plan.PortsFile), path.Join(dir, r.Plan.Output)
	r.Keep = []string{ports, wiring}
	if !b.PortsReady {
		return nil
	}
	parts, err := emit.Emit(r.Plan, emit.Options{Wiring: r.Plan.Bound, Imports: emit.Imports(r.Topology), Declared: b.Declares(), Imported: b.Imports(), Schema: b.Schema()})
	if err != nil {
		return []finding.Finding{r.internal(err)}
	}
	verified, err := verify.Files(ctx, b, parts)
	if err != nil {
		return nil // the context has ended
	}
	findings := verified.Findings
	if len(verified.Own) > 0 {
		for _, err := range verified.Own {
			findings = append(findings, r.internal(err))
		}
		return findings
	}
	hash := plan.Hash(r.Plan)
	r.Keep = nil
	for _, f := range verified.Files {
		name := path.Join(dir, f.Name)
		source := header.SourceOf(name, filepath.Base(r.Topology.File))
		r.Files = append(r.Files, write.File{Name: name, Body: header.Seal(source, hash, f.Body)})
	}
	if boundary := b.Boundary; boundary != nil && r.Plan.Bound {
		if len(boundary.File) > 0 { // if empty, tags fix all numbers
			r.Files = append(r.Files, write.File{Name: boundary.Name, Body: boundary.File, Kept: true})
		}
		r.Inputs = append(r.Inputs, filepath.Join(r.Dir, boundary.Name))
	}
	if r.Plan.Bound {
		b.Complete()
	} else {
		r.Keep = []string{wiring}
	}
	return findings
}

// internal is the finding for generated code that does not compile. If the user's code
// compiles, this is a bug of topogen.
func (r *Result) internal(err error) finding.Finding {
	return finding.New(finding.GoType, r.Topology.File, finding.Range{}, "",
		fmt.Sprintf("the generated code does not compile: %v", err), "")
}
