package chat

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/modeltest"
	"reconcile.dev/reconcile/schemas"
)

func TestConversations(t *testing.T) {
	for _, wire := range []string{schemas.WireOpenAI, schemas.WireAnthropic} {
		t.Run(wire, func(t *testing.T) {
			s := modeltest.New(t, modeltest.Answer{Tool: "read_file", Args: map[string]any{"path": "a.txt"}}, modeltest.Answer{Text: "done"})
			c := New(Endpoint{URL: s.URL, Token: "token", Wire: wire, Model: "m", MaxTokens: 7, Client: http.DefaultClient}, Tools(schemas.ToolsRead), "Do it")
			r, err := c.Next(context.Background())
			if err != nil || r.Stop != StopToolUse || len(r.Calls) != 1 || r.Calls[0].Name != "read_file" || string(r.Calls[0].Args) != `{"path":"a.txt"}` {
				t.Fatalf("%+v, %v", r, err)
			}
			c.Add([]Result{{Call: r.Calls[0], Text: "content of a"}})
			if r, err = c.Next(context.Background()); err != nil || r.Text != "done" || r.Stop != "end_turn" {
				t.Fatalf("%+v, %v", r, err)
			}
			last := s.Requests()[1].Body
			for _, part := range []string{"Do it", "read_file", "content of a", r.Text[:0], `"max_tokens":7`} {
				if !strings.Contains(last, part) {
					t.Errorf("the second request lacks %q: %s", part, last)
				}
			}
		})
	}
}

// TestStops maps the words of endpoints to those of package turns.
func TestStops(t *testing.T) {
	for wire, words := range map[string]map[string]string{
		schemas.WireOpenAI:    {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "strange": "strange"},
		schemas.WireAnthropic: {"end_turn": "end_turn", "max_tokens": "max_tokens", "refusal": "refusal", "stop_sequence": "end_turn"},
	} {
		for word, want := range words {
			s := modeltest.New(t, modeltest.Answer{Text: "x", Stop: word})
			c := New(Endpoint{URL: s.URL, Wire: wire, Client: http.DefaultClient}, nil, "p")
			if r, err := c.Next(context.Background()); err != nil || r.Stop != want {
				t.Errorf("%s %s: %+v, %v", wire, word, r, err)
			}
		}
	}
}

// testFiles are files that a model may use.
func testFiles(t *testing.T) (*Files, string) {
	outside, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"a.txt": "one\nTwo secret\nthree\n", "sub/b.txt": "two\n", ".git/config": "git", ".reconcile/x": "x", "bin": "\x00"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "x"), []byte("two outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &Files{Root: root, Clean: func(s string) string { return strings.ReplaceAll(s, "secret", "***") }}, outside
}

func TestTools(t *testing.T) {
	f, outside := testFiles(t)
	for _, c := range []struct{ name, args, want string }{
		{"list_files", `{}`, "a.txt\nbin\nsub/b.txt"},
		{"list_files", `{"path":"sub"}`, "sub/b.txt"},
		{"list_files", `{"path":"none"}`, "! none cannot be read"},
		{"read_file", `{"path":"a.txt"}`, "1\tone\n2\tTwo ***\n3\tthree\n4\t"},
		{"read_file", `{"path":"a.txt","from":2,"lines":1}`, "2\tTwo ***\n… (2 more lines)\n"},
		{"read_file", `{"path":"a.txt","from":99,"lines":-3}`, "4\t"},
		{"read_file", `{"path":"bin"}`, "! bin is not text"},
		{"read_file", `{"path":".git/config"}`, `! ".git/config" is not a path below the folder that you may use`},
		{"read_file", `{"path":"../x"}`, `! "../x" is not a path below the folder that you may use`},
		{"read_file", `{"path":"/etc/passwd"}`, `! "/etc/passwd" is not a path below the folder that you may use`},
		{"read_file", `{"path":"out/x"}`, "! out/x cannot be read: there is no such file"},
		{"search_text", `{"text":"TWO"}`, "a.txt:2: Two ***\nsub/b.txt:1: two"},
		{"search_text", `{"text":"nowhere"}`, "no line has it"},
		{"search_text", `{"text":" "}`, "! text is empty"},
		{"write_file", `{"path":"new/c.txt","content":"c"}`, "new/c.txt has 1 bytes now"},
		{"write_file", `{"path":"out/x","content":"c"}`, "! "},
		{"write_file", `{"path":"out","content":"c"}`, "! out is not a regular file"},
		{"write_file", `{"path":".git/hooks/x","content":"c"}`, "! "},
		{"write_file", `{"path":"","content":"c"}`, "! path is empty"},
		{"no_tool", `{}`, "! there is no tool of this name"},
		{"read_file", `[`, "! the arguments are not a JSON object as the tool's schema says"},
	} {
		r := f.Run(Tools(schemas.ToolsWrite), Call{Name: c.name, Args: json.RawMessage(c.args)})
		got := r.Text
		if r.Failed {
			got = "! " + got
		}
		if got != c.want && !(c.want == "! " && r.Failed) {
			t.Errorf("%s %s: %q, want %q", c.name, c.args, got, c.want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "x")); err != nil || string(data) != "two outside" {
		t.Errorf("a tool wrote outside: %q, %v", data, err)
	}
}

func TestWhoMayWrite(t *testing.T) {
	for may, want := range map[string]int{schemas.ToolsNone: 0, schemas.ToolsRead: 3, schemas.ToolsWrite: 4} {
		if got := len(Tools(may)); got != want {
			t.Errorf("%s: %d tools", may, got)
		}
	}
}
