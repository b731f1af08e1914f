package slash

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf16"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/mirror"
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
}

// View is what a command wants to be shown.
type View struct {
	Verb    string        // Status, Explain or Clarify
	Issue   int           // of Clarify: whose threads, or -1 for all open ones
	Objects []schemas.Ref // of the others: the targets
	Node    string        // of Explain: only this node
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
	Specs   []controllers.Spec    // the files that are to be written: those of Handled that do not exist yet
}

// decider is where comments are decided, one after the other.
type decider struct {
	Input
	decoder *schemas.Decoder
	tree    *state.Tree // decided, with the specs accepted so far
	settled bool
	issue   *Issue
	ready   []controllers.Item // of tree; nil until asked for
}

// Decide decides about comments, in the order of the issues and the ids. A comment without a command that answers no
// question has no verdict; neither have comments of bots, or those on record. The caller leaves out comments of this
// program.
func Decide(in Input) []Decision {
	d := &decider{Input: in, tree: in.Tree,
		decoder: schemas.DecoderFor(controllers.TableOf(in.Tree).Schemas(), in.Tree.Settings())}
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

// Digest is that of a comment's body.
func Digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// comment decides one comment; before are the verdicts so far.
func (d *decider) comment(c *Comment, before []Decision) (Decision, bool) {
	if c.Author.Bot || d.handled(c.ID) {
		return Decision{}, false
	}
	v := Decision{Issue: d.issue.File.Issue, Handled: schemas.MirrorHandled{
		Comment: c.ID, Digest: Digest(c.Body), Outcome: schemas.HandledRefused}}
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

func (d *decider) handled(id int64) bool {
	for i := range d.issue.File.Handled {
		if d.issue.File.Handled[i].Comment == id {
			return true
		}
	}
	return false
}

// once leaves out a reply that stands on the issue already: strangers cannot make this program talk.
func (d *decider) once(reply string, before []Decision) string {
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
func (d *decider) commands(c *Comment, all []Command, v *Decision) {
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
		case told != "":
			said = append(said, replyWithin(cmd, told, &room))
		}
	}
	if len(why) > 0 {
		d.tree, d.ready = was, ready
		v.Specs, v.Handled.Specs, v.Handled.Reply = nil, nil, refusalText(why)
		return
	}
	v.Handled.Outcome, v.Handled.Reply = schemas.HandledAccepted, strings.Join(said, "\n\n")
}

// replyWithin returns the reply to a command, or, if the comment has no room for it, the request to repeat the command. It
// reserves room for that notice for all commands.
func replyWithin(cmd Command, told string, room *int) string {
	const spare = mostCommands * 1000
	n := len(utf16.Encode([]rune(told)))
	if n > *room-spare {
		told = commandText(cmd) + ": there is no room for it in this comment; ask in one of its own."
		n = len(utf16.Encode([]rune(told)))
	}
	*room -= n + len("\n\n")
	return told
}

// put adds a file that is to be written.
func (v *Decision) put(s *controllers.Spec) {
	v.Specs = append(v.Specs, *s)
	v.Handled.Specs = append(v.Handled.Specs, s.Path)
}

// specName is the name of the spec that a comment becomes, or begins the names of several.
func specName(comment int64) string {
	return fmt.Sprintf("%s%d", controllers.CommentSpecPrefix, comment)
}

// writtenKinds are those that comments become.
var writtenKinds = []schemas.Kind{schemas.ReplyKind, schemas.ActionKind, schemas.ObservationKind}

// written returns the path of the spec that an interrupted run made of a command; "" if it does not exist.
func (d *decider) written(name string) string {
	for _, k := range writtenKinds {
		if e := d.Tree.Entry(schemas.Ref{Kind: k.Name, Name: name}); e != nil && e.Object != nil {
			return e.Object.Path
		}
	}
	return ""
}

// begun reports whether a spec exists that was made from the comment.
func (d *decider) begun(comment int64) bool {
	for n := range mostCommands {
		if d.written(fmt.Sprintf("%s-%d", specName(comment), n+1)) != "" {
			return true
		}
	}
	return d.written(specName(comment)) != ""
}

// settle decides the tree, so that requests are judged by the current state.
func (d *decider) settle() {
	if !d.settled {
		d.tree, d.settled = controllers.Settle(d.tree, d.Now, nil).Tree, true
	}
}

// interpret turns a command into a spec, a reply text, or neither, with the reason in Markdown.
func (d *decider) interpret(c *Comment, cmd Command, name string) (*controllers.Spec, string, error) {
	switch cmd.Verb {
	case Answer, Resolve, Escalate:
		return d.reply(c, cmd, name)
	case Remember:
		return d.remember(c, cmd, name)
	case Status, Explain, Clarify:
		told, err := d.view(cmd)
		return nil, told, err
	}
	return d.action(c, cmd, name)
}

// by is how records call the author of a comment.
func by(a Actor) string { return controllers.CommentAuthorPrefix + a.Login }

// propose adds a spec to the tree and decides it. The error describes, in Markdown, an invalid spec.
func (d *decider) propose(k schemas.Kind, name string, spec schemas.Spec) (*controllers.Spec, *schemas.Object, error) {
	ref := schemas.Ref{Kind: k.Name, Name: name}
	out := &controllers.Spec{Ref: ref, Spec: spec,
		Path: path.Join(d.Tree.Settings().Folders.Specs, k.Plural, name+".yaml")}
	o, err := d.decode(out)
	if err != nil {
		return nil, nil, err
	}
	e := &state.Entry{Ref: ref}
	if old := d.tree.Entry(ref); old != nil {
		if !old.Gone() {
			return nil, nil, fmt.Errorf("%s is there already, and broken", code(ref.String()))
		}
		*e = *old
	}
	e.Object = o
	d.tree = controllers.Settle(d.tree.With(e), d.Now, []schemas.Ref{ref}).Tree
	d.ready = nil
	return out, o, nil
}

// view returns the text in reply to a command that shows something.
func (d *decider) view(cmd Command) (string, error) {
	v := View{Verb: cmd.Verb, Issue: -1}
	words := strings.Fields(cmd.Line)
	switch {
	case cmd.Verb == Clarify && len(words) > 0:
		n, ok := issueNumber(words[0])
		if !ok {
			return "", fmt.Errorf("write %s or %s", code("/clarify"), code("/clarify #42"))
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
