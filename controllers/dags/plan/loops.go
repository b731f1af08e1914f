package plan

import (
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
)

// loop finds the loops of the nodes.
func (p *Plan) loop() {
	for _, l := range p.Spec.Loops() {
		n := &p.Spec.Nodes[l.Node]
		until, err := condition.CompileIn(n.Repeat.Until, untilScope(n))
		if err != nil {
			p.fail("node %s: repeat.until: %v", n.Name, err)
		}
		if p.loopOf == nil {
			p.loopOf = map[int32]int{}
		}
		for _, m := range l.Members {
			p.loopOf[m] = len(p.Loops)
		}
		p.Loops = append(p.Loops, Loop{Loop: l, Until: until, Max: n.Repeat.Max, at: len(p.Loops)})
	}
	for _, i := range p.Order {
		if l := p.LoopOf(i); l != nil {
			l.order = append(l.order, i)
		}
	}
}

func untilScope(n *schemas.Node) condition.Scope {
	names := n.Scope()
	names.Result = true
	return names
}

// LoopOf is the loop that node i is part of; nil for none.
func (p *Plan) LoopOf(i int32) *Loop {
	if l, ok := p.loopOf[i]; ok {
		return &p.Loops[l]
	}
	return nil
}

// bindLoops digests what the nodes of each loop do: it is part of the key of each of them from the second round on, since
// they get the results of the round before.
func (b *Binding) bindLoops(p *Plan, defs [][]byte) {
	if b.rounds == nil {
		return
	}
	b.loops = make([]string, len(b.rounds))
	for _, l := range p.Loops {
		if b.rounds[l.Node] < 2 {
			continue
		}
		digest := b.loopDigest(&l, defs)
		for _, m := range l.Members {
			b.loops[m] = digest
		}
	}
}

// loopDigest digests what the nodes of a loop do.
func (b *Binding) loopDigest(l *Loop, defs [][]byte) string {
	var buf []byte
	for _, m := range l.Members {
		buf = append(append(buf, defs[m]...), b.Inputs[m]...)
	}
	return keys.Digest(buf)
}

// loopRound is what the round adds to the key of a node: nothing in the first one.
type loopRound struct {
	number int
	of     string // what the loop does
}

// roundOf is the present round of node i.
func (b *Binding) roundOf(i int32) loopRound {
	if b.rounds != nil && b.rounds[i] > 1 {
		return loopRound{b.rounds[i], b.loops[i]}
	}
	return loopRound{}
}

func (r loopRound) append(o *keys.Object) {
	if r.number > 1 {
		o.Int("round", r.number)
		o.Text("roundOf", r.of)
	}
}

// Round is the round that node i is in, from 1; 0 for a node without a loop.
func (b *Binding) Round(i int32) int {
	if b.rounds == nil {
		return 0
	}
	return b.rounds[i]
}
