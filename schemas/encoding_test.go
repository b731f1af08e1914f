package schemas_test

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

const session = "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: x}\nspec:\n  title: a\n"

// TestEncoding holds the bytes that a text file cannot hold, so they are not in the corpus.
func TestEncoding(t *testing.T) {
	utf16 := "\xff\xfe"
	for _, c := range session {
		utf16 += string([]byte{byte(c), 0})
	}
	cases := []struct {
		name, src string
		want      string // beginning of the only problem after the path; "" for none
	}{
		{"one byte order mark", "\ufeff" + session, ""},
		{"two byte order marks", "\ufeff\ufeff" + session, ":1:1: contains a byte order mark inside"},
		{"byte order mark inside", session + "  owner: \ufeffb\n", ":6:10: contains a byte order mark inside"},
		{"UTF-16", utf16, ":1:1: the file is UTF-16"},
		{"big-endian UTF-16", "\xfe\xff\x00a", ":1:1: the file is UTF-16"},
		{"UTF-32, unlike UTF-16", "\xff\xfe\x00\x00a\x00\x00\x00", ":1:1: the file is UTF-32"},
		{"big-endian UTF-32, unlike UTF-16", "\x00\x00\xfe\xff\x00\x00\x00a", ":1:1: the file is UTF-32"},
		{"latin-1", session + "  owner: M\xfcller\n", ":6:11: is not UTF-8: there is a byte 0xFC"},
		{"overlong", session + "  owner: \xc0\xaf\n", ":6:10: is not UTF-8: there is a byte 0xC0"},
		{"surrogate", session + "  owner: \xed\xa0\x80\n", ":6:10: is not UTF-8: there is a byte 0xED"},
		{"cut in a character", session + "  owner: \xc3", ":6:10: is not UTF-8: there is a byte 0xC3"},
		{"NUL", session + "  owner: b\x00\n", ":6:11: contains the control character U+0000"},
		{"escape", session + "  owner: \x1b[31m\n", ":6:10: contains the control character U+001B"},
		{"next line", session + "  owner: \u0085\n", ":6:10: contains the control character U+0085"},
		{"lone CR", strings.ReplaceAll(session, "\n", "\r"), ":1:35: a carriage return stands alone"},
		{"CRLF", strings.ReplaceAll(session, "\n", "\r\n"), ""},
		{"no final line end", strings.TrimSuffix(session, "\n"), ""},
	}
	d := schemas.NewDecoder(all, 0)
	digest := d.Decode("specs/x.yaml", []byte(session)).Object.Digest
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := d.Decode("specs/x.yaml", []byte(c.src))
			if c.want == "" {
				if len(out.Problems) > 0 || out.Object.Digest != digest {
					t.Fatalf("problems %v, want the same object", out.Problems)
				}
				return
			}
			if len(out.Problems) != 1 || !strings.HasPrefix(out.Problems[0].Error(), "specs/x.yaml"+c.want) {
				t.Fatalf("problems %v, want %s", out.Problems, c.want)
			}
			if out.Object != nil || !strings.Contains(c.name, "UTF-16") && out.Ref.String() != "session/x" {
				t.Errorf("object %v, ref %q; want none, and session/x", out.Object, out.Ref)
			}
		})
	}
}

func TestSizeLimit(t *testing.T) {
	big := session + "  description: " + strings.Repeat("x", 2000) + "\n"
	if out := schemas.NewDecoder(all, 1024).Decode("specs/x.yaml", []byte(big)); out.Object != nil ||
		len(out.Problems) != 1 || out.Problems[0].Code != "too-large" || out.Ref.String() != "session/x" {
		t.Errorf("got %v %v, want too-large for session/x", out.Ref, out.Problems)
	}
	if out := schemas.NewDecoder(all, 4096).Decode("specs/x.yaml", []byte(big)); out.Object == nil {
		t.Errorf("below the limit: %v", out.Problems)
	}
}

// TestGuessedRef names objects whose files no parser can read.
func TestGuessedRef(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	cases := []struct{ path, src, want string }{
		{"a.yaml", "kind: DAG\nmetadata:\n  name: checks\nspec: [\n", "dag/checks"},
		{"a.yaml", "kind: DAG # a\nmetadata:\n  labels: {name: no}\n  name: 'checks' # b\nspec: [\n", "dag/checks"},
		{"a.yaml", "metadata: {name: \"checks\"}\nkind: dag\nspec: [\n", "dag/checks"},
		{"a.yaml", "kind: DAG\nmetadata: {name: ../../x}\nspec: [\n", ""},
		{"a.yaml", "kind: Nothing\nmetadata: {name: x}\nspec: [\n", ""},
		{"a.yaml", "metadata: {name: x}\nspec: [\n", ""},
		{"a.yaml", "spec:\n  kind: DAG\n  x: [\nmetadata: {name: x}\n", ""},
		{"a.json", `{"kind": "DAG", "metadata": {"name": "checks"}, "spec": {`, "dag/checks"},
		{"a.toml", "[workflow]\ntitle = \"t\"\nname = \"flow\"\n[[steps]\n", "workflow/flow"},
	}
	for _, c := range cases {
		if got := d.Decode("specs/"+c.path, []byte(c.src)); got.Ref.String() != c.want || len(got.Problems) == 0 {
			t.Errorf("%q: got %q, want %q; problems %v", c.src, got.Ref, c.want, got.Problems)
		}
	}
}

// TestManyProblems holds a hostile file to a bounded report.
func TestManyProblems(t *testing.T) {
	src := session + "  metadata: {" + strings.Repeat("a: 1, ", 50_000) + "b: 2}\n"
	out := schemas.NewDecoder(all, 0).Decode("specs/x.yaml", []byte(src))
	if n := len(out.Problems); n == 0 || n > 100 {
		t.Fatalf("%d problems, want 1 to 100", n)
	}
	if last := out.Problems[len(out.Problems)-1].Format(); !strings.Contains(last, "more problems in this file") {
		t.Errorf("the last problem does not tell of the others:\n%s", last)
	}
}
