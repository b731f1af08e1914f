package extract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const sample = `{"a":{"b":7,"c":"x"},"list":[{"type":"text","v":"one"},{"type":"use","v":"two"},{"type":"text","v":"three"}],
"models":{"m1":{"n":1,"basis":"list"},"m2":{"n":2.5,"basis":"unknown"}},"yes":true,"none":null,"nested":{"list":[[{"v":1}]]}}`

func TestExtract(t *testing.T) {
	var doc any
	d := json.NewDecoder(strings.NewReader(sample))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		"":                                    "[] 0 false",
		"a.b":                                 "[7] 7 true",
		"a.c":                                 "[x] 0 false",
		"a":                                   "[] 0 false",
		"yes":                                 "[true] 0 false",
		"none":                                "[] 0 false",
		"list[type=text].v":                   "[one three] 0 false",
		"list[type!=text].v":                  "[two] 0 false",
		"list.*.v":                            "[one two three] 0 false",
		"models.*.n":                          "[1 2.5] 3.5 true",
		"models.*[basis=list].n":              "[1] 1 true",
		"models.@name":                        "[m1 m2] 0 false",
		"a.x | a.c | a.b":                     "[x] 7 true",
		"a.b + models.*.n + a.none":           "[7 1 2.5] 10.5 true",
		"a.b.c":                               "[] 0 false",
		"nested.list.*.*.v":                   "[1] 1 true",
		"list.v":                              "[] 0 false",
		"a[c=x].b":                            "[7] 7 true",
		"a[c=y].b":                            "[] 0 false",
		"models.*[basis!=unknown].n | a.none": "[1] 1 true",
	} {
		e, err := Parse(expr)
		if err != nil {
			t.Errorf("%q: %v", expr, err)
			continue
		}
		n, ok := e.Number(doc)
		if got := fmt.Sprint(e.Texts(doc), " ", n, " ", ok); got != want {
			t.Errorf("%q: %s, want %s", expr, got, want)
		}
	}
	for _, bad := range []string{".", "a..b", "a b", "a[", "a[b]", "a[b=c", "|", "a|", "+", "a.[b=c]", "é"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("models.*[basis=list].n | a.b + a.c", sample)
	f.Fuzz(func(t *testing.T, expr, text string) {
		e, err := Parse(expr)
		var doc any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err != nil || d.Decode(&doc) != nil {
			return
		}
		if _, ok := e.Number(doc); ok && len(e.Texts(doc)) == 0 {
			t.Errorf("%q has a number and no text", expr)
		}
	})
}
