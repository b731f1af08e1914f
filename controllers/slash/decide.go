// Package slash interprets what people write on GitHub: the commands in comments on mirrored issues, their
// authorization, and their effects. Everything here is a pure function.
//
// [Parse] finds commands, [Authorize] decides whether their author is permitted, and [Decide] turns comments into the
// specs to write, a receipt for each, and the reply to its author. Nothing else acts: a command takes effect because
// its spec exists, like one from the command line.
//
// A comment takes effect with all its commands or none. To find out, Decide decides a tree with the specs, with the
// code that decides in a run. The verdict on a comment is a function of its text and the tree, and the names of specs
// of its id: if it is processed again after a crash, the same files result.
package slash

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Comment is one comment of a user.
type Comment struct {
	ID      int64
	Author  Actor
	Body    string
	Created time.Time
	Edited  bool // it was changed before it was read
	// Marked reports that it ends in a marker in the form of this program's, but of another program or no longer known.
	// It may have commands, but does not count as an answer.
	Marked bool
}

// Issue is a mirrored issue with its new comments.
type Issue struct {
	File     *schemas.MirrorFile // its mirror file
	Objects  []schemas.Ref       // the sessions, DAGs and requests of the issue, sorted
	Comments []Comment           // those that were not read before, by their ids
	// Text is the issue in Markdown with its title as the first heading, and Said what people wrote about it, oldest first. They are
	// there if one of Comments starts a workflow.
	Text string
	Said []schemas.IssueComment
}

// View is what a command wants to be shown.
type View struct {
	Verb    string        // Status, Explain, Clarify or Task
	Issue   int           // of Clarify: whose threads, or -1 for all open ones
	Objects []schemas.Ref // of the others: the targets
	Node    string        // of Explain and Task: only this node
}

// Input is all that a decision depends on.
type Input struct {
	Tree   *state.Tree
	Now    time.Time
	Issues []Issue
	// Show writes a view of a tree in Markdown that GitHub shows as text: nothing in it is a command, or names anybody.
	Show func(t *state.Tree, v View) string
	// Known is what /remember has to know of files and memory: the functions of a source, and nothing else.
	Known memory.Source
}

// Decision is the decision about a comment.
type Decision struct {
	Issue   int
	Handled schemas.MirrorHandled // without a receipt
	Specs   []derive.Spec         // the files that are to be written: those of Handled that do not exist yet
}

// commandDecider is where comments are decided, one after the other.
type commandDecider struct {
	Input
	decoder *schemas.Decoder
	tree    *state.Tree // decided, with the specs accepted so far
	settled bool
	issue   *Issue
	ready   []work.Item // of tree; nil until asked for
	// authors are those of the approvals that were made from comments now.
	authors map[schemas.Ref]string
}

