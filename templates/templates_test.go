package templates

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec"
)

var example = Values{
	Name: "a-name", Package: "aname", Schema: schemas.Topology, Go: "1.26",
}

func TestProjects(t *testing.T) {
	for _, name := range Names() {
		files, err := Project(name, example)
		if err != nil {
			t.Fatal(err)
		}
		texts := make(map[string]string)
		for _, file := range files {
			if texts[file.Name] != "" {
				t.Errorf("%s: the file %s occurs twice", name, file.Name)
			}
			texts[file.Name] = string(file.Text)
			for _, rest := range []string{left, right, "<no value>"} {
				if strings.Contains(string(file.Text), rest) {
					t.Errorf("%s: %s contains %q, which belongs to a template", name, file.Name, rest)
				}
			}
		}
		for _, want := range []string{".github/workflows/topogen.yml", ".vscode/settings.json", "README.md", "topology.schema.json", "topology.yml", "topology_test.go"} {
			if texts[want] == "" {
				t.Errorf("%s has no %s", name, want)
			}
		}
		if !strings.Contains(texts[".github/workflows/topogen.yml"], "go tool topogen build --check") {
			t.Errorf("%s: the workflow does not check the generated files", name)
		}
		if !strings.HasPrefix(texts["topology.yml"], "# yaml-language-server: $schema=./topology.schema.json\n") {
			t.Errorf("%s: editors do not find the schema", name)
		}
		topology, findings := spec.Parse("topology.yml", []byte(texts["topology.yml"]))
		if len(findings) > 0 {
			t.Errorf("%s: %v", name, findings)
		} else if topology.Name.Value != "a-name" {
			t.Errorf("%s is called %s", name, topology.Name.Value)
		}
	}
}

// TestTheWorkflowIsTheDocumented checks that the page shows the workflow that init writes.
func TestTheWorkflowIsTheDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/howto/generate.md")
	if err != nil {
		t.Fatal(err)
	}
	workflow := func(v Values) string {
		files, err := Project("pipeline", v)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == ".github/workflows/topogen.yml" })
		return string(files[i].Text)
	}
	released := workflow(example)
	if want := "```yaml file=.github/workflows/topogen.yml\n" + released + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("the page lacks\n%s", want)
	}
	v := example
	v.Replaced = true
	before, after, _ := strings.Cut(released, "      # The generated")
	added, begins := strings.CutPrefix(workflow(v), before)
	added, ends := strings.CutSuffix(added, "      # The generated"+after)
	if want := "```yaml\n" + added + "```\n"; !begins || !ends || added == "" || !strings.Contains(string(page), want) {
		t.Errorf("the page lacks\n%s", want)
	}
}

func TestProjectUnknown(t *testing.T) {
	if _, err := Project("nothing", example); err == nil {
		t.Error("Project accepted an unknown name")
	}
}

func TestStubs(t *testing.T) {
	text, err := Stubs(StubFile{
		Package: "orders", Imports: []string{"context", "example.com/shop/model"},
		Processor: "line-parser", Type: "LineParser", Declare: true,
		Methods: []Stub{
			{Name: "ReceiveOrder", Signature: "func (l *LineParser) ReceiveOrder(m model.Order, out *LineParserSender) error", Edge: "feed -> line-parser: Order"},
			{Name: "ReceiveQuote", Signature: "func (l *LineParser) ReceiveQuote(m Quote) (Price, error)", Reply: "Price", Edge: "api -> line-parser: Quote"},
			{Name: "Serve", Signature: "func (l *LineParser) Serve(ctx context.Context, out *LineParserSender) error"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `package orders

import (
	"context"
	"errors"

	"example.com/shop/model"
)

// LineParser is the processor line-parser. Each instance has its own fields, and only
// one goroutine at a time runs its methods.
type LineParser struct{}

// ReceiveOrder handles feed -> line-parser: Order.
func (l *LineParser) ReceiveOrder(m model.Order, out *LineParserSender) error {
	return errors.New("line-parser: ReceiveOrder is not written yet")
}

// ReceiveQuote handles api -> line-parser: Quote.
func (l *LineParser) ReceiveQuote(m Quote) (Price, error) {
	var reply Price
	return reply, errors.New("line-parser: ReceiveQuote is not written yet")
}

// Serve sends messages and returns nil after the last one. It may block, and must return when
// ctx ends.
func (l *LineParser) Serve(ctx context.Context, out *LineParserSender) error {
	return errors.New("line-parser: Serve is not written yet")
}
`
	if string(text) != want {
		t.Errorf("got:\n%s", text)
	}
}

func TestStubsOfTypesAndAConstructor(t *testing.T) {
	text, err := Stubs(StubFile{
		Package: "orders", Processor: "feed", Type: "Feed",
		Structs: []Struct{{Name: "FeedConfig", What: "the configuration of feed", Fields: []string{"Dir string", "LineMax int `yaml:\"line-max\"`"}}, {Name: "Raw", What: "a message"}},
		New:     &Stub{Name: "NewFeed", Signature: "func NewFeed(with FeedConfig) (*Feed, error)"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `package orders

import "errors"

// FeedConfig is the configuration of feed.
type FeedConfig struct {
	Dir     string
	LineMax int |yaml:"line-max"|
}

// Raw is a message.
type Raw struct{}

// NewFeed makes an instance.
func NewFeed(with FeedConfig) (*Feed, error) {
	return nil, errors.New("feed: NewFeed is not written yet")
}
`
	if string(text) != strings.ReplaceAll(want, "|", "`") {
		t.Errorf("got:\n%s", text)
	}
}

func TestStubOfATypeAlone(t *testing.T) {
	text, err := Stubs(StubFile{Package: "orders", Processor: "sink", Type: "Sink", Declare: true})
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "sink.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Imports) != 0 || len(file.Decls) != 1 || file.Decls[0].(*ast.GenDecl).Tok != token.TYPE {
		t.Errorf("got:\n%s", text)
	}
}
