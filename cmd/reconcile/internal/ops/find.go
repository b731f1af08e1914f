package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Find returns the object that word names: kind/name, or a ClarificationRequest by the id of its clarification.
func Find(t *state.Tree, word string) (*state.Entry, error) {
	if name, ok := clarificationID(word); ok {
		return findByID(t, name)
	}
	ref, err := ParseRef(word)
	if err != nil {
		return nil, err
	}
	if e := t.Entry(ref); e != nil {
		return e, nil
	}
	return nil, NotFound(t, ref)
}

// ParseRef reads kind/name.
func ParseRef(word string) (schemas.Ref, error) {
	ref, err := controllers.Schemas().ParseRef(word)
	if err != nil {
		return schemas.Ref{}, badRequest("%w", err)
	}
	return ref, nil
}

// clarificationID is the id that word is, as CLR-42-001 or clarificationrequest/CLR-42-001, in any case.
func clarificationID(word string) (id string, ok bool) {
	kind, name, qualified := strings.Cut(word, "/")
	if !qualified {
		name = kind
	} else if k, known := controllers.Schemas().Find(kind); !known || k.Name != schemas.ClarificationRequestKind.Name {
		return "", false
	}
	_, _, ok = clarify.ReadID(name)
	return name, ok
}

// findByID returns the first request by name that has the id. A request whose name is the word itself comes first.
func findByID(t *state.Tree, word string) (*state.Entry, error) {
	if e := t.Entry(RequestRef(word)); e != nil {
		return e, nil
	}
	id, issue, _ := clarify.ReadID(word)
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		if RequestStatus(e).ID == id {
			return e, nil
		}
	}
	return nil, threadNotFound(t, id, issue)
}

// findRef is [Find] for operations that need no object to be there: only an id is looked up in the tree.
func (e Env) findRef(ctx context.Context, word string) (schemas.Ref, error) {
	if _, ok := clarificationID(word); !ok {
		return ParseRef(word)
	}
	s, t, err := e.load(ctx)
	if err != nil {
		return schemas.Ref{}, err
	}
	defer s.Close()
	found, err := Find(t, word)
	if err != nil {
		return schemas.Ref{}, err
	}
	return found.Ref, nil
}

// NotFound says that ref does not exist, and what was probably meant.
func NotFound(t *state.Tree, ref schemas.Ref) error {
	var names []string
	for _, e := range t.Entries(ref.Kind) {
		if !e.Gone() {
			names = append(names, e.Name)
		}
	}
	word := strings.ToLower(ref.Kind)
	if len(names) == 0 {
		return fmt.Errorf("%s does not exist; the tree has no %s at all", ref, word)
	}
	hint := schemas.DidYouMean(ref.Name, names)
	if hint == "" {
		hint = fmt.Sprintf("; \"reconcile get %s\" lists what there is", word)
	}
	return fmt.Errorf("%s does not exist%s", ref, hint)
}

// FindNode checks that a DAG has a node.
func FindNode(e *state.Entry, node string) error {
	if schemas.SpecAs[*schemas.DAGSpec](e.Object) == nil {
		return fmt.Errorf("%s has no nodes", e.Ref)
	}
	names := controllers.NodeNames(e)
	if slices.Contains(names, node) {
		return nil
	}
	hint := schemas.DidYouMean(node, names)
	if hint == "" {
		hint = "; its nodes: " + schemas.Shorten(names, 20)
	}
	return fmt.Errorf("%s has no node %q%s", e.Ref, node, hint)
}

// NoThreadID says that a word is neither the form of an id nor the name of a request.
func NoThreadID(word string) error {
	return badRequest("%s is neither the id of a clarification, which is CLR-ISSUE-NUMBER as CLR-42-001, nor the name of "+
		"a request", ArgumentName(word))
}

// ArgumentName is an argument for messages, which do not repeat what is a text rather than a name.
func ArgumentName(word string) string {
	const most = 63 // bytes, as a name has
	if len(word) > most || strings.ContainsFunc(word, unicode.IsSpace) {
		return "a text of " + schemas.Count(utf8.RuneCountInString(word), "character")
	}
	return strconv.Quote(word)
}

// AgentRef names an agent.
func AgentRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.AgentKind.Name, Name: name} }

// FindAgent returns the entry of an agent that can be used.
func FindAgent(t *state.Tree, name string) (*state.Entry, error) {
	e := t.Entry(AgentRef(name))
	switch {
	case e == nil || e.Gone():
		return nil, NotFound(t, AgentRef(name))
	case e.Broken():
		return nil, fmt.Errorf("%s cannot be used: %s", e.Ref, e.Problems[0].Error())
	}
	return e, nil
}

// RequestRef names a clarification request.
func RequestRef(name string) schemas.Ref {
	return schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: name}
}

// RequestSpec is nil where there is none.
func RequestSpec(e *state.Entry) *schemas.ClarificationRequestSpec {
	if e == nil {
		return nil
	}
	return schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
}

// RequestStatus is never nil, and must not be changed.
func RequestStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	if e != nil {
		if st, ok := e.Status().(*schemas.ClarificationRequestStatus); ok {
			return st
		}
	}
	return new(schemas.ClarificationRequestStatus)
}

// FindThread returns the clarification that a word names: by its id, in any case and without leading zeros if they are
// left out, or by the name of its request.
func FindThread(t *state.Tree, word string) (controllers.Thread, error) {
	if id, issue, ok := clarify.ReadID(word); ok {
		for _, m := range controllers.Threads(t, issue, false) {
			if m.ID == id {
				return m, nil
			}
		}
		return controllers.Thread{}, threadNotFound(t, id, issue)
	}
	e := t.Entry(RequestRef(word))
	switch {
	case RequestSpec(e) != nil:
	case strings.HasPrefix(word, "clr-"):
		return controllers.Thread{}, NoThreadID(word)
	default:
		return controllers.Thread{}, threadNotFound(t, word, -1)
	}
	issue, id := RequestSpec(e).Issue, RequestStatus(e).ID
	for _, m := range controllers.Threads(t, issue, false) {
		if m.Entry == e && m.ID == id {
			return m, nil
		}
	}
	return controllers.RequestedThread(t, e), nil
}

// threadNotFound says that there is no such clarification, and which was probably meant: of the issue, or of any with -1.
func threadNotFound(t *state.Tree, word string, issue int) error {
	var names []string
	for _, m := range controllers.Threads(t, issue, false) {
		names = append(names, m.Title())
		if m.ID != "" && m.Request != "" {
			names = append(names, m.Request)
		}
	}
	hint := schemas.DidYouMean(word, names)
	switch {
	case hint != "":
	case issue >= 0 && len(names) == 0:
		hint = fmt.Sprintf("; nothing was asked about issue %d", issue)
	case issue >= 0:
		hint = fmt.Sprintf("; \"reconcile clarify --issue %d\" shows what was asked there", issue)
	default:
		hint = `; "reconcile clarify" lists what is open`
	}
	err := clarify.NewNotFound(word)
	err.Message += hint
	return err
}
