package slash

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// decode is a spec as a run will read it. The error says what the reader would say.
func (d *decider) decode(s *controllers.Spec) (*schemas.Object, error) {
	src, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": s.Ref.Kind,
		"metadata": schemas.Metadata{Name: s.Ref.Name}, "spec": s.Spec})
	if err != nil {
		return nil, errors.New("it cannot be written down")
	}
	got := d.decoder.Decode(strings.TrimSuffix(s.Path, ".yaml")+".json", src)
	for _, p := range got.Problems {
		if p.Severity == schemas.Error {
			return nil, fmt.Errorf("%s: %s", code(strings.TrimPrefix(p.Field, "spec.")), code(p.Message))
		}
	}
	return got.Object, nil
}

// issueNumber reads #42 or 42.
func issueNumber(word string) (int, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(word, "#"), 10, 32)
	return int(n), err == nil && n >= 0
}

// remember makes an Observation from a text, as capture does. Its author is not an agent of the tree: the observation
// is stored under the name github-<login>.
func (d *decider) remember(c *Comment, cmd Command, name string) (*controllers.Spec, string, error) {
	switch {
	case !*d.Tree.Settings().Memory.Enabled:
		return nil, "", fmt.Errorf("the memory is turned off: memory.enabled in %s", code(schemas.SettingsPath))
	case cmd.Text == "":
		return nil, "", errors.New("write what is to be remembered behind it")
	case utf8.RuneCountInString(cmd.Text) > rememberLimit:
		return nil, "", fmt.Errorf("it has more than %d characters; write it in parts", rememberLimit)
	}
	source := d.Known
	source.Agent, source.Issue, source.At = schemas.PersonAgent(c.Author.Login), d.issue.File.Issue, c.Created
	source.Text = things(cmd.Text)
	learned := memory.Learn(source)
	if len(learned.Entries) == 0 {
		return nil, "", errors.New("there is nothing in it that could be kept")
	}
	for i := range learned.Entries {
		if e := &learned.Entries[i]; e.Category == schemas.CategorySummary {
			e.Category = schemas.CategoryKeyFact // it is not a summary of a conversation
		}
	}
	spec, _, err := d.propose(schemas.ObservationKind, name, &schemas.ObservationSpec{
		Agent: source.Agent, Issue: source.Issue, Timestamp: schemas.NewTime(c.Created), Entries: learned.Entries,
		SourceTokens: learned.SourceTokens,
	})
	return spec, "", err
}

// rememberLimit is how long an observation may be, in characters.
const rememberLimit = 2000

// things returns the text to remember as the memory reads summaries: a list has one observation for each item, any
// other text is one.
func things(text string) string {
	for line := range strings.Lines(text) {
		mark, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if mark != "" && (rest == "" || mark != "-" && mark != "*" && mark != "+") {
			return "- " + strings.Join(strings.Fields(text), " ")
		}
	}
	return text
}

// redacted is a text as it may be written: without secrets and private text.
func redacted(text string) string { return strings.TrimSpace(secrets.Redact(text)) }
