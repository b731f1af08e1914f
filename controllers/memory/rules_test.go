package memory

import (
	"strings"
	"testing"
)

// said are sentences of agents, with what they are to be remembered as: decision, error, change, fact or nothing.
const said = `
decision: We decided to keep SQLite for the tests.
decision: I went with a worker pool, since the queue is bounded.
decision: We chose zerolog over logrus.
decision: Going with the second approach because it needs no migration.
decision: We'll use optimistic locking for this.
decision: Decided against a cache.
decision: Used a map instead of a slice, so that lookups are constant.
decision: So we settled on three retries.
decision: We kept the old name rather than breaking the API.
decision: The retries are capped at three by design.
decision: Decision: the API stays as it is.
decision: OK, we will not support Windows 7.
error: The build failed because go.sum was missing an entry.
error: The root cause was a stale cache.
error: Root cause: the clock of the runner is off.
error: The worker panicked with a nil map.
error: Both goroutines deadlock on the second lock.
error: It was fixed by closing the body.
error: Fixed the crash in parser.go, which was caused by an empty line.
error: The test is flaky since the port is fixed at 8080.
change: Created store/dialect.go with the interface.
change: I've renamed Put to postEntry in three places.
change: The function parseArgs() was moved to cli/args.go.
change: handler.go now returns 404 for unknown ids.
change: Added a regression test for the parser in parse_test.go.
change: Refactored UserService into two types.
fact: Note that the API returns times in UTC.
fact: It turns out that the linter ignores generated files.
fact: The endpoint requires a bearer token.
fact: The Redis client only works with TLS turned off.
fact: config.yaml must be read before plugins.yaml is.
fact: The service listens on port 8443 in staging.
fact: By convention tests live beside the code.
fact: Important: never edit files under gen by hand.
nothing: Let me check whether we decided to use Redis.
nothing: I'll use grep to find the callers.
nothing: We could use a queue instead of polling.
nothing: Should we go with Postgres?
nothing: I think the error is caused by the cache.
nothing: Maybe we chose the wrong driver.
nothing: If the build fails with an error, run make clean.
nothing: All tests pass now.
nothing: The tests pass without any errors.
nothing: Done.
nothing: No decision was made, we have not decided on anything.
nothing: It has not been decided yet.
nothing: Running the tests to see what fails.
nothing: Next, I need to update handler.go.
nothing: You can run it with make start.
nothing: Looks like handler.go was changed by someone else.
nothing: The user asked for a new endpoint.
nothing: I have read the file and understand how it works.
nothing: Would you like me to open a pull request?
nothing: Perfect, everything works as expected.
nothing: const x = require('x'); module.exports = { x };
nothing: The code handles errors well.
nothing: I added some changes.
nothing: Reading the configuration.
nothing: Here's what I found so far:
nothing: TBD: we will use Kafka or NATS, undecided.
`

func TestRulesForAgents(t *testing.T) {
	names := map[string]string{"decision": "decision", "error": "error", "change": "code-change", "fact": "key-fact", "nothing": ""}
	for line := range strings.SplitSeq(strings.TrimSpace(said), "\n") {
		name, text, _ := strings.Cut(line, ": ")
		if got := rules().category(newSentence(text)); got != names[name] {
			t.Errorf("%q is %q, want %s", text, got, name)
		}
	}
}

// asked are sentences of users.
const asked = `
decision: Use Postgres, not MySQL.
decision: Let's go with the second option.
decision: No, we decided to drop Windows support.
decision: Keep the names instead of renaming 23 places.
decision: The legacy folder stays, we don't touch it.
decision: Please go with plain files.
decision: Decision: no ORM in this project.
fact: Always run make check before a commit.
fact: Never push to main.
fact: Remember that the API is public.
fact: Don't log the request bodies of customers.
fact: No Lua scripts in this project please.
nothing: Implement the login page.
nothing: Can you use the other branch?
nothing: Why did you go with Redis?
nothing: Use the search tool to find it.
nothing: How do we use the cache today?
nothing: No, that's wrong.
nothing: Don't worry about the tests.
nothing: Thanks, that works.
nothing: No problem at all with that.
`

func TestRulesForUsers(t *testing.T) {
	names := map[string]string{"decision": "decision", "fact": "key-fact", "nothing": ""}
	for line := range strings.SplitSeq(strings.TrimSpace(asked), "\n") {
		name, text, _ := strings.Cut(line, ": ")
		if got := rules().userCategory(newSentence(text)); got != names[name] {
			t.Errorf("%q is %q, want %s", text, got, name)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"One. Two! Three? Four":          "One.|Two!|Three?|Four",
		"See e.g. store.go, v1.2 of it.": "See e.g. store.go, v1.2 of it.",
		"Use `a. b` here. Then go.":      "Use `a. b` here.|Then go.",
		"我们决定使用数据库。然后测试！好":          "我们决定使用数据库。|然后测试！|好",
		"unclosed `code. And more.": "unclosed `code. And more.",
		"Wait... what? Yes":         "Wait...|what?|Yes",
	} {
		var got []string
		for _, s := range sentences(text) {
			got = append(got, s.text)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
