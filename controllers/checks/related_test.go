package checks

import (
	"fmt"
	"slices"
	"testing"
)

func TestRelatedTests(t *testing.T) {
	texts := map[string]string{
		"tests/test_cart.py":  "from shop.cart import Cart\n",
		"tests/test_other.py": "import discarted\n",
		"web/pay.test.ts":     "import {pay} from './pay'\n",
		"web/all.test.ts":     "import * as web from '../web'\n",
		"tests/test_one.py":   "from shop.q import total\n",
		"tests/test_more.py":  "from shop import cartons\nq = 1\n",
		"cli/tests/cli.rs":    "use pricing::sum;\n",
	}
	for test, text := range map[string]string{"basket/sum.test.js": "import {sum} from './index.js'\n", "basket/__tests__/up.js": "const b = require('..')\n",
		"basket/index.spec.js": "x\n", "pkg/tests/test_a.py": "from .. import total\n", "top.test.js": "require('./')\n", "spec/main.py": "from main import run\n",
		"basket/none.test.js": "import {x} from './x.js'\n// index\n", "other/no.test.js": "import './index.js'\n"} {
		texts[test] = text
	}
	tests := []string{"basket/sum.test.js", "basket/__tests__/up.js", "basket/index.spec.js", "basket/none.test.js", "pkg/tests/test_a.py", "top.test.js", "spec/main.py", "tests/test_cart.py", "tests/test_other.py", "web/all.test.ts", "web/pay.test.ts", "tests/test_one.py", "tests/test_more.py", "cli/tests/cli.rs"}
	read := func(f string) []byte { return []byte(texts[f]) }
	for _, c := range []struct{ changed, want []string }{
		{[]string{"basket/index.js"}, []string{"basket/__tests__/up.js", "basket/index.spec.js", "basket/sum.test.js"}},
		{[]string{"pkg/__init__.py"}, []string{"pkg/tests/test_a.py"}},
		{[]string{"index.js"}, []string{"basket/__tests__/up.js", "basket/index.spec.js", "basket/sum.test.js", "pkg/tests/test_a.py", "top.test.js"}},
		{[]string{"src/main.py"}, []string{"basket/__tests__/up.js", "pkg/tests/test_a.py", "spec/main.py", "top.test.js"}},
		{[]string{"shop/cart.py"}, []string{"tests/test_cart.py"}},
		{[]string{"tests/test_other.py"}, []string{"tests/test_other.py"}},
		{[]string{"web/pay.ts"}, []string{"web/pay.test.ts"}},
		{[]string{"web/index.ts"}, []string{"web/all.test.ts"}},
		{[]string{"README"}, nil},
		{[]string{"shop/q.py"}, []string{"tests/test_one.py"}},
		{[]string{"crates/pricing/src/lib.rs"}, []string{"cli/tests/cli.rs"}},
	} {
		if got := RelatedTests(c.changed, tests, nil, read); !slices.Equal(got.Files, c.want) {
			t.Errorf("%v: %v, want %v", c.changed, got.Files, c.want)
		}
	}
	packages := map[string]string{"a": "its package changed", "b": "it uses a"}
	got := RelatedTests([]string{"a/a.go"}, []string{"a/a_test.go", "b/b_test.go", "c/c_test.go"}, packages, read)
	if !slices.Equal(got.Files, []string{"a/a_test.go", "b/b_test.go"}) || got.Why["b/b_test.go"] != "it uses a" {
		t.Errorf("%+v", got)
	}
}

// A change of 20 files beside 1,000 files with tests.
func BenchmarkRelatedTests(b *testing.B) {
	var tests, changed []string
	text := []byte{}
	for i := range 1000 {
		tests = append(tests, fmt.Sprintf("tests/test_module%d.py", i))
		text = append(text, fmt.Sprintf("from package.module%d import thing\n", i)...)
	}
	for i := range 20 {
		changed = append(changed, fmt.Sprintf("package/other%d.py", i))
	}
	for b.Loop() {
		RelatedTests(changed, tests, nil, func(string) []byte { return text[:4000] })
	}
}
