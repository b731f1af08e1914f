package schemas_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/schemas"
)

var update = flag.Bool("update", false, "write what is instead of comparing it")

// verdict says what decoding makes of a file, as a user would see it.
func verdict(d *schemas.Decoder, path string, src []byte) string {
	out := d.Decode(path, src)
	var b strings.Builder
	for _, p := range out.Problems {
		b.WriteString(p.Format())
	}
	switch {
	case out.Object != nil:
		b.WriteString("ok " + out.Ref.String() + " " + string(out.Object.Canonical()) + "\n")
	case out.Ref != (schemas.Ref{}):
		b.WriteString("refused " + out.Ref.String() + "\n")
	default:
		b.WriteString("refused\n")
	}
	return b.String()
}

// TestCorpus decodes every file of testdata/corpus and compares what a user is told. A file "x.yaml" of an archive is
// the input, "x.yaml.want" the verdict.
func TestCorpus(t *testing.T) {
	archives, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { corpusFile(t, name) })
	}
}

func corpusFile(t *testing.T, name string) {
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	d := schemas.NewDecoder(all, 0)
	for i := 0; i+1 < len(a.Files); i += 2 {
		in, want := a.Files[i], &a.Files[i+1]
		if want.Name != in.Name+".want" {
			t.Fatalf("%s is not followed by its .want but by %s", in.Name, want.Name)
		}
		got := verdict(d, "specs/"+in.Name, in.Data)
		if *update {
			want.Data = []byte(got)
			continue
		}
		if got != string(want.Data) {
			t.Errorf("%s:\n%s\nwant:\n%s", in.Name, got, want.Data)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
