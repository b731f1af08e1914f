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

// Comment is one comment of somebody.
type Comment struct {
	ID      int64
	Author  Actor
	Body    string
	Created time.Time
	Edited  bool // it was changed before it was read
	// Marked says that it ends in a marker as those of this program do, which it did not make or does not know any more.
	// It may have commands, and is no answer.
	Marked bool
}

// Issue is a mirrored issue with what is new on it.
type Issue struct {
	File     *schemas.MirrorFile // what is on record of it
	Objects  []schemas.Ref       // the sessions, DAGs and requests that it stands for, sorted
	Comments []Comment           // those that were not read before, by their ids
}

// View is what a command wants to be shown.
type View struct {
	Verb    string        // Status, Explain or Clarify
	Issue   int           // of Clarify: whose threads, or -1 for what is open anywhere
	Objects []schemas.Ref // of the others: what it is about
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

// Verdict is what is made of a comment.
type Verdict struct {
	Issue   int
	Handled schemas.MirrorHandled // without a receipt
	Specs   []controllers.Spec    // the files that are to be written: those of Handled that do not exist yet
}

// desk is where comments are decided, one after the other.
type desk struct {
	Input
	decoder *schemas.Decoder
	tree    *state.Tree // decided, with what was accepted so far
	settled bool
	issue   *Issue
	ready   []controllers.Item // of tree; nil until asked for
}

// Decide says what is made of comments, in the order of the issues and the ids. What no command is in, and answers no
// question, has no verdict; neither have comments of bots, or those that are on record already. Those of this program are
// not given.
func Decide(in Input) []Verdict {
	d := &desk{Input: in, tree: in.Tree,
		decoder: schemas.DecoderFor(controllers.TableOf(in.Tree).Schemas(), in.Tree.Settings())}
	var out []Verdict
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
func (d *desk) comment(c *Comment, before []Verdict) (Verdict, bool) {
	if c.Author.Bot || d.handled(c.ID) {
		return Verdict{}, false
	}
	v := Verdict{Issue: d.issue.File.Issue, Handled: schemas.MirrorHandled{
		Comment: c.ID, Digest: Digest(c.Body), Outcome: schemas.HandledRefused}}
	p := Parse(c.Body)
	denied := Authorize(c.Author, &d.Tree.Settings().GitHub.Commands)
	switch {
	case len(p.Commands) == 0 && (denied != nil || c.Marked):
		return Verdict{}, false
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

func (d *desk) handled(id int64) bool {
	for i := range d.issue.File.Handled {
		if d.issue.File.Handled[i].Comment == id {
			return true
		}
	}
	return false
}

// once leaves out a reply that stands on the issue already: strangers cannot make this program talk.
func (d *desk) once(reply string, before []Verdict) string {
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
func (d *desk) commands(c *Comment, all []Command, v *Verdict) {
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
			said = append(said, fitting(cmd, told, &room))
		}
	}
	if len(why) > 0 {
		d.tree, d.ready = was, ready
		v.Specs, v.Handled.Specs, v.Handled.Reply = nil, nil, refusalText(why)
		return
	}
	v.Handled.Outcome, v.Handled.Reply = schemas.HandledAccepted, strings.Join(said, "\n\n")
}

// fitting is what a command is told, or, where a comment has no room for it any more, that it is to be asked again. Room
// for saying so is left for all.
func fitting(cmd Command, told string, room *int) string {
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
func (v *Verdict) put(s *controllers.Spec) {
	v.Specs = append(v.Specs, *s)
	v.Handled.Specs = append(v.Handled.Specs, s.Path)
}

// specName is the name of the spec that a comment becomes, or begins the names of several.
func specName(comment int64) string {
	return fmt.Sprintf("%s%d", controllers.CommentSpecPrefix, comment)
}

// writtenKinds are those that comments become.
var writtenKinds = []schemas.Kind{schemas.ReplyKind, schemas.ActionKind, schemas.ObservationKind}

// written is the path of the spec that was made of a command before, by somebody who was killed then; "" if none was.
func (d *desk) written(name string) string {
	for _, k := range writtenKinds {
		if e := d.Tree.Entry(schemas.Ref{Kind: k.Name, Name: name}); e != nil && e.Object != nil {
			return e.Object.Path
		}
	}
	return ""
}

// begun reports whether a spec was made of the comment before.
func (d *desk) begun(comment int64) bool {
	for n := range mostCommands {
		if d.written(fmt.Sprintf("%s-%d", specName(comment), n+1)) != "" {
			return true
		}
	}
	return d.written(specName(comment)) != ""
}

// settle decides the tree, so that what is asked is judged by how things stand now.
func (d *desk) settle() {
	if !d.settled {
		d.tree, d.settled = controllers.Settle(d.tree, d.Now, nil).Tree, true
	}
}

// interpret makes of a command a spec, a text that is told, or neither, with the reason in Markdown.
func (d *desk) interpret(c *Comment, cmd Command, name string) (*controllers.Spec, string, error) {
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

// propose puts a spec into the tree and decides it. The error says, in Markdown, what is wrong with the spec itself.
func (d *desk) propose(k schemas.Kind, name string, spec schemas.Spec) (*controllers.Spec, *schemas.Object, error) {
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

// view is what a command is told.
func (d *desk) view(cmd Command) (string, error) {
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
		t, err := d.explained(words)
		if err != nil {
			return "", err
		}
		v.Objects, v.Node = t.objects, t.node
	case cmd.Verb == Status:
		v.Objects = d.issue.Objects
	}
	return d.Show(d.tree, v), nil
}
