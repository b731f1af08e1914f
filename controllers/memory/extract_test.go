package memory

import (
	"reflect"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// short writes entries as "category: content".
func short(all []schemas.ObservationEntry) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.Category+": "+e.Content)
	}
	return out
}

func extracted(summary string) (out []schemas.ObservationEntry) {
	for _, r := range learnEntries(summary, true, "") {
		out = append(out, r.ObservationEntry)
	}
	return out
}

// TestT1_ExtractFromCompactionSummary: each bullet becomes an observation of the category of its section.
func TestT1_ExtractFromCompactionSummary(t *testing.T) {
	const summary = `# Session

## Decisions

- Chose per-issue JSON files for observation storage.
  Evaluated SQLite and LevelDB.
* **Lock order**: issue file first
  - then the manifest
  - never the other way
1. Weights live in settings

### Code Changes
+ ` + "`src/store.ts`" + `: new
- [x] Renamed Put to Post
- [ ] Write the docs

**Errors Encountered:**
• EBUSY on rename,

  only on Windows

## Key Facts
Some notes first:
- 决定使用 PostgreSQL 👩‍👩‍👧‍👦
- مرحبا بالعالم

` + "```go\n- not this\n```" + `

## Surprises
- Decision: keep the name
- the port is 5433

## Next steps
- deploy

Errors:
1) two

## Summary
It went well.
`
	want := []string{
		"decision: Chose per-issue JSON files for observation storage. Evaluated SQLite and LevelDB.",
		"decision: Lock order: issue file first: then the manifest; never the other way",
		"decision: Weights live in settings",
		"code-change: `src/store.ts`: new",
		"code-change: Renamed Put to Post",
		"error: EBUSY on rename, only on Windows",
		"key-fact: 决定使用 PostgreSQL 👩‍👩‍👧‍👦",
		"key-fact: مرحبا بالعالم",
		"decision: keep the name",
		"key-fact: the port is 5433",
		"error: two",
		"compaction-summary: It went well.",
	}
	for name, text := range map[string]string{"": summary, "CRLF": strings.ReplaceAll(summary, "\n", "\r\n")} {
		if got := short(extracted(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestExtract(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "   \n\n": nil, "```\ncode\n```": nil, "| a | b |\n|---|---|\n| c | d |": nil, "> quoted": nil, "---": nil,
		"We met and talked.\nIt was good.\n\nThen we left.": {"compaction-summary: We met and talked. It was good.\nThen we left."},
		"## Decisions\nWe use Go.\n\nAnd no C.":             {"decision: We use Go.", "decision: And no C."},
		"Decisions:\n- a b c\n\nand d":                      {"decision: a b c"},
		"## Errors\n- None\n- (none)\n\n## Decisions\nN/A":  nil,
		"Decisions\n=========\n- a b c":                     {"decision: a b c"},
		"- **Decisions**\n  - use Go\n  - no C\n- **Errors:**\n  - it broke\n- other thing": {"decision: use Go", "decision: no C",
			"error: it broke", "key-fact: other thing"},
		"## 1. 🚀 Key Decisions\n### Storage\n- files\n## Random\n- fact":             {"decision: files", "key-fact: fact"},
		"- one two\n\n## Memory Recall\n\n- old thing":                               {"key-fact: one two"},
		"- see obs-engineer-29-1709035200000-a1b2c3 for it\n- new":                   {"key-fact: new"},
		"## Entscheidungen\n- Dateien statt SQLite":                                  {"decision: Dateien statt SQLite"},
		"- a\x00b\u202ec\ufeff\n":                                                    {"key-fact: abc"},
		"## Decisions\r- lone CR":                                                    {"decision: lone CR"},
		"* * *\n- - -\n- a real one\n-not one\n1.not":                                {"key-fact: a real one -not one 1.not"},
		"## Errors\n- x\n\n  ```\n  log\n  ```\n- y z":                               {"error: x", "error: y z"},
		"- parent.\n  1. first,\n  2. second.\n    - deeper\n- [ ] open\n  - nested": {"key-fact: parent: first; second; deeper"},
	} {
		if got := short(extracted(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestSectionNames: the table has no name twice, and each as it is looked up.
func TestSectionNames(t *testing.T) {
	seen := map[string]string{}
	for section, names := range sectionNames {
		for name := range strings.SplitSeq(names, "|") {
			if other, twice := seen[name]; twice {
				t.Errorf("%q names %s and %s", name, section, other)
			}
			seen[name] = section
			if got, found := sectionOf("## " + strings.ToUpper(name) + ":"); !found || got != section {
				t.Errorf("%q is not found", name)
			}
		}
	}
}
