package memory

import (
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestFailuresAreErrors: what a program printed when it failed is an error, in notes and in what agents say.
func TestFailuresAreErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"The test failed: TypeError: Cannot read properties of undefined": schemas.CategoryError,
		"Traceback: KeyError in parse_config":                             schemas.CategoryError,
		"ValueError: invalid literal for int()":                           schemas.CategoryError,
		"The build failed: no space left on device":                       schemas.CategoryError,
		"- TestLogin fails with a java.lang.NullPointerException":         schemas.CategoryError,
		"Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    run()\n" +
			"ValueError: bad port": schemas.CategoryError,
		`Exception in thread "main" java.lang.IllegalStateException: closed`: schemas.CategoryError,
		"PHP Fatal error:  Uncaught TypeError: foo() in /app/a.php:3":        schemas.CategoryError,
		"The test no longer failed: TypeError is gone":                       "",
		"If the test failed: look at the log for a TypeError":                "",
		"Did the test fail: TypeError?":                                      "",
		"Added a test that fails with a TypeError":                           "",
		"The parser returns a SyntaxError for such input":                    "",
		"Colours are blue": "",
	} {
		got := Learn(Source{Agent: "engineer", Text: text}).Entries
		if len(got) != 1 || (got[0].Category == schemas.CategoryError) != (want != "") {
			t.Errorf("%q is %+v, want %q", text, got, want)
		}
	}
}
