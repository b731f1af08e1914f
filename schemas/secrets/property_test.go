package secrets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRedact: whatever the text, what is redacted has nothing left to redact, is not much longer, stays valid UTF-8,
// and findings are in order, within the text and apart.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		clean, "password=hunter2", "<private>x", "a://b:c@d", "kind: Secret\ndata:\n  a: bbbbbbbbbbbbbbbbb\n", "[redacted:password]",
		"password=[redacted:x]y[redacted:", "key=key=key=", "curl -u a:bcdef x", "-----BEGIN PRIVATE KEY-----", "\\u003cprivate\\u003e",
		"Authorization: Basic a\nBearer abcdef123456789", "pwd='\\", "token: |\n", "<pri<private>v</private>vate>é\xff",
		"docker login -p 'x", "docker login \\\n -p=y z:5432:a:b:c", `*:*:\:a\\:b:`, "set the password for x to y1", "$$2y$$05$$",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, found := range Find(text) {
			if found.Start < at || found.End <= found.Start || found.End > len(text) || found.Rule == "" {
				t.Fatalf("%+v in %q", found, text)
			}
			at = found.End
		}
		once := Redact(text)
		if twice := Redact(once); twice != once {
			t.Errorf("%q becomes %q and then %q", text, once, twice)
		}
		if len(once) > 40*len(text)+40 {
			t.Errorf("%d bytes became %d", len(text), len(once))
		}
		if utf8.ValidString(text) && !utf8.ValidString(once) {
			t.Errorf("%q is no text any more: %q", text, once)
		}
		if got := string(RedactBytes([]byte(text))); got != once {
			t.Errorf("as bytes %q becomes %q, not %q", text, got, once)
		}
		if len(Private(once)) > 0 {
			t.Errorf("private text is left in %q", once)
		}
	})
}

// TestSourceOfThisProject: code, pages and objects of the project have no secrets, but for what these tests are made
// of.
func TestSourceOfThisProject(t *testing.T) {
	files, bytes := 0, 0
	for _, pattern := range []string{
		"../*.go", "../../*/*.go", "../../cmd/reconcile/*.go", "../../cmd/reconcile/internal/*/*.go", "../../controllers/*/*.go",
		"../../docs/*.md", "../../docs/kinds/*.md", "../../*.md", "../../go.sum", "../../specs/*/*", "../../examples/*.yaml", "../*.json",
	} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			data, err := os.ReadFile(name)
			if err != nil {
				continue // a folder
			}
			files, bytes = files+1, bytes+len(data)
			for _, f := range Find(string(data)) {
				t.Errorf("%s: %s finds %q", name, f.Rule, data[f.Start:f.End])
			}
		}
	}
	if files < 300 || bytes < 1<<20 {
		t.Errorf("only %d files with %d bytes were read", files, bytes)
	}
}

// hostile are pieces of text that lead to rules, or begin what does not end.
var hostile = []string{
	"key=", "password=", "password: ", "secret:'", "token=a1b2c3d4e5f6,", "curl -H ", "curl ",
	"-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----\n", "-----BEGIN ", "kind: Secret\n",
	"kind: secret\ndata:\n a: b\n", "a://b:", "a://b:c@", "@tcp(", "<private>", "<private></private>", "ey.",
	"eyJhbGciOiJIUzI1NiIsInR5c", "ghp_", "xoxb-1-", "Authorization: Bearer ", "bearer ", "facebook 1234567890123456|",
	"sourcegraph ", "[redacted:password]", "password=[redacted:x]", "jdbc:oracle:a/b", "\\\\\\\"key\\\\\\\":",
	"<add key=\"Password\" value=\"", "api_key ", "s.", "AKIA", "\"\"\"", "pwd=\"\"\"", "\n- name: password\n  value:",
	"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", "docker login ", "docker login -p ", ":5432", "a:5432:b:c:d ", ":*:", `a\:*:`,
	"set password to ", "password for a b c ", "$apr1$", "$2y$05$", "{SHA}",
}

// TestHostileTextIsLinear: texts of a megabyte that are the same piece again and again, mostly on one line. The time is
// not measured here; with anything that is not linear, this test does not end.
func TestHostileTextIsLinear(t *testing.T) {
	for _, piece := range hostile {
		text := strings.Repeat(piece, 1<<20/len(piece))
		if len(Redact(text)) > 12*len(text) {
			t.Errorf("%q grows too much", piece)
		}
	}
}

// TestWordsFitTheAutomaton: it tells so many bytes apart as its words have, and no more than fit.
func TestWordsFitTheAutomaton(t *testing.T) {
	if most := slices.Max(loaded().words.class[:]); most >= 1<<classBits {
		t.Errorf("the words that lead to rules have %d different bytes, and there is room for %d", most, 1<<classBits-1)
	}
}

// TestLargeText: a secret is found at the end of 10 MB, on a line that is as long.
func TestLargeText(t *testing.T) {
	text := strings.Repeat(strings.ReplaceAll(clean, "\n", " ")+" ", 10<<20/len(clean))
	if got := Redact(text + "password=hunter2"); got != text+"password=[redacted:password]" {
		t.Errorf("%d bytes became %d", len(text), len(got))
	}
}