// Decide decides about comments, in the order of the issues and the ids. A comment without a command that answers no
// question has no verdict; neither have comments of bots, or those on record. The caller leaves out comments of this
// program.
func Decide(in Input) []Decision {
	d := &commandDecider{Input: in, tree: in.Tree, authors: map[schemas.Ref]string{},
		decoder: schemas.DecoderFor(settle.TableOf(in.Tree).Schemas(), in.Tree.Settings())}
	var out []Decision
	for i := range in.Issues {
		d.issue = &in.Issues[i]
		for k := range d.issue.Comments {
			if v, ok := d.comment(&d.issue.Comments[k], out); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// comment decides one comment; before are the verdicts so far.
func (d *commandDecider) comment(c *Comment, before []Decision) (Decision, bool) {
	if c.Author.Bot || d.handled(c.ID) {
		return Decision{}, false
	}
	v := Decision{Issue: d.issue.File.Issue, Handled: schemas.MirrorHandled{
		Comment: c.ID, Digest: digest(c.Body), Outcome: schemas.HandledRefused}}
	p := Parse(c.Body)
	denied := Authorize(c.Author, &d.Tree.Settings().GitHub.Commands)
	switch {
	case len(p.Commands) == 0 && (denied != nil || c.Marked):
		return Decision{}, false
	case len(p.Commands) == 0:
		return d.plain(c, p, v)
	case denied != nil:
		v.Handled.Reply = d.once(refusalText([]string{denied.Error()}), before)
	case c.Edited && !d.begun(c.ID):
		v.Handled.Reply = refusalText([]string{editedText})
	default:
		d.commands(c, p.Commands, &v)
	}
	return v, true
}

const editedText = "It was edited before it was read; write a new comment"

func (d *commandDecider) handled(id int64) bool {
	for i := range d.issue.File.Handled {
		if d.issue.File.Handled[i].Comment == id {
			return true
		}
	}
	return false
}

// once leaves out a reply that stands on the issue already: strangers cannot make this program talk.
func (d *commandDecider) once(reply string, before []Decision) string {
	for i := range d.issue.File.Handled {
		if d.issue.File.Handled[i].Reply == reply {
			return ""
		}
	}
	for i := range before {
		if before[i].Issue == d.issue.File.Issue && before[i].Handled.Reply == reply {
			return ""
		}
	}
	return reply
}

// mostCommands is how many commands a comment may have: more are a mistake, or meant to do harm.
const mostCommands = 9

// commands takes all commands of a comment, or none.
func (d *commandDecider) commands(c *Comment, all []Command, v *Decision) {
	if len(all) > mostCommands {
		v.Handled.Reply = refusalText([]string{fmt.Sprintf("A comment may have %d commands, and this has %d", mostCommands, len(all))})
		return
	}
	d.settle()
	was, ready := d.tree, d.ready
	var said, why []string
	room := mirror.BodyLimit
	for i, cmd := range all {
		name := fmt.Sprintf("%s-%d", specName(c.ID), i+1)
		if p := d.written(name); p != "" {
			v.Handled.Specs = append(v.Handled.Specs, p)
			continue
		}
		spec, told, err := d.interpret(c, cmd, name)
		switch {
		case err != nil:
			why = append(why, commandText(cmd)+": "+err.Error())
		case spec != nil:
			v.put(spec)
			v.prove(spec, d.tree.Entry(spec.Ref), c.Author.Login)
		case told != "":
			said = append(said, replyWithin(cmd, told, &room))
		}
	}
	if len(why) > 0 {
		d.tree, d.ready = was, ready
		v.Specs, v.Handled.Specs, v.Handled.Proofs, v.Handled.Reply = nil, nil, nil, refusalText(why)
		return
	}
	v.Handled.Outcome, v.Handled.Reply = schemas.HandledAccepted, strings.Join(said, "\n\n")
}

// put adds a file that is to be written.
func (v *Decision) put(s *derive.Spec) {
	v.Specs = append(v.Specs, *s)
	v.Handled.Specs = append(v.Handled.Specs, s.Path)
}

// writtenKinds are those that comments become.
var writtenKinds = []schemas.Kind{schemas.ReplyKind, schemas.ActionKind, schemas.ObservationKind}

// begun reports whether a spec exists that was made from the comment.
func (d *commandDecider) begun(comment int64) bool {
	for n := range mostCommands {
		if d.written(fmt.Sprintf("%s-%d", specName(comment), n+1)) != "" {
			return true
		}
	}
	return d.written(specName(comment)) != ""
}

// settle decides the tree, so that requests are judged by the current state.
func (d *commandDecider) settle() {
	if !d.settled {
		d.tree, d.settled = settle.Tree(d.tree, d.Now, nil).Tree, true
	}
}

// interpret turns a command into a spec, a reply text, or neither, with the reason in Markdown.
func (d *commandDecider) interpret(c *Comment, cmd Command, name string) (*derive.Spec, string, error) {
	switch cmd.Verb {
	case Answer, Resolve, Escalate:
		return d.reply(c, cmd, name)
	case Remember:
		return d.remember(c, cmd, name)
	case Start:
		return d.start(c, cmd, name)
	case Task:
		return d.task(c, cmd, name)
	case Status, Explain, Clarify:
		told, err := d.view(cmd)
		return nil, told, err
	}
	return d.action(c, cmd, name)
}

// view returns the text in reply to a command that shows something.
func (d *commandDecider) view(cmd Command) (string, error) {
	v := View{Verb: cmd.Verb, Issue: -1}
	words := strings.Fields(cmd.Line)
	switch {
	case cmd.Verb == Clarify && len(words) > 0:
		n, ok := issueNumber(words[0])
		if !ok {
			return "", fmt.Errorf("write %s or %s", codeText("/clarify"), codeText("/clarify #42"))
		}
		v.Issue = n
	case cmd.Verb == Explain:
		t, err := d.resolveExplained(words)
		if err != nil {
			return "", err
		}
		v.Objects, v.Node = t.objects, t.node
	case cmd.Verb == Status:
		v.Objects = d.issue.Objects
	}
	return d.Show(d.tree, v), nil
}

// plain decides about a comment without a command. It is the answer to the question that waits for a person, if there
// is exactly one on the issue and the comment comes after it; otherwise it is ignored.
func (d *commandDecider) plain(c *Comment, p Parsed, v Decision) (Decision, bool) {
	if p.Plain == "" || len(d.issue.Objects) == 0 && d.tree.Ledger(d.issue.File.Issue) == nil {
		return Decision{}, false
	}
	if p := d.written(specName(c.ID)); p != "" {
		v.Handled.Outcome, v.Handled.Specs = schemas.HandledAccepted, []string{p}
		return v, true
	}
	d.settle()
	waits := d.waiting()
	if len(waits) != 1 || !d.below(c.ID, waits[0]) {
		return Decision{}, false
	}
	switch {
	case c.Edited:
		v.Handled.Reply = refusalText([]string{editedText})
		return v, true
	case p.Meant != "":
		v.Handled.Reply = refusalText([]string{codeText(firstWord([]byte(p.Plain))) + " is no command; did you mean " + codeText("/"+p.Meant) + "?"})
		return v, true
	}
	q, err := namedQuestion(d.questions(), waits[0], d.issue.File.Issue)
	if err != nil {
		return Decision{}, false
	}
	was, ready := d.tree, d.ready
	spec, err := d.say(c, &q, schemas.TurnAnswer, p.Plain, specName(c.ID))
	if err != nil {
		d.tree, d.ready = was, ready
		v.Handled.Reply = refusalText([]string{"It is no answer to " + codeText(q.id) + ": " + err.Error()})
		return v, true
	}
	v.Handled.Outcome = schemas.HandledAccepted
	v.put(spec)
	return v, true
}

// below reports whether a comment was written after those of ours that show the question: ids of GitHub only grow, and
// clocks of several machines do not agree.
func (d *commandDecider) below(id int64, clarification string) bool {
	shown := int64(0)
	for _, c := range d.issue.File.Comments {
		if strings.HasPrefix(c.Key, "round/"+clarification+"/") || strings.HasPrefix(c.Key, "escalation/"+clarification+"/") {
			shown = max(shown, c.ID)
		}
	}
	return 0 < shown && shown < id
}

// remember makes an Observation from a text, as capture does. Its author is not an agent of the tree: the observation
// is stored under the name github-<login>.
func (d *commandDecider) remember(c *Comment, cmd Command, name string) (*derive.Spec, string, error) {
	switch {
	case !*d.Tree.Settings().Memory.Enabled:
		return nil, "", fmt.Errorf("the memory is turned off: memory.enabled in %s", codeText(schemas.SettingsPath))
	case cmd.Text == "":
		return nil, "", errors.New("write what is to be remembered behind it")
	case utf8.RuneCountInString(cmd.Text) > rememberLimit:
		return nil, "", fmt.Errorf("it has more than %d characters; write it in parts", rememberLimit)
	}
	source := d.Known
	source.Agent, source.Issue, source.At = schemas.PersonAgent(c.Author.Login), d.issue.File.Issue, c.Created
	source.Text = thingsCount(cmd.Text)
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

// thingsCount returns the text to remember as the memory reads summaries: a list has one observation for each item, any
// other text is one.
func thingsCount(text string) string {
	for line := range strings.Lines(text) {
		mark, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if mark != "" && (rest == "" || mark != "-" && mark != "*" && mark != "+") {
			return "- " + strings.Join(strings.Fields(text), " ")
		}
	}
	return text
}
