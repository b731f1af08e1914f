package lexical_test

import (
	"fmt"
	"testing"

	"reconcile.dev/reconcile/vectors/lexical"
)

// What is one word in small letters is found however it is written, and the other way round.
func TestWrittenOtherwise(t *testing.T) {
	t.Parallel()
	for _, c := range [][]string{
		{"sqlite", "SQLite", "SQLITE", "sqlite"},
		{"websockets", "WebSockets", "WebSocket", "web_sockets", "web-socket", "WEBSOCKETS"},
		{"userservice", "userService", "UserServices", "user_service", "user-service"},
		{"macos", "macOS", "MacOS"},
		{"oauth", "OAuth", "OAuth2", "OAuth2Client", "newOAuthToken"},
		{"http2server", "HTTP2Server", "http2_server"},
		{"http", "HTTP2Server"},
		{"utf8", "UTF-8", "utf8", "UTF8"},
		{"caching", "cacheKey", "CACHED_AT"},
	} {
		for _, text := range c[1:] {
			finds(t, c[0], text)
			finds(t, text, c[0])
		}
	}
}

func finds(t *testing.T, query, text string) {
	t.Helper()
	x, err := lexical.Build([]lexical.Document{{Body: "we use " + text + " there"}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := lexical.NewSet(lexical.Segment{Index: x})
	if err != nil {
		t.Fatal(err)
	}
	if hits, err := set.Search(query, 1, nil); err != nil || len(hits) == 0 {
		t.Errorf("%q does not find %q (%v)", query, text, err)
	}
}

// Names are found as a whole, in any case, and by nothing else; no word finds a document by its name alone.
func TestNamed(t *testing.T) {
	t.Parallel()
	x, err := lexical.Build([]lexical.Document{
		{Body: "something", Names: []string{"Tree.Entry", "Entry"}},
		{Body: "entry"},
		{Names: []string{"entry", "entry"}},
		{Names: []string{"The"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var gone lexical.Bitmap
	gone.Add(2)
	set, err := lexical.NewSet(lexical.Segment{Index: x}, lexical.Segment{Index: x, Deleted: gone})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Entry": "[0 2 4]", "ENTRY": "[0 2 4]", "tree.entry": "[0 4]", "the": "[3 7]", "something": "[]", "ent": "[]",
	} {
		if got, err := set.Named(name); err != nil || printed(got) != want {
			t.Errorf("%s: %v (%v), want %s", name, got, err, want)
		}
	}
	merged, err := lexical.Merge(lexical.Segment{Index: x, Deleted: gone}, lexical.Segment{Index: x})
	if err != nil {
		t.Fatal(err)
	}
	if set, err = lexical.NewSet(lexical.Segment{Index: merged}); err != nil {
		t.Fatal(err)
	}
	if got, err := set.Named("entry"); err != nil || printed(got) != "[0 3 5]" {
		t.Errorf("merged: %v (%v)", got, err)
	}
	if hits, err := set.Search("Tree", 9, nil); err != nil || len(hits) != 0 {
		t.Errorf("a word finds a name: %v (%v)", hits, err)
	}
}

func printed(docs []int) string { return fmt.Sprint(docs) }
