package quickjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type base struct {
	Phase string `json:"phase,omitempty"`
	Count int8   `json:"count"`
}

type Base base

type stamp struct{ time.Time }

func (s *stamp) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	return s.Time.UnmarshalJSON(b)
}

type sample struct {
	Base
	Text    string            `json:"text"`
	Yes     *bool             `json:"yes,omitempty"`
	Number  float64           `json:"number"`
	List    []inner           `json:"list"`
	Layers  [][]string        `json:"layers"`
	Table   map[string]inner  `json:"table"`
	Words   map[string]string `json:"words"`
	Free    map[string]any    `json:"free"`
	At      stamp             `json:"at"`
	Soon    *stamp            `json:"soon"`
	Raw     json.RawMessage   `json:"raw"`
	Any     any               `json:"any"`
	Skipped string            `json:"-"`
}

type inner struct {
	Name string `json:"name"`
	Size *int   `json:"size"`
}

var documents = []string{
	`{}`, `null`, ` { "text" : "x" } `, `{"text":null,"yes":null,"list":null,"table":null,"at":null,"soon":null,"raw":null,"any":null}`,
	`{"phase":"Active","count":-7,"text":"a\n\"b\" \u00e9 \ud83d\ude00 ü","yes":true,"number":1.5e-3,
	 "list":[{"name":"a","size":1},{},{"name":"b"}],"layers":[["a"],[],["b","c"]],
	 "table":{"x":{"name":"y"},"z":{}},"words":{"a":"b"},"free":{"a":[1,{"b":null}]},
	 "at":"2026-02-27T10:00:00Z","soon":"2026-02-27T10:00:00Z","raw": {"a" : [1, 2]},"any":[1,"x"],"unknown":{"a":[true,false,null,-0.0e+1]}}`,
	`{"list":[],"table":{},"words":{},"free":{}}`,
	`{"words":{"a":"1","a":"2"}}`,
	`{"text":"\ud800"}`,
	// What is given back to encoding/json.
	`{"TEXT":"x"}`, `{"text":"a","text":"b"}`, `{"count":1.0}`, `{"count":128}`, `{"count":"1"}`, `{"text":1}`, `{"list":{}}`,
	`{"text":"a"`, `{"text":"a",}`, `{"text":"a"}}`, `{"text":"` + "\x01" + `"}`, `{"text":"` + "\xff" + `"}`, `{"text":"\x"}`,
	`{"number":01}`, `{"number":1.}`, `{"number":-}`, `{"at":"x"}`, `{"list":[1,]}`, `{"unknown":[1,]}`, `{"a":1 "b":2}`,
	``, ` `, `[]`, `{"text"}`, `{"list":[{}{}]}`, `{"list":[{},{}`, `{"free":{"a":tru}}`, strings.Repeat(`{"a":`, 20),
	`{"unknown":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
}

// handled is how many of the documents, the first ones, are not given back.
const handled = 8

func TestDecode(t *testing.T) {
	for i, doc := range documents {
		if ok := compare(t, []byte(doc)); ok != (i < handled) {
			t.Errorf("%s: handled: %v", doc, ok)
		}
	}
}

// compare checks that what Decode accepts, encoding/json accepts with the same result.
func compare(t *testing.T, doc []byte) bool {
	t.Helper()
	got, want := new(sample), new(sample)
	into, intoWant := new(sample), new(sample)
	got.Any, want.Any = nil, nil
	ok := Decode(doc, got)
	inPlace := new(sample)
	if DecodeInPlace(doc, inPlace) != ok || ok && !reflect.DeepEqual(got, inPlace) {
		t.Fatalf("%s:\nin place %+v\ncopied   %+v", doc, inPlace, got)
	}
	err := json.Unmarshal(doc, want)
	if ok && (err != nil || !reflect.DeepEqual(got, want)) {
		t.Fatalf("%s:\ngot  %+v\nwant %+v, %v", doc, got, want, err)
	}
	outer := append(append([]byte(`{"any":`), doc...), '}')
	if Decode(outer, &sample{Any: into}) {
		if err := json.Unmarshal(outer, &sample{Any: intoWant}); err != nil || !reflect.DeepEqual(into, intoWant) {
			t.Fatalf("%s:\ngot  %+v\nwant %+v, %v", outer, into, intoWant, err)
		}
	}
	return ok
}

func TestTypesThatAreGivenBack(t *testing.T) {
	type self struct{ Next *self }
	type twice struct {
		Base
		B string `json:"phase"`
	}
	type quoted struct {
		A int `json:",string"`
	}
	var n *sample
	for _, v := range []any{new(self), new(twice), new(quoted), new(struct{ B []byte }), new(struct{ M map[int]string }),
		new(struct{ T time.Duration }), n, sample{}, new(chan int), new(error), nil} {
		if _, fine := v.(*struct{ T time.Duration }); Decode([]byte(`{}`), v) != fine {
			t.Errorf("%T", v)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { compare(t, doc) })
}

func BenchmarkDecode(b *testing.B) {
	doc := []byte(documents[4])
	b.Run("quick", func(b *testing.B) {
		for b.Loop() {
			if !Decode(doc, new(sample)) {
				b.Fatal("given back")
			}
		}
	})
	b.Run("encoding", func(b *testing.B) {
		for b.Loop() {
			if err := json.Unmarshal(doc, new(sample)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
