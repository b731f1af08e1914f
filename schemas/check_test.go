package schemas_test

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestCheckResult(t *testing.T) {
	const schema = `{"properties":{"a b":{"type":"string"},"l":{"items":{"type":"integer","multipleOf":3}},"n":{"const":12345678901234567890}}}`
	for _, c := range []struct{ result, want string }{
		{`3`, ""},
		{`{"a b":"x","l":[3,6.0,-9e2],"n":12345678901234567890}`, ""},
		{``, "there is no result, and outputs.schema asks for one"},
		{`{"n":12345678901234567891}`, "the result does not keep outputs.schema: n: value must be "},
		{`{"a b":1}`, `the result does not keep outputs.schema: ["a b"]: expected string, but got number`},
		{`{"l":[1,2,3,4,5,6,7,8,9,10,11.5]}`, "outputs.schema: l[0]: 1 not multipleOf 3; l[1]: 2 not multipleOf 3; l[3]: 4 not multipleOf 3; " +
			"l[4]: 5 not multipleOf 3; l[6]: 7 not multipleOf 3; and 3 further problems"},
		{`{"l":[1e999999999]}`, "the result cannot be judged by outputs.schema: the number 1e999999999 is too large"},
		{`{"l":`, "the result cannot be judged by outputs.schema: unexpected EOF"},
	} {
		err := schemas.CheckResult([]byte(schema), []byte(c.result))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.result, err, c.want)
		}
	}
	long := `{"properties":{"` + strings.Repeat("x", 1000) + `":false,"y":{"enum":["` + strings.Repeat("z", 1000) + `"]}}}`
	err := schemas.CheckResult([]byte(long), []byte(`{"y":1}`))
	if err == nil || len(err.Error()) > 400 || !strings.HasSuffix(err.Error(), "…") {
		t.Errorf("a long cause: %v", err)
	}
}
