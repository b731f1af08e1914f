package slash

import (
	"fmt"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// digestLength is that of the digest of what a gate shows.
const digestLength = 32

// approval adds its subject to an approval: the digest among the words behind the target, and the answer in a fenced block.
func (d *commandDecider) approval(a commandTarget, spec *schemas.ActionSpec) error {
	reason, answer, err := splitFence(a.reason)
	if err != nil {
		return err
	}
	spec.Digest, reason = digestIn(reason)
	spec.Reason, spec.Answer = redactedText(reason), redactedText(answer)
	e := d.tree.Entry(a.target)
	if e == nil || a.node == "" {
		return nil
	}
	gate := dags.GateOf(settle.In{Entry: e, Tree: d.tree, World: settle.NewWorld(d.tree, d.Now, nil), Now: d.Now}, a.node)
	if gate != nil && spec.Digest == "" {
		return fmt.Errorf("say what you approve, by its digest. Now it is %s",
			codeText(strings.Join([]string{"/" + Approve, a.target.String(), a.node, gate.Digest}, " ")))
	}
	return nil
}

// digestIn finds the digest in a text; "" for none.
func digestIn(text string) (digest, rest string) {
	var words []string
	for _, word := range strings.Fields(text) {
		word := strings.Map(visible, word) // a digest that was copied from a comment of ours
		if len(word) == digestLength && strings.Trim(word, "0123456789abcdef") == "" {
			digest = word
			continue
		}
		words = append(words, word)
	}
	return digest, strings.Join(words, " ")
}

// visible is a character, or -1 for one that shows nothing, such as those between the parts of a word that GitHub must not link.
func visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

// splitFence divides a text into the part before its first fenced block, and the content of that. A block of YAML becomes JSON.
func splitFence(text string) (before, inside string, err error) {
	const fence = "```"
	before, rest, ok := strings.Cut(text, fence)
	if !ok {
		return text, "", nil
	}
	language, rest, _ := strings.Cut(rest, "\n")
	inside, _, _ = strings.Cut(rest, fence)
	if language = strings.ToLower(strings.TrimSpace(language)); language == "yaml" || language == "yml" {
		data, err := schemas.JSONOfYAML("block", []byte(inside))
		if err != nil {
			return "", "", fmt.Errorf("the block is not YAML: %s", codeText(err.Error()))
		}
		inside = string(data)
	}
	return strings.TrimSpace(before), strings.TrimSpace(inside), nil
}

// identify implements settle.Decider.Identify for the approvals that were made from comments now.
func (d *commandDecider) identify(action schemas.Ref) (settle.Identity, bool) {
	author, ok := d.authors[action]
	return settle.Identity{Who: settle.CommentAuthorPrefix + author, Proof: schemas.ProofGitHub}, ok
}

// refused says why an approval was not accepted; "" if it was.
func (d *commandDecider) refused(spec *schemas.ActionSpec, name string) string {
	target, err := spec.TargetRef()
	if err != nil {
		return ""
	}
	for _, a := range schemas.AppliedTo(d.tree.Entry(target).Status()) {
		if a.Name == name {
			return a.Refused
		}
	}
	return ""
}
