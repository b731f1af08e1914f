package turns

import (
	"cmp"
	"regexp"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// The classes of typed failures, by words that occur in the type's name without case, _ and -. Earlier rows win.
var kindClasses = []struct{ word, class string }{
	{"ratelimit", schemas.FailureLimit}, {"limitexceeded", schemas.FailureLimit}, {"quota", schemas.FailureLimit},
	{"resourceexhausted", schemas.FailureLimit}, {"toomanyrequests", schemas.FailureLimit}, {"billing", schemas.FailureLimit},
	{"contextwindow", schemas.FailureRequest}, {"contextlength", schemas.FailureRequest}, {"toolarge", schemas.FailureRequest},
	{"authentication", schemas.FailureAccess}, {"unauthenticated", schemas.FailureAccess}, {"unauthorized", schemas.FailureAccess},
	{"permission", schemas.FailureAccess}, {"forbidden", schemas.FailureAccess}, {"login", schemas.FailureAccess},
	{"invalidrequest", schemas.FailureRequest}, {"badrequest", schemas.FailureRequest}, {"invalidargument", schemas.FailureRequest},
	{"notfound", schemas.FailureRequest},
	{"overloaded", schemas.FailureService}, {"servererror", schemas.FailureService}, {"unavailable", schemas.FailureService},
	{"internal", schemas.FailureService},
	{"connection", schemas.FailureConnection}, {"network", schemas.FailureConnection}, {"timeout", schemas.FailureConnection},
	{"disconnected", schemas.FailureConnection},
}

type messageRow struct {
	text  *regexp.Regexp
	class string
}

// messageClasses classify failures that only have a text. Earlier rows win.
var messageClasses = sync.OnceValue(func() []messageRow {
	return []messageRow{
		{regexp.MustCompile(`(?i)\b429\b|too many requests|rate.?limit|(usage|request|spending|session|weekly) limit|hit your limit|quota|resource.?exhausted|credit balance`), schemas.FailureLimit},
		{regexp.MustCompile(`(?i)\b40[13]\b|unauthori[sz]ed|authenticat|invalid.{0,12}api.?key|api.?key.{0,20}(invalid|missing|not set|incorrect)|incorrect api key|not logged in|please (run )?/?log ?in|forbidden`), schemas.FailureAccess},
		{regexp.MustCompile(`(?i)context (length|window)|prompt is too long|\b(400|404|413|422)\b|bad request|invalid.?request|model.{0,60}(not found|does not exist)`), schemas.FailureRequest},
		{regexp.MustCompile(`(?i)\b5[0-9][0-9]\b|overloaded|internal server error|service unavailable|bad gateway|server error`), schemas.FailureService},
		{regexp.MustCompile(`(?i)connection (refused|reset|error|closed|lost)|ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|network|fetch failed|stream (disconnected|closed)|timed? ?out|unable to connect|error sending request`), schemas.FailureConnection},
	}
})

// classify returns a failure with a class, and with the end of a limit if it is known.
func (f Facts) classify(e Error) *schemas.TurnFailure {
	class := cmp.Or(statusClass(e.Status), kindClass(e.Kind), codeClass(e.Code), messageClass(e.Message), schemas.FailureUnknown)
	v := failure(class, essence(class, cmp.Or(e.Message, e.Kind)))
	v.Status = e.Status
	if class == schemas.FailureLimit {
		v.Until = schemas.NewTime(firstTime(f.At, e.RetryAfter, e.Message))
	}
	return v
}

// sessionFailureClasses are the categories of the adapters' typed failures, which are our classes.
var sessionFailureClasses = map[string]bool{
	schemas.FailureLimit: true, schemas.FailureService: true, schemas.FailureAccess: true, schemas.FailureConnection: true,
	schemas.FailureRequest: true, schemas.FailureUnknown: true,
}

func kindClass(kind string) string {
	if sessionFailureClasses[kind] && kind != schemas.FailureUnknown {
		return kind
	}
	flat := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(kind))
	for _, c := range kindClasses {
		if strings.Contains(flat, c.word) {
			return c.class
		}
	}
	return ""
}

// statusClass classifies an HTTP status; 402 is a budget that is used up.
func statusClass(status int) string {
	switch {
	case status == 429, status == 402:
		return schemas.FailureLimit
	case status == 401, status == 403:
		return schemas.FailureAccess
	case status == 408:
		return schemas.FailureConnection
	case status >= 400 && status < 500:
		return schemas.FailureRequest
	case status >= 500 && status < 600:
		return schemas.FailureService
	}
	return ""
}

// authRequired is the code of the Agent Client Protocol for a request that needs a login first.
const authRequired = -32000

// codeClass classifies the code of a JSON-RPC error. Some agents use an HTTP status as the code.
func codeClass(code int) string {
	if code == authRequired {
		return schemas.FailureAccess
	}
	return statusClass(code)
}

func messageClass(text string) string {
	for _, c := range messageClasses() {
		if c.text.MatchString(text) {
			return c.class
		}
	}
	return ""
}

// essence returns the line of a long text that says what failed: the last one that has the class. A text of one line is
// returned unchanged.
func essence(class, text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := len(lines) - 1; i > 0; i-- {
		if messageClass(lines[i]) == class {
			return lines[i]
		}
	}
	return lines[0]
}
